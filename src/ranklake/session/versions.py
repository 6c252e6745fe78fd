"""Which versions of Spark ranklake is tested with."""

import re

from ranklake.errors import ConfigError

# Delta 4.4.0 has a build for each of these minor versions, and refuses any other.
OLDEST_INSTALLED = (4, 0, 1)
NEWEST_INSTALLED = (4, 2, 0)


def check_installed(version: str) -> str:
    """The version of the installed pyspark, when a local session can be built from it."""
    if OLDEST_INSTALLED <= numbers(version) <= NEWEST_INSTALLED:
        return version
    raise ConfigError(
        f"pyspark: found {version}, expected {_dotted(OLDEST_INSTALLED)} to"
        f" {_dotted(NEWEST_INSTALLED)}; run: pip install 'ranklake[spark]'"
    )


def check_supplied(version: str) -> str:
    """The version of a session someone else built; a platform's 4.0.0 and patches are welcome."""
    if (4, 0) <= numbers(version)[:2] <= (4, 2):
        return version
    raise ConfigError(f"Spark session: found Spark {version}, expected 4.0.0 to 4.2.x")


def minor(version: str) -> str:
    """The first two numbers, which name the Delta build.

    >>> minor("4.1.3")
    '4.1'
    """
    return _dotted(numbers(version)[:2])


def numbers(version: str) -> tuple[int, ...]:
    """The three leading numbers; a suffix such as `.dev1` does not count.

    >>> numbers("4.2.0.dev1")
    (4, 2, 0)
    """
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
