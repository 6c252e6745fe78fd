"""Dirty logs of a few users over three days, who see few items again and again."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SECOND, MINUTE, HOUR = 10**6, 60 * 10**6, 3600 * 10**6
DAYS = [date(2026, 1, n) for n in (1, 2, 3)]
MIDNIGHTS = [int(datetime(2026, 1, n, tzinfo=UTC).timestamp()) * SECOND for n in (1, 2, 3, 4)]
WINDOW, TOLERANCE, AGE, CONVERSION = 30 * MINUTE, 5 * SECOND, 20 * HOUR, 24 * HOUR
WINDOWS = {"click": "30m", "conversion": "24h"}
KNOWN_BY = MIDNIGHTS[2] + 12 * HOUR

Rows = list[dict[str, Any]]

_EVENT = {"at_us": pa.int64(), "ingest_us": pa.int64()}
_SHAPES = {
    "impressions": {"event_us": pa.int64()},
    "clicks": _EVENT,
    "conversions": {**_EVENT, "worth": pa.float64(), "conversion_id": pa.string()},
}
_IDS = ("user_id", "advertiser_id", "item_id")
_ADVERTISERS = {"a": "x", "b": "x", "c": "y"}
_TIMES = {"impressions": "event_ts", "clicks": "click_ts", "conversions": "conversion_ts"}


def dirty(seed: int) -> dict[str, Rows]:
    """One log, whose ids begin with its seed; times and ingest are microseconds since 1970."""
    random = np.random.default_rng(seed)

    def one(*choices: Any) -> Any:
        return choices[int(random.integers(len(choices)))]

    shown = []
    for query in range(24):
        day = int(random.integers(3))
        begin = MIDNIGHTS[day] + one(0, MINUTE, 12 * HOUR, 12 * HOUR, 23 * HOUR + 50 * MINUTE)
        user = one(*[f"{seed}-u{n}" for n in range(3)], None)
        for item in "abc"[: int(random.integers(1, 4))]:
            row = {
                **{"event_date": DAYS[day], "query_id": f"{seed}-q{query}", "item_id": item},
                **{"user_id": user, "advertiser_id": _ADVERTISERS[item]},
                "event_us": one(begin, begin, begin + MINUTE),
            }
            shown += [row] * one(1, 1, 2)
    clicked = []
    for _ in range(40):
        of = one(*shown)
        at = of["event_us"] + one(-TOLERANCE, 0, MINUTE, WINDOW, WINDOW + 1, -TOLERANCE - 1)
        click = {key: value for key, value in of.items() if key != "event_us"}
        click |= {"at_us": one(at, at, at, None), "ingest_us": one(at, KNOWN_BY, KNOWN_BY + 1)}
        clicked.append(click | one({}, {}, {}, {}, {"query_id": f"{seed}-elsewhere"}))
    return {
        "impressions": shown,
        "clicks": clicked,
        "conversions": _conversions(seed, one, clicked),
    }


def _conversions(seed: int, one: Any, clicked: Rows) -> Rows:
    converted: Rows = []
    for n in range(70):
        of = one(*clicked)
        span = one(0, -1, MINUTE, HOUR, 13 * HOUR, CONVERSION, CONVERSION + 1, AGE, AGE + 1)
        at = (of["at_us"] or MIDNIGHTS[1]) + span
        event = {
            "event_date": datetime.fromtimestamp(at // SECOND, UTC).date(),
            "user_id": one(*[of["user_id"]] * 6, None, ""),
            "item_id": one(*[of["item_id"]] * 6, "d", None),
            "advertiser_id": one(*[of["advertiser_id"]] * 6, "z", None),
            "at_us": one(*[at] * 12, None),
            "ingest_us": one(at, KNOWN_BY, KNOWN_BY + 1, None),
            **{"worth": one(1.0, 2.0), "conversion_id": one(f"{seed}-c{n}", None)},
        }
        converted += [event, {**event, "ingest_us": KNOWN_BY + 2}][: one(1, 1, 1, 2)]
    return converted


def as_tables(logs: Sequence[Mapping[str, Rows]]) -> dict[str, pa.Table]:
    """All the logs as one: their ids tell them apart."""
    tables = {}
    for name, times in _SHAPES.items():
        ids = _IDS if name == "conversions" else ("query_id", *_IDS)
        shape = {"event_date": pa.date32(), **dict.fromkeys(ids, pa.string()), **times}
        rows = [row for one in logs for row in one[name]]
        tables[name] = pa.Table.from_pylist(rows, schema=pa.schema(shape))
    return tables


def as_input(spark: SparkSession, name: str, rows: pa.Table) -> DataFrame:
    """The rows as ranklake reads them: timestamps, one model, and the item's name as its score."""
    time = "event_us" if name == "impressions" else "at_us"
    frame = spark.createDataFrame(rows)
    frame = frame.withColumn(_TIMES[name], F.timestamp_micros(time)).drop(time)
    if name == "impressions":
        score = F.ascii("item_id").cast("double")
        return frame.withColumns({"model_version": F.lit("v1"), "score": score})
    frame = frame.withColumn("ingest_ts", F.timestamp_micros("ingest_us")).drop("ingest_us")
    return frame.withColumnsRenamed({"worth": "value"})
