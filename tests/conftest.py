import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ranklake.session import session, stop

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of a test process."""
    os.environ.setdefault("RANKLAKE_DRIVER_MEMORY", "3g")
    # Tests run many small plans once: the optimizing compiler costs them more than it gives.
    # Without it a JVM has room for 48 MB of code, and stops compiling when that is full.
    options = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    os.environ.setdefault("JDK_JAVA_OPTIONS", options)
    spark = session(app_name="ranklake tests")
    yield spark
    stop(spark)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Logs and expected results that are too big for the repository, beside it."""
    directory = ROOT.parent / "shared"
    if not directory.is_dir():
        pytest.skip("no ../shared beside the repository: it holds the larger logs")
    return directory
