"""A local session that works at once: Java and Delta found, quiet, fitted to the machine."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from ranklake.engine import SETTINGS, Engine, warn_of_fallback
from ranklake.errors import ConfigError
from ranklake.session.jars import comet_jar, delta_jars
from ranklake.session.java import Java, launcher_home, supported_java
from ranklake.session.memory import driver_memory, heap_and_off_heap
from ranklake.session.spark_home import spark_home
from ranklake.session.versions import check_installed

# Tells a session that was built here from one that was supplied.
STARTED_HERE = "spark.ranklake.startedHere"


def local_session(app_name: str, engine: Engine) -> SparkSession:
    """Build a session on this machine; only the first one of a user needs the network."""
    java = supported_java()
    jars = delta_jars(check_installed(pyspark.__version__), java)
    comet = comet_or_warning(java) if engine == "comet" else None
    with _environment(
        JAVA_HOME=str(launcher_home(java)),
        SPARK_HOME=str(spark_home()),
        SPARK_LOCAL_IP=os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
        # Comet's native half logs by itself, two lines a start.
        COMET_LOG_LEVEL=os.environ.get("COMET_LOG_LEVEL", "WARN"),
    ):
        builder = SparkSession.builder.master("local[*]").appName(app_name)
        for key, value in settings(jars, _warehouse(), comet=comet).items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def comet_or_warning(java: Java) -> Path | None:
    """Comet's JAR; where it cannot be used, None and a warning that says why."""
    try:
        jar = comet_jar(pyspark.__version__, java)
    except ConfigError as error:
        warn_of_fallback(str(error))
        return None
    if not _is_loadable(jar):
        warn_of_fallback("this process began with a JVM without it", remedy="start a new process")
        return None
    return jar


def settings(jars: Sequence[Path], warehouse: Path, *, comet: Path | None = None) -> dict[str, str]:
    """Every setting in which a local session differs from Spark's defaults."""
    return {
        STARTED_HERE: "true",
        **_parallelism(os.cpu_count() or 1),
        # Dates and timestamps mean the same on every machine, and in every reader.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.jars": ",".join(str(jar) for jar in (*jars, *([comet] if comet else []))),
        **_delta(),
        **(_comet(comet) if comet else {"spark.driver.memory": driver_memory()}),
        **_quiet(),
        # Spark would look for the caller's line at every column, of which there are hundreds.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.dataFrameQueryContext.enabled": "false",
        # Nothing is left behind in the working directory.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(warehouse),
    }


def n_tasks(cores: int) -> int:
    """Four a core: small enough to sort in memory, and no core waits long for the last one.

    Spark's own 200 partitions are right for a cluster and stay the limit.

    >>> [n_tasks(cores) for cores in (2, 16, 96)]
    [8, 64, 200]
    """
    return min(4 * cores, 200)


def _parallelism(cores: int) -> dict[str, str]:
    """Into how many tasks files and shuffles are cut.

    A shuffle begins with parts enough for a log of a billion rows on two cores; adaptive execution
    merges them by their size, those of a small log into one.
    """
    tasks = str(n_tasks(cores))
    return {
        "spark.sql.shuffle.partitions": tasks,
        "spark.sql.files.minPartitionNum": tasks,
        "spark.sql.adaptive.coalescePartitions.initialPartitionNum": str(min(64 * cores, 2000)),
        # Of 64 MiB, Spark's default, the ranked rows of 20 M impressions would be three tasks.
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    }


def _delta() -> dict[str, str]:
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The state of a table is read by this many tasks; the default of 50 is for huge tables.
        "spark.databricks.delta.snapshotPartitions": "1",
    }


def _comet(jar: Path) -> dict[str, str]:
    heap, off_heap = heap_and_off_heap(driver_memory())
    return {
        **SETTINGS,
        # There _is_loadable finds it again, when a second session is built in the process.
        "spark.driver.extraClassPath": str(jar),
        "spark.driver.memory": heap,
        "spark.memory.offHeap.size": off_heap,
    }


def _is_loadable(jar: Path) -> bool:
    """Whether the JVM can have the file on its class path: one that runs already keeps its own."""
    from pyspark import SparkContext  # the client of Spark Connect has none

    gateway = SparkContext._gateway
    return gateway is None or str(jar) in gateway.jvm.System.getProperty("java.class.path")


def _quiet() -> dict[str, str]:
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    return {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _warehouse() -> Path:
    """Spark insists on a directory for managed tables, of which there are none."""
    directory = tempfile.mkdtemp(prefix="ranklake-warehouse-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Variables for the JVM that is started inside; afterwards all is as it was."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]
