"""A user's conversions, over several days, against plain SQL that sees all days at once."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from label_oracle import ATTRIBUTED
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from user_logs import (
    AGE,
    CONVERSION,
    DAYS,
    KNOWN_BY,
    SECOND,
    TOLERANCE,
    WINDOW,
    WINDOWS,
    as_input,
    as_tables,
    dirty,
)

from ranklake import read
from ranklake.config import of_values
from ranklake.pipeline.assembled import frames_of
from ranklake.pipeline.inputs import day_of

N_LOGS = 24
REACH = 2
"""Days after its own on which a day looks for conversions: the window, and one for midnight."""

VARIANTS: list[dict[str, Any]] = [
    {"attribution": {"key": "user_item"}},
    {"attribution": {"key": "user_advertiser", "touch": "first_click"}, "label_age": "20h"},
    {"attribution": {"key": "user_item", "touch": "last_impression"}, "label_delay": "0s"},
]


@pytest.fixture(scope="module")
def log() -> dict[str, pa.Table]:
    return as_tables([dirty(seed) for seed in range(N_LOGS)])


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
    config = of_values({**variant, "windows": WINDOWS, "labels": ["conversion"], "zone": "UTC"})
    sources = {
        name: read.mapped(name, as_input(spark, name, rows), columns={})
        for name, rows in log.items()
    }
    known_by = datetime.fromtimestamp(KNOWN_BY / SECOND, UTC) if "label_delay" in variant else None
    frames = frames_of(day_of(sources, config, day, known_by=known_by), config, {})
    is_elsewhere = F.col("reason").isin("other_day", "without_touch")
    counts = F.expr("coalesce(reason, 'too_old') = 'too_old'")
    rows = frames.events["conversions"].rows.select(
        *("conversion_id", *config.attribution.columns),
        *(F.unix_micros("conversion_ts"), F.unix_micros("ingest_ts"), "value"),
        *(F.when(counts, F.col(name)) for name in ("query_id", "item_id")),
        F.when(is_elsewhere, F.lit("not of this day")).otherwise(F.col("reason")),
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
