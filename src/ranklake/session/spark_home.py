"""Where the Spark of the imported pyspark is."""

import os
from pathlib import Path

import pyspark


def spark_home() -> Path:
    """The installed package itself, or SPARK_HOME when pyspark comes from a Spark distribution.

    The environment alone is not asked: on many machines it names a Spark of another version.
    """
    package = Path(pyspark.__file__).resolve().parent
    return package if (package / "jars").is_dir() else Path(os.environ["SPARK_HOME"])
