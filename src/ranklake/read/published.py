"""What earlier runs published and recorded in the lake's own tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from ranklake import schemas
from ranklake.config import Lake, merged_definitions
from ranklake.errors import ContractError, NoInputError


def recorded_definitions(spark: SparkSession, lake: Lake) -> dict[str, Any]:
    """What the lake's numbers mean: the newest definition of each label, metric and slice.

    Empty where no run has succeeded yet.
    """
    here = lake.table_here(schemas.RUNS.name)
    if here:
        runs = DeltaTable(here).to_pyarrow_table(
            columns=["definitions", "finished_at"], filters=[("status", "=", "SUCCESS")]
        )
    else:
        every_run = spark.table(lake.sql_name(schemas.RUNS.name))
        succeeded = every_run.where(F.col("status") == "SUCCESS")
        runs = succeeded.select("definitions", "finished_at").distinct().toArrow()
    newest = runs.group_by("definitions").aggregate([("finished_at", "max")])
    newest_last = newest.sort_by("finished_at_max")["definitions"].to_pylist()
    return merged_definitions(json.loads(definitions) for definitions in newest_last)


def published_rows(
    spark: SparkSession, lake: Lake, *, before: date, n_days: int
) -> list[dict[str, int]]:
    """The rows of each input on the newest days before that one that a run has succeeded for.

    Newest day first, n_days at most; of several runs of a day the newest says it.
    """
    columns = ["event_date", "inputs", "finished_at"]
    here = lake.table_here(schemas.RUNS.name)
    if here:
        runs = DeltaTable(here).to_pyarrow_table(
            columns=columns, filters=[("status", "=", "SUCCESS"), ("event_date", "<", before)]
        )
    else:
        every_run = spark.table(lake.sql_name(schemas.RUNS.name))
        earlier = every_run.where((F.col("status") == "SUCCESS") & (F.col("event_date") < before))
        runs = earlier.select(*columns).distinct().toArrow()
    by_day = {row["event_date"]: row["inputs"] for row in runs.sort_by("finished_at").to_pylist()}
    newest = sorted(by_day, reverse=True)[:n_days]
    inputs = [json.loads(by_day[day] or "{}") for day in newest]
    return [{name: of["n_rows"] for name, of in day.items() if "n_rows" in of} for day in inputs]


def published_days(spark: SparkSession, lake: Lake, first: date, last: date) -> list[date]:
    """The days from first to last that have published metrics, in order."""
    metrics = spark.table(lake.sql_name(schemas.METRICS.name))
    days = metrics.where(F.col("event_date").between(first, last)).select("event_date").distinct()
    return sorted(row["event_date"] for row in days.collect())


@dataclass(frozen=True)
class Published:
    """What one run published of a day: its models (and their original names), and how.

    label_as_of and is_mature are those of its metrics.
    """

    run_id: str
    models: Mapping[str, str]
    config: str
    definitions: Mapping[str, Any]
    inputs: Mapping[str, Any]
    versions: Mapping[str, int]
    label_as_of: datetime | None
    is_mature: bool | None


def published(spark: SparkSession, lake: Lake, day: date) -> list[Published]:
    """The runs whose numbers of the day are published, each with the models that it published.

    Raises NoInputError for a day without any, ContractError for a run without a last step.
    """
    metrics = spark.table(lake.sql_name(schemas.METRICS.name)).where(F.col("event_date") == day)
    columns = ("model_version", "run_id", "label_as_of", "is_mature")
    parts = _of_the_day(metrics).select(*columns).distinct().collect()
    if not parts:
        raise NoInputError(f"metrics: nothing is published for {day}")
    models_of: dict[str, list[Row]] = {}
    for part in parts:
        models_of.setdefault(part["run_id"], []).append(part)
    runs = spark.table(lake.sql_name(schemas.RUNS.name)).where(
        (F.col("event_date") == day)
        & (F.col("status") == "SUCCESS")
        & F.col("run_id").isin([*models_of])
    )
    rows = runs.collect()
    known = {run_id: [row for row in rows if row["run_id"] == run_id] for run_id in models_of}
    died = [run_id for run_id, steps in known.items() if not steps]
    if died:
        raise ContractError(
            [f"runs: run {run_id} of {day} has no last step; evaluate it again" for run_id in died]
        )
    return [_published(models_of[run_id], steps) for run_id, steps in known.items()]


def _published(parts: Sequence[Row], steps: Sequence[Row]) -> Published:
    """`parts` are the run's rows of metrics, one a model; `steps` its last rows of runs."""
    names = {row["model_version"]: row["model_name"] or row["model_version"] for row in steps}
    first = steps[0]
    models = sorted(part["model_version"] for part in parts)
    return Published(
        run_id=first["run_id"],
        models={model: names[model] for model in models},
        config=first["config"],
        definitions=json.loads(first["definitions"]),
        inputs=json.loads(first["inputs"]),
        versions=dict(first["table_versions"]),
        label_as_of=_in_utc(parts[0]["label_as_of"]),
        is_mature=parts[0]["is_mature"],
    )


@dataclass(frozen=True)
class PublishedRun:
    """One run with published numbers of a day: what it read, and how old its labels were.

    inputs is as in runs; None: no step of the run recorded any.
    """

    day: date
    run_id: str
    started_at: datetime | None
    inputs: Mapping[str, Any] | None
    label_as_of: datetime | None
    is_mature: bool | None


def published_runs(
    spark: SparkSession, lake: Lake, first: date | None = None, last: date | None = None
) -> list[PublishedRun]:
    """The runs whose numbers are published, of the days from first to last (None: any), in order.

    A run that died behind its publication is one of them: its first step says what it read.
    """
    columns = ("event_date", "run_id", "label_as_of", "is_mature")
    metrics = _of_days(spark.table(lake.sql_name(schemas.METRICS.name)), first, last)
    runs = _of_days(spark.table(lake.sql_name(schemas.RUNS.name)), first, last)
    steps = runs.where(F.col("inputs") != "{}").select("run_id", "started_at", "inputs").distinct()
    of_run = {row["run_id"]: row for row in steps.collect()}
    found = _of_the_day(metrics).select(*columns).distinct().orderBy("event_date", "run_id")
    return [_published_run(row, of_run.get(row["run_id"])) for row in found.collect()]


def _of_the_day(metrics: DataFrame) -> DataFrame:
    """Without windows of several days, whose labels may be less mature than the day's own."""
    return metrics.where(F.col("window_days") == 1)


def _of_days(rows: DataFrame, first: date | None, last: date | None) -> DataFrame:
    day = F.col("event_date")
    rows = rows if first is None else rows.where(day >= F.lit(first))
    return rows if last is None else rows.where(day <= F.lit(last))


def _published_run(row: Row, step: Row | None) -> PublishedRun:
    """`row` is of metrics; `step` is a row of runs."""
    return PublishedRun(
        day=row["event_date"],
        run_id=row["run_id"],
        started_at=_in_utc(step["started_at"]) if step else None,
        inputs=json.loads(step["inputs"]) if step else None,
        label_as_of=_in_utc(row["label_as_of"]),
        is_mature=row["is_mature"],
    )


def _in_utc(instant: datetime | None) -> datetime | None:
    """The instant; Spark's rows have it in this machine's zone, without saying so."""
    return None if instant is None else instant.astimezone(UTC)


def committed(
    spark: SparkSession, lake: Lake, table: schemas.Table, day: date, run: Published
) -> DataFrame:
    """The rows of the run's models that it committed to the table, as it is today.

    Where another run replaced those of any model, they are read at the version that was recorded.
    """
    name = lake.sql_name(table.name)
    is_own = F.col("model_version").isin([*run.models])
    newest = of_run(spark.table(name), day, run.run_id).where(is_own)
    there = newest.select("model_version").distinct().collect()
    if len(there) == len(run.models):
        return newest
    recorded = spark.read.option("versionAsOf", run.versions[table.name]).table(name)
    return of_run(recorded, day, run.run_id).where(is_own)


def of_run(rows: DataFrame, day: date, run_id: str) -> DataFrame:
    """The rows of one day that the run wrote."""
    return rows.where((F.col("event_date") == day) & (F.col("run_id") == run_id))
