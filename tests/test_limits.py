"""Data beyond a limit: exit code 8, quality and runs say why, and what was published stays."""

import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from lakes import DAY, created, rows_of
from pyspark.sql import SparkSession
from tables import clicks, impressions, table

from ranklake import Lake, evaluate, quality, read, schemas
from ranklake.cli import main
from ranklake.config import EvalConfig, of_values
from ranklake.config import Lake as Place
from ranklake.errors import DataLimitExceeded
from ranklake.pipeline.publish import detail_table
from ranklake.pipeline.remeasure import remeasure

NUMBERS = ("query_metrics", "metric_sums", "metrics", "comparisons")
NOTHING = "; nothing was published"


def limits_of(rows: pa.Table) -> dict[tuple[str, str], tuple[float, int, float | None, str]]:
    """The limits among the rows of quality: value, n_rows, limit and status by model and key."""
    return {
        (row["model_version"], row["name"].removeprefix("limits.")): (
            row["value"],
            row["n_rows"],
            row["limit"],
            row["status"],
        )
        for row in rows.to_pylist()
        if row["name"].startswith("limits.")
    }


@pytest.mark.parametrize(
    ("n", "limit", "problem"),
    [
        (1, 0.1, None),
        (1, 0.0999, "v1: null scores: 10 % of 10, limit 9.99 % (limits.null_scores)"),
        (0, 0.0, None),
        (10, 1.0, None),
        (1, 0.0, "v1: null scores: 10 % of 10, limit 0 % (limits.null_scores)"),
        (3, 0.3, None),
    ],
)
def test_a_share_that_is_the_limit_passes(n: int, limit: float, problem: str | None) -> None:
    found = quality.limited_share("null_scores", n, 10, limit=limit, where="v1")
    assert found.problem == problem
    assert found.row == {
        "name": "limits.null_scores",
        "value": n / 10,
        "n_rows": 10,
        "limit": limit,
        "status": "exceeded" if problem else "ok",
    }


def test_a_share_just_beyond_the_limit_does_not_look_like_it() -> None:
    found = quality.limited_share("duplicates", 20_001, 2_000_000, limit=0.01, where="v1")
    said = "v1: duplicates: 1.00005 % of 2,000,000, limit 1 % (limits.duplicates)"
    assert found.problem == said
    of_nothing = quality.limited_share("orphan_clicks", 0, 0, limit=0.0, where="clicks")
    assert (of_nothing.row["value"], of_nothing.problem) == (0.0, None)


@pytest.mark.parametrize(
    ("n_rows", "beyond"),
    [(9, "at least 0.1 times 100"), (10, None), (300, None), (301, "at most 3 times 100")],
)
def test_rows_are_compared_with_the_median_of_earlier_days(n_rows: int, beyond: str | None) -> None:
    of_days = [100, 5, 100, 7000]
    found = [*quality.limited_rows("impressions", n_rows, of_days, least=0.1, most=3.0)]
    assert [(one.row["value"], one.row["limit"]) for one in found] == [(n_rows, 10), (n_rows, 300)]
    key = "least_rows" if n_rows < 100 else "most_rows"
    said = f"impressions: {n_rows} rows, expected {beyond}, the median of the last 4 days"
    expected = [f"{said} (limits.{key})"] if beyond else []
    assert [one.problem for one in found if one.problem] == expected
    too_few = [*quality.limited_rows("impressions", n_rows, of_days[:2], least=0.1, most=None)]
    assert [(one.row["limit"], one.row["status"], one.problem) for one in too_few] == [
        (None, "ok", None)
    ]


SHOWN = (
    {"query_id": "q1", "item_id": "a"},
    {"query_id": "q1", "item_id": "a"},
    {"query_id": "q1", "item_id": "b"},
    {"query_id": "q2", "item_id": "a", "score": None},
    {"query_id": "q3", "item_id": "a", "score": float("nan")},
    {"query_id": "q4", "item_id": "a"},
)
SCORED = (
    {"query_id": "q1", "item_id": "a"},
    {"query_id": "q1", "item_id": "b"},
    {"query_id": "q2", "item_id": "b"},
    {"query_id": "q2", "item_id": "b"},
    {"query_id": "q3", "item_id": "b", "score": None},
)
CLICKED = (
    {"query_id": "q1", "item_id": "a"},
    {"query_id": "q2", "item_id": "z"},
    {"query_id": "q9", "item_id": "a"},
    {"query_id": "q1", "item_id": ""},
)
AT_THE_LIMIT = {
    "null_scores": 2 / 6,  # of v1; of v2 1 of 5
    "duplicates": 1 / 5,  # of v2; of v1 1 of 6
    "orphan_clicks": 1 / 4,
    "without_candidates": 1 / 4,  # v2 lists nothing for q4
    "least_rows": 0.5,
    "expected_models": ["v2", "v1"],
}
OPTIONS: Mapping[str, Any] = {"day": DAY, "ks": [1], "metrics": ["recall"], "n_buckets": 50}


def test_each_limit_is_looked_at_and_what_is_at_it_passes(spark: SparkSession) -> None:
    scores = table(spark, "scores", *({"model_version": "v2", **row} for row in SCORED))
    log = {
        "impressions": impressions(spark, *SHOWN),
        "scores": scores,
        "clicks": clicks(spark, *CLICKED),
    }
    found = evaluate(**log, limits=AT_THE_LIMIT, **OPTIONS)
    shared = {
        "orphan_clicks": (1 / 4, 4, 1 / 4, "ok"),
        "expected_models": (0, 2, 0, "ok"),
    }
    assert limits_of(found.quality) == {
        **{(model, key): row for model in ("v1", "v2") for key, row in shared.items()},
        ("v1", "null_scores"): (2 / 6, 6, 2 / 6, "ok"),
        ("v2", "null_scores"): (1 / 5, 5, 2 / 6, "ok"),
        ("v1", "duplicates"): (1 / 6, 6, 1 / 5, "ok"),
        ("v2", "duplicates"): (1 / 5, 5, 1 / 5, "ok"),
        ("v2", "without_candidates"): (1 / 4, 4, 1 / 4, "ok"),
        ("v1", "least_rows"): (6, 6, None, "ok"),
        ("v2", "least_rows"): (5, 5, None, "ok"),
    }
    below = {
        "null_scores": 0.33,
        "duplicates": 0.19,
        "orphan_clicks": 0.24,
        "without_candidates": 0.24,
        "expected_models": ["v1", "v3", "v2", "v4"],
    }
    with pytest.raises(DataLimitExceeded) as refused:
        evaluate(**log, limits=below, **OPTIONS)
    there = "there are v1, v2 (limits.expected_models)"
    assert refused.value.problems == tuple(
        f"{problem}{NOTHING}"
        for problem in (
            "v1: null scores: 33.3 % of 6, limit 33 % (limits.null_scores)",
            "v2: duplicates: 20 % of 5, limit 19 % (limits.duplicates)",
            "v2: queries without candidates: 25 % of 4, limit 24 % (limits.without_candidates)",
            "clicks: orphans: 25 % of 4, limit 24 % (limits.orphan_clicks)",
            f"models of 2026-01-01: no candidates of v3, v4; {there}",
        )
    )


def test_what_cannot_be_measured_has_no_row(spark: SparkSession) -> None:
    """Unique keys have no duplicates, served models no query without, undated clicks no orphans."""
    unique = [row for n, row in enumerate(SHOWN) if n]
    limits = dict.fromkeys(("duplicates", "orphan_clicks", "without_candidates"), 0.0)
    found = evaluate(
        impressions(spark, *unique),
        clicks(spark, *CLICKED).drop("event_date"),
        unique_key=True,
        limits=limits,
        **OPTIONS,
    )
    assert limits_of(found.quality) == {}


def of_runs(
    day: date, run_id: str, n_rows: int | None, *, hour: int = 0, status: str = "SUCCESS"
) -> dict[str, Any]:
    """A row of runs: the day's run that had so many impressions."""
    inputs = {"clicks": {"n_rows": 1}, "remeasured": {"run_id": "r"}}
    if n_rows is not None:
        inputs["impressions"] = {"n_rows": n_rows}
    return {
        "event_date": day,
        "model_version": "v1",
        "run_id": run_id,
        "status": status,
        "finished_at": datetime(2026, 1, 2, hour, tzinfo=UTC),
        "inputs": json.dumps(inputs),
        "definitions": "{}",
    }


def before(days: int) -> date:
    return DAY - timedelta(days=days)


HISTORY = (
    of_runs(before(1), "first", 1_000_000, hour=1),
    of_runs(before(1), "again", 10, hour=2),
    of_runs(before(1), "failed", 99, hour=3, status="FAILED"),
    of_runs(before(2), "r2", 14),
    of_runs(before(3), "rejected", 99, status="REJECTED"),
    of_runs(before(4), "r4", 20),
    of_runs(before(5), "r5", 30),
    of_runs(before(9), "r9", 40),
)
"""Five days before the day: 10, 14, 20, 30 and 40 impressions; the median is 20."""


@pytest.mark.parametrize("here", [True, False])
def test_of_each_earlier_day_the_newest_run_that_succeeded_says_how_many_rows(
    spark: SparkSession, tmp_path: Path, here: bool
) -> None:
    runs = [*HISTORY, of_runs(DAY, "own", 99), of_runs(DAY + timedelta(days=1), "later", 99)]
    runs += [of_runs(before(n), f"r{n}", n) for n in (10, 11)] + [of_runs(before(12), "r", 99)]
    write_deltalake(tmp_path / "runs", rows_of(schemas.RUNS, runs))
    lake = Place(path=str(tmp_path) if here else tmp_path.as_uri())
    found = read.published_rows(spark, lake, before=DAY, n_days=7)
    assert [day["impressions"] for day in found] == [10, 14, 20, 30, 40, 10, 11]
    assert found[0] == {"impressions": 10, "clicks": 1}


GOOD = (
    *[{"query_id": query, "item_id": item} for query in ("q1", "q2") for item in "ab"],
    *[{"query_id": "q3", "item_id": item, "model_version": "v2"} for item in "ab"],
)
BAD = (
    {"query_id": "q1", "item_id": "a", "score": None},
    {"query_id": "q1", "item_id": "b"},
    {"query_id": "q1", "item_id": "b"},
    {"query_id": "q1", "item_id": "c", "score": float("nan")},
    {"query_id": "test", "item_id": "a", "score": None},
    {"query_id": "q3", "item_id": "a", "model_version": "v2"},
    {"query_id": "q3", "item_id": "b", "model_version": "v2"},
)
LIMITS = {
    "null_scores": 0.1,
    "duplicates": 0.125,
    "orphan_clicks": 0.2,
    "least_rows": 0.5,
    "most_rows": 2.0,
    "expected_models": ["v1", "v2"],
}


def values(home: Path, log: str, **changes: Any) -> dict[str, Any]:
    inputs = {
        name: {"path": str(home / log / name), "format": "parquet"}
        for name in ("impressions", "clicks")
    }
    inputs["impressions"]["where"] = "query_id <> 'test'"
    return {
        "ks": [1],
        "metrics": ["recall", "precision"],
        "n_buckets": 50,
        "inputs": inputs,
        "lake": {"path": str(home / "lake")},
        "limits": LIMITS,
        **changes,
    }


def ran(home: Path, log: str, *arguments: str, limits: Mapping[str, Any] = LIMITS) -> int:
    """The exit code of a run of the day."""
    given = values(home, log, limits=limits)
    settings = [
        f"{name}.{key}={json.dumps(value)}"
        for name, section in (
            *((f"inputs.{name}", given["inputs"][name]) for name in given["inputs"]),
            *((name, given[name]) for name in ("lake", "limits")),
        )
        for key, value in section.items()
    ]
    settings += [f"{name}={json.dumps(given[name])}" for name in ("ks", "metrics", "n_buckets")]
    told = [part for setting in settings for part in ("--set", setting)]
    try:
        main(["evaluate", "--date", str(DAY), "--quiet", *arguments, *told])
    except SystemExit as stop:
        return int(str(stop.code))
    return 0


@pytest.fixture(scope="module")
def published(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good log and a bad one, and a lake in which the good one is published."""
    home = tmp_path_factory.mktemp("limits")
    for log, shown, orphans in (("good", GOOD, ()), ("bad", BAD, ({"query_id": "q9"},))):
        impressions(spark, *shown).write.parquet(str(home / log / "impressions"))
        clicked = ({"query_id": "q1", "item_id": "a"}, *({**o, "item_id": "a"} for o in orphans))
        clicks(spark, *clicked).write.parquet(str(home / log / "clicks"))
    created(home / "lake", detail_table(of_values(values(home, "good"))))
    assert ran(home, "good") == 0
    return home


@pytest.fixture
def home(published: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(published, tmp_path / "home"))


def contents(lake: Path, *names: str) -> dict[str, tuple[int, Sequence[Mapping[str, Any]]]]:
    """The Delta version and all rows of the tables."""
    tables = {name: DeltaTable(lake / name) for name in names}
    return {
        name: (delta.version(), sorted(delta.to_pyarrow_table().to_pylist(), key=str))
        for name, delta in tables.items()
    }


def test_beyond_the_limits_nothing_that_is_published_changes(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(home / "lake")
    before, told = contents(home / "lake", *NUMBERS), lake.quality().to_pylist()
    assert limits_of(lake.quality())["v1", "least_rows"] == (6, 6, None, "ok")
    write_deltalake(home / "lake" / "runs", rows_of(schemas.RUNS, HISTORY), mode="append")
    capsys.readouterr()

    limits = {**LIMITS, "expected_models": ["v1", "v2", "v3"]}
    assert ran(home, "bad", "--set", "rejected.samples=1", limits=limits) == 8
    problems = [
        f"{problem}{NOTHING}"
        for problem in (
            "v1: null scores: 50 % of 4, limit 10 % (limits.null_scores)",
            "v1: duplicates: 25 % of 4, limit 12.5 % (limits.duplicates)",
            "impressions: 7 rows, expected at least 0.5 times 20, the median of the last 5 days"
            " (limits.least_rows)",
            "clicks: orphans: 50 % of 2, limit 20 % (limits.orphan_clicks)",
            "models of 2026-01-01: no candidates of v3; there are v1, v2 (limits.expected_models)",
        )
    ]
    assert capsys.readouterr().err.splitlines() == [f"error: {problem}" for problem in problems]

    assert contents(home / "lake", *NUMBERS) == before
    assert lake.quality().to_pylist() == told  # of the run that is published
    last = max(lake.runs().to_pylist(), key=lambda step: step["started_at"])
    steps = lake.runs(where=f"run_id = '{last['run_id']}'").to_pylist()
    assert sorted((step["model_version"], step["status"], step["message"]) for step in steps) == [
        (model, "REJECTED", "\n".join(problems)) for model in ("v1", "v2")
    ]
    assert {*dict(last["table_versions"])} == {"quality", "rejected"}

    stored = DeltaTable(home / "lake" / "quality").to_pyarrow_table()
    assert {*stored["run_id"].to_pylist()} == {last["run_id"]}
    shared = {
        "least_rows": (7, 7, 10, "exceeded"),
        "most_rows": (7, 7, 40, "ok"),
        "orphan_clicks": (1 / 2, 2, 0.2, "exceeded"),
        "expected_models": (1, 3, 0, "exceeded"),
    }
    assert limits_of(stored) == {
        **{(model, key): row for model in ("v1", "v2") for key, row in shared.items()},
        ("v1", "null_scores"): (1 / 2, 4, 0.1, "exceeded"),
        ("v2", "null_scores"): (0, 2, 0.1, "ok"),
        ("v1", "duplicates"): (1 / 4, 4, 0.125, "exceeded"),
        ("v2", "duplicates"): (0, 2, 0.125, "ok"),
    }
    of_v1 = {
        row["name"]: row["value"] for row in stored.to_pylist() if row["model_version"] == "v1"
    }
    assert of_v1["impressions.rows"] == 5
    assert of_v1["impressions.dropped.left_out"] == 1
    assert (of_v1["clicks.kept"], of_v1["clicks.dropped.orphan"]) == (1, 1)

    samples = DeltaTable(home / "lake" / "rejected").to_pyarrow_table().to_pylist()
    orphans = [row["query_id"] for row in samples if row["reason"] == "orphan"]
    assert orphans == ["q9", "q9"]  # with each model

    looser = {"least_rows": 0.3, "null_scores": 0.5, "expected_models": ["v2"]}
    assert ran(home, "bad", limits=looser) == 0
    newest = {*lake.metrics()["run_id"].to_pylist()}
    assert {*lake.quality()["run_id"].to_pylist()} == newest
    assert last["run_id"] not in newest
    assert limits_of(lake.quality())["v1", "null_scores"] == (1 / 2, 4, 0.5, "ok")
    assert limits_of(lake.quality())["v1", "least_rows"] == (7, 7, 6, "ok")
    assert not lake.quality(where="status = 'exceeded'").num_rows


def test_remeasuring_after_a_rejected_run_keeps_the_published_quality(
    spark: SparkSession, home: Path
) -> None:
    """The rejected run is of one of two models: quality then holds half of what is published."""
    lake = Lake(home / "lake")
    limits = {"null_scores": 0.0, "expected_models": ["v3"]}  # a run of one model expects no others
    assert ran(home, "bad", "--model-version", "v1", limits=limits) == 8
    rejected = lake.runs(where="status = 'REJECTED'").to_pylist()
    assert [(run["model_version"], run["message"].count("\n")) for run in rejected] == [("v1", 0)]
    told = without_runs(lake.quality())
    assert {row["model_version"] for row in told} == {"v1", "v2"}

    more: EvalConfig = of_values(values(home, "good", measures=["AP"]))
    assert [models for models, _ in remeasure(spark, more, DAY)] == ["v1, v2"]
    assert without_runs(lake.quality()) == told
    found = lake.metrics(where="metric = 'ap'", columns=["model_version"])
    assert {*found["model_version"].to_pylist()} == {"v1", "v2"}


def without_runs(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.drop_columns(["run_id"]).to_pylist(), key=str)
