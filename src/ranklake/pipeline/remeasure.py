"""New metrics, options and cut-offs for a day that is published: from its hits, without its log."""

from collections.abc import Iterable, Iterator
from datetime import date

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake import config as configuration
from ranklake import measure, rank, read, schemas, unpack, write
from ranklake.aggregate import slices
from ranklake.complaints import data_errors
from ranklake.config import EvalConfig
from ranklake.errors import ConfigError
from ranklake.pipeline.attempt import attempt, failures_recorded
from ranklake.pipeline.publish import Publisher, detail_table
from ranklake.pipeline.summed import bucket_sums_of, metric_sums_of, metrics_of
from ranklake.pipeline.windows import windows_of
from ranklake.run import Listener, Run, silent

_PLAN = ("stored hits", "measured from query_metrics, without the log")


def remeasure(
    spark: SparkSession, config: EvalConfig, day: date, *, listener: Listener = silent
) -> Iterator[tuple[str, int]]:
    """Publishes the day again with the measures of `config` beside those that it has.

    Yields, for each run that had published models of the day, their names and the number of rows
    in metrics. quality stays as it was. The tables have to be there.
    Raises ConfigError, before anything is written, for a measure that needs the log, for other
    definitions than the published ones, and for a run that stored no hits.
    """
    published = read.published(spark, config.lake, day)
    stored = [EvalConfig.model_validate_json(source.config) for source in published]
    merged = [_merged(config, of_run) for of_run in stored]
    _refuse(
        problem
        for source, of_run, both in zip(published, stored, merged, strict=True)
        for problem in _problems_of(source, of_run, both, config)
    )
    for source, both in zip(published, merged, strict=True):
        write.create_tables(spark, both.lake, [detail_table(both)])  # the new measures' columns
        run = _run_of(spark, both, source, day, listener)
        with failures_recorded(spark, both, run):
            n_rows = _remeasured(spark, both, source, run)
        yield ", ".join(source.models), n_rows


def _merged(config: EvalConfig, stored: EvalConfig) -> EvalConfig:
    """The configuration with everything that the run had measured, too."""
    asked = dict.fromkeys(str(m) for m in (*config.asked, *stored.asked))
    return config.model_copy(
        update={
            "metrics": (),
            "measures": tuple(asked),
            # What ties decide at a new k only the log can tell; where hits are, the hits can.
            "ks": stored.ks if stored.tie_diagnostics else _distinct(config.ks, stored.ks),
            **{name: getattr(stored, name) for name in _OF_THE_RUN},
        }
    )


def _distinct(*ks: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(k for some in ks for k in some))


_OF_THE_RUN = (
    *("evaluation", "candidates", "rank_by", "labels", "gains", "score_is_probability"),
    *("tie_diagnostics", "detail", "unknown_users", "slices", "models", "inputs"),
)
"""What the log was read and ranked by: remeasuring changes nothing of it."""


def _refuse(problems: Iterable[str]) -> None:
    distinct = list(dict.fromkeys(problems))
    if distinct:
        raise ConfigError(distinct)


def _problems_of(
    source: read.Published, stored: EvalConfig, merged: EvalConfig, config: EvalConfig
) -> Iterator[str]:
    """Why the run's hits do not suffice, or mean something else."""
    models = ", ".join(source.models)
    if stored.detail != "all" or stored.rules.duplicates == "keep":
        yield f"{models}: the run stored no hits of every query; evaluate the day again"
    if stored.item_clusters or config.item_clusters:
        yield f"{models}: item_clusters needs the log; evaluate the day again"
    known = {m.column for m in stored.per_query}
    for m in merged.per_query:
        if not unpack.is_stored(m) and m.column not in known:
            yield f"{models}: {m} needs the log; evaluate the day with it"
    for name in merged.query_extras:
        if name not in stored.query_extras:
            yield f"{models}: {name} is not stored; evaluate the day again"
    for label in config.labels:
        if label not in stored.labels:
            yield f"labels: {label!r} was not evaluated; evaluate the day with it"
        elif dict(config.gains_of(label)) != dict(stored.gains_of(label)):
            yield f"gains.{label}: is not what the day was evaluated with; evaluate it again"
    for column in config.slices.columns:
        if column not in stored.slices.columns:
            yield f"slices: {column!r} was not evaluated; evaluate the day with it"
    defined = configuration.definitions(merged, source.definitions["slices"])
    yield from configuration.redefinitions(source.definitions, defined)


def _run_of(
    spark: SparkSession, config: EvalConfig, source: read.Published, day: date, listener: Listener
) -> Run:
    run = attempt(spark, config, day, listener)
    run.models = source.models
    run.inputs = {**source.inputs, "remeasured": {"run_id": source.run_id}}
    run.definitions = configuration.definitions(config, source.definitions["slices"])
    run.plan, run.plan_reason = _PLAN
    run.label_as_of, run.is_mature = source.label_as_of, source.is_mature
    return run


def _remeasured(spark: SparkSession, config: EvalConfig, source: read.Published, run: Run) -> int:
    """Publishes the run's models again; returns the number of rows in metrics."""
    publisher = Publisher(spark, config, run)
    with run.stage("read"), data_errors("query_metrics"):
        stored, quality = (
            read.committed(spark, config.lake, table, run.day, source)
            for table in (schemas.QUERY_METRICS, schemas.QUALITY)
        )
        checks = quality.toArrow()
        dictionary = _dictionary(stored, config)
    publisher.record("STARTED")
    with run.stage("measure"), data_errors("query_metrics"):
        rows = _sliced(_valued(stored, config), config).drop(*config.slices.columns)
        detail = _sliced(publisher.detail(rows, dictionary.values), config)
        queries = detail.where(F.col("label") == config.labels[0])
        bucket_sums = bucket_sums_of(queries, detail, config, dictionary)
    with run.stage("aggregate, estimate"):
        metric_sums = metric_sums_of(bucket_sums, None, config, run, served=_served(checks))
        windows = windows_of(spark, config, run, metric_sums)
        metrics = windows.after(metrics_of(metric_sums, config, run))
    with run.stage("publish"):
        publisher.publish(metric_sums, checks.drop_columns(["event_date", "run_id"]), metrics)
    return int(metrics.num_rows)


def _dictionary(stored: DataFrame, config: EvalConfig) -> slices.Dictionary:
    """The dictionary of the slice values that the stored rows have."""
    columns = config.slices.columns
    found = _sliced(stored.select(*columns).distinct(), config) if columns else None
    rows = [] if found is None else [row.asDict() for row in found.collect()]
    return slices.dictionary(rows, columns=columns, groups=config.slices.groups)


def _sliced(rows: DataFrame, config: EvalConfig) -> DataFrame:
    return rows.transform(slices.identified, slices=config.slices.columns)


def _valued(stored: DataFrame, config: EvalConfig) -> DataFrame:
    """The stored rows with the columns of every measure that the hits suffice for."""
    measures = [m for m in config.per_query if unpack.is_stored(m)]
    relevant = stored.where(F.col("n_relevant") > 0)
    values = (
        unpack.hits(relevant)
        .transform(rank.read_as, measures=measures)
        .transform(measure.revalued, measures=measures)
    )
    others = stored.where(F.col("n_relevant") == 0).transform(
        measure.valued_without_hits, measures=measures
    )
    return unpack.with_values(relevant, values).unionByName(others)


def _served(quality: pa.Table) -> list[str]:
    """The models whose log was evaluated: their quality has no count of unlabelled queries."""
    checks: dict[str, set[str]] = {}
    for row in quality.select(["model_version", "name"]).to_pylist():
        checks.setdefault(row["model_version"], set()).add(row["name"])
    return [model for model, names in checks.items() if "queries.unlabelled" not in names]
