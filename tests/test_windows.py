"""Windows of days as rows of metrics: when they have one, and that it is that of the queries."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from two_models import BASELINE, CANDIDATE, DAYS, Queries, published, queries

from ranklake import Lake, read
from ranklake.config import Lake as Place
from ranklake.config import of_values
from ranklake.pipeline.windows import Windows, windows_of

WEEK = {day: queries(day) for day in DAYS}
TODAY = DAYS[-1]
MODELS = [BASELINE, CANDIDATE]


def windows(path: Path, *n: int, **known: Any) -> Windows:
    """Those of today's run of both models, whose rows the lake already has."""
    config = of_values({"lake": {"path": str(path)}, "window_days": list(n)})
    run: Any = SimpleNamespace(
        day=TODAY, models=MODELS, label_as_of=datetime(2026, 2, 1, tzinfo=UTC), is_mature=True
    )
    today = Lake(path).metric_sums(dates=TODAY).drop_columns(["event_date", "run_id"])
    spark: Any = None  # the lake is on a disk
    return windows_of(spark, config, SimpleNamespace(**{**vars(run), **known}), today)


def rows_of(found: Windows, metric: str = "recall") -> dict[tuple[str, str, int], dict[str, Any]]:
    return {
        (row["model_version"], row["slice_value"], row["window_days"]): row
        for row in found.metrics.to_pylist()
        if row["metric"] == metric
    }


def days_of(found: Windows) -> dict[str, tuple[float, str]]:
    """How many days there are, and the status, of each window of the candidate."""
    return {
        row["name"]: (row["value"], row["status"])
        for row in found.checks.to_pylist()
        if row["model_version"] == CANDIDATE
    }


def measured(days: Mapping[date, Queries], model: str, device: str) -> tuple[float, float]:
    """The mean of the queries, and its error: a loop that leaves out a bucket at a time."""
    of = [(q.devices == device) | (device == "all") for q in days.values()]
    pairs = list(zip(days.values(), of, strict=True))
    values = np.concatenate([q.values[model][is_in] for q, is_in in pairs])
    buckets = np.concatenate([q.buckets[is_in] for q, is_in in pairs])
    without = np.array([values[buckets != b].mean() for b in np.unique(buckets)])
    n = len(without)
    return values.mean(), np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())


def test_a_window_is_that_of_its_queries(tmp_path: Path) -> None:
    found = windows(published(tmp_path, WEEK), 3, 7)
    rows = rows_of(found)
    assert len(rows) == 2 * 4 * 2
    for (model, device, n), row in rows.items():
        value, error = measured({day: WEEK[day] for day in DAYS[-n:]}, model, device)
        assert row["value"] == pytest.approx(value, abs=1e-12)
        assert row["std_err"] == pytest.approx(error, rel=1e-9)
        assert row["is_mature"]
    assert days_of(found) == {"windows.3.days": (3, "ok"), "windows.7.days": (7, "ok")}


def test_without_one_of_its_days_a_window_has_no_row(tmp_path: Path) -> None:
    some = {day: WEEK[day] for day in DAYS if day != DAYS[2]}
    found = windows(published(tmp_path, some), 3, 7)
    assert {n for _, _, n in rows_of(found)} == {3}
    assert days_of(found) == {"windows.3.days": (3, "ok"), "windows.7.days": (6, "finding")}


def test_what_changed_its_meaning_has_no_row_until_the_window_is_past(tmp_path: Path) -> None:
    early = {day: WEEK[day] for day in DAYS[:3]}
    published(tmp_path, early, definition_hash="fedcba9876543210")
    found = windows(published(tmp_path, {day: WEEK[day] for day in DAYS[3:]}), 3, 7)
    assert {n for _, _, n in rows_of(found)} == {3}
    assert days_of(found)["windows.7.days"] == (7, "ok")


def test_a_measure_that_a_day_lacks_has_no_row(tmp_path: Path) -> None:
    path = published(tmp_path, WEEK)
    DeltaTable(path / "metric_sums").delete(f"metric = 'recall' AND event_date = '{DAYS[0]}'")
    assert {n for _, _, n in rows_of(windows(path, 3, 7))} == {3}
    assert {n for _, _, n in rows_of(windows(path, 3, 7), "hit_rate")} == {3, 7}


def test_a_slice_value_may_be_missing_on_a_day(tmp_path: Path) -> None:
    path = published(tmp_path, WEEK)
    no_tablets = f"slice_value = 'tablet' AND event_date = '{DAYS[5]}'"
    DeltaTable(path / "metric_sums").delete(no_tablets)
    row = rows_of(windows(path, 3))[BASELINE, "tablet", 3]
    of_others = {day: WEEK[day] for day in (DAYS[4], DAYS[6])}
    assert row["value"] == pytest.approx(measured(of_others, BASELINE, "tablet")[0], abs=1e-12)


@pytest.mark.parametrize(
    ("past", "today", "expected"),
    [(True, True, True), (False, True, False), (True, False, False), (None, True, None)],
)
def test_a_window_is_mature_where_all_its_days_are(
    tmp_path: Path, past: bool | None, today: bool, expected: bool | None
) -> None:
    path = published(tmp_path, {DAYS[5]: WEEK[DAYS[5]]}, is_mature=past)
    published(path, {day: WEEK[day] for day in (DAYS[4], TODAY)})
    rows = rows_of(windows(path, 3, is_mature=today))
    assert {row["is_mature"] for row in rows.values()} == {expected}


def with_windows(path: Path, day: date, n: int) -> None:
    """The day's rows of metrics again, as those of a window of which some day was not mature."""
    rows = Lake(path).metrics(dates=day)
    for name, value in (("window_days", n), ("is_mature", False)):
        at = rows.schema.get_field_index(name)
        field = rows.schema.field(at)
        rows = rows.set_column(at, field, pa.array([value] * len(rows), field.type))
    write_deltalake(path / "metrics", rows, mode="append")


def test_windows_of_earlier_days_do_not_say_how_mature_those_are(tmp_path: Path) -> None:
    path = published(tmp_path, {day: WEEK[day] for day in DAYS[4:]})
    with_windows(path, DAYS[5], 28)
    rows = rows_of(windows(path, 3))
    assert {row["is_mature"] for row in rows.values()} == {True}


def test_a_run_is_as_mature_as_its_day(spark: SparkSession, tmp_path: Path) -> None:
    path = published(tmp_path, {TODAY: WEEK[TODAY]})
    with_windows(path, TODAY, 28)
    runs = read.published_runs(spark, Place(path=str(path)))
    assert [(run.day, run.is_mature) for run in runs] == [(TODAY, True)] * 2


def test_no_window_is_asked_for_by_default(tmp_path: Path) -> None:
    found = windows(published(tmp_path, WEEK))
    assert (len(found.metrics), len(found.checks)) == (0, 0)
