"""Which events count: windows, age, copies, attribution; and where quality shows the rest."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession
from tables import clicks, impressions, table, value

from ranklake import evaluate

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
    assert reasons(wide, "clicks") == {"kept": 4, "before": 1, "repeated": 2, "orphan": 1}
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
