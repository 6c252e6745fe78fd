"""The benchmark's contestants agree, and its log is what the page says."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks import heats, log, page, results, skew
from benchmarks.measures import COUNTS, SUMS, differences, means
from benchmarks.ours import Plan, config_of, prepared, sums_found
from benchmarks.peers import duckdb as by_duckdb
from benchmarks.peers import polars as by_polars
from ranklake.pipeline import frames

ROWS = 6_000
LAYOUTS = ("clustered", "scattered")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, log.Log]:
    home = tmp_path_factory.mktemp("bench")
    return {name: log.generated(home / name, rows=ROWS, layout=name) for name in LAYOUTS}


def value(query: str) -> object:
    """The one value of a query."""
    return duckdb.connect().sql(query).fetchall()[0][0]


def files(logs: dict[str, log.Log], layout: str, name: str) -> str:
    return f"read_parquet('{logs[layout].home}/{name}/*/*.parquet', hive_partitioning = false)"


def test_every_query_has_20_candidates_and_each_of_them_once(logs):
    impressions = files(logs, "clustered", "impressions")
    counts = f"select count(*) n, count(distinct item_id) d from {impressions} group by query_id"
    assert value(f"select count(*) from ({counts}) where n = 20 and d = 20") == ROWS / 20


def test_about_26_percent_of_the_queries_are_clicked_and_every_click_was_shown(logs):
    clicks, impressions = (files(logs, "clustered", name) for name in ("clicks", "impressions"))
    clicked = value(f"select count(distinct query_id) from {clicks}")
    assert 0.18 < clicked / (ROWS / 20) < 0.34
    assert value(f"select count(*) from {clicks}") < 2 * clicked
    shown = f"select count(*) from {clicks} anti join {impressions} using (query_id, item_id)"
    assert value(shown) == 0


@pytest.mark.parametrize("name", ["impressions", "clicks"])
def test_both_layouts_hold_the_same_rows(logs, name):
    one, other = (f"from {files(logs, layout, name)}" for layout in LAYOUTS)
    assert value(f"select count(*) from ({one} except all {other})") == 0
    assert value(f"select count(*) {one}") == value(f"select count(*) {other}")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_peers_that_sum_agree(logs, layout):
    options = {"log": str(logs[layout].home)}
    plain = by_duckdb.prepared(options)()
    assert [*plain["all"]] == [*SUMS]
    assert all(plain["all"][name] > 0 for name in SUMS)
    for chosen in ({"pruned": True}, {"dedup": True}, {"pruned": True, "dedup": True}):
        assert differences(plain, by_duckdb.prepared({**options, **chosen})()) == []
    for chosen in ({}, {"dedup": True}):
        assert differences(plain, by_polars.prepared({**options, **chosen})()) == []


@pytest.mark.parametrize("is_unique", [True, False])
def test_ranklake_agrees_with_duckdb(spark: SparkSession, logs, is_unique):
    options = {"log": str(logs["scattered"].home)}
    plan = Plan(spark, config_of({**options, "unique": is_unique}))
    found, expected = sums_found(plan.sums(), model="m1"), by_duckdb.prepared(options)()
    assert found.keys() == expected.keys()
    assert found["all"].keys() == expected["all"].keys()
    assert differences(expected, found) == []


def test_differences_are_found():
    one = {"all": dict.fromkeys(SUMS, 4.0)}
    other = {"all": one["all"] | {"rr": 4.0 + 1e-7}}
    assert len(differences(one, other)) == 1
    assert not means(one)["all"].keys() & {*COUNTS}


def test_the_page_says_what_was_measured_and_what_could_not_be_had(tmp_path: Path):
    heat = heats.heats()[0]
    ours, theirs = heat.duels[0].one, heat.duels[0].other
    entrants = {e.title: {"failed": "no JAR"} for e in heat.entrants}
    for title, seconds in ((ours, [1.0, 2.0, 4.0]), (theirs, [2.0, 2.0, 2.0])):
        entrants[title] = {
            **{"seconds": seconds, "peak_bytes": 2**30},
            **{"rows_per_core_second": 5e5, "n_compared": 136},
        }
    ratio = results.ratio(entrants[ours], entrants[theirs])
    duel = {**vars(heat.duels[0]), "ratio": ratio, "is_met": False}
    about = {"title": heat.title, "layout": heat.layout, "rows": 10**6, "log_bytes": 2**30}
    found = {**about, "entrants": entrants, "duels": [duel], **results.surroundings("make bench")}
    results.kept(tmp_path, heat.name, json.loads(json.dumps(found)))
    page.write(results.stored(tmp_path), tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert ratio == 1.0
    assert f"| 1 M | clustered | {ours} | 2.00 | {theirs} | 2.00 | 1.00 | ≤ 0.9 | no |" in text
    assert f"| {ours} | 2.00 (1.00 – 4.00) | 1.0 | 500,000 | 136 |" in text
    assert "not had: no JAR" in text


def test_the_plan_for_many_labels_gives_the_same_numbers(spark, logs, monkeypatch):
    monkeypatch.setattr(frames, "MAX_BROADCAST_LABELS", frames.MAX_BROADCAST_LABELS)  # put back
    options = {"log": str(logs["clustered"].home)}
    run = prepared({**options, "engine": "jvm", "max_broadcast_labels": 0})
    assert frames.MAX_BROADCAST_LABELS == 0
    assert differences(by_duckdb.prepared(options)(), run()) == []


@pytest.mark.parametrize("n_drawn", [1, 20_000])
@pytest.mark.parametrize(("alpha", "near"), [(1.5, 0.35), (2.5, 0.15)])
def test_simulated_skew_is_that_of_queries_drawn_one_by_one(monkeypatch, n_drawn, alpha, near):
    sizes, n_queries, n_partitions = skew.Sizes(alpha, limit=10_000), 400_000, 500
    rng = np.random.default_rng(7)
    drawn = sizes.least * (1.0 - rng.random(n_queries)) ** (-1.0 / sizes.alpha)
    drawn = drawn[drawn <= sizes.limit]
    where = rng.integers(n_partitions, size=len(drawn))
    one_by_one = np.bincount(where, weights=drawn, minlength=n_partitions)
    monkeypatch.setattr(skew, "DRAWN", n_drawn)
    summed = skew.loads(n_queries, n_partitions, sizes, rng)
    assert summed.sum() == pytest.approx(one_by_one.sum(), rel=0.03)
    assert summed.std() == pytest.approx(one_by_one.std(), rel=near)


def test_tasks_start_on_the_first_free_core():
    assert skew.makespan(np.array([3.0, 1.0, 1.0, 1.0]), cores=2) == 3.0
    assert skew.makespan(np.array([1.0, 1.0, 3.0]), cores=2) == 4.0
