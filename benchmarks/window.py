"""Two models compared over a month of days: how long it takes and how much memory, from disk.

    .venv/bin/python -m benchmarks.window

The lake has 28 days of 2 models, 20 measures on 50 slices, in 400 buckets; its sums are drawn, not
ranked. Each run is a process of its own, as a person or a scheduler starts it; no JVM is among its
children. The memory is the largest that it had at once (VmHWM).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from multiprocessing import Process
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from deltalake import write_deltalake
from rich.console import Console
from rich.table import Table

from benchmarks.results import MIB
from ranklake import metrics, schemas
from ranklake.aggregate import items
from ranklake.estimate import estimated, with_maturity

MODELS = ("v1", "v2")
FIRST = date(2026, 1, 1)
LABEL_AS_OF = datetime(2026, 3, 1, tzinfo=UTC)
KS = (1, 5, 10, 20)
METRICS = ("hit_rate", "ndcg", "precision", "recall", "rr")
_MEASURES = [
    *(("n_queries", 0, population.value) for population in metrics.Population),
    *(
        (name, k, population.value)
        for name in METRICS
        for population in metrics.metric(name).populations
        for k in KS
    ),
]
"""Metric, cut-off and population of each row of a slice."""
N_BUCKETS = 400
QUERIES_A_BUCKET = 50

MOST_SECONDS, MOST_BYTES = 3.0, 500_000_000


def main(
    days: Annotated[int, typer.Option(help="Of the window.")] = 28,
    slices: Annotated[int, typer.Option(help="Values of the slice, every query among them.")] = 50,
    runs: Annotated[int, typer.Option(help="Of which the median counts.")] = 5,
) -> None:
    """Print each run's seconds and memory; fail where the medians are above the limits."""
    home = Path(tempfile.mkdtemp(prefix="ranklake-window-"))
    try:
        # In a process of its own: a child's peak begins at what its parent holds.
        writing = Process(target=_written, args=(home, days, slices))
        writing.start()
        writing.join()
        last = FIRST + timedelta(days=days - 1)
        command = [
            *(f"{sys.prefix}/bin/ranklake", "compare", MODELS[1], "--baseline", MODELS[0]),
            *("--lake", str(home), "--dates", f"{FIRST}..{last}", "--output", "json"),
            *("--slice", "all", "--slice", "country"),
        ]
        found = [_measured(command, home / "found.json") for _ in range(runs)]
        n_rows = (home / "found.json").read_text().count('"delta"')
        n_bytes = sum(file.stat().st_size for file in home.rglob("*.parquet"))
    finally:
        shutil.rmtree(home)
    expected = slices * len(METRICS) * len(KS)
    if n_rows != expected:
        raise SystemExit(f"found {n_rows} differences, expected {expected}")
    _print(found, f"{days} days, {n_rows} differences, {n_bytes / MIB:.0f} MiB of Parquet")


def _print(found: Sequence[tuple[float, int]], title: str) -> None:
    table = Table("run", "seconds", "peak memory, MiB", title=title)
    for number, (seconds, peak) in enumerate(found, start=1):
        table.add_row(str(number), f"{seconds:.2f}", f"{peak / MIB:.0f}")
    seconds, peak = (median(column) for column in zip(*found, strict=True))
    table.add_row("median", f"{seconds:.2f}", f"{peak / MIB:.0f}", style="bold")
    Console().print(table)
    if seconds > MOST_SECONDS or peak > MOST_BYTES:
        raise SystemExit(f"expected {MOST_SECONDS} s and {MOST_BYTES / MIB:.0f} MiB at most")


def _measured(command: Sequence[str], to: Path) -> tuple[float, int]:
    """Seconds and bytes of memory of one run of the command, which prints into a file."""
    began = perf_counter()
    with to.open("wb") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(process.pid, 0)
    seconds = perf_counter() - began
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(command)}: ended with {os.waitstatus_to_exitcode(status)}")
    return seconds, used.ru_maxrss * 1024


def _written(home: Path, n_days: int, n_slices: int) -> None:
    """A lake with so many days, each published in one commit a table, as a run does."""
    rng = np.random.default_rng(1)
    keys = _keys(n_slices)
    for number in range(n_days):
        day, sums = FIRST + timedelta(days=number), _sums(rng, keys)
        found = with_maturity(
            estimated(sums, confidence=0.95), label_as_of=LABEL_AS_OF, is_mature=True
        )
        rows = {
            schemas.METRIC_SUMS: sums,
            schemas.METRICS: found,
            schemas.QUALITY: _checked(),
        }
        for table, of_table in rows.items():
            known = {"event_date": day, "run_id": f"run-{day}"}
            write_deltalake(
                home / table.name,
                schemas.arrow_rows(of_table, table, **known),
                mode="append",
                partition_by=[*table.partitioned_by],
            )


def _checked() -> pa.Table:
    """The rows of quality of a day: a run has hundreds, of which a comparison wants none."""
    known = {"name": "impressions.rows", "value": 1.0, "n_rows": 1, "limit": None, "status": "ok"}
    return pa.Table.from_pylist([{"model_version": model, **known} for model in MODELS])


def _keys(n_slices: int) -> list[dict[str, object]]:
    """The keys of the rows of a day."""
    values = [("all", "all"), *(("country", f"c{number:02}") for number in range(1, n_slices))]
    return [
        {"model_version": model, "slice": name, "slice_value": value, "label": "click"}
        | {"population": population, "metric": metric, "variant": "", "k": k}
        for model in MODELS
        for name, value in values
        for metric, k, population in _MEASURES
    ]


def _sums(rng: np.random.Generator, keys: Sequence[dict[str, object]]) -> pa.Table:
    """Rows of metric_sums: the queries are the same for all measures and models of a slice."""
    n_measures = len(_MEASURES)
    n_slices = len(keys) // n_measures // len(MODELS)
    queries = rng.poisson(QUERIES_A_BUCKET, size=(n_slices, N_BUCKETS)).astype(float)
    den = np.tile(np.repeat(queries, n_measures, axis=0), (len(MODELS), 1))
    share = rng.uniform(0.2, 0.6, size=(len(keys), 1)) + rng.normal(0, 0.05, size=den.shape)
    is_count = np.array([key["metric"] == "n_queries" for key in keys])
    num = np.where(is_count[:, None], den, np.clip(share, 0, 1) * den)
    hashes = rng.integers(1, 2**62, size=(n_slices, N_BUCKETS))
    fingerprints = np.tile(np.repeat(hashes, n_measures, axis=0), (len(MODELS), 1))
    lists = {name: list(array) for name, array in (("num", num), ("den", den))}
    of_queries = [
        row if key["metric"] == "n_queries" and key["population"] == "all" else None
        for key, row in zip(keys, fingerprints, strict=True)
    ]
    table = pa.Table.from_pylist(list(keys))
    for name, values in {**lists, "fingerprint": of_queries}.items():
        table = table.append_column(name, pa.array(values))
    definitions = [f"{key['metric']}-{key['k']}".ljust(16, "0") for key in keys]
    table = table.append_column("definition_hash", pa.array(definitions))
    return items.beside(table, None, measures=(), n_buckets=N_BUCKETS)


if __name__ == "__main__":
    sys.exit(typer.run(main))
