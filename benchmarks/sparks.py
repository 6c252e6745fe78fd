"""The Spark sessions of the benchmark, by engine."""

import os
from pathlib import Path

from pyspark.sql import SparkSession

from ranklake.session import local, session

COMET_JAR = "RANKLAKE_COMET_JAR"
"""The variable that names the Comet JAR."""


def started(engine: str, settings: dict[str, str] | None = None) -> SparkSession:
    """A local session with the engine, `jvm` or `comet`, and further settings."""
    # until session(engine=...): then this is `session(engine=engine)`, and `settings` its options
    own = local.settings

    def with_engine(jars: list[Path], warehouse: Path) -> dict[str, str]:
        chosen = own(jars, warehouse)
        if engine == "comet":
            chosen |= _comet(os.environ[COMET_JAR])
            chosen["spark.jars"] += f",{os.environ[COMET_JAR]}"
        return chosen | (settings or {})

    local.settings = with_engine
    try:
        return session(app_name=f"ranklake benchmark, {engine}")
    finally:
        local.settings = own


def _comet(jar: str) -> dict[str, str]:
    package = "org.apache.spark.sql.comet.execution.shuffle"
    return {
        "spark.driver.extraClassPath": jar,
        "spark.plugins": "org.apache.spark.CometPlugin",
        "spark.shuffle.manager": f"{package}.CometShuffleManager",
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": os.environ.get("RANKLAKE_OFFHEAP_MEMORY", "6g"),
        "spark.comet.convert.parquet.enabled": "true",
    }


def missing(engine: str) -> str | None:
    """Why the engine cannot be had; None when it can."""
    jar = os.environ.get(COMET_JAR, "")
    if engine == "jvm" or Path(jar).is_file():
        return None
    return f"{COMET_JAR} names no Comet JAR"
