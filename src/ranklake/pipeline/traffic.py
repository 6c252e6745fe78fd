"""Which of the day's queries are no person's, and the rows without them."""

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame

from ranklake import count, traffic
from ranklake.config import EvalConfig
from ranklake.pipeline.events import Events

Rows = Mapping[str, DataFrame]


class Removed(NamedTuple):
    """Queries that are removed: one row each, with query_hash; and one row per rule and query."""

    queries: DataFrame
    broken: DataFrame

    @classmethod
    def of(cls, broken: DataFrame) -> "Removed":
        """The queries of traffic.broken."""
        return cls(traffic.removed(broken), broken)


def removed_of(events: Events, config: EvalConfig) -> Removed | None:
    """The day's removed queries; None where neither a rule nor a table removes any."""
    return _removed(events.rows, events.known_clicks(), config)


def removed_nearby(events: Events, config: EvalConfig) -> DataFrame | None:
    """One row per removed query of the other days whose touches compete for conversions."""
    if not events.nearby:
        return None
    listed = {n: rows for n, rows in events.rows.items() if n == "invalid_traffic"}
    rows = {**listed, **events.nearby}
    found = _removed(rows, events.known_clicks(nearby=True), config, by_day=True)
    return None if found is None else found.queries


def _removed(
    rows: Rows, clicks: DataFrame | None, config: EvalConfig, *, by_day: bool = False
) -> Removed | None:
    listed = rows.get("invalid_traffic")
    if "impressions" not in rows or not (config.traffic.has_rules or listed is not None):
        return None
    broken = traffic.broken(
        count.hashed(rows["impressions"]),
        limits=traffic.Limits(
            queries_per_hour=config.traffic.max_queries_per_hour,
            clicks_per_minute=config.traffic.max_clicks_per_minute,
            click_rate=config.traffic.max_click_rate,
            min_impressions=config.traffic.min_impressions,
        ),
        clicks=clicks,
        listed=listed,
        by_day=by_day,
    )
    return Removed.of(broken)


def without(rows: DataFrame, removed: Removed | None) -> DataFrame:
    """The rows of queries that stay; `rows` have query_hash."""
    return rows if removed is None else traffic.kept(rows, removed=removed.queries)


def only(rows: DataFrame, removed: Removed) -> DataFrame:
    """The rows of queries that are removed."""
    return traffic.of_removed(rows, removed=removed.queries)
