"""docs/reference.md is what the code says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ranklake import docgen, errors, metrics, schemas

ROOT = Path(__file__).resolve().parents[1]
BASE_TOML = (ROOT / "conf" / "base.toml").read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with conf/base.toml."""
    monkeypatch.chdir(tmp_path)
    Path("conf").mkdir()
    Path("conf/base.toml").write_text(BASE_TOML, encoding="utf-8")
    return tmp_path


def test_the_page_is_current() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert page == docgen.reference(BASE_TOML), "run: make docs"


def test_the_page_names_every_metric_column_and_exit_code() -> None:
    page = docgen.reference(BASE_TOML)
    names = [m.name for m in metrics.METRICS]
    names += [c.name for table in (*schemas.INPUTS, *schemas.LAKE) for c in table.columns]
    assert [name for name in names if f"| `{name}` |" not in page] == []
    for error in errors.RanklakeError.__subclasses__():
        assert f"| {error.exit_code} | {error.__name__} |" in page


def test_every_key_of_the_configuration_has_a_meaning() -> None:
    configuration = docgen.reference(BASE_TOML).split("## Configuration")[1].split("## Exit")[0]
    rows = [line for line in configuration.splitlines() if line.startswith("| `")]
    assert len(rows) > 30
    assert [row for row in rows if row.endswith("|  |")] == []


def test_exit_codes_are_distinct() -> None:
    codes = [error.exit_code for error in errors.RanklakeError.__subclasses__()]
    assert len(codes) == len({*codes, 0, 1}) - 2


def test_cells_that_hold_a_bar_stay_one_cell() -> None:
    tables = [line for line in docgen.reference(BASE_TOML).splitlines() if line.startswith("|")]
    recall = next(line for line in tables if line.startswith("| `recall` |"))
    assert r"h / \|G\|" in recall


def test_a_missing_or_stale_page_fails_the_check(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert docgen.main(["--check"]) == 1
    assert docgen.main([]) == 0
    assert docgen.main(["--check"]) == 0
    page = checkout / "docs" / "reference.md"
    page.write_text(page.read_text(encoding="utf-8") + "more", encoding="utf-8")
    assert docgen.main(["--check"]) == 1
    assert "expected the output of: make docs" in capsys.readouterr().err


def test_the_page_is_written_without_spark() -> None:
    code = "import sys, ranklake.docgen; sys.exit('pyspark' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
    )
