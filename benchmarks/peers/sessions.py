"""A plain local Spark session, as a user of a peer would start one."""

import os

from pyspark.sql import SparkSession


def local(name: str) -> SparkSession:
    """All cores, the memory that ranklake's session has, and the Java of the environment."""
    cores = os.cpu_count() or 1
    return (
        SparkSession.builder.master("local[*]")
        .appName(name)
        .config("spark.driver.memory", os.environ.get("RANKLAKE_DRIVER_MEMORY", "8g"))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", str(4 * cores))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
