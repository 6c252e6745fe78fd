"""Take the session that is there, or build a local one."""

import contextlib
import importlib
import os

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from ranklake.engine import Engine, warn_unless_running
from ranklake.session.local import STARTED_HERE, local_session
from ranklake.session.versions import check_supplied

# Set where someone else decides how Spark runs: spark-submit, Spark Connect, Databricks.
PLATFORM_VARIABLES = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION")


def session(*, app_name: str = "ranklake", engine: Engine = "jvm") -> SparkSession:
    """The session to work with.

    One that is there, or that the platform supplies, is returned as it is: none of its settings
    is changed. Otherwise a local one is built, which takes all cores of the machine. Where it does
    not run on the engine that is asked for, a RanklakeWarning says why, and the JVM is used.
    """
    spark = _supplied_session()
    if spark is None:
        spark = local_session(app_name, engine)
    else:
        check_supplied(spark.version)
        warn_unless_running(spark, engine)
    _convert_delta_errors()
    _leave_errors_to_us()
    return spark


def stop(spark: SparkSession) -> None:
    """Stop a session that `session` has built; one that was supplied goes on."""
    if spark.conf.get(STARTED_HERE, "false") == "true":
        spark.stop()


def _supplied_session() -> SparkSession | None:
    if active := SparkSession.getActiveSession():
        return active
    # In another thread than its creator's, a session is not active but still the only one.
    exists = SparkSession._instantiatedSession is not None
    if exists or any(name in os.environ for name in PLATFORM_VARIABLES):
        return SparkSession.builder.getOrCreate()
    return None


def _convert_delta_errors() -> None:
    """Without this import Delta's write conflicts reach Python as a bare Py4JJavaError."""
    # The client of Spark Connect needs no delta package, and may have none.
    with contextlib.suppress(ImportError):
        importlib.import_module("delta.exceptions")


def _leave_errors_to_us() -> None:
    """Else Spark writes each column that it does not find, with a stack trace, to stderr as well:
    also where ranklake asks whether it is there, or says in one line what is wrong.
    """
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
