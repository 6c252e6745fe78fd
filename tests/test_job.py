"""The whole job against Delta tables: published, run again, crashed, at the same time, refused."""

import json
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, TypedDict

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from tables import same

from ranklake import Lake, compare, pipeline, spark_lake, write
from ranklake.cli import main
from ranklake.config import EvalConfig, of_values
from ranklake.errors import RanklakeError, WriteConflict
from ranklake.pipeline.publish import Publisher, lake_tables
from ranklake.pipeline.remeasure import remeasure
from ranklake.schemas import METRICS, arrow_schema

FIRST = date(2026, 1, 1)
SECOND = FIRST + timedelta(days=1)
MODELS = ("m1", "m2")
METRICS_SCHEMA = arrow_schema(METRICS)
TABLES = ("query_metrics", "metric_sums", "metrics", "quality")


def log(seed: int = 7) -> tuple[pa.Table, pa.Table]:
    """Two days of two models, 60 queries each; some clicks, a few duplicates and null scores."""
    rng = random.Random(seed)
    shown, clicked = [], []
    for day in (FIRST, SECOND):
        for n in range(60):
            query = {"event_date": day, "query_id": f"{day:%d}-{n}"}
            user = {"user_id": f"u{n % 40}", "device": rng.choice(["phone", "tv", None])}
            for item in range(rng.randint(1, 8)):
                score = rng.choice([None, 0.5, rng.random()])
                row = {**query, **user, "item_id": f"i{item}", "score": score}
                shown += [{**row, "model_version": MODELS[n % 2]}] * rng.choice([1, 1, 1, 2])
                if rng.random() < 0.2:
                    clicked += [{**query, "item_id": f"i{item}"}] * rng.choice([1, 2])
    return pa.Table.from_pylist(shown), pa.Table.from_pylist(clicked)


def written(spark: SparkSession, directory: Path, *, seed: int = 7) -> None:
    """The log as Delta tables; a second call replaces it."""
    for name, rows in zip(("impressions", "clicks"), log(seed), strict=True):
        frame = spark.createDataFrame(rows)
        partitioned = frame.write.format("delta").mode("overwrite").partitionBy("event_date")
        partitioned.save(str(directory / name))


def settings(directory: Path, lake: Path) -> dict[str, Any]:
    return {
        "evaluation": "job_test",
        "ks": [1, 3],
        "metrics": ["recall", "precision", "ndcg", "ctr"],
        "n_buckets": 50,
        "window_days": [2],
        "slices": {"columns": ["device"]},
        "lake": {"path": str(lake)},
        "inputs": {name: {"path": str(directory / name)} for name in ("impressions", "clicks")},
    }


def contents(lake: Path) -> dict[str, list[dict[str, Any]]]:
    """The published rows of every table, in one order, without the run that wrote them."""
    tables = {}
    for name in TABLES:
        rows = getattr(Lake(lake), name)().drop_columns(["run_id"]).to_pylist()
        tables[name] = sorted(rows, key=str)
    return tables


@pytest.fixture(scope="module")
def directory(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("log")
    written(spark, home)
    return home


@pytest.fixture(scope="module")
def published(
    spark: SparkSession, directory: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A lake with both days, made by the command line."""
    home = tmp_path_factory.mktemp("published")
    config = home / "eval.toml"
    config.write_text(toml(settings(directory, home / "lake")), encoding="utf-8")
    assert main(["init", "--config", str(config), "--quiet"]) is None
    days = ["--date", str(FIRST), "--date", str(SECOND)]
    assert main(["evaluate", "--config", str(config), *days, "--quiet"]) is None
    return home


@pytest.fixture
def lake(published: Path, tmp_path: Path) -> Path:
    """A copy of the published lake, to be changed."""
    return Path(shutil.copytree(published / "lake", tmp_path / "lake"))


def toml(values: Mapping[str, Any]) -> str:
    """The values as TOML: enough of it for these tests."""

    def line(key: str, value: Any) -> str:
        if isinstance(value, dict):
            inside = ", ".join(line(name, part) for name, part in value.items())
            return f"{key} = {{{inside}}}"
        return f"{key} = {json.dumps(value)}"

    return "\n".join(line(key, value) for key, value in values.items())


class Partitions(TypedDict):
    """Whose rows the writer replaces."""

    day: date
    models: list[str]
    run_id: str


def partitions_of(day: date, *models: str) -> Partitions:
    return {"day": day, "models": [*models], "run_id": "r"}


def config_of(directory: Path, lake: Path, **changes: Any) -> EvalConfig:
    return of_values({**settings(directory, lake), **changes})


def test_a_window_has_rows_once_all_its_days_are_published(published: Path) -> None:
    lake = Lake(published / "lake")
    of_window = lake.metrics(where="window_days = 2").to_pylist()
    assert {row["event_date"] for row in of_window} == {SECOND}
    of_days = lake.metrics(where="window_days = 1 AND metric = 'recall' AND k = 3").to_pylist()
    keys = ("model_version", "slice_value", "label", "population")
    for row in of_window:
        if (row["metric"], row["k"]) == ("recall", 3):
            days = [day for day in of_days if all(day[key] == row[key] for key in keys)]
            for name in ("num", "den", "n_queries"):
                assert row[name] == pytest.approx(sum(day[name] for day in days))
    assert len(of_window) == len(lake.metrics(dates=SECOND, where="window_days = 1"))
    days = lake.quality(where="name = 'windows.2.days'").to_pylist()
    assert {(row["event_date"], row["value"], row["status"]) for row in days} == {
        (FIRST, 1.0, "finding"),
        (SECOND, 2.0, "ok"),
    }


def test_a_second_run_in_other_partitions_leaves_the_same_tables(
    spark: SparkSession, directory: Path, lake: Path
) -> None:
    before = contents(lake)
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        pipeline.evaluate(spark, config_of(directory, lake), FIRST)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    assert same(contents(lake), before)


def test_one_models_run_leaves_the_others_rows_alone(
    spark: SparkSession, directory: Path, lake: Path
) -> None:
    runs_before = {
        row["run_id"] for row in Lake(lake).metrics(dates=FIRST, models="m2").to_pylist()
    }
    before = contents(lake)
    pipeline.evaluate(spark, config_of(directory, lake), FIRST, models=["m1"])
    assert {
        row["run_id"] for row in Lake(lake).metrics(dates=FIRST, models="m2").to_pylist()
    } == runs_before
    assert {
        row["run_id"] for row in Lake(lake).metrics(dates=FIRST, models="m1").to_pylist()
    } != runs_before
    after = contents(lake)
    for name in ("query_metrics", "metric_sums", "metrics"):
        assert same(after[name], before[name])


class Killed(BaseException):
    """Stands for kill -9: nothing may handle it."""


@pytest.mark.parametrize("table", ["query_metrics", "metric_sums", "quality", "metrics", "runs"])
def test_a_run_killed_before_any_write_leaves_what_was_published(
    spark: SparkSession,
    directory: Path,
    lake: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
) -> None:
    before = contents(lake)
    written(spark, tmp_path / "changed", seed=8)
    config = config_of(tmp_path / "changed", lake)
    with monkeypatch.context() as patched:
        kill_before(patched, table)
        with pytest.raises(Killed):
            pipeline.evaluate(spark, config, FIRST)
    left = contents(lake)
    if table == "runs":  # killed after the publication: the new numbers are out
        assert not same(left["metrics"], before["metrics"])
    else:
        assert same(left, before)
    if table == "quality":  # one of the five is run again: the others differ in nothing
        pipeline.evaluate(spark, config, FIRST)
        pipeline.evaluate(spark, config_of(directory, lake), FIRST)
        assert same(contents(lake), before)


def kill_before(patched: pytest.MonkeyPatch, table: str) -> None:
    replace, record = Publisher._replace, Publisher.record

    def replace_or_die(self: Publisher, target: Any, rows: DataFrame | pa.Table) -> int:
        if target.name == table:
            raise Killed
        return replace(self, target, rows)

    def record_or_die(self: Publisher, status: str, **more: Any) -> None:
        if table == "runs" and status == "SUCCESS":
            raise Killed
        record(self, status, **more)

    patched.setattr(Publisher, "_replace", replace_or_die)
    patched.setattr(Publisher, "record", record_or_die)


def test_two_models_at_the_same_time_leave_the_same_tables(
    spark: SparkSession, directory: Path, lake: Path
) -> None:
    before = contents(lake)
    errors: list[BaseException] = []

    def run(model: str) -> None:
        try:
            pipeline.evaluate(spark, config_of(directory, lake), FIRST, models=[model])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(model,)) for model in MODELS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    after = contents(lake)
    for name in ("query_metrics", "metric_sums", "metrics"):
        assert same(after[name], before[name])
    finished = Lake(lake).runs().to_pylist()
    assert sorted(row["model_version"] for row in finished if row["status"] == "SUCCESS") == [
        *["m1"] * 3,  # two days of the fixture, and this one
        *["m2"] * 3,
    ]


@pytest.mark.parametrize("detail", ["relevant", "none"])
def test_less_detail_gives_the_same_numbers(
    spark: SparkSession, directory: Path, lake: Path, detail: str
) -> None:
    before = contents(lake)
    pipeline.evaluate(spark, config_of(directory, lake, detail=detail), FIRST)
    after = contents(lake)
    for name in ("metric_sums", "metrics", "quality"):
        assert same(after[name], before[name])
    rows = [row for row in after["query_metrics"] if row["event_date"] == FIRST]
    expected = [r for r in before["query_metrics"] if r["event_date"] == FIRST and r["n_relevant"]]
    assert same(rows, expected if detail == "relevant" else [])


def test_shuffling_every_row_gives_the_same_numbers(
    spark: SparkSession, directory: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fall-back where the labels are too many to broadcast."""
    before = contents(lake)
    monkeypatch.setattr("ranklake.pipeline.frames.MAX_BROADCAST_LABELS", 0)
    pipeline.evaluate(spark, config_of(directory, lake), FIRST)
    assert same(contents(lake), before)
    newest = max(
        (row for row in Lake(lake).runs().to_pylist() if row["status"] == "SUCCESS"),
        key=lambda row: row["finished_at"],
    )
    assert newest["plan"] == "pruned late"


def test_the_tables_are_described_and_open_everywhere(published: Path) -> None:
    home = published / "lake"
    for name in (*TABLES, "comparisons", "runs"):
        table = DeltaTable(home / name)
        assert table.protocol().min_reader_version == 1
        assert table.metadata().partition_columns == ["event_date", "model_version"]
        assert table.metadata().description
        assert all(field.metadata.get("comment") for field in table.schema().fields), name
    actions = pa.table(DeltaTable(home / "query_metrics").get_add_actions(flatten=True))
    assert [name for name in actions.column_names if name.startswith("min.")] == ["min.query_id"]
    n_rows = Lake(home).metrics().num_rows
    assert pl.read_delta(str(home / "metrics")).height == n_rows
    connection = duckdb.connect().register("rows", Lake(home).metrics())
    counts = connection.sql("SELECT count(*), count_if(n_queries < n_defined) FROM rows").fetchall()
    assert counts == [(n_rows, 0)]


def test_init_again_changes_nothing_and_adds_what_is_new(
    spark: SparkSession, directory: Path, lake: Path
) -> None:
    config = config_of(directory, lake)
    versions = {name: DeltaTable(lake / name).version() for name in TABLES}
    lines = write.create_tables(spark, config.lake, lake_tables(config))
    assert all(line.endswith("is there") for line in lines)
    assert {name: DeltaTable(lake / name).version() for name in TABLES} == versions
    spark.sql(f"ALTER TABLE delta.`{lake}/metrics` DROP CONSTRAINT no_nan")
    sums = f"ALTER TABLE delta.`{lake}/metric_sums`"  # as an older version made them
    spark.sql(f"{sums} DROP CONSTRAINT same_buckets")
    spark.sql(f"{sums} ADD CONSTRAINT same_buckets CHECK (size(num) = size(den))")
    more = config_of(directory, lake, metrics=["recall", "precision", "ndcg", "ctr", "rr"])
    with pytest.raises(RanklakeError, match=r"rr_at_1.*ranklake init"):
        pipeline.evaluate(spark, more, FIRST)
    lines = write.create_tables(spark, config.lake, lake_tables(more))
    assert "query_metrics: added rr_at_1, rr_at_3" in lines
    checks = {
        name: DeltaTable(lake / name).metadata().configuration
        for name in ("metrics", "metric_sums")
    }
    assert "delta.constraints.no_nan" in checks["metrics"]
    assert "cardinality" in checks["metric_sums"]["delta.constraints.same_buckets"]
    pipeline.evaluate(spark, more, FIRST)


def test_remeasuring_from_hits_is_a_full_run_with_the_new_metrics(
    spark: SparkSession, directory: Path, lake: Path, tmp_path: Path
) -> None:
    new = {
        "metrics": ["recall", "precision", "rr", "dcg"],
        "ks": [1, 2],
        "measures": [
            "AP",
            "nDCG(gain=exp2,ideal=candidates)@2",
            "F1(mean=of_means)@3",
            "P(rel=2)@5",
        ],
    }
    both = {
        "metrics": [],
        "measures": [
            *(f"{name}@{k}" for name in ("recall", "precision", "ndcg", "ctr") for k in (1, 3)),
            *(f"{name}@{k}" for name in ("rr", "dcg") for k in (1, 2)),
            *("recall@2", "precision@2"),
            *new["measures"],
        ],
        "ks": [1, 2, 3],
    }
    whole = tmp_path / "whole"
    config = config_of(directory, whole, **both)
    write.create_tables(spark, config.lake, lake_tables(config))
    pipeline.evaluate(spark, config, FIRST)
    arguments = [f"--set={key}={json.dumps(value)}" for key, value in new.items()]
    path = tmp_path / "eval.toml"
    path.write_text(toml(settings(directory, lake)), encoding="utf-8")
    days = ["--from", str(FIRST), "--to", str(FIRST)]
    assert main(["remeasure", "-c", str(path), *days, *arguments, "--quiet"]) is None
    again, first = contents(lake), contents(whole)
    for name in ("query_metrics", "metric_sums", "metrics"):
        found = [row for row in again[name] if row["event_date"] == FIRST]
        assert same(found, first[name]), name
    assert [row for row in again["metrics"] if row["event_date"] == SECOND]


def test_what_needs_the_log_is_not_remeasured(
    spark: SparkSession, directory: Path, lake: Path
) -> None:
    before = contents(lake)
    asked = {"measures": ["auc", "recall(tie_break=expected)@3", "ctr@shown", "AP"]}
    rules = {"tie_break": "item_id_asc"}
    config = config_of(directory, lake, **asked, rules=rules, item_clusters="item_id")
    versions = {name: DeltaTable(lake / name).version() for name in (*TABLES, "runs")}
    with pytest.raises(RanklakeError) as refused:
        list(remeasure(spark, config, FIRST))
    assert refused.value.exit_code == 2
    for words in (
        *("auc needs the log", "recall(tie_break=expected)@3 needs the log"),
        "item_clusters needs the log",
        *("n_slots is not stored", 'rules.tie_break: the tables hold "item_id_desc"'),
    ):
        assert words in str(refused.value)
    assert "ap needs" not in str(refused.value)
    assert same(contents(lake), before)
    assert {name: DeltaTable(lake / name).version() for name in (*TABLES, "runs")} == versions


def test_tables_of_a_catalog_give_the_same_numbers(
    spark: SparkSession, directory: Path, published: Path, tmp_path: Path
) -> None:
    spark.sql(f"CREATE SCHEMA feed LOCATION '{tmp_path}/warehouse'")
    for name in ("impressions", "clicks"):
        rows = spark.read.format("delta").load(str(directory / name))
        rows.write.format("delta").saveAsTable(f"feed.log_{name}")
    inputs = {name: {"table": f"feed.log_{name}"} for name in ("impressions", "clicks")}
    in_catalog = {"catalog_schema": "feed", "prefix": "ads_"}
    config = of_values({**settings(directory, tmp_path), "inputs": inputs, "lake": in_catalog})
    write.create_tables(spark, config.lake, lake_tables(config))
    pipeline.evaluate(spark, config, FIRST)
    for table in ("metrics", "query_metrics"):
        found = spark.table(f"feed.ads_{table}").drop("run_id").toArrow().to_pylist()
        expected = [
            row for row in contents(published / "lake")[table] if row["event_date"] == FIRST
        ]
        assert same(sorted(found, key=str), expected)
    by_spark = compare(spark_lake(spark, "feed", prefix="ads_"), *MODELS, slices=["device"])
    without = compare(Lake(published / "lake"), *MODELS, slices=["device"], dates=FIRST)
    assert len(by_spark.rows) > 0
    assert same(
        sorted(by_spark.rows.to_pylist(), key=str), sorted(without.rows.to_pylist(), key=str)
    )
    runs = spark.table("feed.ads_runs").where("status = 'SUCCESS'").collect()
    assert {row["model_version"] for row in runs} == {*MODELS}
    assert json.loads(runs[0]["inputs"])["impressions"]["version"] == 0
    spark.sql("DROP SCHEMA feed CASCADE")


def test_changed_definitions_are_refused_until_they_are_meant(
    spark: SparkSession, directory: Path, lake: Path
) -> None:
    changed = config_of(directory, lake, unshown_clicks="reject", evaluation="another")
    before = contents(lake)
    with pytest.raises(RanklakeError) as refused:
        pipeline.evaluate(spark, changed, FIRST)
    assert refused.value.exit_code == 2
    assert 'unshown_clicks: the tables hold "relevant", this run defines "reject"' in str(
        refused.value
    )
    assert 'evaluation: the tables hold "job_test"' in str(refused.value)
    assert same(contents(lake), before)
    pipeline.evaluate(spark, changed, FIRST, redefine=True)
    hashes = {
        day: {row["definition_hash"] for row in Lake(lake).metrics(dates=day).to_pylist()}
        for day in (FIRST, SECOND)
    }
    assert not hashes[FIRST] & hashes[SECOND]


def test_rows_outside_the_partition_fail_the_write(
    spark: SparkSession, directory: Path, lake: Path
) -> None:
    rows = Lake(lake).metrics(dates=FIRST, models="m1").select(METRICS_SCHEMA.names)
    version = DeltaTable(lake / "metrics").version()
    to, partitions = config_of(directory, lake).lake, partitions_of(FIRST, "m2")
    with pytest.raises(AnalysisException, match="REPLACE_WHERE_MISMATCH"):
        write.replace_partitions(spark.createDataFrame(rows), to, METRICS, **partitions)
    with pytest.raises(DeltaError, match="failed validation check"):
        write.replace_little(spark, rows, to, METRICS, **partitions)
    assert DeltaTable(lake / "metrics").version() == version


def test_little_tables_are_written_without_spark_and_keep_their_constraints(
    spark: SparkSession, directory: Path, lake: Path
) -> None:
    rows = Lake(lake).metrics(dates=FIRST, models="m1").select(METRICS_SCHEMA.names)
    before, (run_id,) = contents(lake), {*rows["run_id"].to_pylist()}
    to, partitions = config_of(directory, lake).lake, partitions_of(FIRST, "m1")
    for column, wrong in {"value": float("nan"), "n_defined": -1, "metric": None}.items():
        field = METRICS_SCHEMA.field(column)
        broken = rows.set_column(
            METRICS_SCHEMA.get_field_index(column), field, pa.array([wrong] * len(rows), field.type)
        )
        with pytest.raises(DeltaError, match=r"validation check|non-nullable"):
            write.replace_little(spark, broken, to, METRICS, **partitions)
    assert same(contents(lake), before)
    last = {name: DeltaTable(lake / name).history(1)[0] for name in ("metrics", "runs", "quality")}
    assert all(commit["engineInfo"].startswith("delta-rs") for commit in last.values())
    assert write.replace_little(spark, rows, to, METRICS, **{**partitions, "run_id": run_id}) == (
        last["metrics"]["version"] + 1
    )
    assert same(contents(lake), before)
    assert DeltaTable(lake / "metrics").history(1)[0]["userMetadata"] == run_id


@pytest.mark.parametrize("name", ["", "m$1", "R&D", "ranker (beta)", "v:1", "a\\b", "o'brien", "é"])
def test_the_writer_takes_no_other_partition_names(
    spark: SparkSession, directory: Path, lake: Path, name: str
) -> None:
    to, partitions = config_of(directory, lake).lake, partitions_of(FIRST, name)
    with pytest.raises(ValueError, match="partition"):
        write.replace_partitions(spark.range(1), to, METRICS, **partitions)
    with pytest.raises(ValueError, match="partition"):
        write.replace_little(spark, METRICS_SCHEMA.empty_table(), to, METRICS, **partitions)


class ConcurrentAppendException(Exception):
    """Has the name of Delta's own, which is all that the writer looks at."""


def test_only_conflicts_are_tried_again_and_not_for_ever() -> None:
    pauses: list[float] = []

    def failing(error: Exception, times: int) -> Callable[[], str]:
        errors: Iterator[Exception] = iter([error] * times)

        def attempt() -> str:
            for found in errors:
                raise found
            return "written"

        return attempt

    conflict = ConcurrentAppendException()
    assert write.retried(failing(conflict, 4), METRICS, pause=pauses.append) == "written"
    assert len(pauses) == 4
    with pytest.raises(WriteConflict, match="5 attempts"):
        write.retried(failing(conflict, 5), METRICS, pause=pauses.append)
    with pytest.raises(OSError, match="disk full"):
        write.retried(failing(OSError("disk full"), 1), METRICS, pause=pauses.append)
