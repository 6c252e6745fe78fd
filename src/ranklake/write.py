"""Replacing one partition of a Delta table, and nothing else. The only writes.

No function here can overwrite without a predicate: a partition is named by its date and models.
"""

import fcntl
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import TypeVar

from deltalake import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake import schemas
from ranklake.complaints import is_missing_table
from ranklake.config import Lake
from ranklake.errors import ConfigError, WriteConflict
from ranklake.schemas import Table
from ranklake.schemas.conform import conformed
from ranklake.together import together

T = TypeVar("T")

ATTEMPTS = 5
RETRIED = (
    "ConcurrentAppendException",
    "ConcurrentWriteException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
)
"""Delta's conflicts that trying again can cure. A changed schema or protocol is none of them."""

_PROPERTIES = {
    "delta.enableDeletionVectors": "false",
    "delta.logRetentionDuration": "interval 60 days",
    "delta.deletedFileRetentionDuration": "interval 14 days",
}
_SCHEMA_VERSION = "1"


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
            _add_checks(spark, name, table.checks)
            return [f"{table.name}: created"]
        _refuse_other_types(table, found)
        new = [column for column in table.columns if column.name not in found]
        if new:
            columns = ", ".join(_column_clause(column, nullable=True) for column in new)
            spark.sql(f"ALTER TABLE {name} ADD COLUMNS ({columns})")
        _add_checks(spark, name, _missing_checks(spark, name, table))
        added = f"added {', '.join(column.name for column in new)}" if new else "is there"
        return [f"{table.name}: {added}"]


def _missing_checks(spark: SparkSession, name: str, table: Table) -> list[schemas.Check]:
    """The checks that the table lacks: those of a process that was killed on the way."""
    detail = spark.sql(f"DESCRIBE DETAIL {name}").first()
    properties = detail["properties"] if detail else {}
    return [c for c in table.checks if f"delta.constraints.{c.name}" not in properties]


def _add_checks(spark: SparkSession, name: str, checks: Sequence[schemas.Check]) -> None:
    for check in checks:
        spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT {check.name} CHECK ({check.condition})")


def columns_of(spark: SparkSession, lake: Lake, table: Table) -> dict[str, str] | None:
    """The types of the table's columns as it stands, by name; None where there is no table."""
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
    properties = ", ".join(
        f"'{key}' = '{value}'"
        for key, value in {**_PROPERTIES, "ranklake.schema_version": _SCHEMA_VERSION}.items()
    )
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
    for model in models:
        if not schemas.is_model_version(model):
            raise ValueError(f"{model!r} is no name for a partition")
    names = ", ".join(quoted(model) for model in models)
    predicate = f"event_date = DATE'{day:%Y-%m-%d}' AND model_version IN ({names})"
    writer = (
        conformed(
            rows.withColumn("event_date", F.lit(day)).withColumn("run_id", F.lit(run_id)), table
        )
        .write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", predicate)
        .option("userMetadata", run_id)
    )
    with _locked(lake, table):
        retried(lambda: writer.saveAsTable(lake.sql_name(table.name)), table)
        return version_of(rows.sparkSession, lake, table, run_id=run_id)


def append(rows: DataFrame, lake: Lake, table: Table, *, run_id: str) -> None:
    """Adds the rows in one commit. For the manifest, which is never rewritten."""
    writer = (
        conformed(rows, table).write.format("delta").mode("append").option("userMetadata", run_id)
    )
    with _locked(lake, table):
        retried(lambda: writer.saveAsTable(lake.sql_name(table.name)), table)


def version_of(spark: SparkSession, lake: Lake, table: Table, *, run_id: str) -> int:
    """The Delta version that the run committed; the latest one where it had nothing to commit."""
    directory = lake.directory(table.name)
    if directory is not None:  # under the lock nobody else has committed since
        return DeltaTable(directory).version()
    history = spark.sql(f"DESCRIBE HISTORY {lake.sql_name(table.name)} LIMIT 50")
    commits = history.select("version", "userMetadata").collect()
    own = [row["version"] for row in commits if row["userMetadata"] == run_id]
    return int(own[0] if own else commits[0]["version"])


def retried(
    write: Callable[[], T], table: Table, *, pause: Callable[[float], None] = time.sleep
) -> T:
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
