"""The Spark sessions of the benchmark, by engine."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

from ranklake.engine import Engine, engine_of
from ranklake.session import session


class OtherEngine(Exception):
    """The session runs on another engine than was asked for: its times would bear a wrong name."""


def started(engine: Engine, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A local session on the engine, with SQL settings of its own."""
    spark = session(app_name=f"ranklake benchmark, {engine}", engine=engine)
    if engine_of(spark) != engine:
        raise OtherEngine(f"{engine} was asked for, and this session runs on {engine_of(spark)}")
    for name, value in (settings or {}).items():
        spark.conf.set(name, value)
    return spark
