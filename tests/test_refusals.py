"""Bad input: a message that says what to do, the exit code for the scheduler, tables untouched."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ranklake import evaluate
from ranklake.cli import main
from ranklake.errors import ConfigError

DAY = ("--date", "2026-01-01")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A day of two impressions and a click, as Parquet and CSV."""
    day = {"event_date": ["2026-01-01"] * 2}
    shown = {**day, "model_version": ["v1"] * 2, "query_id": ["q1"] * 2, "item_id": ["a", "b"]}
    rows = pa.table({**shown, "score": [2.0, 1.0]})
    dates = rows["event_date"].cast(pa.date32())
    rows = rows.set_column(0, "event_date", dates)
    pq.write_table(rows, tmp_path / "impressions.parquet")
    clicked = {"query_id": ["q1"], "item_id": ["a"]}
    pq.write_table(pa.table(clicked), tmp_path / "clicks.parquet")
    (tmp_path / "clicks.csv").write_text("query_id,item_id\nq1,a\n", encoding="utf-8")
    return tmp_path


def run(
    capsys: pytest.CaptureFixture[str],
    log: Path,
    *settings: str,
    command: str = "check",
    date: Any = DAY,
) -> tuple[int, str]:
    """The exit code and what was said, of a command on the log with the settings over it."""
    inputs = {
        "impressions": {"format": "parquet", "path": str(log / "impressions.parquet")},
        "clicks": {"format": "parquet", "path": str(log / "clicks.parquet")},
    }
    given = [
        f"inputs.{name}.{key}={json.dumps(value)}"
        for name, source in inputs.items()
        for key, value in source.items()
    ]
    arguments = [part for setting in [*given, *settings] for part in ("--set", setting)]
    code = 0
    try:
        main([command, *date, *arguments])
    except SystemExit as stop:
        code = int(str(stop.code))
    return code, capsys.readouterr().err


def test_a_good_log_passes(
    spark: SparkSession, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, log) == (0, "")


def test_every_schema_problem_is_told_at_once(
    spark: SparkSession, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = run(
        capsys,
        log,
        'inputs.impressions.columns.score="item_id"',
        'inputs.impressions.columns.query_id="nosuch"',
        'inputs.impressions.where="nowhere = 1"',
        'inputs.clicks.columns.item_id="1.5D"',
        'slices.columns=["device"]',
    )
    assert code == 3
    assert {line[:7] for line in said.splitlines()} == {"error: "}
    for words in (
        "column 'score' is string, expected double",
        "nosuch",
        "nowhere",
        "column 'item_id' is double, expected string",
        "column 'device' is missing and not mapped; there are event_date, model_version",
    ):
        assert words in said
    assert said.count("error: impressions:") == 4
    assert said.count("error: clicks:") == 1


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        (('inputs.impressions.columns.score="cast(item_id as double)"',), 3, "'a'"),
        (("inputs.impressions.columns.model_version=\"'a/b'\"",), 3, '[models] "a/b" = "a-b"'),
        (
            ("inputs.impressions.columns.model_version=\"''\"",),
            3,
            "'model_version' is empty in 2 rows",
        ),
        (('inputs.impressions.columns.model_version="string(null)"',), 3, "is null in 2 rows"),
        (('candidates=["scored"]',), 3, "scores: the input is not configured"),
        (('rank_by="position"',), 3, "column 'position' is missing and not mapped"),
        (('measures=["ctr@shown"]',), 3, "'n_slots' is missing and not mapped; @shown needs it"),
        (
            ('measures=["recall(average=weighted)@5"]',),
            3,
            "'weight' is missing and not mapped; average=weighted needs it",
        ),
        (
            ('rules.tie_break="column:tie_key desc"',),
            3,
            "'tie_key' is missing and not mapped; rules.tie_break names it",
        ),
        (('labels=["conversion"]',), 3, "'conversion' has no input: configure conversions"),
        (
            ('label_delay="1h"',),
            3,
            "clicks: column 'ingest_ts' is missing and not mapped; labels as of a time need it",
        ),
        (('inputs.impressions.columns.score="max(score)"',), 3, "impressions:"),
        (("inputs.impressions.where=\"query_id = 'z'\"",), 3, "none of 2 rows"),
        (("inputs.clicks.where=\"item_id = 'z'\"",), 7, "allow_empty_labels"),
        (('inputs.impressions.path="nowhere"', 'inputs.clicks.path="gone"'), 3, "nowhere"),
        (("ks=[0]", 'metrics=["recal"]'), 2, "did you mean 'recall'?"),
    ],
    ids=[
        *(
            "cast",
            "name",
            "empty",
            "null",
            "needs",
            "no order",
            "no slots",
            "no weight",
            "no tie key",
            "no label",
            "no ingest",
            "aggregate",
            "unusable",
        ),
        *("no labels", "no table", "config"),
    ],
)
def test_each_refusal_has_its_exit_code(
    spark: SparkSession,
    log: Path,
    capsys: pytest.CaptureFixture[str],
    settings: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    found, said = run(capsys, log, *settings)
    assert (found, words in said) == (code, True), said


def test_two_models_may_not_be_published_as_one(
    spark: SparkSession, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_item = "if(item_id = 'a', 'old', 'v2')"
    code, said = run(
        capsys,
        log,
        f'inputs.impressions.columns.model_version="{by_item}"',
        'models={"old" = "v2"}',
    )
    assert code == 3
    assert "would both be 'v2'" in said


def test_a_missing_day_names_the_days_that_there_are(
    spark: SparkSession, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = run(capsys, log, date=("--date", "2026-01-02"))
    assert code == 7
    assert "no rows for 2026-01-02; the latest days are 2026-01-01" in said


@pytest.mark.parametrize(
    ("date", "words"),
    [
        ((), "say which day"),
        (("--date", "2026-02-30"), "2026-02-30"),
        (("--date", "today"), "today"),
    ],
)
def test_a_run_needs_a_real_date(
    log: Path, capsys: pytest.CaptureFixture[str], date: tuple[str, ...], words: str
) -> None:
    code, said = run(capsys, log, 'lake.path="lake"', command="evaluate", date=date)
    assert (code, words in said) == (2, True), said


def test_without_init_a_run_says_so_and_makes_nothing(
    spark: SparkSession, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = run(capsys, log, f'lake.path="{log}/lake"', command="evaluate")
    assert code == 2
    assert said.count("ranklake init") == 7
    assert not (log / "lake").exists()


def checked_csv(
    capsys: pytest.CaptureFixture[str], log: Path, schema: str, *settings: str
) -> tuple[int, str]:
    """The exit code of a check whose clicks are the CSV file, and what was said."""
    place = f'inputs.clicks.path="{log}/clicks.csv"'
    of_csv = ['inputs.clicks.format="csv"', place, f'inputs.clicks.schema="{schema}"']
    return run(capsys, log, *of_csv, *settings)


def test_a_malformed_line_of_a_csv_is_an_error_and_not_a_null(
    spark: SparkSession, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log / "clicks.csv").write_text("q1,a,2026-01-01\nq1,b,not a date\n", encoding="utf-8")
    schema = "query_id STRING, item_id STRING, event_date DATE"
    code, said = checked_csv(capsys, log, schema)
    assert code == 3
    assert "clicks:" in said


def test_a_csv_whose_header_has_another_order_is_refused(
    spark: SparkSession, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By position its columns would be taken for each other: silently wrong numbers."""
    header = 'inputs.clicks.options.header="true"'
    code, said = checked_csv(capsys, log, "item_id STRING, query_id STRING", header)
    assert code == 3, said
    assert "clicks" in said


def test_a_frame_that_is_not_sparks_is_refused_with_the_way_out() -> None:
    rows = pa.table({"query_id": ["q1"], "item_id": ["a"], "score": [1.0]})
    with pytest.raises(ConfigError, match="expected a DataFrame of Spark") as refused:
        evaluate(rows.to_pandas(), rows)
    assert len(refused.value.problems) == 2
