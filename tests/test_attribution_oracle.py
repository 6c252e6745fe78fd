"""A user's conversions, over several days, against plain SQL that sees all days at once."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from label_oracle import ATTRIBUTED
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ranklake import read
from ranklake.config import of_values
from ranklake.pipeline.assembled import frames_of
from ranklake.pipeline.inputs import day_of

N_LOGS = 24
SECOND, MINUTE, HOUR = 10**6, 60 * 10**6, 3600 * 10**6
DAYS = [date(2026, 1, n) for n in (1, 2, 3)]
MIDNIGHTS = [int(datetime(2026, 1, n, tzinfo=UTC).timestamp()) * SECOND for n in (1, 2, 3, 4)]
WINDOW, TOLERANCE, AGE, CONVERSION = 30 * MINUTE, 5 * SECOND, 20 * HOUR, 24 * HOUR
REACH = 2
"""Days after its own on which a day looks for conversions: the window, and one for midnight."""
KNOWN_BY = MIDNIGHTS[2] + 12 * HOUR

VARIANTS: list[dict[str, Any]] = [
    {"attribution": {"key": "user_item"}},
    {"attribution": {"key": "user_advertiser", "touch": "first_click"}, "label_age": "20h"},
    {"attribution": {"key": "user_item", "touch": "last_impression"}, "label_delay": "0s"},
]

SHAPES = {
    "impressions": {"event_us": pa.int64()},
    "clicks": {"at_us": pa.int64(), "ingest_us": pa.int64()},
    "conversions": {
        **{"at_us": pa.int64(), "ingest_us": pa.int64()},
        **{"worth": pa.float64(), "conversion_id": pa.string()},
    },
}
TIMES = {"impressions": "event_ts", "clicks": "click_ts", "conversions": "conversion_ts"}


def dirty(seed: int) -> dict[str, list[dict[str, Any]]]:
    """Three days of a few users who see few items again and again, often around midnight."""
    random = np.random.default_rng(seed)

    def one(*choices: Any) -> Any:
        return choices[int(random.integers(len(choices)))]

    shown = []
    for query in range(24):
        day = int(random.integers(3))
        begin = MIDNIGHTS[day] + one(0, MINUTE, 12 * HOUR, 12 * HOUR, 23 * HOUR + 50 * MINUTE)
        user = one(*[f"{seed}-u{n}" for n in range(3)], None)
        for item in ("a", "b", "c")[: int(random.integers(1, 4))]:
            row = {
                **{"event_date": DAYS[day], "query_id": f"{seed}-q{query}", "item_id": item},
                **{"user_id": user, "advertiser_id": {"a": "x", "b": "x", "c": "y"}[item]},
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
    converted: list[dict[str, Any]] = []
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
    return {"impressions": shown, "clicks": clicked, "conversions": converted}


@pytest.fixture(scope="module")
def log() -> dict[str, pa.Table]:
    """All the logs as one: their ids tell them apart."""
    logs = [dirty(seed) for seed in range(N_LOGS)]
    texts = ("user_id", "advertiser_id", "item_id")
    tables = {}
    for name, times in SHAPES.items():
        ids = texts if name == "conversions" else ("query_id", *texts)
        shape = {"event_date": pa.date32(), **dict.fromkeys(ids, pa.string()), **times}
        rows = [row for one in logs for row in one[name]]
        tables[name] = pa.Table.from_pylist(rows, schema=pa.schema(shape))
    return tables


def by_sql(log: Mapping[str, pa.Table], variant: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    attribution = variant["attribution"]
    base = duckdb.connect()
    for name, rows in log.items():
        numbered = rows.append_column("rowid_", pa.array(range(len(rows))))
        no_ids = pa.nulls(len(rows), pa.string())
        base.register(name, numbered.append_column("impression_id", no_ids))
    values = {
        **{"win": WINDOW, "tol": TOLERANCE, "conv": CONVERSION, "reject": False},
        "age": AGE if "label_age" in variant else -1,
        "known": KNOWN_BY if "label_delay" in variant else -1,
        "touch": attribution.get("touch", "last_click"),
        "key": "item_id" if attribution["key"] == "user_item" else "advertiser_id",
    }
    return base.execute(ATTRIBUTED, values).fetchall()


def expected(rows: list[tuple[Any, ...]], day: date) -> Counter[Any]:
    """What a run of the day says of the conversions that it reads."""

    def told(row: tuple[Any, ...]) -> tuple[Any, ...]:
        *content, query, item, touch_date, reason, _ = row
        if reason in ("redelivered", "late"):
            return (*content, None, None, reason)
        if touch_date != day:
            return (*content, None, None, "not of this day")
        return (*content, query, item, reason)

    last = day + timedelta(days=REACH)
    return Counter(told(row) for row in rows if day <= row[-1] <= last)


def found(
    spark: SparkSession, log: Mapping[str, pa.Table], variant: Mapping[str, Any], day: date
) -> Counter[Any]:
    """The same by ranklake."""
    windows = {"click": "30m", "conversion": "24h"}
    config = of_values({**variant, "windows": windows, "labels": ["conversion"], "zone": "UTC"})
    sources = {}
    for name, rows in log.items():
        frame = spark.createDataFrame(rows)
        time = "event_us" if name == "impressions" else "at_us"
        frame = frame.withColumn(TIMES[name], F.timestamp_micros(time)).drop(time)
        if name == "impressions":
            frame = frame.withColumns({"model_version": F.lit("v1"), "score": F.lit(1.0)})
        else:
            frame = frame.withColumn("ingest_ts", F.timestamp_micros("ingest_us"))
            frame = frame.drop("ingest_us").withColumnsRenamed({"worth": "value"})
        sources[name] = read.mapped(name, frame, columns={})
    known_by = datetime.fromtimestamp(KNOWN_BY / SECOND, UTC) if "label_delay" in variant else None
    frames = frames_of(day_of(sources, config, day, known_by=known_by), config, {})
    told = frames.events["conversions"].rows
    elsewhere = F.col("reason").isin("other_day", "without_touch")
    has_touch = ~elsewhere & ~F.coalesce(F.col("reason").isin("redelivered", "late"), F.lit(False))
    has_touch = F.coalesce(has_touch, F.lit(True))
    rows = told.select(
        *("conversion_id", *config.attribution.columns),
        *(F.unix_micros("conversion_ts"), F.unix_micros("ingest_ts"), "value"),
        *(F.when(has_touch, F.col(name)) for name in ("query_id", "item_id")),
        F.when(elsewhere, F.lit("not of this day")).otherwise(F.col("reason")),
    )
    return Counter(tuple(row) for row in rows.collect())


@pytest.mark.parametrize("variant", VARIANTS, ids=["last click", "first click", "view"])
def test_every_conversion_goes_to_the_touch_that_plain_sql_finds(
    spark: SparkSession, log: Mapping[str, pa.Table], variant: Mapping[str, Any]
) -> None:
    rows = by_sql(log, variant)
    reasons = Counter(row[-2] for row in rows)
    assert min(reasons[name] for name in (None, "redelivered", "without_touch")) > 100
    kept: Counter[Any] = Counter()
    days = DAYS if variant is VARIANTS[0] else DAYS[1:2]
    for day in days:
        of_day, ours = expected(rows, day), found(spark, log, variant, day)
        assert ours == of_day, (day, [*(of_day - ours).items()][:3], [*(ours - of_day).items()][:3])
        kept += Counter({row: n for row, n in ours.items() if row[-1] is None})
    of_days = [row for row in rows if row[-3] in days]
    assert kept.total() == sum(row[-2] is None for row in of_days)  # each once, on one day
