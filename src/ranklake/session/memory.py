"""How much memory a local session may take: half of what this process may use."""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ranklake.errors import ConfigError

GIB = 1024**3
LEAST, MOST = 1 * GIB, 16 * GIB

# /proc/self/cgroup names a controller ('' is version 2); its limit is a file below one of these.
_CGROUP_LIMITS = {"": (".", "memory.max"), "memory": ("memory", "memory.limit_in_bytes")}


def driver_memory(root: Path = Path("/")) -> str:
    """The value of spark.driver.memory, `<n>m`; RANKLAKE_DRIVER_MEMORY wins.

    `root` is where /proc and /sys are found.
    """
    if chosen := os.environ.get("RANKLAKE_DRIVER_MEMORY"):
        return _checked(chosen)
    available = min([_physical_memory(), *_cgroup_limits(root)])
    return f"{fitted(available) // 1024**2}m"


def fitted(available: int) -> int:
    """Half of the available bytes: the other half is for Python, Arrow and the file cache.

    >>> [fitted(n * GIB) // GIB for n in (1, 8, 64)]
    [1, 4, 16]
    """
    return max(LEAST, min(available // 2, MOST))


def heap_and_off_heap(total: str) -> tuple[str, str]:
    """A total as driver_memory tells it, divided 40 to 60: Comet works outside of the heap.

    >>> heap_and_off_heap("5g"), heap_and_off_heap("1500m")
    (('2048m', '3072m'), ('600m', '900m'))
    """
    n_mib = int(total[:-1]) * (1024 if total.endswith("g") else 1)
    heap = n_mib * 2 // 5
    return f"{heap}m", f"{n_mib - heap}m"


def _checked(chosen: str) -> str:
    if re.fullmatch(r"[1-9]\d*[mg]", chosen):
        return chosen
    raise ConfigError(f"RANKLAKE_DRIVER_MEMORY: found '{chosen}', expected for example 3g or 1500m")


def _physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cgroup_limits(root: Path) -> Iterator[int]:
    """The limits of this process's group and of every group around it, in bytes."""
    groups = root / "proc/self/cgroup"
    for line in groups.read_text().splitlines() if groups.is_file() else ():
        _, controllers, group = line.split(":", 2)
        if controllers not in _CGROUP_LIMITS:
            continue
        folder, name = _CGROUP_LIMITS[controllers]
        path = PurePosixPath(group.lstrip("/"))
        for place in (path, *path.parents):
            limit = root / "sys/fs/cgroup" / folder / place / name
            if limit.is_file() and (text := limit.read_text().strip()) != "max":
                yield int(text)
