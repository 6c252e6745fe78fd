"""Queries that no person made: each rule at, below and above its limit; removed as a whole."""

from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tables import clicks, impressions, table, value

from ranklake import evaluate, traffic

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICRO = timedelta(microseconds=1)


def removed(
    spark: SparkSession,
    shown: list[dict[str, Any]],
    clicked: list[dict[str, Any]] | None = None,
    **limits: Any,
) -> set[tuple[str, str]]:
    """The queries that are removed, each with the rule."""
    rows = impressions(spark, *[{"item_id": "a", "event_ts": NOON, **row} for row in shown])
    events = None
    if clicked is not None:
        events = clicks(spark, *[{"item_id": "a", "click_ts": NOON, **row} for row in clicked])
        events = events.withColumnRenamed("click_ts", "happened_at")
    found = traffic.broken(
        rows.withColumn("query_hash", F.xxhash64("query_id")),
        clicks=events,
        limits=traffic.Limits(**limits),
    )
    return {(row["query_id"], row["rule"]) for row in found.collect()}


def test_more_queries_within_an_hour_than_a_person_asks(spark: SparkSession) -> None:
    """Two are allowed: three within 60 minutes are too many, also over the hour on the clock."""
    hour = timedelta(hours=1)
    begun = {
        "at the end": [timedelta(0), timedelta(minutes=30), hour],
        "just later": [timedelta(0), timedelta(minutes=30), hour + MICRO],
        "at once": [hour, hour, hour, 5 * hour],
        None: [timedelta(0)] * 5,
    }
    shown = [
        {"query_id": f"{user} {n}", "user_id": user, "event_ts": NOON + after}
        for user, times in begun.items()
        for n, after in enumerate(times)
    ]
    again = [{**row, "item_id": "b", "event_ts": row["event_ts"] + 2 * hour} for row in shown]
    bad = {(f"at the end {n}", "queries_per_hour") for n in range(3)}
    bad |= {(f"at once {n}", "queries_per_hour") for n in range(4)}
    assert removed(spark, [*shown, *again], queries_per_hour=2) == bad
    moved = [{**row, "event_ts": row["event_ts"] + timedelta(minutes=7)} for row in shown]
    assert removed(spark, moved, queries_per_hour=2) == bad


def test_more_clicks_within_a_minute_than_a_hand_makes(spark: SparkSession) -> None:
    """Two are allowed; a copy of a click is none of its own, nor is one of a query elsewhere."""
    shown = [
        {"query_id": "q1", "user_id": "fast"},
        {"query_id": "q2", "user_id": "fast"},
        {"query_id": "q3", "user_id": "slow"},
        {"query_id": "q4", "user_id": None},
        {"query_id": "q5", "user_id": None},
    ]
    minute = timedelta(minutes=1)
    clicked = [
        {"query_id": "q1"},
        {"query_id": "q2"},
        {"query_id": "q2", "click_ts": NOON + minute},
        {"query_id": "q3"},
        {"query_id": "q3"},
        {"query_id": "q3"},
        {"query_id": "q3", "click_ts": NOON + MICRO},
        {"query_id": "q3", "click_ts": NOON + minute + 2 * MICRO},
        *[{"query_id": "q4", "click_ts": NOON + n * MICRO} for n in range(3)],
        {"query_id": "q5"},
        *[{"query_id": "elsewhere", "click_ts": NOON + n * MICRO} for n in range(9)],
    ]
    bad = {(query, "clicks_per_minute") for query in ("q1", "q2", "q4")}
    assert removed(spark, shown, clicked, clicks_per_minute=2) == bad


def test_more_of_the_shown_items_clicked_than_anybody_likes(spark: SparkSession) -> None:
    """From four shown items on, more than half: of distinct items that were shown."""
    shown = [
        {"query_id": query, "user_id": user, "item_id": item}
        for user, query, items in (
            ("half", "q1", "abcd"),
            ("more", "q2", "abc"),
            ("more", "q3", "ab"),
            ("few", "q4", "abc"),
            (None, "q5", "abcd"),
        )
        for item in items
    ]
    clicked = [
        {"query_id": query, "item_id": item}
        for query, items in (
            ("q1", "aabbxyz"),
            ("q2", "abc"),
            ("q4", "abc"),
            ("q5", "abc"),
        )
        for item in items
    ]
    bad = {("q2", "click_rate"), ("q3", "click_rate"), ("q5", "click_rate")}
    found = removed(spark, [*shown, *shown], clicked, click_rate=0.5, min_impressions=4)
    assert found == bad


def test_a_removed_query_counts_nowhere_but_in_quality(spark: SparkSession) -> None:
    """Listed by query or by user; a query with one bad user on its rows goes as a whole."""
    shown = impressions(
        spark,
        *[
            {"query_id": query, "item_id": item, "user_id": user, "score": -ord(item) * 1.0}
            for query, item, user in (
                ("listed", "a", "u"),
                ("good", "a", "u"),
                ("good", "b", "u"),
                ("good", "b", "u"),
                ("two users", "a", "u"),
                ("two users", "b", "bot"),
                ("two users", "b", "bot"),
                ("nobody", "a", None),
            )
        ],
    )
    clicked = clicks(
        spark,
        *[
            {"query_id": query, "item_id": item}
            for query, item in (
                ("listed", "a"),
                ("good", "b"),
                ("two users", "a"),
                ("two users", "a"),
                ("two users", "elsewhere"),
            )
        ],
    )
    bad = table(
        spark,
        "invalid_traffic",
        {"query_id": "listed", "user_id": None},
        {"query_id": None, "user_id": "bot"},
        {"query_id": "good", "user_id": None, "event_date": datetime(2026, 1, 2).date()},
        {"query_id": None, "user_id": None},
    )
    found = evaluate(
        shown,
        clicked,
        invalid_traffic=bad,
        day=datetime(2026, 1, 1).date(),
        ks=[1, 2],
        metrics=["recall", "precision"],
    )
    assert value(found.metrics, "recall", 2, column="n_queries") == 2
    assert value(found.metrics, "recall", 1) == 0
    assert value(found.metrics, "recall", 2) == 1
    quality = {row["name"]: row["value"] for row in found.quality.to_pylist()}
    assert quality["impressions.kept"] == 3
    assert quality["impressions.dropped.invalid_traffic"] == 3
    assert quality["impressions.dropped.redelivered"] == 2
    assert quality["clicks.dropped.invalid_traffic"] == 4
    assert quality["clicks.kept"] == 1
    assert quality["queries.invalid_traffic"] == 2
    assert quality["traffic.table"] == 2


def test_no_row_moves_for_a_query_to_be_removed(spark: SparkSession) -> None:
    rows = impressions(spark, {"item_id": "a"}).withColumn("query_hash", F.xxhash64("query_id"))
    bad = rows.select("query_hash", "query_id").distinct()
    plan = str(traffic.kept(rows, removed=bad)._jdf.queryExecution().executedPlan().toString())
    rows_side = plan.split("BroadcastExchange")[0]  # what is above the broadcast, and the join
    assert "BroadcastHashJoin" in rows_side
    assert "Exchange hashpartitioning" not in rows_side
