"""Reasons of clicks and conversions, row by row, against plain SQL over dirty logs."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from label_oracle import CLICKS, CONVERSIONS
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tables import DAY

from ranklake import read
from ranklake.config import of_values
from ranklake.pipeline.assembled import frames_of
from ranklake.pipeline.inputs import day_of

N_LOGS = 24
SECOND, MINUTE, HOUR = 10**6, 60 * 10**6, 3600 * 10**6
NOON = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()) * SECOND
WINDOW, TOLERANCE, AGE, CONVERSION = 30 * MINUTE, 5 * SECOND, 20 * MINUTE, 2 * HOUR
KNOWN_BY = NOON + 6 * HOUR
BOUNDS = [0, -TOLERANCE, -TOLERANCE - 1, WINDOW, WINDOW + 1, AGE, AGE + 1, MINUTE, 2 * MINUTE]

VARIANTS: list[Mapping[str, Any]] = [
    {},
    {"attribution": {"touch": "first_click"}, "unshown_clicks": "reject"},
    {"attribution": {"touch": "last_impression"}, "label_age": "20m"},
    {"windows": {"click": "any", "conversion": "any"}, "label_delay": "0s", "label_age": "20m"},
]


def dirty(seed: int) -> dict[str, list[dict[str, Any]]]:
    """One log, whose ids begin with its seed; times and ingest are microseconds since 1970."""
    random = np.random.default_rng(seed)

    def one(*choices: Any) -> Any:
        return choices[int(random.integers(len(choices)))]

    shown = []
    for query in range(12):
        for item in range(int(random.integers(1, 5))):
            row = {
                "query_id": f"{seed}-q{query}",
                "item_id": f"i{item}",
                "impression_id": one(
                    f"{seed}-d{query}.{item}", f"{seed}-d{query}.{item}", None, ""
                ),
                "event_us": one(NOON, NOON + MINUTE, NOON + MINUTE, None),
            }
            shown.append(row)
            if random.random() < 0.3:  # delivered again, later; as the same or as another one
                other = one(row["impression_id"], f"{seed}-again{query}.{item}")
                later = None if row["event_us"] is None else row["event_us"] + one(0, 7 * MINUTE)
                shown.append({**row, "impression_id": other, "event_us": later})
            if random.random() < 0.1:
                shown.append({**row, one("query_id", "item_id"): one(None, "")})
            if random.random() < 0.05:  # one id for two items
                shown.append({**row, "item_id": "i9", "event_us": NOON + 3 * MINUTE})
    return {
        "impressions": shown,
        "clicks": _events(seed, random, one, shown, n=70, spans=BOUNDS),
        "conversions": _conversions(seed, random, one, shown),
    }


def _events(
    seed: int, random: Any, one: Any, shown: list[dict[str, Any]], *, n: int, spans: list[int]
) -> list[dict[str, Any]]:
    events = []
    for _ in range(n):
        of = shown[int(random.integers(len(shown)))]
        at = (of["event_us"] or NOON) + one(*spans) + one(0, 0, 1, 8 * SECOND)
        event = {
            "query_id": of["query_id"],
            "item_id": one(of["item_id"], of["item_id"], of["item_id"], "i7"),
            "impression_id": one(of["impression_id"], None, None, ""),
            "at_us": one(at, at, at, at, None),
            "ingest_us": one(at, at + MINUTE, KNOWN_BY, KNOWN_BY + 1, None),
        }
        dirt = random.random()
        if dirt < 0.08:
            event["query_id"] = one(None, "", f"{seed}-elsewhere")
        elif dirt < 0.14:
            event["item_id"] = one(None, "")
        elif dirt < 0.2:
            event["impression_id"] = f"{seed}-lost"
        events.append(event)
        if random.random() < 0.15:  # a copy, which comes later
            events.append({**event, "ingest_us": one(event["ingest_us"], KNOWN_BY - 1)})
    return events


def _conversions(
    seed: int, random: Any, one: Any, shown: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    spans = [0, MINUTE, 21 * MINUTE, WINDOW, CONVERSION, CONVERSION + 1, CONVERSION + MINUTE]
    events = _events(seed, random, one, shown, n=60, spans=spans)
    rows = []
    for n, event in enumerate(events):
        given = {"worth": one(1.0, 2.5, None), "conversion_id": one(f"{seed}-c{n}", None, "")}
        rows.append({**event, **given})
        if random.random() < 0.15:
            ingest = one(event["ingest_us"], KNOWN_BY + 2)
            rows.append({**event, **given, "ingest_us": ingest})
    return rows


_TIMES = {"impressions": "event_ts", "clicks": "click_ts", "conversions": "conversion_ts"}
_STRINGS = ("query_id", "item_id", "impression_id")


def table_of(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    fields = [(key, pa.string()) for key in _STRINGS]
    fields += [("event_us" if name == "impressions" else "at_us", pa.int64())]
    if name != "impressions":
        fields.append(("ingest_us", pa.int64()))
    if name == "conversions":
        fields += [("worth", pa.float64()), ("conversion_id", pa.string())]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


@pytest.fixture(scope="module")
def log() -> dict[str, pa.Table]:
    """All the logs as one: their ids tell them apart."""
    logs = [dirty(seed) for seed in range(N_LOGS)]
    return {
        name: table_of(name, [row for one in logs for row in one[name]])
        for name in ("impressions", "clicks", "conversions")
    }


def as_input(spark: SparkSession, name: str, rows: pa.Table) -> DataFrame:
    frame = spark.createDataFrame(rows).withColumn("event_date", F.lit(DAY))
    time = "event_us" if name == "impressions" else "at_us"
    frame = frame.withColumn(_TIMES[name], F.timestamp_micros(time)).drop(time)
    if name == "impressions":
        return frame.withColumns({"model_version": F.lit("v1"), "score": F.lit(1.0)})
    frame = frame.withColumn("ingest_ts", F.timestamp_micros("ingest_us")).drop("ingest_us")
    return frame.withColumnRenamed("worth", "value") if name == "conversions" else frame


def expected(log: Mapping[str, pa.Table], variant: Mapping[str, Any]) -> dict[str, Counter[Any]]:
    """By input, how often each row has each reason, by DuckDB."""
    windows = variant.get("windows", {})
    known = KNOWN_BY if "label_delay" in variant else -1
    values = {
        "win": -1 if windows.get("click") == "any" else WINDOW,
        "tol": TOLERANCE,
        "age": AGE if "label_age" in variant else -1,
        "known": known,
        "reject": variant.get("unshown_clicks") == "reject",
    }
    touch = variant.get("attribution", {}).get("touch", "last_click")
    conv = -1 if windows.get("conversion") == "any" else CONVERSION
    base = duckdb.connect()
    for name, rows in log.items():
        numbered = rows.append_column("rowid_", pa.array(range(len(rows))))
        base.register(name, numbered)
    clicks = base.execute(CLICKS, values).fetchall()
    conversions = base.execute(CONVERSIONS, {**values, "touch": touch, "conv": conv}).fetchall()
    return {
        "clicks": Counter(row[2:] for row in clicks),
        "conversions": Counter(row[2:] for row in conversions),
    }


def found(
    spark: SparkSession, log: Mapping[str, pa.Table], variant: Mapping[str, Any]
) -> dict[str, Counter[Any]]:
    """The same by ranklake."""
    windows = {"click": "30m", "conversion": "2h", **variant.get("windows", {})}
    config = of_values({**variant, "windows": windows, "labels": ["click", "conversion"]})
    sources = {
        name: read.mapped(name, as_input(spark, name, rows), columns={})
        for name, rows in log.items()
    }
    known_by = datetime.fromtimestamp(KNOWN_BY / SECOND, UTC) if "label_delay" in variant else None
    frames = frames_of(day_of(sources, config, DAY, known_by=known_by), config, {})
    content = {
        "clicks": ["impression_id", F.unix_micros("happened_at"), F.unix_micros("ingest_ts")],
        "conversions": [
            *("impression_id", F.unix_micros("happened_at"), F.unix_micros("ingest_ts")),
            *("value", F.nullif("conversion_id", F.lit(""))),
        ],
    }
    return {
        name: Counter(tuple(row) for row in told.rows.select(*content[name], "reason").collect())
        for name, told in frames.events.items()
    }


@pytest.mark.parametrize("variant", VARIANTS, ids=["usual", "first", "view", "any time"])
def test_every_event_has_the_reason_that_plain_sql_finds(
    spark: SparkSession, log: Mapping[str, pa.Table], variant: Mapping[str, Any]
) -> None:
    by_sql = expected(log, variant)
    by_us = found(spark, log, variant)
    for name, rows in by_sql.items():
        assert sum(rows.values()) > 1000
        assert by_us[name] == rows, (name, [*(rows - by_us[name]).items()][:5])


def test_the_logs_have_every_kind_of_dirt(log: Mapping[str, pa.Table]) -> None:
    by_sql = [expected(log, variant) for variant in VARIANTS]
    found = {name: {row[-1] for rows in by_sql for row in rows[name]} for name in by_sql[0]}
    of_both = {None, "orphan", "unshown", "late", "before", "after", "too_old"}
    assert found["clicks"] == {*of_both, "repeated"}
    assert found["conversions"] == {*of_both, "redelivered", "unclicked"}
