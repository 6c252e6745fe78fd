"""Which events count: windows, age, copies, attribution; and where quality shows the rest."""

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tables import clicks, impressions, table, value

from ranklake import evaluate, pipeline, write
from ranklake.config import of_values
from ranklake.errors import ContractError
from ranklake.pipeline.publish import lake_tables

SHOWN_AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


def after(**length: float) -> datetime:
    return SHOWN_AT + timedelta(**length)


def counted(found: Any) -> dict[str, float]:
    return {row["name"]: row["value"] for row in found.quality.to_pylist()}


def reasons(found: Any, name: str) -> dict[str, float]:
    """The reasons that some row has, and what is kept."""
    start = f"{name}.dropped."
    quality = counted(found)
    dropped = {key.removeprefix(start): n for key, n in quality.items() if key.startswith(start)}
    assert quality[f"{name}.kept"] + sum(dropped.values()) == quality[f"{name}.rows"]
    return {"kept": quality[f"{name}.kept"]} | {key: n for key, n in dropped.items() if n}


def shown(spark: SparkSession, *items: str) -> Any:
    """Items of one query, the first ranked highest, each delivered at noon."""
    rows = [
        {"item_id": item, "score": -float(n), "event_ts": SHOWN_AT, "impression_id": f"d-{item}"}
        for n, item in enumerate(items)
    ]
    return impressions(spark, *rows)


def test_a_click_counts_within_its_window(spark: SparkSession) -> None:
    """From 5 s before its impression to 30 min after it, both ends included."""
    micro = timedelta(microseconds=1)
    times = {
        "a": after(seconds=-5),
        "b": after(seconds=-5) - micro,
        "c": after(minutes=30),
        "d": after(minutes=30) + micro,
        "e": None,
    }
    clicked = clicks(
        spark,
        *[{"item_id": item, "click_ts": at} for item, at in times.items()],
        {"item_id": "a", "click_ts": after(minutes=1)},
        {"item_id": "d", "click_ts": after(hours=2)},
        {"item_id": "a", "query_id": "other", "click_ts": after(minutes=1)},
    )
    options: Mapping[str, Any] = {"ks": [5], "metrics": ["recall", "precision"]}
    found = evaluate(shown(spark, *times), clicked, **options)
    assert reasons(found, "clicks") == {
        "kept": 3,
        "before": 1,
        "after": 2,
        "repeated": 1,
        "orphan": 1,
    }
    assert value(found.metrics, "precision", 5, population="all") == 3 / 5
    wide = evaluate(shown(spark, *times), clicked, windows={"click": "any"}, **options)
    assert reasons(wide, "clicks") == {"kept": 5, "repeated": 2, "orphan": 1}
    assert value(wide.metrics, "precision", 5, population="all") == 5 / 5
    young = evaluate(shown(spark, *times), clicked, label_age="2m", **options)
    assert reasons(young, "clicks")["too_old"] == 1  # c, at the end of its window
    assert value(young.metrics, "precision", 5, population="all") == 2 / 5


def test_a_click_is_of_the_delivery_that_it_names(spark: SparkSession) -> None:
    """By impression_id where it has one, else by query and item."""
    clicked = clicks(
        spark,
        {"item_id": "wrong", "impression_id": "d-a"},
        {"query_id": None, "item_id": None, "impression_id": "d-b"},
        {"item_id": "c", "impression_id": None},
        {"item_id": "d", "impression_id": "lost"},
        {"item_id": None, "impression_id": None},
        {"item_id": "e", "impression_id": ""},
    )
    found = evaluate(shown(spark, *"abcde"), clicked, ks=[5], metrics=["precision"])
    assert reasons(found, "clicks") == {"kept": 4, "invalid_keys": 1, "orphan": 1}
    assert value(found.metrics, "precision", 5, population="all") == 4 / 5


def test_a_conversion_belongs_to_the_touch_before_it(spark: SparkSession) -> None:
    """By impression: the last click, the first, or the impression itself says what is too late."""
    clicked = clicks(
        spark,
        {"item_id": "a", "click_ts": after(minutes=1)},
        {"item_id": "a", "click_ts": after(minutes=20)},
        {"item_id": "b", "click_ts": after(minutes=20)},
        {"item_id": "c", "click_ts": after(hours=3)},  # too late to count
    )
    converted = table(
        spark,
        "conversions",
        {"item_id": "a", "conversion_ts": after(minutes=80), "value": 5.0},
        {"item_id": "a", "conversion_ts": after(minutes=80), "value": 5.0},  # a copy
        {"item_id": "a", "conversion_ts": after(minutes=80), "value": 6.0},
        {"item_id": "b", "conversion_ts": after(minutes=10), "value": 7.0},
        {"item_id": "c", "conversion_ts": after(hours=4), "value": 8.0},
        {"item_id": "d", "conversion_ts": after(minutes=59), "value": 9.0},
        {"item_id": "x", "conversion_ts": after(minutes=1), "value": 9.0, "query_id": "other"},
    )

    def told(touch: str) -> dict[str, float]:
        found = evaluate(
            shown(spark, *"abcd"),
            clicked,
            conversions=converted,
            labels=["conversion"],
            ks=[5],
            metrics=["precision"],
            windows={"conversion": "60m"},
            attribution={"touch": touch},
        )
        of_queries = value(found.metrics, "precision", 5, population="all", label="conversion")
        kept = reasons(found, "conversions")
        return {**kept, "items": round(5 * of_queries)}

    orphans = {"orphan": 1, "redelivered": 1}
    assert told("last_click") == {**orphans, "kept": 2, "before": 1, "unclicked": 2, "items": 1}
    assert told("first_click") == {**orphans, "after": 2, "before": 1, "unclicked": 2} | {
        "kept": 0,
        "items": 0,
    }
    assert told("last_impression") == {**orphans, "kept": 2, "after": 3, "items": 2}


def test_conversions_may_be_worth_their_value(spark: SparkSession) -> None:
    """Values of an item are added up; null, NaN and what is below 0 are worth nothing."""
    converted = table(
        spark,
        "conversions",
        *[
            {"item_id": item, "value": worth}
            for item, worth in (
                ("a", 5.0),
                ("a", 7.0),
                ("b", None),
                ("b", float("nan")),
                ("c", -3.0),
                ("c", 2.0),
            )
        ],
    )
    found = evaluate(
        shown(spark, *"abc"),
        conversions=converted,
        labels=["conversion", "conversion_value"],
        ks=[1, 3],
        metrics=["conversion_value", "ndcg", "recall"],
    )
    kind = {"label": "conversion_value"}
    assert value(found.metrics, "conversion_value", 1, **kind) == 5 + 7
    assert value(found.metrics, "conversion_value", 3, **kind) == 5 + 7 + 2
    assert value(found.metrics, "recall", 1, **kind) == 1 / 2
    assert value(found.metrics, "recall", 1, label="conversion") == 1 / 3
    ideal = 12 + 2 / math.log2(3)
    assert value(found.metrics, "ndcg", 3, **kind) == pytest.approx((12 + 2 / 2) / ideal)


def test_a_users_conversion_goes_to_one_touch_of_any_day(spark: SparkSession) -> None:
    """Each day is evaluated alone, and sees the touches of the other ones."""
    days = [date(2026, 1, n) for n in (1, 2, 3)]

    def on(n: int, hour: int) -> datetime:
        return datetime(2026, 1, n, hour, tzinfo=UTC)

    touches = [  # day, user, item: shown at the hour, clicked a minute later
        (1, "u", "a", 10),
        (2, "u", "a", 10),
        (3, "u", "a", 10),
        (1, "v", "a", 10),
        (2, "v", "b", 10),
    ]
    rows = [
        {
            "event_date": days[n - 1],
            "query_id": f"{user}{item}{n}",
            "user_id": user,
            "item_id": item,
            "event_ts": on(n, hour),
        }
        for n, user, item, hour in touches
    ]
    clicked = [
        {
            **{name: row[name] for name in ("event_date", "query_id", "item_id", "user_id")},
            "click_ts": row["event_ts"] + timedelta(minutes=1),
        }
        for row in rows
    ]
    converted = [
        {"user_id": "u", "item_id": "a", "conversion_ts": on(1, 9)},  # before any touch
        {"user_id": "u", "item_id": "a", "conversion_ts": on(2, 9)},  # of day 1
        {"user_id": "u", "item_id": "a", "conversion_ts": on(2, 11)},  # last: day 2, first: day 1
        {"user_id": "u", "item_id": "a", "conversion_ts": on(5, 11)},  # out of the window
        {"user_id": "v", "item_id": "a", "conversion_ts": on(2, 12)},  # of day 1
        {"user_id": "v", "item_id": "b", "conversion_ts": on(3, 9)},  # of day 2
        {"user_id": None, "item_id": "b", "conversion_ts": on(3, 9)},
    ]
    undated = table(spark, "conversions", *converted).drop("event_date", "query_id")
    dated = undated.withColumn(
        "event_date", F.to_date(F.from_utc_timestamp("conversion_ts", "UTC"))
    )

    def kept(touch: str) -> list[tuple[float, float]]:
        found = [
            evaluate(
                impressions(spark, *rows),
                clicks(spark, *clicked),
                conversions=dated,
                day=day,
                labels=["conversion"],
                ks=[1],
                metrics=["hits"],
                windows={"conversion": "2d"},
                attribution={"touch": touch, "key": "user_item"},
            )
            for day in days
        ]
        return [
            (
                reasons(of_day, "conversions")["kept"],
                value(of_day.metrics, "hits", 1, label="conversion", column="num"),
            )
            for of_day in found
        ]

    assert kept("last_click") == [(2, 2), (2, 2), (0, 0)]
    assert kept("first_click") == [(3, 2), (1, 1), (0, 0)]
    assert kept("last_impression") == [(2, 2), (2, 2), (0, 0)]


def test_labels_count_that_the_log_had_by_then(spark: SparkSession, tmp_path: Path) -> None:
    """Late events are told apart by ingest_ts; metrics say by when labels were known."""
    end = datetime(2026, 1, 2, tzinfo=UTC)
    clicked = clicks(
        spark,
        {"item_id": "a", "click_ts": after(minutes=1), "ingest_ts": end},
        {
            "item_id": "b",
            "click_ts": after(minutes=1),
            "ingest_ts": end + timedelta(microseconds=1),
        },
        {"item_id": "b", "click_ts": after(hours=1), "ingest_ts": None},
        {"item_id": "c", "click_ts": after(minutes=1), "ingest_ts": None},
    )
    options: Mapping[str, Any] = {"ks": [3], "metrics": ["precision"], "day": date(2026, 1, 1)}
    rows = shown(spark, *"abc")
    found = evaluate(rows, clicked, label_as_of=end, **options)
    assert reasons(found, "clicks") == {"kept": 2, "late": 1, "after": 1}
    by_config = evaluate(rows, clicked, label_delay="0s", zone="UTC", **options)
    assert reasons(by_config, "clicks") == {"kept": 2, "late": 1, "after": 1}
    told = {(row["label_as_of"], row["is_mature"]) for row in found.metrics.to_pylist()}
    assert told == {(end, False)}  # a click may come until 01:00
    later = evaluate(rows, clicked, label_delay="1h", **options)
    assert reasons(later, "clicks") == {"kept": 3, "after": 1}
    told = {(row["label_as_of"], row["is_mature"]) for row in later.metrics.to_pylist()}
    assert told == {(end + timedelta(hours=1), True)}
    everything = evaluate(rows, clicked, **options)
    told = {(row["label_as_of"], row["is_mature"]) for row in everything.metrics.to_pylist()}
    assert told == {(None, True)}
    with pytest.raises(ContractError, match="clicks: column 'ingest_ts' is missing"):
        evaluate(rows, clicked.drop("ingest_ts"), label_delay="1h", **options)


def test_samples_of_what_does_not_count_are_kept_where_asked_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = {
        "impressions": [
            {"item_id": "a", "user_id": "u"},
            {"item_id": "a", "user_id": "u"},
            {"item_id": None, "user_id": "u"},
            {"item_id": "z", "user_id": "bot", "query_id": "bots"},
        ],
        "clicks": [
            {"item_id": "a"},
            *[{"item_id": "a", "query_id": f"orphan {n}"} for n in range(5)],
            {"item_id": ""},
        ],
        "invalid_traffic": [{"user_id": "bot"}],
    }
    for name, rows in log.items():
        table(spark, name, *rows).write.parquet(str(tmp_path / name))
    config = {
        "inputs": {name: {"path": str(tmp_path / name), "format": "parquet"} for name in log},
        "lake": {"path": str(tmp_path / "lake")},
        "ks": [1],
        "rejected": {"samples": 3, "keys": "hashed"},
    }
    loaded = of_values(config)
    write.create_tables(spark, loaded.lake, lake_tables(loaded))
    pipeline.evaluate(spark, loaded, date(2026, 1, 1))
    found = DeltaTable(tmp_path / "lake" / "rejected").to_pyarrow_table().to_pylist()
    sha = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("q1", "a", "bots", "z")}
    of_reason = Counter((row["input"], row["reason"]) for row in found)
    assert of_reason == {
        ("impressions", "invalid_keys"): 1,
        ("impressions", "redelivered"): 1,
        ("impressions", "invalid_traffic"): 1,
        ("clicks", "orphan"): 3,
        ("clicks", "invalid_keys"): 1,
    }
    keys = {
        row["reason"]: (row["query_id"], row["item_id"])
        for row in found
        if row["input"] == "impressions"
    }
    assert keys == {
        "invalid_keys": (sha["q1"], None),
        "redelivered": (sha["q1"], sha["a"]),
        "invalid_traffic": (sha["bots"], sha["z"]),
    }
