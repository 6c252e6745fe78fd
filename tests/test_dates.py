"""Whose day it is: daylight saving, year ends, queries and clicks across midnight."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tables import clicks, impressions, value

from ranklake import evaluate

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def instant(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


# In Berlin, where clocks go forward on 2026-03-29 and back on 2026-10-25: begin and hours, by hand.
DAYS = {
    date(2026, 3, 29): (instant(2026, 3, 28, 23), 23),
    date(2026, 10, 25): (instant(2026, 10, 24, 22), 25),
    date(2025, 12, 31): (instant(2025, 12, 30, 23), 24),
    date(2026, 1, 1): (instant(2025, 12, 31, 23), 24),
}


def around(begin: datetime, end: datetime) -> list[dict[str, Any]]:
    """A query every hour from two before the day to two after it, and one over each midnight."""
    hourly = [begin + n * HOUR for n in range(-2, (end - begin) // HOUR + 2)]
    rows = [{"query_id": f"at {at}", "item_id": "a", "event_ts": at} for at in hourly]
    for midnight in (begin, end):
        over = {"query_id": f"over {midnight}"}
        rows.append({**over, "item_id": "a", "event_ts": midnight - 10 * MINUTE})
        rows.append({**over, "item_id": "b", "event_ts": midnight + 5 * MINUTE, "score": -1.0})
    return rows


@pytest.mark.parametrize("day", DAYS)
def test_a_day_has_the_hours_that_its_clocks_have(spark: SparkSession, day: date) -> None:
    begin, n_hours = DAYS[day]
    end = begin + n_hours * HOUR
    rows = around(begin, end)
    clicked = [
        {"query_id": f"over {midnight}", "item_id": "b", "click_ts": midnight + 35 * MINUTE}
        for midnight in (begin, end)
    ]
    clicked.append({"query_id": f"at {begin}", "item_id": "a", "click_ts": begin - MINUTE / 15})
    found = evaluate(
        impressions(spark, *rows).drop("event_date"),
        clicks(spark, *clicked).drop("event_date"),
        day=day,
        zone="Europe/Berlin",
        ks=[2],
        metrics=["hits"],
    )
    # every hour of the day, and the query that began before its end
    assert value(found.metrics, "hits", 2, column="n_queries") == n_hours + 1
    # b of that query, shown and clicked after midnight; and a, clicked 4 s before it was shown
    assert value(found.metrics, "hits", 2, column="num") == 2
    quality = {row["name"]: row["value"] for row in found.quality.to_pylist()}
    assert quality["clicks.kept"] == 2
    assert quality["clicks.dropped.elsewhere"] == 1  # of the query that began the day before
