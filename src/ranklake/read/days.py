"""An input's rows → those of one date, or of some dates."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake.errors import NoInputError
from ranklake.read.inputs import Source

_CLOCKS = timedelta(minutes=5)
"""How far clocks of two servers may differ: an event may seem to precede the day of its query."""


def of_date(
    source: Source, day: date, *, zone: str, max_query_span: timedelta, latest: timedelta
) -> DataFrame:
    """The rows of one day: by event_date, else by event time in the zone; undated rows all count.

    Without event_date an impression belongs to the day of its query's first impression: rows of a
    query begun before midnight stay with it for `max_query_span`. Clicks and conversions of a table
    without event_date are read from the day's begin until `latest` after its end.
    """
    rows = source.rows
    if source.is_dated:
        return rows.where(F.col("event_date") == F.lit(day))
    if source.time is None:
        return rows
    begin, end = _midnight(day, zone), _midnight(day + timedelta(days=1), zone)
    if source.table.name == "impressions":
        return _of_queries_begun(rows, source.time, begin, end, max_query_span)
    return _between(rows, source.time, begin - _CLOCKS, end + latest)


def around_date(source: Source, day: date, *, zone: str, max_query_span: timedelta) -> DataFrame:
    """Impressions by event time: those that of_date looks at, by one filter alone."""
    if source.is_dated or source.time is None:
        raise ValueError(f"{source.table.name} does not go by event time")
    begin, end = _midnight(day, zone), _midnight(day + timedelta(days=1), zone)
    return _between(source.rows, source.time, begin - max_query_span, end + max_query_span)


def of_dates(source: Source, first: date, last: date, *, without: date | None = None) -> DataFrame:
    """The rows with an event_date from first to last, both among them, but for those of one day."""
    rows = source.rows.where(F.col("event_date").between(F.lit(first), F.lit(last)))
    return rows if without is None else rows.where(F.col("event_date") != F.lit(without))


def _of_queries_begun(
    rows: DataFrame, time: str, begin: datetime, end: datetime, span: timedelta
) -> DataFrame:
    """Rows of the queries whose first impression lies in [begin, end), up to `span` after `end`.

    Only rows near a midnight are looked up, so the joined sides are small.
    """
    query = ["query_id"]
    begun_before = _between(rows, time, begin - span, begin).select(*query).distinct()
    begun_late = (
        _between(rows, time, end - span, end)
        .select(*query)
        .distinct()
        .join(begun_before, on=query, how="left_anti")
    )
    head = _between(rows, time, begin, begin + span).join(begun_before, on=query, how="left_anti")
    body = _between(rows, time, begin + span, end)
    tail = _between(rows, time, end, end + span).join(begun_late, on=query, how="left_semi")
    return head.unionByName(body).unionByName(tail)


def _between(rows: DataFrame, time: str, begin: datetime, end: datetime) -> DataFrame:
    return rows.where((F.col(time) >= F.lit(begin)) & (F.col(time) < F.lit(end)))


def _midnight(day: date, zone: str) -> datetime:
    """The instant at which the day begins there: no session's zone can change it."""
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone))


def missing_day(source: Source, day: date, *, zone: str) -> NoInputError:
    """The error of a day without rows: it names the latest days that there are."""
    if source.is_dated:
        days = F.col("event_date")
    elif source.time is None:
        return NoInputError(f"{source.table.name}: {source.place}: no rows at all")
    else:
        days = F.to_date(F.from_utc_timestamp(F.col(source.time), zone))
    latest = (
        source.rows.select(days.alias("day"))
        .distinct()
        .orderBy(F.col("day").desc_nulls_last())
        .limit(3)
    )
    found = ", ".join(str(row["day"]) for row in latest.collect()) or "none"
    return NoInputError(
        f"{source.table.name}: {source.place}: no rows for {day}; the latest days are {found}"
    )
