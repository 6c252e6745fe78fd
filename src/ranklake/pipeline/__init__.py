"""The story on one screen: read, label, rank, measure, aggregate, estimate, publish.

The steps are lazy and know nothing of each other; this is the only room that joins them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake import config as configuration
from ranklake import read, schemas
from ranklake.aggregate.slices import Dictionary, identified
from ranklake.comparison import Comparison
from ranklake.complaints import data_errors
from ranklake.config import EvalConfig
from ranklake.errors import ConfigError
from ranklake.pipeline.assembled import broken_traffic, cleaned, frames_of
from ranklake.pipeline.attempt import attempt, failures_recorded
from ranklake.pipeline.baseline import Baseline
from ranklake.pipeline.checks import Unmatched, checks_of, unmatched_of
from ranklake.pipeline.duplicates import refuse_broken_promise, refuse_duplicates
from ranklake.pipeline.fingerprints import Fingerprints, fingerprints_of
from ranklake.pipeline.frames import Frames
from ranklake.pipeline.inputs import Day, day_of
from ranklake.pipeline.limits import Known, within_limits
from ranklake.pipeline.needs import check_needs
from ranklake.pipeline.planned import engine_lines
from ranklake.pipeline.publish import Publisher, check_tables, lake_tables
from ranklake.pipeline.rejected import rejected_of
from ranklake.pipeline.sliced import slices_of
from ranklake.pipeline.summed import (
    bucket_sums_of,
    item_sums_of,
    metric_sums_of,
    metrics_of,
)
from ranklake.pipeline.windows import windows_of
from ranklake.run import Listener, Run, silent
from ranklake.together import together

MAX_BROKEN = 2_000_000
"""More queries of invalid traffic, by rule, are not kept on the driver: each job finds them."""


@dataclass(frozen=True)
class Evaluation:
    """What one run found: the rows of metrics, metric_sums and quality, as Arrow tables.

    comparisons are its models against the baseline, where one was named.
    per_query() is a lazy DataFrame of one row per (model, query, label): counts, hit arrays and a
    column a measure, null where undefined. It is computed from the log whenever it is used.
    """

    day: date
    run_id: str
    metrics: pa.Table
    metric_sums: pa.Table
    quality: pa.Table
    per_query: Callable[[], DataFrame]
    comparisons: Sequence[Comparison] = ()


def evaluate(
    spark: SparkSession,
    config: EvalConfig,
    day: date,
    *,
    models: Sequence[str] = (),
    baseline: str | None = None,
    label_as_of: datetime | None = None,
    sources: Mapping[str, read.Source] | None = None,
    redefine: bool = False,
    listener: Listener = silent,
) -> Evaluation:
    """Evaluates one day for all its models (or those named) in one pass, and publishes the numbers.

    The models are compared with `baseline`, a name or an alias, of this run or published before.
    Labels that reached the log after `label_as_of` (by default what the configuration says) do not
    count. `sources` replaces the configured inputs. Without a lake nothing is published.
    Raises a RanklakeError; then the tables hold what they held, and runs has a FAILED row, or of
    data beyond a limit (DataLimitExceeded) a REJECTED one.
    """
    run = attempt(spark, config, day, listener, label_as_of=label_as_of)
    if config.lake.is_given:
        check_tables(spark, config, lake_tables(config))
    with failures_recorded(spark, config, run):
        against = Baseline.of(baseline, spark, config) if baseline else None
        only = _Only(models, against, sources, redefine)
        return _evaluated(spark, config, run, only)


@dataclass(frozen=True)
class _Only:
    """What a run was told beside its configuration."""

    models: Sequence[str]
    baseline: Baseline | None
    sources: Mapping[str, read.Source] | None
    redefine: bool


def _evaluated(spark: SparkSession, config: EvalConfig, run: Run, only: _Only) -> Evaluation:
    with run.stage("read"):
        sources = only.sources
        if sources is None:
            sources = read.opened(spark, config.inputs.given(), slices=config.slices.columns)
        check_needs(config, sources, known_by=run.label_as_of)
        # Before any row is read: what changes from now on is seen as a change later.
        files = fingerprints_of(sources, config, run.day, known_by=run.label_as_of)
        day = day_of(sources, config, run.day, models=only.models, known_by=run.label_as_of)
        run.models, run.inputs = day.models, _described(sources, day, files, only=only.models)
        if only.baseline:
            only.baseline.check(run)
    with run.stage("slices", day.n_rows), data_errors("inputs"):
        slice_lists, dictionary = _defined(spark, config, run, day, redefine=only.redefine)
    frames = _framed(run, day, config, slice_lists)
    run.plan, run.plan_reason = frames.plan
    known = within_limits(spark, config, run, day, frames, has_every=not only.models)
    publisher = Publisher(spark, config, run) if config.lake.is_given else None
    with run.stage("label, rank, measure", day.n_rows), data_errors("inputs"):
        sums = _summed(day, frames, config, dictionary, publisher, known)
    refuse_broken_promise(sums.of_users, frames)
    with run.stage("aggregate, estimate"):
        served = frames.served_models(day.served)
        metric_sums = metric_sums_of(sums.of_users, sums.of_items, config, run, served=served)
        windows = windows_of(spark, config, run, metric_sums)
        metrics = windows.after(metrics_of(metric_sums, config, run))
        found = checks_of(day, frames, sums.unmatched, sums.of_users, config)
        checks = pa.concat_tables([found, known.checks, windows.checks])
    per_query = partial(frames.per_query, config.per_query)
    evaluation = Evaluation(run.day, run.run_id, metrics, metric_sums, checks, per_query)
    if only.baseline:
        with run.stage("compare"):
            evaluation = replace(evaluation, comparisons=only.baseline.compared(evaluation, config))
    if publisher and config.rejected.samples:
        with run.stage("rejected"), data_errors("inputs"):
            publisher.rejected(rejected_of(day, frames, config))
    if publisher:
        with run.stage("publish"):
            publisher.publish(metric_sums, checks, metrics, evaluation.comparisons)
    return evaluation


class _Sums(NamedTuple):
    of_users: pa.Table
    of_items: pa.Table | None
    unmatched: Unmatched


def _summed(
    day: Day,
    frames: Frames,
    config: EvalConfig,
    dictionary: Dictionary,
    publisher: Publisher | None,
    known: Known,
) -> _Sums:
    """The bucket sums, those by items, and what stands in one input and not in another."""

    def measure_and_sum() -> _Sums:
        queries, measured = _measured(frames, config, dictionary, publisher)
        return _Sums(
            *together(
                partial(bucket_sums_of, queries, measured, config, dictionary),
                partial(item_sums_of, frames, config, dictionary),
                partial(unmatched_of, day, frames, events=known.events),
            )
        )

    if publisher is None:
        return measure_and_sum()
    sums: _Sums
    sums, _ = together(measure_and_sum, partial(publisher.record, "STARTED"))
    return sums


def _framed(run: Run, day: Day, config: EvalConfig, slice_lists: schemas.SliceLists) -> Frames:
    broken = broken_traffic(day, config)
    if broken is not None:
        # Every job asks for it, and its rows are sent to every executor: it is found once.
        with run.stage("traffic", day.n_rows), data_errors("inputs"):
            rows = broken.limit(MAX_BROKEN + 1).toArrow()
            if len(rows) <= MAX_BROKEN:
                broken = broken.sparkSession.createDataFrame(rows)
    frames = frames_of(day, config, slice_lists, broken=broken)
    if config.rules.duplicates == "error":
        refuse_duplicates(frames)
    return frames


def _defined(
    spark: SparkSession, config: EvalConfig, run: Run, day: Day, *, redefine: bool
) -> tuple[schemas.SliceLists, Dictionary]:
    """The slices of the run, now that what its numbers mean is known and agrees with the lake."""
    recorded = read.recorded_definitions(spark, config.lake) if config.lake.is_given else {}
    asking = cleaned(day.base, day, config)
    slice_lists, dictionary = slices_of(asking, config, recorded.get("slices", {}))
    run.definitions = configuration.definitions(config, slice_lists)
    changed = [] if redefine else configuration.redefinitions(recorded, run.definitions)
    if changed:
        raise ConfigError([*changed, "publish into another lake, or give --redefine to mean it"])
    return slice_lists, dictionary


def checked(spark: SparkSession, config: EvalConfig, days: Sequence[date]) -> Iterator[str]:
    """Looks at everything that a run of the days would read and write; a line for each thing found.

    Raises a RanklakeError for the first thing that would stop the run. Writes nothing.
    """
    sources = read.opened(spark, config.inputs.given(), slices=config.slices.columns)
    check_needs(config, sources)
    for name, source in sources.items():
        version = "" if source.version is None else f", version {source.version}"
        yield f"{name}: ok ({source.place}{version})"
    if config.lake.is_given:
        check_tables(spark, config, lake_tables(config))
        yield f"lake: ok ({config.lake.sql_name(schemas.METRICS.name)} and the other tables)"
    for day in days:
        found = day_of(sources, config, day)
        rows = ", ".join(f"{found.count(name, 'usable'):,} usable {name}" for name in found.audits)
        yield f"{day}: ok (models {', '.join(found.models)}; {rows})"
        if config.engine == "comet":
            yield from (f"{day}: {line}" for line in engine_lines(spark, config, found))


def _described(
    sources: Mapping[str, read.Source],
    day: Day,
    files: Mapping[str, Fingerprints],
    *,
    only: Sequence[str],
) -> dict[str, Any]:
    """What the run reads, as in runs.inputs; `only` are the models that it was told to evaluate."""
    described = {
        name: {
            "place": source.place,
            "version": source.version,
            "n_rows": day.count(name, "n_rows"),
            **files[name],
        }
        for name, source in sources.items()
    }
    return {**described, "selected": {"models": [*only]}} if only else described


def _measured(
    frames: Frames, config: EvalConfig, dictionary: Dictionary, publisher: Publisher | None
) -> tuple[DataFrame, DataFrame]:
    """One row per (model, query), and one per (model, query, label) with a relevant item.

    Where a detail table is written they are read back from it: computed once, used twice.
    """
    measures = config.per_query
    has_value = F.lit(True) if config.values_every_query else F.col("n_relevant") > 0
    if publisher is None or config.detail == "none":
        if publisher:
            publisher.clear_detail()
        return _computed_twice(frames, config, has_value)
    rows = frames.per_query(measures) if config.detail == "all" else frames.relevant(measures)
    detail = publisher.detail(rows, dictionary.values).transform(
        identified, slices=config.slices.columns
    )
    if config.detail == "all":
        return detail.where(_is_first_label(config)), detail.where(has_value)
    if config.values_every_query:
        return _computed_twice(frames, config, has_value)
    return frames.queries(), detail.where(has_value)


def _computed_twice(
    frames: Frames, config: EvalConfig, has_value: Column
) -> tuple[DataFrame, DataFrame]:
    """As `_measured`, from the log: where no table holds every query that is needed."""
    if not config.values_every_query:
        return frames.queries(), frames.measured(config.per_query).where(has_value)
    per_query = frames.per_query(config.per_query)
    return per_query.where(_is_first_label(config)), per_query


def _is_first_label(config: EvalConfig) -> Column:
    return F.col("label") == config.labels[0]
