"""Clicks → which of them count, and why the others do not (docs/labels.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ranklake.label.matching import first_reason, is_later

REASONS = (*("invalid_traffic", "unshown", "late", "before", "after", "too_old", "repeated"),)
"""Why a click of a query in the log does not count."""


@dataclass(frozen=True)
class ClickRules:
    """When a click counts. None: that rule is not there.

    window     from the impression to the click, at most
    tolerance  by how much a click may precede its impression, where there is a window
    oldest     the same, for every kind of event
    known_by   when the log has to have the click
    """

    window: timedelta | None = None
    tolerance: timedelta = timedelta(0)
    oldest: timedelta | None = None
    known_by: datetime | None = None
    rejects_unshown: bool = False


def told(
    clicks: DataFrame,
    *,
    rules: ClickRules,
    unasked: str = "orphan",
    removed: DataFrame | None = None,
    asked: DataFrame | None = None,
) -> DataFrame:
    """The clicks as `matched` leaves them, with `reason`: why one does not count, or null.

    One row per row of `clicks`. `removed` and `asked` hold one row per query_id: of queries that
    are removed, and of those in the log. A click of a query that is not there gets the reason
    `unasked`; without `asked` it looks unshown, if it names no delivery.
    """
    rows, is_removed = flagged(clicks, removed, "is_removed", otherwise=False)
    rows, is_asked = flagged(rows, asked, "is_asked", otherwise=True)
    unshown = ~F.col("is_shown")
    reason = first_reason(
        ("invalid_traffic", is_removed),
        (unasked, is_orphan(is_asked)),
        ("unshown", unshown & F.lit(rules.rejects_unshown)),
        ("late", is_late(rows, rules.known_by)),
        ("before", _is_before(rules)),
        ("after", _is_later_than(rules.window)),
        ("too_old", _is_later_than(rules.oldest)),
    )
    return rows.withColumn("reason", reason).drop("is_removed", "is_asked")


def is_orphan(is_asked: Column) -> Column:
    """Whether the event names a delivery that is not in the log, or a query that is not."""
    return ~F.col("is_shown") & (F.col("has_delivery") | ~is_asked)


def flagged(
    events: DataFrame, queries: DataFrame | None, name: str, *, otherwise: bool
) -> tuple[DataFrame, Column]:
    """The events, and whether their query is one of `queries` (None: `otherwise`)."""
    if queries is None:
        return events, F.lit(otherwise)
    known = queries.select("query_id", F.lit(True).alias(name))
    return events.join(known, on=["query_id"], how="left"), F.coalesce(name, F.lit(False))


def is_late(rows: DataFrame, known_by: datetime | None) -> Column:
    """Whether the event reached the log too late; what the log does not say was known at once."""
    if known_by is None or "ingest_ts" not in rows.columns:
        return F.lit(False)
    return F.coalesce(F.col("ingest_ts") > F.lit(known_by), F.lit(False))


def _is_before(rules: ClickRules) -> Column:
    tolerance = None if rules.window is None else rules.tolerance
    return is_later(F.col("shown_at"), than=F.col("happened_at"), by=tolerance)


def _is_later_than(window: timedelta | None) -> Column:
    return is_later(F.col("happened_at"), than=F.col("shown_at"), by=window)


def once(told: DataFrame) -> DataFrame:
    """The clicks of `told`; of several that count on one item the earliest does, not repeated."""
    delivery = [name for name in ("impression_id",) if name in told.columns]
    others = [*(name for name in ("ingest_ts",) if name in told.columns), *delivery]
    # Events of no query have a partition each: one for all could be too large for a task.
    by_time = Window.partitionBy(F.coalesce("query_id", *delivery), "item_id", "reason").orderBy(
        F.col("happened_at").asc_nulls_last(), *others
    )
    counts = F.col("reason").isNull()
    is_repeated = counts & (F.row_number().over(by_time) > 1)
    return told.withColumn(
        "reason", F.when(is_repeated, F.lit("repeated")).otherwise(F.col("reason"))
    )
