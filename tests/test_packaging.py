import re
import tomllib
from pathlib import Path

from ranklake.session import jars, versions

ROOT = Path(__file__).resolve().parents[1]
LOCK = (ROOT / "requirements" / "dev.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked(package: str) -> str:
    return re.search(rf"^{package}==([\w.]+)", LOCK, re.MULTILINE)[1]


def test_the_lock_names_no_registry():
    assert "://" not in LOCK
    assert "--index-url" not in LOCK


def test_the_locked_delta_has_the_version_of_the_jars():
    assert locked("delta-spark") == jars.DELTA


def test_the_locked_pyspark_is_accepted():
    assert versions.check_installed(locked("pyspark")) == locked("pyspark")


def test_pip_and_the_check_at_start_allow_the_same_pyspark():
    oldest, newest = (
        ".".join(map(str, version))
        for version in (versions.OLDEST_INSTALLED, versions.NEWEST_INSTALLED)
    )
    extra = PROJECT["optional-dependencies"]["spark"]
    assert f"pyspark>={oldest},<={newest}" in extra


def test_a_base_install_brings_no_spark():
    assert not [need for need in PROJECT["dependencies"] if re.match("pyspark|delta.spark", need)]
