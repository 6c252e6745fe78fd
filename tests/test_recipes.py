"""The blocks of Python in docs/recipes.md and README.md that read a lake, on one of a few rows."""

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from lakes import QUERY_METRICS, created, recorded, replaced

from ranklake import schemas

ROOT = Path(__file__).resolve().parents[1]
DAYS = (date(2026, 1, 2), date(2026, 1, 3))
MODELS = ("v1", "v2")
SERIES = {"metric": "recall", "k": 10, "label": "click"}
RANKS = [1, 2, 3, 4, 5, 6, 7]
"""Of 8 relevant items 7 are in the top 10 (and in the top 7): recall is 0.875."""


SUMS = ({"num": [1.0, 1.0], "den": [1.0, 1.0]}, {"num": [3.0, 2.0], "den": [3.0, 3.0]})
"""Both days together: (2 + 5) / (2 + 6) = 0.875, which is not the mean of 2 / 2 and 5 / 6."""


def blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def rows_of_both(**columns: Any) -> list[Mapping[str, Any]]:
    return [{**columns, "model_version": model} for model in MODELS]


def series(slice_name: str, slice_value: str, population: str, n: int) -> list[Mapping[str, Any]]:
    """recall@10 of n queries: 0.875 where it is defined."""
    key = {"slice": slice_name, "slice_value": slice_value, "population": population}
    value = 0.875 if population == "with_relevant" else 0.5
    return rows_of_both(**SERIES, **key, value=value, n_queries=n, n_defined=n, status="ok")


@pytest.fixture(scope="module")
def beside_a_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a lake of two days and models, in which recall@10 is 0.875."""
    directory = tmp_path_factory.mktemp("recipes")
    path = created(directory / "lake")
    key = {**SERIES, "slice": "all", "slice_value": "all", "population": "with_relevant"}
    query = {"query_id": "q", "label": "click", "n_relevant": 8, "n_candidates": 20}
    found = {"name": "impressions.null_score", "value": 875.0, "n_rows": 1000, "status": "finding"}
    for n, day in enumerate(DAYS):
        written = {
            QUERY_METRICS: [
                *rows_of_both(**query, hit_ranks=RANKS, recall_at_10=0.875),
                *rows_of_both(**{**query, "query_id": "none", "n_relevant": 0}),
            ],
            schemas.METRIC_SUMS: rows_of_both(**key, **SUMS[n]),
            schemas.QUALITY: rows_of_both(**found),
            schemas.METRICS: [
                *series("all", "all", "with_relevant", 2),
                *series("all", "all", "all", 4),
                *series("device", "mobile", "with_relevant", 1),
            ],
        }
        versions = {
            table.name: replaced(path, table, rows, run_id=f"r{n}", day=day, models=MODELS)
            for table, rows in written.items()
        }
        recorded(path, f"r{n}", day=day, models=MODELS, versions=versions)
    return directory


RECIPES = blocks("docs/recipes.md")
READING = [block for block in blocks("README.md") if "Lake(" in block and "gate(" not in block]


@pytest.mark.parametrize("block", [*RECIPES, *READING])
def test_a_recipe_prints_the_lakes_numbers(
    block: str,
    beside_a_lake: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(beside_a_lake)
    names = {"spark": request.getfixturevalue("spark")} if "spark." in block else {}
    exec(compile(block.replace("demo/lake", "lake"), "the block", "exec"), names)
    assert "0.875" in capfd.readouterr().out


def test_no_recipe_is_overlooked() -> None:
    page = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
    assert len(RECIPES) == page.count("```python") > 5
    assert len(READING) == 1
