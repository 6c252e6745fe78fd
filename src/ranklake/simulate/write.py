"""The logs as tables in a directory."""

from typing import Literal

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake.errors import ConfigError
from ranklake.simulate.simulation import Simulation
from ranklake.simulate.tables import (
    clicks,
    conversions,
    impressions,
    partitions_per_date,
    scores,
)

_TABLES = {
    "impressions": impressions,
    "clicks": clicks,
    "conversions": conversions,
    "scores": scores,
}


def generate(
    spark: SparkSession,
    simulation: Simulation,
    path: str,
    *,
    format: Literal["delta", "parquet"] = "delta",
    layout: Literal["clustered", "scattered"] = "clustered",
    overwrite: bool = False,
) -> None:
    """Write impressions, clicks, conversions and scores under `path`, a folder each, by event_date.

    clustered: the rows of a query lie together, as a request writes them. scattered: they lie in
    all files of their date, as a stream that is keyed by item writes them.

    Raises ConfigError when `path` holds files and `overwrite` is not set.
    """
    if not overwrite and _holds_files(spark, path):
        raise ConfigError(f"{path}: is not empty; expected an empty directory, or overwrite")
    for name, table in _TABLES.items():
        rows = table(spark, simulation)
        if layout == "scattered":
            rows = rows.transform(_scattered, n_files=partitions_per_date(simulation))
        _write(rows, f"{path}/{name}", format=format, overwrite=overwrite)


def _scattered(rows: DataFrame, *, n_files: int) -> DataFrame:
    """The same rows, n_files a date, those of one item together and those of one query apart."""
    # sorted, because a shuffle leaves the rows of a query side by side within a file
    return rows.repartition(n_files, "item_id").sortWithinPartitions(
        "event_date", F.xxhash64("item_id")
    )


def _write(rows: DataFrame, path: str, *, format: str, overwrite: bool) -> None:
    (
        rows.write.format(format)
        .mode("overwrite" if overwrite else "errorifexists")
        .option("partitionOverwriteMode", "static")  # else dates of an earlier log could remain
        .option("overwriteSchema", True)
        .partitionBy("event_date")
        .save(path)
    )


def _holds_files(spark: SparkSession, path: str) -> bool:
    # asked through Spark, which knows every file system that it can write to
    try:
        files = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(path)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return False
        raise
    return bool(files.inputFiles())
