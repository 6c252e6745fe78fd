"""The story on one screen: read, label, rank, measure, aggregate, estimate, publish.

The steps are lazy and know nothing of each other; this is the only room that joins them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake import clean, read, schemas
from ranklake import config as configuration
from ranklake.aggregate import series, sums
from ranklake.aggregate.slices import Dictionary, identified
from ranklake.complaints import data_errors
from ranklake.config import EvalConfig
from ranklake.errors import ConfigError
from ranklake.estimate import estimated
from ranklake.metrics import measures_of, per_query_measures
from ranklake.pipeline.checks import checks_of
from ranklake.pipeline.frames import Frames, frames_of
from ranklake.pipeline.inputs import Day, day_of, slices_of
from ranklake.pipeline.needs import check_needs
from ranklake.pipeline.publish import Publisher, check_tables, lake_tables
from ranklake.run import Listener, Run, silent


@dataclass(frozen=True)
class Evaluation:
    """What one run found: the rows of metrics, metric_sums and quality, as Arrow tables."""

    run_id: str
    metrics: pa.Table
    metric_sums: pa.Table
    quality: pa.Table


def evaluate(
    spark: SparkSession,
    config: EvalConfig,
    day: date,
    *,
    models: Sequence[str] = (),
    sources: Mapping[str, read.Source] | None = None,
    redefine: bool = False,
    listener: Listener = silent,
) -> Evaluation:
    """Evaluates one day for all its models (or those named) in one pass, and publishes the numbers.

    `sources` replaces the configured inputs. A configuration without a lake publishes nothing.
    Raises a RanklakeError; then the tables hold what they held, and runs has a FAILED row.
    """
    run = Run(
        day=day,
        evaluation=config.evaluation,
        config=config.model_dump_json(by_alias=True),
        config_hash=configuration.config_hash(config),
        spark_version=spark.version,
        listener=listener,
    )
    if config.lake.is_given:
        check_tables(spark, config, lake_tables(config))
    try:
        return _evaluated(spark, config, run, models=models, sources=sources, redefine=redefine)
    except Exception as error:
        if config.lake.is_given:
            Publisher(spark, config, run).record_failure(error)
        raise


def _evaluated(
    spark: SparkSession,
    config: EvalConfig,
    run: Run,
    *,
    models: Sequence[str],
    sources: Mapping[str, read.Source] | None,
    redefine: bool,
) -> Evaluation:
    with run.stage("read"):
        if sources is None:
            sources = read.opened(spark, config.inputs.given(), slices=config.slices.columns)
        check_needs(config, sources)
        day = day_of(sources, config, run.day, models=models)
        run.models, run.inputs = day.models, _described(sources, day)
    with run.stage("slices", day.n_rows), data_errors("inputs"):
        slice_lists, dictionary = _defined(spark, config, run, day, redefine=redefine)
    frames = frames_of(day, config, slice_lists)
    run.plan, run.plan_reason = frames.plan
    publisher = Publisher(spark, config, run) if config.lake.is_given else None
    if publisher:
        publisher.record("STARTED")
    with run.stage("label, rank, measure", day.n_rows), data_errors("inputs"):
        queries, measured = _measured(frames, config, dictionary, publisher)
        bucket_sums = _bucket_sums(queries, measured, config, dictionary)
    with run.stage("aggregate, estimate"):
        metric_sums = _metric_sums(bucket_sums, frames, day, config, run)
        metrics = estimated(metric_sums, confidence=config.confidence)
    with run.stage("check"), data_errors("inputs"):
        checks = checks_of(day, frames, queries, bucket_sums, config)
    if publisher:
        with run.stage("publish"):
            publisher.replace(schemas.METRIC_SUMS, metric_sums)
            publisher.replace(schemas.QUALITY, checks)
            publisher.replace(schemas.METRICS, metrics)  # this commit is the publication
        publisher.record("SUCCESS")
    return Evaluation(run.run_id, metrics, metric_sums, checks)


def _defined(
    spark: SparkSession, config: EvalConfig, run: Run, day: Day, *, redefine: bool
) -> tuple[schemas.SliceLists, Dictionary]:
    """The slices of the run, now that what its numbers mean is known and agrees with the lake."""
    recorded = read.recorded_definitions(spark, config.lake) if config.lake.is_given else {}
    asking = clean.cleaned(day.rows[day.base])
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


def _described(sources: Mapping[str, read.Source], day: Day) -> dict[str, Any]:
    return {
        name: {
            "place": source.place,
            "version": source.version,
            "n_rows": day.count(name, "n_rows"),
        }
        for name, source in sources.items()
    }


def _measured(
    frames: Frames, config: EvalConfig, dictionary: Dictionary, publisher: Publisher | None
) -> tuple[DataFrame, DataFrame]:
    """One row per (model, query), and one per (model, query, label) with a relevant item.

    Where a detail table is written they are read back from it: computed once, used twice.
    """
    measures = per_query_measures(config.metrics, config.ks)
    has_relevant = F.col("n_relevant") > 0
    if publisher is None or config.detail == "none":
        if publisher:
            publisher.clear_detail()
        return frames.queries(), frames.measured(measures).where(has_relevant)
    rows = (
        frames.per_query(measures)
        if config.detail == "all"
        else frames.measured(measures).where(has_relevant)
    )
    detail = publisher.detail(rows, dictionary.values).transform(
        identified, slices=config.slices.columns
    )
    measured = detail.where(has_relevant)
    if config.detail == "relevant":
        return frames.queries(), measured
    return detail.where(F.col("label") == config.labels[0]), measured


def _bucket_sums(
    queries: DataFrame, measured: DataFrame, config: EvalConfig, dictionary: Dictionary
) -> pa.Table:
    columns = [measure.column for measure in per_query_measures(config.metrics, config.ks)]
    return sums.aggregated(
        sums.query_sums(queries, ks=config.ks),
        sums.value_sums(measured, columns=columns),
        dictionary=queries.sparkSession.createDataFrame(dictionary.memberships),
    ).toArrow()


def _metric_sums(
    bucket_sums: pa.Table, frames: Frames, day: Day, config: EvalConfig, run: Run
) -> pa.Table:
    return series.metric_sums(
        bucket_sums,
        measures=measures_of(config.metrics, config.ks),
        labels=config.labels,
        served=list(day.served) if frames.served is not None else [],
        n_buckets=config.n_buckets,
        definition_hash=lambda row: configuration.definition_hash(run.definitions, row),
    )
