"""What was measured, kept as JSON beside the logs, and on which machine with which versions."""

import importlib.metadata
import json
import os
import platform
import statistics
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.contestant import Measured

GIB = 1024**3
MIB = 1024**2
PACKAGES = ("ranklake", "pyspark", "delta-spark", "duckdb", "polars", "deltalake")

Result = dict[str, Any]


def of_runs(runs: Iterable[Measured], rows: int) -> Result:
    """The numbers of an entrant's runs."""
    runs = list(runs)
    cpu = statistics.median(run.cpu_seconds for run in runs)
    return {
        "seconds": [run.seconds for run in runs],
        "cpu_seconds": cpu,
        "peak_bytes": max(run.peak_bytes for run in runs),
        "rows_per_core_second": rows / cpu if cpu else None,
        "moved": {
            name: statistics.median(run.moved[name] for run in runs) for name in runs[0].moved
        },
    }


def ratio(one: Result, other: Result) -> float | None:
    """The median over the rounds of one's seconds by the other's; None where one has no runs."""
    if "seconds" not in one or "seconds" not in other:
        return None
    pairs = zip(one["seconds"], other["seconds"], strict=True)
    return statistics.median(ours / theirs for ours, theirs in pairs)


def is_met(ratio: float | None, limit: float | None, *, is_least: bool = False) -> bool | None:
    """Whether a ratio is as wanted; None where there is nothing to say."""
    if ratio is None or limit is None:
        return None
    return ratio >= limit if is_least else ratio <= limit


def surroundings(command: str) -> Result:
    """Machine, versions, and how it was run."""
    return {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB, 1),
        "system": f"{platform.system()} {platform.release()}",
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
    }


def kept(home: Path, name: str, result: Mapping[str, Any]) -> None:
    """Store a result under its name, in place of an earlier one."""
    folder = home / "results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1))


def stored(home: Path) -> dict[str, Result]:
    """All results by name."""
    files = sorted((home / "results").glob("*.json"))
    return {file.stem: json.loads(file.read_text()) for file in files}


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
