"""A contestant in a process of its own, so that several stay warm and can be asked in turn.

    python -m benchmarks.contestant benchmarks.peers.duckdb '{"log": "build/bench/log"}'

Prepares, answers `{"ready": ...}`, and then answers every line of its input with a run, as JSON:
seconds, cpu_seconds of its process tree, bytes read and written, and what it found. The environment
of any peer can start this: nothing is imported but plain Python and the contestant's own module.
"""

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measures import Found
from benchmarks.processes import Watched, bytes_moved, cpu_seconds, is_running, tree

ROOT = Path(__file__).resolve().parents[1]


class ContestantFailed(Exception):
    """A contestant ended where an answer was expected."""


@dataclass(frozen=True)
class Measured:
    """One run; `peak_bytes` is the memory of the contestant's whole process tree."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    moved: dict[str, int]
    found: Found


class Contestant:
    """The driver's end: a started worker, which runs when it is told to."""

    def __init__(
        self,
        module: str,
        options: Mapping[str, Any],
        *,
        python: str = sys.executable,
        errors: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._errors = errors
        with errors.open("w") as sink:
            self._process = subprocess.Popen(
                [python, "-m", "benchmarks.contestant", module, json.dumps(options)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                text=True,
                cwd=ROOT,
                env={**os.environ, **(environment or {})},
            )
        self.ready = self._answer()

    def run(self) -> Measured:
        """One run, while nothing else is asked to run."""
        with Watched(self._process.pid) as watched:
            print(file=self._process.stdin, flush=True)
            answer = self._answer()
        return Measured(peak_bytes=watched.peak, **answer)

    def stop(self) -> None:
        """The worker ends with its input, its JVM with it; what is left after that is killed."""
        _, *below = tree(self._process.pid)
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=30)
        self._process.kill()
        self._process.wait()
        end = time.monotonic() + 10
        while (left := [p for p in below if is_running(p)]) and time.monotonic() < end:
            time.sleep(0.2)
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        last = self._errors.read_text().strip().splitlines()[-1:]
        raise ContestantFailed(f"{last[0] if last else 'no message'} ({self._errors})")


def main() -> None:
    """The worker's end."""
    # Whatever a library prints goes to stderr: the answers alone are on stdout.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    module, options = importlib.import_module(sys.argv[1]), json.loads(sys.argv[2])
    begin = time.perf_counter()
    run = module.prepared(options)
    print(json.dumps({"ready": time.perf_counter() - begin}), file=answers, flush=True)
    for _ in sys.stdin:
        cpu, moved, begin = cpu_seconds(os.getpid()), bytes_moved(os.getpid()), time.perf_counter()
        found = run()
        seconds = time.perf_counter() - begin
        after = bytes_moved(os.getpid())
        answer = {
            "seconds": seconds,
            "cpu_seconds": cpu_seconds(os.getpid()) - cpu,
            "moved": {name: after[name] - moved[name] for name in moved},
            "found": found,
        }
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
