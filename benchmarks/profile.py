"""Where the time of ranklake's plan goes: its prefixes, each run to a trivial aggregate.

A prefix ends in a sum over all of its columns, so that none is pruned and nothing is written; the
numbers are of the same session, after a run to get warm.
"""

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from benchmarks import log, results
from benchmarks.contestant import Contestant, ContestantFailed
from benchmarks.measures import Found
from benchmarks.ours import Plan, config_of
from benchmarks.sparks import started
from ranklake import label, rank

STAGES = (*("scan", "counts by query", "semi-filter", "exchange, dedup", "window", "hits → sums"),)
"""The prefixes; the second is a branch of its own, and the last is the whole plan with both."""


def prepared(options: dict) -> Callable[[], Found]:
    """Options as of `ours`; finds the seconds of each stage, under `seconds`."""
    plan = Plan(started(options["engine"]), config_of(options))
    return lambda: {"seconds": {name: _seconds(run) for name, run in stages(plan).items()}}


def profiled(home: Path, rows: int, n_runs: int) -> results.Result:
    """Median seconds of each stage, by layout and engine."""
    found: dict[str, dict[str, dict[str, float] | str]] = {}
    for layout in ("clustered", "scattered"):
        place = home / f"{layout}-{rows}"
        log.generated(place, rows=rows, layout=layout)
        found[layout] = {e: _of_engine(e, place, home, n_runs) for e in ("comet", "jvm")}
    return {"rows": rows, "stages": found}


def _of_engine(engine: str, place: Path, home: Path, n_runs: int) -> dict[str, float] | str:
    errors = home / "errors" / f"profile-{engine}.txt"
    errors.parent.mkdir(parents=True, exist_ok=True)
    options = {"log": str(place), "engine": engine}
    try:
        contestant = Contestant("benchmarks.profile", options, errors=errors)
    except ContestantFailed as error:
        return str(error)
    try:
        runs = [contestant.run().found["seconds"] for _ in range(n_runs + 1)][1:]
    finally:
        contestant.stop()
    return {name: statistics.median(run[name] for run in runs) for name in STAGES}


def stages(plan: Plan) -> dict[str, Callable[[], object]]:
    """What runs each stage with all that comes before it."""
    frames, measures = plan.frames, plan.config.per_query
    gains = [label.gain_column(name) for name in plan.config.labels]
    kept = frames.served.join(F.broadcast(frames.hashes), on=["query_hash"], how="left_semi")
    items = frames._items()
    numbered = items.transform(
        rank.numbered, gains=gains, order=frames.order, measures=measures, is_unique=True
    )
    prefixes = (frames.served, frames.queries(), kept, items, numbered)
    runs = [touched(prefix).collect for prefix in prefixes]
    return dict(zip(STAGES, [*runs, plan.sums], strict=True))


def touched(rows: DataFrame) -> DataFrame:
    """One row that needs every value of every column."""
    return rows.agg(*[F.sum(_size(field)).alias(field.name) for field in rows.schema])


def _size(field: T.StructField) -> Column:
    value = F.col(field.name)
    if isinstance(field.dataType, T.StringType):
        return F.length(value)
    return value.cast("double")


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin
