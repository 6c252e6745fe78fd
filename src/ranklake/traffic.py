"""Queries that no person made: listed, or found by rules (docs/labels.md). Removed as a whole."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ranklake.schemas import QUERY

_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)
RULES = ("table", "queries_per_hour", "clicks_per_minute", "click_rate")
"""What can remove a query: the input invalid_traffic, or a rule that its user broke."""


@dataclass(frozen=True)
class Limits:
    """How much a person can do; None: that rule is not there.

    click_rate is looked at from min_impressions shown items on.
    """

    queries_per_hour: int | None = None
    clicks_per_minute: int | None = None
    click_rate: float | None = None
    min_impressions: int = 1


def broken(
    impressions: DataFrame,
    *,
    limits: Limits,
    clicks: DataFrame | None = None,
    listed: DataFrame | None = None,
    by_day: bool = False,
) -> DataFrame:
    """One row per (query, rule) of the queries that are to be removed: query_hash, query_id, rule.

    `impressions` are of one day, or `by_day` of several: then they have event_date, and a user is
    another one on each. `clicks` have query_id, item_id and happened_at; `listed` has query_id or
    user_id, or both. A query of nobody known (user_id is null) is a user of its own.
    Nobody breaks a rule that has nothing to look at: queries_per_hour without user_id or event_ts,
    the others without clicks, clicks_per_minute where happened_at is null.
    """
    rows = _rows(impressions, by_day=by_day)
    asked = _queries(rows)
    found = [rows.select(*QUERY, F.lit(RULES[0]).alias("rule")).where(F.lit(False))]
    if listed is not None:
        found += [names.withColumn("rule", F.lit("table")) for names in _named(asked, listed)]
    users = [
        who.withColumn("rule", F.lit(rule)) for rule, who in _users(rows, asked, clicks, limits)
    ]
    if users:
        bad = reduce(DataFrame.unionByName, users).distinct()
        # They are few, so they are sent to the rows: no query is shuffled to be found.
        theirs = rows.transform(_with_asker).join(F.broadcast(bad), on=["asker"], how="inner")
        found.append(theirs.select(*QUERY, "rule"))
    return reduce(DataFrame.unionByName, found).distinct()


def removed(broken: DataFrame) -> DataFrame:
    """One row per query that some rule removes: query_hash and query_id."""
    return broken.select(*QUERY).distinct()


def kept(rows: DataFrame, *, removed: DataFrame) -> DataFrame:
    """The rows whose query is not removed; they stay where they are. `rows` have query_hash."""
    return rows.join(F.broadcast(removed), on=[*QUERY], how="left_anti")


def of_removed(rows: DataFrame, *, removed: DataFrame) -> DataFrame:
    """The rows whose query is removed."""
    return rows.join(F.broadcast(removed), on=[*QUERY], how="left_semi")


def _rows(impressions: DataFrame, *, by_day: bool) -> DataFrame:
    """The rows' keys, times (`at`) and user_id, both null where there are none; and their day."""
    has = impressions.columns
    user = F.col("user_id") if "user_id" in has else F.lit(None).cast("string")
    time = F.col("event_ts") if "event_ts" in has else F.lit(None).cast("timestamp")
    days = ["event_date"] if by_day else []
    return impressions.select(*QUERY, "item_id", *days, user.alias("user_id"), time.alias("at"))


def _with_asker(rows: DataFrame) -> DataFrame:
    """Adds asker: a day's user, or the query of nobody known. The two can have the same name."""
    days = [F.col(name).cast("string") for name in ("event_date",) if name in rows.columns]
    user, query = F.concat(F.lit("u:"), "user_id"), F.concat(F.lit("q:"), "query_id")
    return rows.withColumn("asker", F.concat(*days, F.coalesce(user, query)))


def _queries(rows: DataFrame) -> DataFrame:
    """One row per query and user of its rows: when it began, as `at` (null without times)."""
    days = [name for name in ("event_date",) if name in rows.columns]
    begun = rows.groupBy(*QUERY, *days, "user_id").agg(F.min("at").alias("at"))
    return begun.transform(_with_asker)


def _named(asked: DataFrame, listed: DataFrame) -> Iterator[DataFrame]:
    """The queries that are listed, and those of a user that is: on the day, where both say one."""
    days = [name for name in ("event_date",) if name in asked.columns and name in listed.columns]
    for key in ("query_id", "user_id"):
        if key in listed.columns:
            names = listed.select(key, *days).where(F.col(key) != "").distinct()
            yield asked.join(names, on=[key, *days], how="left_semi").select(*QUERY)


def _users(
    rows: DataFrame, asked: DataFrame, clicks: DataFrame | None, limits: Limits
) -> Iterator[tuple[str, DataFrame]]:
    """For each rule, the users that break it: asker."""
    if limits.queries_per_hour is not None:
        begun = asked.where("at IS NOT NULL AND user_id IS NOT NULL")  # nobody known asks once
        yield "queries_per_hour", _too_many(begun, limits.queries_per_hour, _HOUR)
    if clicks is None:
        return
    clicked = clicks.join(asked.select("query_id", "asker"), on=["query_id"], how="inner")
    if limits.clicks_per_minute is not None:
        each = clicked.where("happened_at IS NOT NULL").select(
            "asker", "query_id", "item_id", F.col("happened_at").alias("at")
        )
        yield "clicks_per_minute", _too_many(each.distinct(), limits.clicks_per_minute, _MINUTE)
    if limits.click_rate is not None:
        yield "click_rate", _too_eager(rows, clicked, limits)


def _too_many(events: DataFrame, limit: int, within: timedelta) -> DataFrame:
    """Those who did more than `limit` of the events within some such time, both ends included."""
    order = [name for name in ("query_id", "item_id") if name in events.columns]
    by_time = Window.partitionBy("asker").orderBy("at", *order)
    before = F.lag("at", limit).over(by_time)
    return (
        events.withColumn("before", before)
        .where(F.col("at") - F.col("before") <= F.lit(within))
        .select("asker")
    )


def _too_eager(rows: DataFrame, clicked: DataFrame, limits: Limits) -> DataFrame:
    """Those who clicked more than that share of the items that were shown to them."""
    keys = ["asker", "query_id", "item_id"]
    # Without an item it is of none that was shown. The join says so too: so both read one shuffle.
    items = clicked.where(F.col("item_id").isNotNull()).select(*keys).distinct()
    is_clicked = items.withColumn("is_clicked", F.lit(1))
    # Only they can: a share of so many items is as many clicked ones, and few people click that.
    n_least = F.lit(limits.click_rate) * limits.min_impressions
    clickers = is_clicked.groupBy("asker").agg(F.count("is_clicked").alias("n_clicked"))
    eager = clickers.where(F.col("n_clicked") >= n_least).select("asker")
    theirs = rows.transform(_with_asker).join(F.broadcast(eager), on=["asker"], how="left_semi")
    counts = (
        theirs.select(*keys)
        .distinct()
        .join(is_clicked, on=keys, how="left")
        .groupBy("asker")
        .agg(F.count(F.lit(1)).alias("n_shown"), F.count("is_clicked").alias("n_clicked"))
    )
    # The quotient, as 0.29 * 100 is less than 29. n_shown is at least 1.
    is_larger = F.col("n_clicked") / F.col("n_shown") > F.lit(limits.click_rate)
    return counts.where((F.col("n_shown") >= limits.min_impressions) & is_larger).select("asker")
