"""What a tree of processes uses, from /proc. Plain Python: every peer's environment imports it."""

import os
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def tree(root: int) -> list[int]:
    """The process and all below it, as far as they run."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children[int(fields[1])].append(int(entry.name))
    found = [root]
    for process in found:
        found += children[process]
    return found


def is_running(process: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    fields = _stat(process)
    return fields is not None and fields[0] != "Z"


def cpu_seconds(root: int) -> float:
    """CPU time of the tree so far; of processes that ended too, once they were waited for."""
    used = [fields[11:15] for process in tree(root) if (fields := _stat(process))]
    return sum(int(ticks) for fields in used for ticks in fields) / _TICKS


def resident_bytes(root: int) -> int:
    """The sum of the resident memory of the tree; pages that two of them share count twice."""
    return sum(_resident(process) for process in tree(root)) * _PAGE


def bytes_moved(root: int) -> dict[str, int]:
    """Bytes that the tree has read and written so far, from the file cache or the disk."""
    moved = {"rchar": 0, "wchar": 0}
    for process in tree(root):
        try:
            lines = Path(f"/proc/{process}/io").read_text().splitlines()
        except OSError:
            continue
        for name, value in (line.split(": ") for line in lines):
            if name in moved:
                moved[name] += int(value)
    return {"read": moved["rchar"], "written": moved["wchar"]}


@dataclass
class Watched:
    """While it is open, the resident memory of a tree is looked at; `peak` is the most it had."""

    root: int
    every_seconds: float = 0.2
    peak: int = 0
    _end: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Watched":
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            self.peak = max(self.peak, resident_bytes(self.root))
            if self._end.wait(self.every_seconds):
                return


def _stat(process: int) -> list[str] | None:
    """The fields of /proc/<process>/stat behind the name; None when it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0
