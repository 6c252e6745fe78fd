"""trend: a measure day by day, and a window against the one before; the numbers are checked against
the queries themselves.
"""

import csv
import io
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from two_models import BASELINE, CANDIDATE, DAYS, Queries, published, queries

from ranklake import Lake, trend
from ranklake.cli.main import main
from ranklake.errors import ConfigError, NoInputError

WEEK = {day: queries(day) for day in DAYS}
MEASURE = "recall@10"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A week of two models."""
    return published(tmp_path_factory.mktemp("lake"), WEEK)


def changed(now: Sequence[Queries], before: Sequence[Queries], device: str) -> tuple[float, float]:
    """The change of the baseline's mean recall between the windows, and its standard error.

    Each time one bucket of users is left out of both windows, with a loop over the queries.
    """
    windows = []
    for found in (now, before):
        of = [np.ones(len(q.ids), bool) if device == "all" else q.devices == device for q in found]
        values = [q.values[BASELINE][is_in] for q, is_in in zip(found, of, strict=True)]
        buckets = [q.buckets[is_in] for q, is_in in zip(found, of, strict=True)]
        windows.append((np.concatenate(values), np.concatenate(buckets)))
    (one, of_one), (other, of_other) = windows
    without = np.array(
        [one[of_one != b].mean() - other[of_other != b].mean() for b in np.unique(of_one)]
    )
    n = len(without)
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    return float(one.mean() - other.mean()), float(error)


@pytest.mark.parametrize("device", ["all", "tablet"])
def test_a_change_is_that_of_the_queries(lake: Path, device: str) -> None:
    slices = ["device"] if device != "all" else []
    found = trend(Lake(lake), MEASURE, last=3, until=DAYS[5], models=BASELINE, slices=slices)
    (row,) = (row for row in found.changes.to_pylist() if row["slice_value"] == device)
    now, before = ([WEEK[day] for day in DAYS[at : at + 3]] for at in (3, 0))
    delta, error = changed(now, before, device)
    assert (row["date_from"], row["date_to"]) == (DAYS[3], DAYS[5])
    assert (row["previous_from"], row["previous_to"]) == (DAYS[0], DAYS[2])
    assert row["delta"] == pytest.approx(delta, abs=1e-12)
    assert row["value"] - row["previous_value"] == pytest.approx(delta, abs=1e-12)
    half = (row["delta_ci_high"] - row["delta_ci_low"]) / 2
    assert half / error == pytest.approx(2.0096, abs=1e-4)  # t(49), 97.5 %, from a printed table
    assert row["ci_low"] < row["value"] < row["ci_high"]
    assert found.notes == ()


def test_days_are_those_of_metrics(lake: Path) -> None:
    found = trend(Lake(lake), MEASURE, last=3)
    rows = found.days.to_pylist()
    assert [(row["model_version"], row["event_date"]) for row in rows] == [
        (model, day) for model in (BASELINE, CANDIDATE) for day in DAYS[-3:]
    ]
    for row in rows:
        expected = WEEK[row["event_date"]].values[row["model_version"]].mean()
        assert row["value"] == pytest.approx(expected, abs=1e-12)


def test_a_window_without_one_before_it_has_no_change(lake: Path) -> None:
    found = trend(Lake(lake), MEASURE, last=7, models=[CANDIDATE])
    (row,) = found.changes.to_pylist()
    assert row["value"] is not None
    assert row["delta"] is row["previous_value"] is row["p_value"] is None
    assert found.notes == (f"{CANDIDATE}: 0 of 7 days of the window before have metrics",)


def test_missing_and_immature_days_are_told(tmp_path: Path) -> None:
    some = {day: WEEK[day] for day in DAYS if day != DAYS[5]}
    path = published(tmp_path, some, models=[BASELINE])
    published(path, {DAYS[6]: WEEK[DAYS[6]]}, models=[BASELINE], run_id="r2", is_mature=False)
    found = trend(Lake(path), MEASURE, last=3)
    assert found.notes == (
        f"{BASELINE}: 2 of 3 days of the window have metrics",
        f"{BASELINE}: labels of {DAYS[6]} are not complete yet",
    )


def test_a_changed_definition_is_refused_with_both(tmp_path: Path) -> None:
    path = published(tmp_path, {DAYS[0]: WEEK[DAYS[0]]}, models=[BASELINE])
    now = {DAYS[1]: WEEK[DAYS[1]]}
    published(path, now, models=[BASELINE], definition_hash="fedcba9876543210")
    for last in (1, 2):  # between the windows, and within one
        with pytest.raises(ConfigError, match=r"0123456789abcdef .* and fedcba9876543210 .*one"):
            trend(Lake(path), MEASURE, last=last)


def test_what_is_not_there_is_said(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="recall@11: there is none"):
        trend(Lake(lake), "recall@11")
    with pytest.raises(
        NoInputError, match="no day from 2025-12-26 to 2026-01-01 has metrics of v3"
    ):
        trend(Lake(lake), MEASURE, last=7, until="2026-01-01", models="v3")
    with pytest.raises(ConfigError, match="found 'yesterday', expected a day as YYYY-MM-DD"):
        trend(Lake(lake), MEASURE, until="yesterday")
    late = trend(Lake(lake), MEASURE, last=2, until=str(DAYS[-1] + timedelta(days=1)))
    assert {*late.days["event_date"].to_pylist()} == {DAYS[-1]}
    empty = published(tmp_path, {})
    with pytest.raises(NoInputError, match="no metrics are published"):
        trend(Lake(empty), MEASURE)


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    main(["trend", MEASURE, *map(str, arguments)])
    return capsys.readouterr().out


def test_the_command_draws_and_tells(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    text = said(capsys, "--lake", lake, "--last", "3d")
    assert f"{MEASURE} of {BASELINE}, click" in text
    assert f"{MEASURE}, {DAYS[4]} to {DAYS[6]}, against {DAYS[1]} to {DAYS[3]}" in text
    values = [WEEK[day].values[BASELINE].mean() for day in DAYS[4:]]
    for value, day in zip(values, DAYS[4:], strict=True):
        (line,) = (
            line for line in text.splitlines() if str(day) in line and f"{value:.4f}" in line
        )
        assert "●" in line
    assert text.count("●") == 6
    monkeypatch.setenv("COLUMNS", "70")
    narrow = said(capsys, "--lake", lake, "--last", "3d", "--slice", "device")
    assert max(map(len, narrow.splitlines())) <= 70
    assert "change" in narrow


def test_the_command_is_for_programs_too(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = json.loads(said(capsys, "--lake", lake, "--last", "1w", "-o", "json"))
    assert [len(found[name]) for name in ("days", "changes", "notes")] == [14, 2, 2]
    assert found["changes"][0]["date_from"] == str(DAYS[0])
    rows = list(csv.DictReader(io.StringIO(said(capsys, "--lake", lake, "-o", "csv"))))
    assert {row["event_date"] for row in rows} == {str(day) for day in DAYS}
    assert "| v1 |" in said(capsys, "--lake", lake, "-o", "markdown")


@pytest.mark.parametrize("last", ["0d", "28x", "-1", "99999d", ""])
def test_no_number_of_days_is_refused(
    lake: Path, capsys: pytest.CaptureFixture[str], last: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["trend", MEASURE, "--lake", str(lake), "--last", last])
    assert stop.value.code == 2
    assert "expected a number of days, as in 28d or 4w" in capsys.readouterr().err
