"""The tables themselves: created, and given the columns that are new."""

import json
from collections.abc import Sequence
from functools import partial

from deltalake import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from ranklake import schemas
from ranklake.complaints import is_missing_table
from ranklake.config import Lake
from ranklake.errors import ConfigError
from ranklake.schemas import Table
from ranklake.together import together
from ranklake.write.commits import locked

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
    with locked(lake, table):
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
