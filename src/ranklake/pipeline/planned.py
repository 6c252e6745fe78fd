"""What would execute a day's plan, told before it runs."""

from collections.abc import Iterator

from pyspark.sql import SparkSession

from ranklake.config import EvalConfig
from ranklake.engine import Coverage, coverage_of, engine_of
from ranklake.pipeline.assembled import frames_of
from ranklake.pipeline.inputs import Day


def engine_lines(spark: SparkSession, config: EvalConfig, day: Day) -> Iterator[str]:
    """Which engine executes the ranking and measuring of the day, and which nodes it leaves out.

    The plan is made, not run. Slices without a list in the configuration count as open.
    """
    engine = engine_of(spark)
    if engine == "jvm":
        yield "engine: jvm"
        return
    slice_lists = {name: config.slices.values.get(name) for name in config.slices.columns}
    coverage = coverage_of(frames_of(day, config, slice_lists).per_query(config.per_query))
    if coverage is None:
        yield "engine: comet; this session does not tell which nodes are native"
    else:
        yield from _told(coverage)


def _told(coverage: Coverage) -> Iterator[str]:
    scans = f"; Spark reads {len(coverage.scans)} inputs for it" if coverage.scans else ""
    if not coverage.foreign:
        yield f"engine: comet, every node is native ({coverage.n_native} nodes{scans})"
        return
    n_nodes = coverage.n_native + len(coverage.foreign)
    yield f"engine: comet, {len(coverage.foreign)} of {n_nodes} nodes are not native{scans}"
    yield from (f"not native: {node}" for node in coverage.foreign)
