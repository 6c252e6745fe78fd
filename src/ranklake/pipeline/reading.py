"""Which rows of the inputs a run of one day reads, and what a row has to name."""

import math
from collections.abc import Collection, Mapping
from datetime import date, timedelta

from pyspark.sql import DataFrame

from ranklake import clean, read, schemas
from ranklake.config import EvalConfig
from ranklake.metrics import CONVERSION, CONVERSION_VALUE

_LATEST = {"clicks": timedelta(days=1), "conversions": timedelta(days=30)}
"""How long after the end of the day an event without event_date is read, whatever the windows."""


def rows_of_day(
    sources: Mapping[str, read.Source], config: EvalConfig, day: date
) -> dict[str, DataFrame]:
    """The rows of each input that a run of the day looks at."""
    rows = {}
    span = timedelta(minutes=config.max_query_span_minutes)
    for name, source in sources.items():
        if name == "conversions" and config.attribution.is_by_user and source.is_dated:
            last = day + timedelta(days=_days_until_conversion(config))
            rows[name] = read.of_dates(source, day, last)
        else:
            latest = _latest(name, config)
            rows[name] = read.of_date(
                source, day, zone=config.zone, max_query_span=span, latest=latest
            )
    return rows


def _latest(name: str, config: EvalConfig) -> timedelta:
    """Until when after its end events of the day are read, where they go by their own time."""
    span = timedelta(minutes=config.max_query_span_minutes)
    windows = [config.windows.of_clicks]
    if name == "conversions":
        windows.append(config.windows.of_conversions)
    known = [window for window in windows if window is not None]
    return max(_LATEST.get(name, timedelta(0)), span + sum(known, timedelta(0)))


def _days_until_conversion(config: EvalConfig) -> int:
    window = config.windows.of_conversions or _LATEST["conversions"]
    return math.ceil(window / timedelta(days=1)) + 1


def nearby_rows(
    sources: Mapping[str, read.Source], config: EvalConfig, day: date
) -> dict[str, DataFrame]:
    """Rows of other days, where touches of these compete for conversions of a user; else none."""
    if not (config.attribution.is_by_user and config.event_kinds & {CONVERSION, CONVERSION_VALUE}):
        return {}
    if "conversions" not in sources:
        return {}
    reach = timedelta(days=_days_until_conversion(config))
    is_first = config.attribution.touch == "first_click"
    first = day - (reach if is_first else timedelta(days=1))
    return {
        name: read.of_dates(sources[name], first, day + reach, without=day)
        for name in ("impressions", "clicks", "invalid_traffic")
        if name in sources and sources[name].is_dated
    }


def keys_of(name: str, config: EvalConfig, *, impressions: Collection[str]) -> clean.Keys:
    """What a row of the input has to name; `impressions` are the columns of theirs."""
    if name == "invalid_traffic":
        return (("query_id",), ("user_id",))
    if name == "conversions" and config.attribution.is_by_user:
        return ((*config.attribution.columns, "conversion_ts"),)
    if name in ("clicks", "conversions") and "impression_id" in impressions:
        return (("impression_id",), schemas.ITEM)
    return (schemas.ITEM,)
