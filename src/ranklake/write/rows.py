"""Replacing one partition of a Delta table, and nothing else.

No function here can overwrite without a predicate: a partition is named by its date and models.
"""

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Literal

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake import schemas
from ranklake.config import Lake
from ranklake.schemas import Table
from ranklake.schemas.conform import conformed
from ranklake.write.commits import locked, retried
from ranklake.write.tables import quoted

Within = Sequence[tuple[str, Literal["=", "<>"], str | date]]
"""Conditions on columns: only such rows of the partitions are replaced."""


def replace_partitions(
    rows: DataFrame,
    lake: Lake,
    table: Table,
    *,
    day: date,
    models: Sequence[str],
    run_id: str,
    within: Within = (),
) -> int:
    """Replaces the rows of the day and models, in one atomic commit; returns its Delta version.

    Other rows fail the write. Without rows the partitions are empty after it.
    Raises WriteConflict when other runs commit first, ATTEMPTS times.
    """
    partitions = _partitions(day, models, within)
    writer = (
        conformed(
            rows.withColumn("event_date", F.lit(day)).withColumn("run_id", F.lit(run_id)), table
        )
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", partitions)
        .option("userMetadata", run_id)
    )
    with locked(lake, table):
        retried(lambda: writer.saveAsTable(lake.sql_name(table.name)), table)
        return version_of(rows.sparkSession, lake, table, run_id=run_id)


def replace_little(
    spark: SparkSession,
    rows: pa.Table,
    lake: Lake,
    table: Table,
    *,
    day: date,
    models: Sequence[str],
    run_id: str,
    within: Within = (),
) -> int:
    """As replace_partitions, of rows that the driver has: they need no Spark (decision 0014)."""
    partitions, here = _partitions(day, models, within), lake.table_here(table.name)
    complete = schemas.arrow_rows(rows, table, event_date=day, run_id=run_id)
    if here is None:
        frame = spark.createDataFrame(complete).coalesce(1)
        return replace_partitions(
            frame, lake, table, day=day, models=models, run_id=run_id, within=within
        )
    with locked(lake, table):
        return retried(lambda: _written_here(complete, here, run_id, partitions), table)


def append(spark: SparkSession, rows: pa.Table, lake: Lake, table: Table, *, run_id: str) -> None:
    """Adds the rows in one commit. For the manifest, which is never rewritten."""
    complete = schemas.arrow_rows(rows, table)
    write: Callable[[], object]
    if here := lake.table_here(table.name):
        write = partial(_written_here, complete, here, run_id)
    else:
        frame = conformed(spark.createDataFrame(complete).coalesce(1), table)
        writer = frame.write.format("delta").mode("append").option("userMetadata", run_id)
        write = partial(writer.saveAsTable, lake.sql_name(table.name))
    with locked(lake, table):
        retried(write, table)


def _partitions(day: date, models: Sequence[str], within: Within = ()) -> str:
    """The condition that names them, in the SQL of Spark and of delta-rs."""
    for model in models:
        if not schemas.is_model_version(model):
            raise ValueError(f"{model!r} is no name for a partition")
    names = ", ".join(quoted(model) for model in models)
    own = [f" AND {column} {sign} {_literal(value)}" for column, sign, value in within]
    return f"event_date = DATE'{day:%Y-%m-%d}' AND model_version IN ({names}){''.join(own)}"


def _literal(value: str | date) -> str:
    """The value in the SQL of Spark and of delta-rs, which differ in how they escape."""
    if isinstance(value, date):
        return f"DATE'{value:%Y-%m-%d}'"
    if value and not schemas.is_model_version(value):
        raise ValueError(f"{value!r} is no name for a partition")
    return quoted(value)


def _written_here(rows: pa.Table, here: Path, run_id: str, partitions: str | None = None) -> int:
    """Adds the rows, or replaces those of the partitions, by delta-rs; returns the Delta version.

    delta-rs sees no conflict between two overwrites: the caller has locked the table.
    """
    table = DeltaTable(here)
    by = CommitProperties(custom_metadata={"userMetadata": run_id})
    if partitions:
        write_deltalake(table, rows, mode="overwrite", predicate=partitions, commit_properties=by)
    else:
        write_deltalake(table, rows, mode="append", commit_properties=by)
    return table.version()


def version_of(spark: SparkSession, lake: Lake, table: Table, *, run_id: str) -> int:
    """The Delta version that the run committed; the latest one where it had nothing to commit."""
    if here := lake.table_here(table.name):  # under the lock nobody else has committed since
        return DeltaTable(here).version()
    history = spark.sql(f"DESCRIBE HISTORY {lake.sql_name(table.name)} LIMIT 50")
    commits = history.select("version", "userMetadata").collect()
    own = [row["version"] for row in commits if row["userMetadata"] == run_id]
    return int(own[0] if own else commits[0]["version"])
