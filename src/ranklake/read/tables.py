"""The published tables read by Spark, wherever they lie: in a catalog, too."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import partial, reduce
from operator import and_, or_
from typing import Any, NamedTuple, Unpack

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake import schemas
from ranklake.config import Lake
from ranklake.errors import ContractError
from ranklake.lake import Lake as Published


def tables_of(spark: SparkSession, place: Lake) -> "Published | SparkTables":
    """The published tables: by delta-rs where they lie on a disk of this machine, else by Spark."""
    directory = place.directory(schemas.METRICS.name)
    return (
        Published(directory.parent)
        if directory and directory.is_dir()
        else SparkTables(spark, place)
    )


class _Part(NamedTuple):
    """What one run wrote of one partition."""

    event_date: date
    model_version: str
    run_id: str


class SparkTables:
    """The tables as `ranklake.Lake` has them: rows of published runs, as Arrow tables."""

    def __init__(self, spark: SparkSession, lake: Lake) -> None:
        self._spark, self._lake = spark, lake

    def metrics(self, **asked: Unpack[schemas.Wanted]) -> pa.Table:
        """One row is one series of one day (or window of days) and model."""
        return _chosen(self._table(schemas.METRICS), table=schemas.METRICS, asked=asked).toArrow()

    def metric_sums(self, **asked: Unpack[schemas.Wanted]) -> pa.Table:
        """One row is one series of one day and model: num and den, bucket by bucket."""
        return self._published(schemas.METRIC_SUMS, asked)

    def quality(self, **asked: Unpack[schemas.Wanted]) -> pa.Table:
        """One row is one check of one run."""
        return self._published(schemas.QUALITY, asked)

    def latest_dates(self, n: int = 1, *, models: str | Iterable[str] | None = None) -> list[date]:
        """The newest n days that have published metrics, newest first."""
        rows = _of_parts(self._table(schemas.METRICS), {"models": models})
        days = rows.select("event_date").distinct().collect()
        return sorted((row["event_date"] for row in days), reverse=True)[:n]

    def snapshot(self) -> "SparkTables":
        """These tables: each answer is of the version that is the newest then."""
        return self

    def _table(self, table: schemas.Table, version: int | None = None) -> DataFrame:
        reader = self._spark.read
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.table(self._lake.sql_name(table.name))

    def _published(self, table: schemas.Table, asked: schemas.Wanted) -> pa.Table:
        """The rows of the runs that published; where others replaced them, as they were then."""
        published = _parts(self._table(schemas.METRICS), asked)
        there = published & _parts(self._table(table), asked)
        choose = partial(_chosen, table=table, asked=asked)
        rows = [choose(_only(there, self._table(table))).toArrow()]
        for version, parts in self._earlier(table, published - there).items():
            rows.append(choose(_only(parts, self._table(table, version))).toArrow())
        return pa.concat_tables(rows)

    def _earlier(self, table: schemas.Table, lacking: set[_Part]) -> dict[int, set[_Part]]:
        """The versions that runs committed which published, and whose rows were replaced since."""
        if not lacking:
            return {}
        last = F.col("run_id").isin([part.run_id for part in lacking])
        steps = self._table(schemas.RUNS).where(last & (F.col("status") == "SUCCESS"))
        versions = {row["run_id"]: row["table_versions"] or {} for row in steps.collect()}
        found: dict[int, set[_Part]] = {}
        for part in sorted(lacking):
            version = versions.get(part.run_id, {}).get(table.name)
            if version is None:
                raise ContractError(
                    f"{table.name} ({part.event_date}, {part.model_version}): published by run"
                    f" {part.run_id}, and not there; evaluate the day again"
                )
            found.setdefault(version, set()).add(part)
        return found


def _chosen(rows: DataFrame, *, table: schemas.Table, asked: schemas.Wanted) -> DataFrame:
    """What is asked of the rows; a column that an older lake does not have is null."""
    rows = _of_parts(rows, asked)
    matching, columns = asked.get("matching"), asked.get("columns")
    if matching is not None:
        rows = rows.where(reduce(or_, [_all_in(one) for one in matching], F.lit(False)))
    if columns is None:
        return rows
    new = [table.column(name) for name in columns if name not in rows.columns]
    nulls = {column.name: F.lit(None).cast(column.type) for column in new}
    return rows.withColumns(nulls).select(*columns)


def _of_parts(rows: DataFrame, asked: schemas.Wanted) -> DataFrame:
    dates, models = asked.get("dates"), asked.get("models")
    if dates is not None:
        rows = rows.where(F.col("event_date").isin(schemas.days_of(dates)))
    return (
        rows if models is None else rows.where(F.col("model_version").isin(schemas.several(models)))
    )


def _all_in(values_of: Mapping[str, Sequence[Any]]) -> Column:
    each = [F.col(column).isin([*values]) for column, values in values_of.items()]
    return reduce(and_, each, F.lit(True))


def _parts(rows: DataFrame, asked: schemas.Wanted) -> set[_Part]:
    distinct = _of_parts(rows, asked).select(*_Part._fields).distinct()
    return {_Part(*row) for row in distinct.collect()}


def _only(parts: set[_Part], rows: DataFrame) -> DataFrame:
    """The rows that these runs wrote of these partitions."""
    each = [
        reduce(and_, [F.col(name) == F.lit(value) for name, value in part._asdict().items()])
        for part in sorted(parts)
    ]
    return rows.where(reduce(or_, each, F.lit(False)))
