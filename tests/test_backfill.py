"""Which published dates a run would change, told by labels and files; and running just those."""

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from tables import impressions, value

from ranklake import Lake, read
from ranklake.cli import main
from ranklake.config import EvalConfig, of_values
from ranklake.errors import ContractError, NoInputError
from ranklake.pipeline.attempt import attempt
from ranklake.pipeline.backfill import each, standings
from ranklake.pipeline.fingerprints import fingerprints_of
from ranklake.pipeline.staleness import Standing, current, standing
from ranklake.read import NO_FILES, PublishedRun
from ranklake.run import silent

FIRST, SECOND, THIRD = (date(2026, 1, day) for day in (1, 2, 3))
KNOWN = datetime(2026, 1, 2, 1, 0, tzinfo=UTC)
"""When labels of FIRST are complete: midnight, 30 minutes of a query, 30 minutes until a click."""
MINUTE = timedelta(minutes=1)
SOON = KNOWN - MINUTE
"""When not all labels of FIRST are known."""

SHOWN = pa.schema(
    {
        "event_date": pa.date32(),
        "model_version": pa.string(),
        "query_id": pa.string(),
        "item_id": pa.string(),
        "score": pa.float64(),
        "event_ts": pa.timestamp("us", tz="UTC"),
    }
)
CLICKED = pa.schema(
    {
        "event_date": pa.date32(),
        "query_id": pa.string(),
        "item_id": pa.string(),
        "ingest_ts": pa.timestamp("us", tz="UTC"),
    }
)


def noon(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, 12, tzinfo=UTC)


def shown(day: date, *, models: Sequence[str] = ("v1",)) -> pa.Table:
    """One query a model, q1: item a ranks before b."""
    rows = [
        {
            **{"event_date": day, "model_version": model, "query_id": f"{model}-q1"},
            **{"item_id": item, "score": score, "event_ts": noon(day)},
        }
        for model in models
        for item, score in (("a", 2.0), ("b", 1.0))
    ]
    return pa.Table.from_pylist(rows, schema=SHOWN)


def clicked(day: date, item: str, *, ingested: datetime | None = None) -> pa.Table:
    row = {"event_date": day, "query_id": "v1-q1", "item_id": item}
    return pa.Table.from_pylist([{**row, "ingest_ts": ingested or noon(day)}], schema=CLICKED)


def appended(path: Path, rows: pa.Table, *, by: Sequence[str] = ("event_date",)) -> None:
    write_deltalake(path, rows, mode="append", partition_by=[*by])


def parquet(path: Path, rows: pa.Table, *, day: date) -> Path:
    """Adds a file to the day's directory."""
    directory = path / f"event_date={day}"
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"part-{len(list(directory.iterdir()))}.parquet"
    pq.write_table(rows.drop_columns(["event_date"]), file)
    return file


def config_of(**inputs: Mapping[str, Any]) -> EvalConfig:
    return of_values({"inputs": inputs})


def told(
    spark: SparkSession, config: EvalConfig, day: date = FIRST, *, known_by: datetime | None = None
) -> str | None:
    """The fingerprint of the one input that is configured, opened anew."""
    sources = read.opened(spark, config.inputs.given())
    ((_, parts),) = fingerprints_of(sources, config, day, known_by=known_by).items()
    return parts["fingerprint"]


# What the files tell.


def test_another_date_in_a_partitioned_delta_table_leaves_a_date_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "impressions"
    config = config_of(impressions={"path": str(path)})
    appended(path, shown(FIRST))
    before = told(spark, config)
    appended(path, shown(SECOND))
    assert told(spark, config) == before != told(spark, config, SECOND)
    appended(path, shown(FIRST))
    more = told(spark, config)
    write_deltalake(path, shown(FIRST), mode="overwrite", predicate="event_date = '2026-01-01'")
    assert len({before, more, told(spark, config), NO_FILES}) == 4


@pytest.mark.parametrize("column", ["event_date", "dt"])
def test_another_date_in_partitioned_parquet_leaves_a_date_alone(
    spark: SparkSession, tmp_path: Path, column: str
) -> None:
    given: dict[str, Any] = {"path": str(tmp_path / "log"), "format": "parquet"}
    if column == "dt":
        given |= {"columns": {"event_date": "to_date(cast(dt as string), 'yyyyMMdd')"}}

    def add(day: date) -> Path:
        file = parquet(tmp_path / "log", shown(day), day=day)
        if column == "event_date":
            return file
        directory = tmp_path / "log" / f"dt={day:%Y%m%d}"
        directory.mkdir(exist_ok=True)
        moved = Path(shutil.move(file, directory / f"{len(list(directory.iterdir()))}.parquet"))
        file.parent.rmdir()
        return moved

    config = config_of(impressions=given)
    file = add(FIRST)
    before = told(spark, config)
    add(SECOND)
    assert told(spark, config) == before != told(spark, config, SECOND)
    os.utime(file, (0, 0))
    written_again = told(spark, config)
    assert written_again != before
    add(FIRST)
    assert told(spark, config) not in (before, written_again)
    assert told(spark, config, THIRD) == NO_FILES


def test_parquet_whose_directories_do_not_tell_the_date_is_told_as_a_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "log").mkdir()
    pq.write_table(shown(FIRST), tmp_path / "log" / "1.parquet")
    config = config_of(impressions={"path": str(tmp_path / "log"), "format": "parquet"})
    before = told(spark, config)
    assert told(spark, config) == before == told(spark, config, SECOND)
    pq.write_table(shown(SECOND), tmp_path / "log" / "2.parquet")
    assert told(spark, config) != before


def test_statistics_tell_the_date_of_an_unpartitioned_delta_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "impressions"
    config = config_of(impressions={"path": str(path)})
    for day in (FIRST, THIRD):
        appended(path, shown(day).drop_columns(["event_date"]), by=())
    before = told(spark, config)
    assert before != NO_FILES
    assert told(spark, config, SECOND) == NO_FILES
    appended(path, shown(THIRD).drop_columns(["event_date"]), by=())
    assert told(spark, config) == before
    appended(path, shown(FIRST).drop_columns(["event_date"]), by=())
    assert told(spark, config) != before


def test_a_row_that_a_deletion_vector_takes_out_is_seen(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "impressions"
    config = config_of(impressions={"path": str(path)})
    for day in (FIRST, SECOND):
        appended(path, shown(day))
    table = f"delta.`{path}`"
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    files = spark.table(table).inputFiles()
    before, other = told(spark, config), told(spark, config, SECOND)
    spark.sql(f"DELETE FROM {table} WHERE event_date = '2026-01-01' AND item_id = 'b'")
    assert spark.table(table).inputFiles() == files
    assert told(spark, config) != before
    assert told(spark, config, SECOND) == other


def test_labels_that_came_too_late_to_count_change_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "clicks"
    config = config_of(clicks={"path": str(path)})
    appended(path, clicked(FIRST, "a"))
    at_once, later = (told(spark, config, known_by=by) for by in (KNOWN, None))
    appended(path, clicked(FIRST, "b", ingested=KNOWN + MINUTE))
    assert told(spark, config, known_by=KNOWN) == at_once
    assert told(spark, config) != later
    appended(path, clicked(FIRST, "b", ingested=KNOWN))
    assert told(spark, config, known_by=KNOWN) != at_once


def test_touches_of_other_days_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    """A conversion of a user has touches of any day: from the day before until the window ends."""
    for name, rows in (("impressions", shown(FIRST)), ("conversions", clicked(FIRST, "a"))):
        appended(tmp_path / name, rows)
    inputs = {name: {"path": str(tmp_path / name)} for name in ("impressions", "conversions")}
    values = {"key": "user_item", "touch": "last_impression"}
    config = of_values({"inputs": inputs, "labels": ["conversion"], "attribution": values})

    def found() -> Mapping[str, Any]:
        sources = read.opened(spark, config.inputs.given())
        return fingerprints_of(sources, config, FIRST, known_by=None)

    before = found()
    assert before["impressions"]["nearby"] == NO_FILES
    appended(tmp_path / "impressions", shown(date(2026, 3, 1)))
    assert found() == before
    appended(tmp_path / "impressions", shown(SECOND))
    after = found()
    assert after["impressions"]["fingerprint"] == before["impressions"]["fingerprint"]
    assert after["impressions"]["nearby"] != NO_FILES
    assert after["conversions"] == before["conversions"]


def test_tables_of_a_catalog_are_told_and_views_are_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql(f"CREATE SCHEMA told LOCATION '{tmp_path}/warehouse'")
    spark.sql(
        "CREATE TABLE told.plain (query_id STRING, item_id STRING, event_date DATE)"
        " USING parquet PARTITIONED BY (event_date)"
    )
    spark.sql("CREATE VIEW told.seen AS SELECT * FROM told.plain")

    def add(day: date) -> None:
        spark.sql(f"INSERT INTO told.plain VALUES ('q', 'a', DATE'{day}')")

    plain = config_of(clicks={"table": "told.plain"})
    add(FIRST)
    before = told(spark, plain)
    add(SECOND)
    assert told(spark, plain) == before != told(spark, plain, SECOND)
    assert told(spark, plain, THIRD) == NO_FILES
    add(FIRST)
    assert told(spark, plain) != before
    view = config_of(clicks={"table": "told.seen", "format": "parquet"})
    assert told(spark, view) is None
    spark.sql("DROP SCHEMA told CASCADE")
    frame = read.mapped("impressions", impressions(spark, {"item_id": "a"}), columns={})
    found = fingerprints_of({"impressions": frame}, EvalConfig(), FIRST, known_by=None)
    assert found == {"impressions": {"fingerprint": None}}


# What follows from it: no Spark.


def stored(**fingerprints: str | None) -> dict[str, Any]:
    return {name: {"n_rows": 2, "fingerprint": told} for name, told in fingerprints.items()}


SAME = {"impressions": {"fingerprint": "i"}, "clicks": {"fingerprint": "c"}}


def run_of(
    *,
    inputs: Mapping[str, Any] | None = None,
    label_as_of: datetime | None = None,
    is_mature: bool | None = True,
    started_at: datetime = KNOWN,
    run_id: str = "r",
) -> PublishedRun:
    read_then = stored(impressions="i", clicks="c") if inputs is None else inputs
    return PublishedRun(FIRST, run_id, started_at, read_then, label_as_of, is_mature)


def where(
    run: PublishedRun,
    files: Mapping[str, Any] = SAME,
    *,
    now: datetime = KNOWN,
    label_as_of: datetime | None = None,
    **changes: Any,
) -> str:
    config = of_values(changes)
    return str(standing([(run, files)], config, label_as_of=label_as_of, now=now))


def test_a_date_whose_files_are_the_same_is_fresh() -> None:
    assert where(run_of()) == "fresh"
    assert where(run_of(is_mature=None)) == "fresh"


def test_an_immature_date_waits_for_its_labels_and_then_is_stale() -> None:
    immature = run_of(is_mature=False)
    assert where(immature, now=SOON) == (
        "waiting: until 2026-01-02 01:00 UTC, when its labels are known"
    )
    assert where(immature, now=KNOWN) == (
        "stale: immature: labels that came until 2026-01-02 01:00 UTC count now"
    )
    assert where(immature, now=SOON, windows={"click": "29m"}).startswith("stale: immature")
    assert where(immature, now=KNOWN, windows={"click": "any"}) == "fresh"


def test_labels_that_stopped_counting_are_not_waited_for() -> None:
    """The delay of 50 minutes is over 10 minutes before the labels are complete."""
    early = KNOWN - 10 * MINUTE
    immature = run_of(is_mature=False, label_as_of=early)
    assert where(immature, label_delay="50m") == "fresh"
    later = "2026-01-02 00:51 UTC"
    assert where(immature, label_delay="51m", now=SOON) == (
        f"stale: immature: labels that came until {later} count now"
    )
    assert where(immature, label_delay="51m", now=early) == (
        f"waiting: until {later}, when its labels are known"
    )
    assert where(immature, label_delay="50m", label_as_of=KNOWN).startswith("stale: immature")
    assert where(immature, now=SOON).startswith("waiting")
    assert where(immature).startswith("stale: immature")
    mature = run_of(label_as_of=KNOWN)
    assert where(mature, label_delay="50m") == "fresh"
    ran_before = run_of(is_mature=False, label_as_of=KNOWN + 60 * MINUTE)
    assert where(ran_before, label_delay="2h", now=SOON).startswith("waiting")
    assert where(ran_before, label_delay="2h").startswith("waiting")  # late ones still count
    due = KNOWN + 60 * MINUTE
    assert where(ran_before, label_delay="2h", now=due).startswith("stale: immature")


def test_a_changed_file_makes_a_date_stale() -> None:
    changed = {**SAME, "impressions": {"fingerprint": "other"}}
    assert where(run_of(), changed) == "stale: input changed: impressions"
    both = {name: {"fingerprint": "other"} for name in SAME}
    assert where(run_of(), both) == "stale: input changed: impressions, clicks"
    near = {**SAME, "clicks": {"fingerprint": "c", "nearby": "n"}}
    known = {**stored(impressions="i"), "clicks": {"n_rows": 2, "fingerprint": "c", "nearby": "m"}}
    assert where(run_of(inputs=known), near) == "stale: input changed: clicks of nearby days"


def test_labels_that_are_waited_for_may_come() -> None:
    """Else every day of a window would be run again every day."""
    late = {**SAME, "clicks": {"fingerprint": "other"}}
    assert where(run_of(is_mature=False), late, now=SOON).startswith("waiting")
    assert where(run_of(is_mature=False), late) == (
        "stale: immature: labels that came until 2026-01-02 01:00 UTC count now;"
        " input changed: clicks"
    )
    both = {**late, "impressions": {"fingerprint": "other"}}
    assert where(run_of(is_mature=False), both, now=SOON) == "stale: input changed: impressions"


def test_what_is_not_known_is_stale() -> None:
    of_older_version = {name: {"n_rows": 2} for name in SAME}
    for inputs in (of_older_version, stored(impressions=None, clicks=None)):
        assert where(run_of(inputs=inputs)) == (
            "stale: impressions: its run recorded no fingerprint;"
            " clicks: its run recorded no fingerprint"
        )
    assert where(run_of(inputs=stored(impressions="i"))) == (
        "stale: clicks: its run recorded no fingerprint"
    )
    untold = {**SAME, "clicks": {"fingerprint": None}}
    assert where(run_of(), untold) == ("stale: clicks: whether its files changed cannot be told")
    died = PublishedRun(FIRST, "r", None, None, None, None)
    assert where(died) == "stale: runs does not say what run r read"


def test_a_date_whose_files_are_gone_keeps_its_numbers() -> None:
    gone = {**SAME, "clicks": {"fingerprint": NO_FILES}}
    assert where(run_of(), gone) == "gone: the files of clicks are no longer there"
    assert where(run_of(is_mature=False), gone).startswith("gone")
    assert where(run_of(inputs=stored(impressions="i", clicks=None)), gone).startswith("gone")
    never = {**stored(impressions="i"), "clicks": {"n_rows": 0, "fingerprint": NO_FILES}}
    assert where(run_of(inputs=never), gone) == "fresh"
    late_only = stored(impressions="i", clicks=NO_FILES)  # its rows did not count
    assert where(run_of(inputs=late_only), gone) == "fresh"


def test_a_date_of_several_runs_is_as_stale_as_one_of_them() -> None:
    config, changed = EvalConfig(), {**SAME, "clicks": {"fingerprint": "other"}}
    pairs = [(run_of(), SAME), (run_of(), changed), (run_of(), changed)]
    assert standing(pairs, config, now=KNOWN) == Standing("stale", "input changed: clicks")


def test_numbers_of_models_that_the_log_lost_are_not_run_again() -> None:
    whole = run_of(run_id="whole", started_at=KNOWN)
    older = run_of(run_id="older", started_at=SOON)
    one_model = {**stored(impressions="i"), "selected": {"models": ["v2"]}}
    selected = run_of(run_id="selected", started_at=KNOWN + MINUTE, inputs=one_model)
    assert current([older, whole, selected]) == [whole, selected]
    assert current([older, selected]) == [older, selected]
    assert current([selected]) == [selected]


def test_every_day_has_its_turn_and_the_first_failure_its_exit_code() -> None:
    failing: dict[date, Exception] = {
        FIRST: NoInputError(["no rows", "nor clicks"]),
        THIRD: ContractError("a column is missing"),
    }
    ran: list[date] = []
    heard: list[date] = []

    def run(day: date) -> None:
        ran.append(day)
        if day in failing:
            raise failing[day]

    def all_days() -> None:
        each([FIRST, SECOND, THIRD], run, failed=lambda day, error: heard.append(day))

    with pytest.raises(NoInputError) as raised:
        all_days()
    assert ran == [FIRST, SECOND, THIRD]
    assert heard == [FIRST, THIRD]
    assert raised.value.problems == (
        "2026-01-01: no rows",
        "2026-01-01: nor clicks",
        "2026-01-03: a column is missing",
    )
    failing[FIRST] = ZeroDivisionError("a fault")
    with pytest.raises(ZeroDivisionError) as fault:
        all_days()
    assert fault.value.__notes__ == [
        "2026-01-01: ZeroDivisionError: a fault\n2026-01-03: a column is missing"
    ]
    failing.clear()
    all_days()


def test_labels_that_are_yet_to_come_are_not_taken_for_known(spark: SparkSession) -> None:
    for delay, is_mature in (("1h", True), ("59m", False)):
        run = attempt(spark, of_values({"label_delay": delay}), FIRST, silent)
        assert run.is_mature is is_mature
    today = datetime.now(UTC).date()
    assert attempt(spark, of_values({"label_delay": "1d"}), today, silent).is_mature is False


# The command.


@pytest.fixture
def home(spark: SparkSession, tmp_path: Path) -> Path:
    """A log of FIRST with two models, and of SECOND, whose second click came late; no run yet."""
    for rows in (shown(FIRST, models=["v1", "v2"]), shown(SECOND)):
        appended(tmp_path / "impressions", rows)
    for rows in (clicked(FIRST, "a"), clicked(SECOND, "a", ingested=KNOWN), clicked(SECOND, "b")):
        appended(tmp_path / "clicks", rows)
    assert command(tmp_path, "init", "--quiet") == 0
    return tmp_path


def settings(home: Path) -> dict[str, Any]:
    inputs = {name: {"path": str(home / name)} for name in ("impressions", "clicks")}
    return {"lake": {"path": str(home / "lake")}, "inputs": inputs}


def command(home: Path, name: str, *arguments: str) -> int:
    """The exit code."""
    given = {
        "lake.path": str(home / "lake"),
        **{f"inputs.{of}.path": str(home / of) for of in ("impressions", "clicks")},
        **{"ks": [1], "metrics": ["recall"]},
    }
    named = [f"--set={key}={json.dumps(value)}" for key, value in given.items()]
    try:
        main([name, *named, *arguments])
    except SystemExit as stop:
        return int(str(stop.code))
    return 0


Said = Callable[..., list[str]]


@pytest.fixture
def said(home: Path, capsys: pytest.CaptureFixture[str]) -> Said:
    """What `backfill` prints, line by line, without counts and ids."""

    def lines(*arguments: str, code: int = 0) -> list[str]:
        capsys.readouterr()
        assert command(home, "backfill", *arguments) == code
        printed = capsys.readouterr().out.splitlines()
        return [re.sub(r"\d+ metrics of (.*) \(run .*", r"\1", line) for line in printed]

    return lines


def span(first: int, last: int) -> tuple[str, ...]:
    return ("--from", f"2026-01-0{first}", "--to", f"2026-01-0{last}")


def recall(home: Path, day: date) -> float:
    return float(value(Lake(home / "lake").metrics(dates=day, models="v1"), "recall", 1))


def test_what_changed_is_run_again_and_nothing_else(
    spark: SparkSession, home: Path, said: Said
) -> None:
    log, lake, as_of = home / "impressions", home / "lake", f"--label-as-of={KNOWN.isoformat()}"
    fresh = ["2026-01-01: fresh", "2026-01-02: fresh"]
    assert said("--list") == []
    assert said(*span(1, 3), as_of, code=7) == [
        *("2026-01-01: published v1, v2", "2026-01-02: published v1"),
        "2026-01-03: failed (NoInputError)",
    ]
    assert recall(home, SECOND) == 1 / 1
    appended(log, shown(THIRD))
    assert said("--list", *span(1, 3), as_of) == [*fresh, "2026-01-03: not published"]
    (_, first), (_, second) = standings(spark, of_values(settings(home)), now=KNOWN)
    assert (first.kind, second.kind) == ("fresh", "waiting")

    DeltaTable(log).delete("model_version = 'v2'")
    appended(log, shown(FIRST, models=["a/b"]))  # which is no name for a partition
    stale = [
        "2026-01-01: stale: input changed: impressions",
        "2026-01-02: stale: immature: labels that came until 2026-01-03 01:00 UTC count now",
    ]
    versions = {name: DeltaTable(lake / name).version() for name in ("metrics", "runs", "quality")}
    assert said("--list", "--stale", "--quiet") == stale
    assert {name: DeltaTable(lake / name).version() for name in versions} == versions
    assert said("--stale", code=3) == [
        *(*stale, "2026-01-01: failed (ContractError)", "2026-01-02: published v1")
    ]
    assert recall(home, SECOND) == 1 / 2

    DeltaTable(log).delete("model_version = 'a/b'")
    assert said("--stale") == [stale[0], "2026-01-01: published v1"]
    # v2 is published as it was, and no run of this log will change that.
    assert {*Lake(lake).metrics(dates=FIRST)["model_version"].to_pylist()} == {"v1", "v2"}
    assert said("--stale") == ["nothing is stale, of 2 published days"]
    assert command(home, "remeasure", *span(2, 2), "--set=ks=[2]", "--quiet") == 0
    DeltaTable(log).delete("event_date = '2026-01-01'")
    assert said("--list") == [
        *("2026-01-01: gone: the files of impressions are no longer there", fresh[1])
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--from and --to"),
        (("--from", "2026-01-02", "--to", "2026-01-01", "--stale"), "is after"),
        (("--stale", "--label-as-of", "2026-01-02"), "has no zone"),
    ],
)
def test_what_is_asked_wrongly_is_told(
    arguments: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["backfill", *arguments])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err
