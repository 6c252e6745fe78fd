"""The JARs of a local session: resolved once by Spark's own Ivy, then read from the cache."""

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ranklake.engine import COMET, comet_package
from ranklake.errors import ConfigError
from ranklake.session.cache import cache_dir
from ranklake.session.java import Java, launcher_home
from ranklake.session.spark_home import spark_home
from ranklake.session.trust import trust_options
from ranklake.session.versions import minor

DELTA = "4.4.0"

# Reading and writing tables needs two JARs of Delta (10 MB). These would bring 31 more (150 MB).
EXCLUDED = (
    "io.delta:delta-kernel-api",
    "io.delta:delta-kernel-defaults",
    "io.delta:delta-kernel-unitycatalog",
    "io.unitycatalog:unitycatalog-client",
    "io.unitycatalog:unitycatalog-hadoop",
)

LONGEST_DOWNLOAD_S = 300


@dataclass(frozen=True)
class Package:
    """What is fetched together.

    title        its name in messages
    coordinates  its Maven coordinates
    files        the JARs that are needed, of all that it brings: a pattern
    n_files      how many these are
    setup        the arguments of `python -m ranklake.session` that fetch it
    """

    title: str
    coordinates: str
    files: str
    n_files: int
    setup: str = ""


def delta_jars(spark_version: str, java: Java) -> tuple[Path, ...]:
    """The files for `spark.jars`, downloaded when this user starts for the first time."""
    package = Package("Delta", delta_package(spark_version), files="*delta-s*.jar", n_files=2)
    return _jars(package, f"delta-{DELTA}-spark-{minor(spark_version)}", java)


def comet_jar(spark_version: str, java: Java) -> Path:
    """Comet's file (99 MB). Raises ConfigError where this Spark has none, or it cannot be had."""
    coordinates = comet_package(spark_version)
    package = Package("Comet", coordinates, "*comet-spark-*.jar", 1, setup=" --engine comet")
    (jar,) = _jars(package, f"comet-{COMET}-spark-{minor(spark_version)}", java)
    return jar


def delta_package(spark_version: str) -> str:
    """The Maven coordinates of the Delta build for a version of Spark.

    >>> delta_package("4.1.3")
    'io.delta:delta-spark_4.1_2.13:4.4.0'
    """
    return f"io.delta:delta-spark_{minor(spark_version)}_2.13:{DELTA}"


def _jars(package: Package, name: str, java: Java) -> tuple[Path, ...]:
    """The package's files in the cache's directory of that name, downloaded when it is missing."""
    directory = cache_dir() / "jars" / name
    if not directory.is_dir():
        directory.parent.mkdir(exist_ok=True)
        with _locked(directory.with_name(f"{name}.lock")):
            # Another process may have fetched them while this one waited for the lock.
            if not directory.is_dir():
                _fetch(package, directory, java)
    return tuple(sorted(directory.glob("*.jar")))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file's lock, which the system gives back even when this process is killed."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(package: Package, directory: Path, java: Java) -> None:
    """Fill the directory in one step: it has all JARs, or it does not exist."""
    log = directory.with_name(f"{directory.name}.log")
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix="fetch-") as staging:
        fetched = _fetched(package, Path(staging), java, log)
        if len(fetched) != package.n_files:
            raise ConfigError(
                f"{package.title} JARs: not in {directory}, and {package.coordinates} could not be"
                " downloaded; run with a network: python -m ranklake.session"
                f"{package.setup} (details: {log})"
            )
        complete = Path(staging, "complete")
        complete.mkdir()
        for jar in fetched:
            jar.rename(complete / jar.name)
        complete.rename(directory)


def _fetched(package: Package, staging: Path, java: Java, log: Path) -> list[Path]:
    """The package's files; with the machine's authorities if Java's own do not do."""
    pattern = f"ivy/jars/{package.files}"
    _resolve(package.coordinates, staging, java, log)
    if not (jars := [*staging.glob(pattern)]):
        trusting = f"--driver-java-options={trust_options(staging / 'trusted.jks')}"
        _resolve(package.coordinates, staging, java, log, trusting)
        jars = [*staging.glob(pattern)]
    return jars


def _resolve(coordinates: str, staging: Path, java: Java, log: Path, *options: str) -> None:
    """Let spark-submit download a package into `staging/ivy`: mirrors set for Spark apply here.

    Ivy's report goes to the log; whether it worked is seen by the files.
    """
    nothing = staging / "nothing.py"
    nothing.write_text("")
    command = [
        str(spark_home() / "bin" / "spark-submit"),
        "--master=local[1]",
        f"--packages={coordinates}",
        f"--exclude-packages={','.join(EXCLUDED)}",
        f"--conf=spark.jars.ivy={staging / 'ivy'}",
        *options,
        str(nothing),
    ]
    environment = os.environ | {
        "JAVA_HOME": str(launcher_home(java)),
        "SPARK_HOME": str(spark_home()),
    }
    with log.open("a") as report:
        try:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=report,
                stderr=report,
                env=environment,
                timeout=LONGEST_DOWNLOAD_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            report.write(f"stopped after {LONGEST_DOWNLOAD_S} s\n")
