"""An input as it is stored: its rows under its own names, and what tells its files."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake.complaints import data_errors, first_line, is_missing_table
from ranklake.config import Input
from ranklake.errors import ContractError
from ranklake.read import nested


@dataclass(frozen=True)
class Files:
    """What tells the files of an input: the table that SQL names, or a listing.

    A listing is of plain files in a directory, one row a file: FILE, and event_date where the names
    of their directories say it.
    """

    sql_name: str
    listing: DataFrame | None = None


FILE = ("path", "length", "modificationTime")


@dataclass(frozen=True)
class Stored:
    """The rows; the Delta version that they are pinned at (None: no Delta table); the files."""

    raw: DataFrame
    version: int | None
    files: Files


def stored(spark: SparkSession, name: str, given: Input) -> Stored:
    """The input as it is stored. Lazy. Raises ContractError where it cannot be read."""
    where = f"{name}: {given.place}"
    try:
        with data_errors(where):
            version = _delta_version(spark, given) if given.format == "delta" else None
            # Listed before the rows are: what changes in between is seen as a change later.
            listing = _listing(spark, given)
            raw = _loaded(spark, given, version)
            files = Files(given.sql_name, None if listing is None else _dated(listing, raw, given))
            return Stored(raw, version, files)
    except PySparkException as error:
        raise ContractError(f"{where}: {_unreadable(error)}") from error


def _loaded(spark: SparkSession, given: Input, version: int | None) -> DataFrame:
    reader = spark.read.options(**given.options)
    if version is not None:
        reader = reader.option("versionAsOf", version)
    if given.declared_schema:
        reader = reader.schema(given.declared_schema)
    if given.format in ("csv", "json"):
        # The defaults turn a bad line into nulls, and take a header in another order for ours.
        reader = reader.option("mode", "FAILFAST").option("enforceSchema", False)
    if given.path:
        return reader.format(given.format).load(given.path)
    return reader.table(given.sql_name)


def _unreadable(error: PySparkException) -> str:
    if is_missing_table(error):
        return "there is no such table"
    return f"cannot be read: {first_line(error)}"


def _delta_version(spark: SparkSession, given: Input) -> int | None:
    """The version to pin; None for a catalog table that is no Delta table."""
    if given.version is not None:
        return given.version
    if given.table:
        detail = spark.sql(f"DESCRIBE DETAIL {given.sql_name}").first()
        if detail is None or detail["format"] != "delta":
            return None
    latest = spark.sql(f"DESCRIBE HISTORY {given.sql_name} LIMIT 1").first()
    return None if latest is None else int(latest["version"])


def _listing(spark: SparkSession, given: Input) -> DataFrame | None:
    """One row a file, and the columns that the names of the directories are: nothing is opened."""
    if given.format == "delta" or given.path is None:
        return None
    return spark.read.options(**given.options).format("binaryFile").load(given.path)


def _dated(listing: DataFrame, raw: DataFrame, given: Input) -> DataFrame:
    """FILE, and event_date where it is an expression over the names of the directories alone."""
    same = [field.name for field in listing.schema if field in raw.schema.fields]
    directories = listing.select(*[F.col(f"`{name}`") for name in same if name not in FILE])
    array = None if given.candidates is None else nested.Array(raw, given.candidates)
    sql = sql_of(raw, array, given.columns, "event_date")
    if sql is None:
        return listing.select(*FILE)
    try:
        event_date = F.expr(sql).cast("date").alias("event_date")
        dated = listing.select(*FILE, event_date)
        for frame in (directories.select(event_date), dated):
            frame.schema  # noqa: B018  Connect resolves a frame only when it is looked at
    except AnalysisException:
        return listing.select(*FILE)
    return dated


def sql_of(
    raw: DataFrame, array: nested.Array | None, columns: Mapping[str, str], name: str
) -> str | None:
    """Where our column comes from, in SQL: the mapping, else the column of its name; else None."""
    if array is not None:
        return array.sql_of(columns, name)
    return columns.get(name, f"`{name}`" if name in raw.columns else None)
