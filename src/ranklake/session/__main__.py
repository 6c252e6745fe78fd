"""Fetch once what a local session needs: `python -m ranklake.session`.

Later starts then need no network. It also says which Java and which JARs were chosen. With
`--engine comet` Comet is fetched too.
"""

import argparse
import sys

import pyspark

from ranklake.errors import ConfigError
from ranklake.session.jars import comet_jar, delta_jars
from ranklake.session.java import supported_java


def main() -> None:
    """Print what a local session is made of, or what it lacks."""
    parser = argparse.ArgumentParser(prog="python -m ranklake.session")
    parser.add_argument("--engine", choices=("jvm", "comet"), default="jvm")
    engine = parser.parse_args().engine
    try:
        java = supported_java()
        jars = delta_jars(pyspark.__version__, java)
        comet = [comet_jar(pyspark.__version__, java)] if engine == "comet" else []
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    print(f"Spark {pyspark.__version__}")
    print(f"Java {java.version}: {java.home}")
    print(*(f"Delta: {jar}" for jar in jars), sep="\n")
    for jar in comet:
        print(f"Comet: {jar}")


if __name__ == "__main__":
    main()
