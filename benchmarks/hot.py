"""One query of millions of candidates, among small ones: that it is ranked, and in what memory.

    .venv/bin/python -m benchmarks.hot --candidates 5000000 --memory 2g

Every candidate of the hot query has a score of its own and two are clicked, the fifth and the last
one: so its average precision is known. A process has the memory that is said, however large the
query: what does not fit is spilled.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import duckdb
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.contestant import Contestant
from benchmarks.log import DAY
from benchmarks.measures import Found
from benchmarks.results import GIB
from benchmarks.sparks import started
from ranklake.config import of_values
from ranklake.pipeline import evaluate

_IMPRESSIONS = """
    select 'm1' as model_version, 'hot' as query_id, 'i' || i as item_id,
        ({n} - i)::double as score, date '{day}' as event_date from range({n}) t(i)
    union all select 'm1', 'q' || q, 'i' || i, (20 - i)::double, date '{day}'
    from range(1000) t(q), range(20) s(i)
"""
_CLICKS = """
    select 'hot' as query_id, item_id, date '{day}' as event_date
    from (values ('i4'), ('i' || ({n} - 1))) t(item_id)
"""


def prepared(options: Mapping[str, Any]) -> Callable[[], Found]:
    """Options: log, engine, candidates. Finds the mean AP and recall@10 of the labelled queries."""
    spark = started(options["engine"])
    names = ("impressions", "clicks")
    inputs = {n: {"path": f"{options['log']}/{n}.parquet", "format": "parquet"} for n in names}
    config = of_values(
        {
            **{"ks": [10], "metrics": ["recall"], "measures": ["AP"], "inputs": inputs},
            **{"engine": options["engine"], "candidates": ["served"]},
            "max_candidates_per_query": options["candidates"],
        }
    )

    def run() -> Found:
        rows = evaluate(spark, config, date.fromisoformat(DAY)).metrics.to_pylist()
        means = [row for row in rows if row["population"] == "with_relevant"]
        return {"all": {row["metric"]: row["value"] for row in means}}

    return run


def main(
    candidates: Annotated[int, typer.Option(help="Of the one hot query.")] = 5_000_000,
    memory: Annotated[str, typer.Option(help="RANKLAKE_DRIVER_MEMORY of each process.")] = "2g",
) -> None:
    """Print time and peak memory of both engines; fail where a number is wrong."""
    table = Table("engine", "memory", "candidates", "seconds", "peak of all processes, GiB")
    home = Path(tempfile.mkdtemp(prefix="ranklake-hot-"))
    expected = {"ap": (1 / 5 + 2 / candidates) / 2, "recall": 1 / 2}
    try:
        for name, query in (("impressions", _IMPRESSIONS), ("clicks", _CLICKS)):
            rows = query.format(n=candidates, day=DAY)
            duckdb.execute(f"copy ({rows}) to '{home}/{name}.parquet' (format parquet)")
        for engine in ("jvm", "comet"):
            options = {"log": str(home), "engine": engine, "candidates": candidates}
            environment = {"RANKLAKE_DRIVER_MEMORY": memory}
            hot = Contestant(
                "benchmarks.hot", options, errors=home / "errors.txt", environment=environment
            )
            try:
                run = hot.run()
            finally:
                hot.stop()
            found = run.found["all"]
            if any(abs(found[name] - value) > 1e-12 for name, value in expected.items()):
                raise SystemExit(f"{engine}: found {found}, expected {expected}")
            seconds, peak = f"{run.seconds:.1f}", f"{run.peak_bytes / GIB:.1f}"
            table.add_row(engine, memory, f"{candidates:,}", seconds, peak)
    finally:
        shutil.rmtree(home)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(typer.run(main))
