"""The engine that a session runs on, and what it lacks to run on another."""

import warnings
from typing import Literal

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ranklake.errors import ConfigError, RanklakeWarning

Engine = Literal["jvm", "comet"]

COMET = "1.2.0"
BUILDS = ("4.1",)
"""The minor versions of Spark that this Comet is built for."""

SETTINGS = {
    "spark.plugins": "org.apache.spark.CometPlugin",
    # Without it Comet executes nothing, and nothing fails.
    "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
    "spark.memory.offHeap.enabled": "true",
    # Delta's files are read by Spark: their batches have to be handed over.
    "spark.comet.convert.parquet.enabled": "true",
}
"""What makes a session run on Comet, besides its JAR and an amount of off-heap memory."""

_NEEDED = (
    ("spark.plugins", "", SETTINGS["spark.plugins"]),
    ("spark.shuffle.manager", "sort", SETTINGS["spark.shuffle.manager"]),
    ("spark.memory.offHeap.enabled", "false", "true"),
    ("spark.comet.enabled", "true", "true"),
    ("spark.comet.exec.enabled", "true", "true"),
)
"""Each setting, its default, and the value without which Comet executes nothing."""


def engine_of(spark: SparkSession) -> Engine:
    """The engine that executes the session's plans. Asks the settings only, as Connect allows."""
    return "jvm" if lacking(spark) else "comet"


def lacking(spark: SparkSession) -> list[str]:
    """One phrase for each setting that keeps Comet from executing the session's plans."""
    found = [(key, _setting(spark, key, default), needed) for key, default, needed in _NEEDED]
    return [
        f"{key} is {value!r}, expected {needed}"
        for key, value, needed in found
        if needed not in value.split(",")  # there may be several plugins
    ]


def comet_package(spark_version: str) -> str:
    """The Maven coordinates of the Comet build for a version of Spark, if there is one.

    >>> comet_package("4.1.3")
    'org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0'
    """
    minor = ".".join(spark_version.split(".")[:2])
    if minor not in BUILDS:
        raise ConfigError(
            f"Comet {COMET}: found Spark {spark_version}, has builds for {', '.join(BUILDS)} only"
        )
    return f"org.apache.datafusion:comet-spark-spark{minor}_2.13:{COMET}"


def warn_unless_running(spark: SparkSession, asked: Engine) -> None:
    """Warn where Comet is asked of a session that lacks it, and say how to start one that has it.

    The session is not changed.
    """
    if asked == "comet" and (missing := lacking(spark)):
        warn_of_fallback(f"this session lacks it ({'; '.join(missing)})", remedy=_remedy(spark))


def warn_of_fallback(reason: str, *, remedy: str = "") -> None:
    """Say that the JVM runs although Comet was asked for, why, and what would help."""
    sentence = f"engine: comet was asked for, but {reason}; the JVM executes the plans instead"
    warnings.warn(f"{sentence}; {remedy}" if remedy else sentence, RanklakeWarning, stacklevel=3)


def _remedy(spark: SparkSession) -> str:
    try:
        package = comet_package(spark.version)
    except ConfigError as error:
        return str(error)
    flags = [f"--conf {key}={value}" for key, value in SETTINGS.items()]
    return (
        f"start it with: spark-submit --packages {package} {' '.join(flags)}"
        " --conf spark.memory.offHeap.size=4g"
    )


def _setting(spark: SparkSession, key: str, default: str) -> str:
    try:
        return str(spark.conf.get(key, default))
    except PySparkException:  # a serverless session does not tell all of its settings
        return default
