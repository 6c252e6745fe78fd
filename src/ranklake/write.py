"""Replacing one partition of a Delta table, and nothing else. The only writes.

No function here can overwrite without a predicate: a partition is named by its date and models.
"""

import fcntl
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ranklake import schemas
from ranklake.complaints import is_missing_table
from ranklake.config import Lake
from ranklake.errors import ConfigError, WriteConflict
from ranklake.schemas import Table
from ranklake.schemas.conform import conformed
from ranklake.together import together

Result = TypeVar("Result")

ATTEMPTS = 5
RETRIED = (
    "ConcurrentAppendException",
    "ConcurrentWriteException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
    "CommitFailedError",
)
"""Delta's conflicts that trying again can cure. A changed schema or protocol is none of them."""

_PROPERTIES = {
    "delta.enableDeletionVectors": "false",
    "delta.logRetentionDuration": "interval 60 days",
    "delta.deletedFileRetentionDuration": "interval 14 days",
    "ranklake.schema_version": "1",
}


def create_tables(spark: SparkSession, lake: Lake, tables: Sequence[Table]) -> list[str]:
    """Creates the tables that are not there; adds the columns that are new to those that are.

    Returns what was done, a line a table. Running it again does nothing.
    Raises ConfigError when a table has a column of another type.
    """
    done = together(*[partial(_created, spark, lake, table) for table in tables])
    return [line for lines in done for line in lines]


def _created(spark: SparkSession, lake: Lake, table: Table) -> list[str]:
    name = lake.sql_name(table.name)
    with _locked(lake, table):
        found = columns_of(spark, lake, table)
        if found is None:
            spark.sql(_create_statement(name, table))
            for check in table.checks:
                _add_check(spark, name, check)
            return [f"{table.name}: created"]
        _refuse_other_types(table, found)
        new = [column for column in table.columns if column.name not in found]
        if new:
            columns = ", ".join(_column_clause(column, nullable=True) for column in new)
            spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({columns})")
        _mend_checks(spark, name, table)
        added = f"added {', '.join(column.name for column in new)}" if new else "is there"
        return [f"{table.name}: {added}"]


def _mend_checks(spark: SparkSession, name: str, table: Table) -> None:
    """Adds the checks that are not there, or in other words: after a kill, or an upgrade."""
    detail = spark.sql(f"DESCRIBE DETAIL {name}").first()
    properties = detail["properties"] if detail else {}
    for check in table.checks:
        found = properties.get(f"delta.constraints.{check.name}", "")
        if _words(found) != _words(check.condition):
            if found:
                spark.sql(f"ALTER TABLE {name} DROP CONSTRAINT {check.name}")
            _add_check(spark, name, check)


def _words(condition: str) -> str:
    """The condition without spaces: Delta keeps it with others."""
    return "".join(condition.split())


def _add_check(spark: SparkSession, name: str, check: schemas.Check) -> None:
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT {check.name} CHECK ({check.condition})")


def columns_of(spark: SparkSession, lake: Lake, table: Table) -> dict[str, str] | None:
    """The types of the table's columns as it stands, by name; None where there is no table."""
    if here := lake.table_here(table.name):
        schema = T.StructType.fromJson(json.loads(DeltaTable(here).schema().to_json()))
        return {field.name: field.dataType.simpleString() for field in schema.fields}
    try:
        fields = spark.sql(f"SELECT * FROM {lake.sql_name(table.name)} LIMIT 0").schema.fields
    except AnalysisException as error:
        if is_missing_table(error):
            return None
        raise
    return {field.name: field.dataType.simpleString() for field in fields}


def _refuse_other_types(table: Table, found: dict[str, str]) -> None:
    problems = [
        f"{table.name}: column {column.name!r} is {found[column.name]},"
        f" expected {column.type.lower()}"
        for column in table.columns
        if column.name in found and found[column.name] != column.type.lower()
    ]
    if problems:
        raise ConfigError(problems)


def _create_statement(name: str, table: Table) -> str:
    columns = ",\n  ".join(
        _column_clause(column, nullable=not column.required) for column in table.columns
    )
    bounds = {"delta.dataSkippingStatsColumns": ",".join(table.with_bounds)}
    given = {**_PROPERTIES, **(bounds if table.with_bounds else {})}
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    return (
        f"CREATE TABLE IF NOT EXISTS {name} (\n  {columns}\n) USING delta"
        f" PARTITIONED BY ({', '.join(table.partitioned_by)})"
        f" COMMENT {quoted('One row is ' + table.one_row)} TBLPROPERTIES ({properties})"
    )


def _column_clause(column: schemas.Column, *, nullable: bool) -> str:
    null = "" if nullable else " NOT NULL"
    return f"`{column.name}` {column.type}{null} COMMENT {quoted(column.meaning)}"


def quoted(text: str) -> str:
    r"""The text as a SQL string literal.

    >>> print(quoted("the user's"))
    'the user\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def replace_partitions(
    rows: DataFrame, lake: Lake, table: Table, *, day: date, models: Sequence[str], run_id: str
) -> int:
    """Replaces the rows of the day and models, in one atomic commit; returns its Delta version.

    Rows outside the day and models fail the write. Without rows the partitions are empty after it.
    Raises WriteConflict when other runs commit first, ATTEMPTS times.
    """
    partitions = _partitions(day, models)
    writer = (
        conformed(
            rows.withColumn("event_date", F.lit(day)).withColumn("run_id", F.lit(run_id)), table
        )
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", partitions)
        .option("userMetadata", run_id)
    )
    with _locked(lake, table):
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
) -> int:
    """As replace_partitions, of rows that the driver has: they need no Spark (decision 0014)."""
    partitions, here = _partitions(day, models), lake.table_here(table.name)
    complete = schemas.arrow_rows(rows, table, event_date=day, run_id=run_id)
    if here is None:
        frame = spark.createDataFrame(complete).coalesce(1)
        return replace_partitions(frame, lake, table, day=day, models=models, run_id=run_id)
    with _locked(lake, table):
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
    with _locked(lake, table):
        retried(write, table)


def _partitions(day: date, models: Sequence[str]) -> str:
    """The condition that names them, in the SQL of Spark and of delta-rs."""
    for model in models:
        if not schemas.is_model_version(model):
            raise ValueError(f"{model!r} is no name for a partition")
    names = ", ".join(quoted(model) for model in models)
    return f"event_date = DATE'{day:%Y-%m-%d}' AND model_version IN ({names})"


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


def retried(
    write: Callable[[], Result], table: Table, *, pause: Callable[[float], None] = time.sleep
) -> Result:
    """Runs the write, again after a RETRIED conflict. Raises WriteConflict at the end."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return write()
        except Exception as error:  # Delta's conflicts have no common class: told by their names
            if not _is_conflict(error):
                raise
            if attempt == ATTEMPTS:
                raise WriteConflict(
                    f"{table.name}: another run committed first, {ATTEMPTS} attempts:"
                    f" {type(error).__name__}"
                ) from error
            pause(random.uniform(0.5, 1.5) * attempt)
    raise AssertionError("unreachable")


def _is_conflict(error: Exception) -> bool:
    return type(error).__name__ in RETRIED


@contextmanager
def _locked(lake: Lake, table: Table) -> Iterator[None]:
    """One writer at a time on a local disk, where two can break a Delta log (decision 0008)."""
    directory = lake.directory(table.name)
    if directory is None:
        yield
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f"{table.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
