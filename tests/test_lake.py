import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from lakes import DAY, created, ran, recorded, replaced

from ranklake import schemas
from ranklake.errors import ConfigError, ContractError
from ranklake.lake import Lake
from ranklake.lake import lake as lake_module

NEXT_DAY = date(2026, 1, 2)
DEPENDENT = ("metric_sums", "query_metrics", "quality")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return created(tmp_path / "lake")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tables that a Lake opens, as it opens them; it cannot read a history."""
    names = []

    class Watched(DeltaTable):
        def __init__(self, uri: str, *args: Any, **kwargs: Any) -> None:
            names.append(Path(uri).name)
            super().__init__(uri, *args, **kwargs)

    monkeypatch.setattr(lake_module, "DeltaTable", Watched)
    monkeypatch.setattr(Watched, "history", None)
    return names


def runs_in(lake: Lake, table: str) -> list[tuple[date, str, str]]:
    """The runs that the table's visible rows are of."""
    rows = getattr(lake, table)(columns=["event_date", "model_version", "run_id"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def vacuum(path: Path, table: str) -> None:
    DeltaTable(path / table).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False
    )


def test_a_published_run_is_read_from_every_table(path: Path) -> None:
    ran(path, "r1", value=0.25)
    lake = Lake(path)
    assert lake.metrics()["value"].to_pylist() == [0.25]
    assert lake.metric_sums()["num"].to_pylist() == [[0.25]]
    assert lake.query_metrics()["recall_at_10"].to_pylist() == [0.25]
    assert lake.quality()["value"].to_pylist() == [0.25]
    assert lake.comparisons().num_rows == 0
    assert lake.runs()["run_id"].to_pylist() == ["r1"]


def test_a_snapshot_is_the_lake_as_it_was(path: Path, opened: list[str]) -> None:
    ran(path, "r1", value=0.25)
    ran(path, "r1", value=0.25, day=NEXT_DAY, models=("v1", "v2"))
    snapshot = Lake(path).snapshot()
    assert snapshot.metric_sums(dates=NEXT_DAY, models="v2")["num"].to_pylist() == [[0.25]]
    ran(path, "r2", value=0.5)
    assert Lake(path).metrics(dates=DAY)["value"].to_pylist() == [0.5]
    opened.clear()
    for asked, n in (
        ({}, 3),
        ({"dates": DAY}, 1),
        ({"models": "v2"}, 1),
        ({"dates": "2026-02-01"}, 0),
    ):
        for table in ("metrics", "metric_sums"):
            found = getattr(snapshot, table)(**asked)
            assert found["run_id"].to_pylist() == ["r1"] * n
    assert snapshot.snapshot().metrics()["value"].to_pylist() == [0.25] * 3
    assert opened == []


def test_columns_have_the_declared_types(path: Path) -> None:
    ran(path, "r1")
    for table in (schemas.METRICS, schemas.METRIC_SUMS, schemas.QUALITY, schemas.RUNS):
        found = getattr(Lake(path), table.name)().schema
        assert {f.name: f.type for f in found} == {
            f.name: f.type for f in schemas.arrow_schema(table)
        }


def test_a_rerun_replaces_what_was_published(path: Path) -> None:
    ran(path, "r1", value=0.25)
    ran(path, "r2", value=0.5)
    lake = Lake(path)
    assert lake.metrics()["value"].to_pylist() == [0.5]
    assert [runs_in(lake, name) for name in DEPENDENT] == [[(DAY, "v1", "r2")]] * 3


@pytest.mark.parametrize("dies_before", ["metric_sums", "quality", "metrics"])
def test_a_crash_between_the_tables_leaves_the_published_run_readable(
    path: Path, dies_before: str
) -> None:
    ran(path, "r1", value=0.25)
    ran(path, "r2", value=0.5, dies_before=dies_before)
    lake = Lake(path)
    assert [runs_in(lake, name) for name in DEPENDENT] == [[(DAY, "v1", "r1")]] * 3
    assert lake.metric_sums()["num"].to_pylist() == [[0.25]]
    assert lake.query_metrics(columns=["recall_at_10"]).to_pydict() == {"recall_at_10": [0.25]}


def test_a_run_that_died_before_its_last_manifest_row_is_found_by_its_commits(path: Path) -> None:
    ran(path, "r1", value=0.25, dies_before="runs")
    ran(path, "r2", value=0.5, dies_before="metrics")
    assert Lake(path).runs().num_rows == 0
    assert Lake(path).metric_sums()["num"].to_pylist() == [[0.25]]
    assert Lake(path).query_metrics()["recall_at_10"].to_pylist() == [0.25]


def test_of_two_racing_runs_the_one_in_metrics_is_read(path: Path) -> None:
    older = {"metric": "recall", "model_version": "v1"}
    sums = [
        replaced(path, schemas.METRIC_SUMS, [{**older, "num": [v], "den": [1.0]}], run_id=run_id)
        for run_id, v in (("r1", 0.25), ("r2", 0.5))
    ]
    replaced(path, schemas.METRICS, [{**older, "value": 0.5}], run_id="r2")
    replaced(path, schemas.METRICS, [{**older, "value": 0.25}], run_id="r1")
    recorded(path, "r2", versions={"metric_sums": sums[1]})
    recorded(path, "r1", versions={"metric_sums": sums[0]})
    assert Lake(path).metric_sums()["num"].to_pylist() == [[0.25]]


def test_a_crash_of_one_model_does_not_touch_the_other(path: Path) -> None:
    ran(path, "r1", value=0.25, models=("v1", "v2"))
    ran(path, "r2", value=0.5, models=("v2",), dies_before="metrics")
    ran(path, "r3", value=0.75, models=("v1",))
    sums = Lake(path).metric_sums(columns=["model_version", "run_id", "num"]).to_pylist()
    assert sorted(tuple(row.values()) for row in sums) == [
        ("v1", "r3", [0.75]),
        ("v2", "r1", [0.25]),
    ]


def test_a_recorded_version_that_holds_another_run_shows_nothing_of_it(path: Path) -> None:
    of_r0 = replaced(path, schemas.QUALITY, [{"model_version": "v1"}], run_id="r0")
    replaced(path, schemas.METRICS, [{"model_version": "v1"}], run_id="r1")
    recorded(path, "r1", versions={"quality": of_r0})
    assert Lake(path).quality().num_rows == 0


def test_a_partition_without_published_metrics_is_invisible(path: Path) -> None:
    ran(path, "r1", dies_before="metrics")
    ran(path, "r2", day=NEXT_DAY)
    lake = Lake(path)
    assert [runs_in(lake, name) for name in DEPENDENT] == [[(NEXT_DAY, "v1", "r2")]] * 3
    assert lake.latest_dates(5) == [NEXT_DAY]


def test_a_run_without_detail_has_no_query_metrics(path: Path) -> None:
    ran(path, "r1", detail="none")
    ran(path, "r2", value=0.5, dies_before="metric_sums")
    assert Lake(path).query_metrics().num_rows == 0
    assert runs_in(Lake(path), "metric_sums") == [(DAY, "v1", "r1")]


def test_detail_that_an_unpublished_run_deleted_is_still_read(path: Path) -> None:
    ran(path, "r1", value=0.25)
    ran(path, "r2", detail="none", dies_before="metric_sums")
    assert Lake(path).query_metrics()["recall_at_10"].to_pylist() == [0.25]


@pytest.mark.parametrize("dies_before", ["", "runs"])
def test_rows_that_were_vacuumed_are_an_error_that_says_what_to_do(
    path: Path, dies_before: str
) -> None:
    ran(path, "r1", dies_before=dies_before)
    ran(path, "r2", dies_before="metrics")
    vacuum(path, "metric_sums")
    with pytest.raises(ContractError) as raised:
        Lake(path).metric_sums()
    assert str(raised.value) == (
        "metric_sums (2026-01-01, v1): published by run r1, replaced by another, and version 1"
        " cannot be read any more; run again: ranklake evaluate --date 2026-01-01"
    )


def test_sums_that_no_commit_is_known_to_hold_are_an_error(path: Path) -> None:
    replaced(path, schemas.METRICS, [{"model_version": "v1"}], run_id="r1")
    with pytest.raises(ContractError, match="no version is known to hold it"):
        Lake(path).metric_sums()
    assert Lake(path).query_metrics().num_rows == 0


def test_a_condition_that_no_row_meets_is_no_sign_of_a_crash(path: Path, opened: list[str]) -> None:
    ran(path, "r1")
    assert Lake(path).metric_sums(where="k = 5 OR k = 20").num_rows == 0
    assert opened == ["metrics", "metric_sums"]


def test_the_normal_case_opens_each_table_once(path: Path, opened: list[str]) -> None:
    ran(path, "r1", models=("v1", "v2"))
    ran(path, "r2", day=NEXT_DAY)
    assert Lake(path).query_metrics().num_rows == 3
    assert opened == ["metrics", "query_metrics"]


def test_what_no_run_wrote_is_not_looked_for_in_earlier_versions(
    path: Path, opened: list[str]
) -> None:
    ran(path, "r1", detail="none")
    ran(path, "r2", detail="none", day=NEXT_DAY)
    assert Lake(path).query_metrics().num_rows == 0
    assert Lake(path).comparisons().num_rows == 0
    assert opened == ["metrics", "query_metrics", "runs", "metrics", "comparisons", "runs"]


def test_dates_models_columns_and_conditions_select(path: Path) -> None:
    ran(path, "r1", value=0.25, models=("v1", "v2"))
    ran(path, "r2", value=0.5, day=NEXT_DAY)
    lake = Lake(path)
    for table in (lake.metrics, lake.metric_sums, lake.runs):
        assert table(dates=DAY).num_rows == 2
        assert table(dates=["2026-01-01", NEXT_DAY]).num_rows == 3
        assert table(models="v2").num_rows == 1
        assert table(dates=[NEXT_DAY], models=["v2"]).num_rows == 0
        assert table(dates=[]).num_rows == 0
        assert table(columns=["run_id"], where="run_id = 'r2' OR run_id = 'r0'").to_pydict() == {
            "run_id": ["r2"]
        }
    assert lake.metrics(dates=DAY, where="value < 0 OR value > 0.3").num_rows == 0


def test_files_of_other_days_and_models_are_not_opened(path: Path) -> None:
    ran(path, "r1", value=0.25, models=("v1", "v2"))
    ran(path, "r2", day=NEXT_DAY)
    for file in path.glob("*/event_date=*/model_version=*/*.parquet"):
        if "event_date=2026-01-01/model_version=v1" not in str(file) and "runs" not in str(file):
            file.write_bytes(b"no parquet")
    lake = Lake(path)
    assert lake.metrics(dates=DAY, models="v1")["value"].to_pylist() == [0.25]
    assert lake.metric_sums(dates=DAY, models="v1")["num"].to_pylist() == [[0.25]]
    with pytest.raises(pa.ArrowException):
        lake.metrics()


def test_a_column_added_later_is_null_in_what_was_committed_before(path: Path) -> None:
    ran(path, "r1", value=0.25)
    replaced(
        path,
        schemas.QUALITY,
        [{"model_version": "v1"}],
        run_id="r2",
        new_columns={"owner": "ads"},
    )
    rows = Lake(path).quality(where="owner IS NULL")
    assert rows.select(["run_id", "value", "owner"]).to_pylist() == [
        {"run_id": "r1", "value": 0.25, "owner": None}
    ]


def test_a_column_that_an_older_lake_lacks_is_null_where_it_is_asked_for(path: Path) -> None:
    ran(path, "r1", value=0.25)
    rows = Lake(path).metric_sums().drop_columns("num_by_item")
    write_deltalake(path / "metric_sums", rows, mode="overwrite", schema_mode="overwrite")
    rows = Lake(path).metric_sums(columns=["num", "num_by_item"])
    assert rows.to_pylist() == [{"num": [0.25], "num_by_item": None}]
    assert "num_by_item" not in Lake(path).metric_sums().column_names


def test_latest_dates_are_those_with_published_metrics(path: Path) -> None:
    ran(path, "r1", models=("v1",))
    ran(path, "r2", models=("v2",), day=NEXT_DAY)
    ran(path, "r3", models=("v1",), day=date(2026, 1, 3), dies_before="metrics")
    lake = Lake(path)
    assert lake.latest_dates() == [NEXT_DAY]
    assert lake.latest_dates(2) == [NEXT_DAY, DAY]
    assert lake.latest_dates(2, models="v1") == [DAY]


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        Lake(tmp_path / "nowhere").metrics()
    assert str(raised.value) == (
        f"{tmp_path}/nowhere: there is no such directory; is this the lake's path?"
    )
    assert not (tmp_path / "nowhere").exists()


def test_a_directory_without_the_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    with pytest.raises(ConfigError) as raised:
        Lake(tmp_path).latest_dates()
    assert str(raised.value) == f"{tmp_path}/metrics: there is no Delta table; run: ranklake init"


def test_duckdb_and_polars_read_the_tables(path: Path) -> None:
    ran(path, "r1", value=0.25, models=("v1", "v2"))
    metrics = Lake(path).metrics()
    assert duckdb.sql("SELECT sum(value), count(*) FROM metrics").fetchall() == [(0.5, 2)]
    assert pl.from_arrow(metrics)["value"].sum() == 0.5
    assert pl.read_delta(str(path / "metrics"))["model_version"].sort().to_list() == ["v1", "v2"]


@pytest.mark.parametrize("module", ["lake", "cli.show", "cli.explain"])
def test_reading_needs_no_pyspark(module: str) -> None:
    script = f"import sys; sys.modules['pyspark'] = None; import ranklake.{module}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=120)
