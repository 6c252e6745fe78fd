"""Conversions → the impression to which each belongs, or why to none (docs/labels.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ranklake.label.clicks import flagged, is_late, is_orphan
from ranklake.label.matching import first_reason, is_given, is_later
from ranklake.schemas import ITEM

REASONS = (
    *(
        "redelivered",
        "late",
        "invalid_traffic",
        "unshown",
        "unclicked",
        "before",
        "after",
        "too_old",
    ),
)
"""Why a conversion of a query in the log does not count."""


@dataclass(frozen=True)
class ConversionRules:
    """When a conversion counts, and for what. None: that rule is not there.

    window          from the touch to the conversion, at most
    oldest          from the impression to the conversion, at most
    known_by        when the log has to have the conversion
    is_first        whether the first touch gets it, and not the last
    """

    window: timedelta | None = None
    oldest: timedelta | None = None
    known_by: datetime | None = None
    is_first: bool = False
    rejects_unshown: bool = False


def without_copies(conversions: DataFrame, *, known_by: datetime | None) -> DataFrame:
    """The conversions with `reason`: redelivered, for all copies of one but the first; late; null.

    One row per row of `conversions`. Copies share their conversion_id, or where there is none every
    value but ingest_ts.
    """
    columns = conversions.columns
    values = [name for name in columns if name not in ("conversion_id", "ingest_ts")]
    content: list[str | Column] = [*values]
    if "conversion_id" in columns:
        has_id = is_given("conversion_id")
        own_id = F.when(has_id, F.col("conversion_id"))
        content = [own_id, *[F.when(~has_id, F.col(name)) for name in values]]
    first_known = [F.col("ingest_ts").asc_nulls_first()] if "ingest_ts" in columns else []
    copies = Window.partitionBy(*content).orderBy(*first_known, *values)
    is_copy = F.row_number().over(copies) > 1
    reason = first_reason(("redelivered", is_copy), ("late", is_late(conversions, known_by)))
    return conversions.withColumn("reason", reason)


def told(
    conversions: DataFrame,
    *,
    clicks: DataFrame | None,
    rules: ConversionRules,
    unasked: str = "orphan",
    removed: DataFrame | None = None,
    asked: DataFrame | None = None,
) -> DataFrame:
    """The conversions as `matching.matched` leaves them, with every reason: null where they count.

    One row per row of `conversions`, which have the reasons of `without_copies`. The touches are
    `clicks`: those that count, with query_id, item_id and happened_at; None: the impressions.
    `removed`, `asked` and `unasked` are as of clicks.told.
    """
    rows, is_removed = flagged(conversions, removed, "is_removed", otherwise=False)
    rows, is_asked = flagged(rows, asked, "is_asked", otherwise=True)
    if clicks is None:
        touched = rows.withColumns({"touched_at": F.col("shown_at"), "is_touched": F.lit(True)})
        has_undated = F.lit(False)
    else:
        touched = _with_clicks(rows, clicks, is_first=rules.is_first)
        has_undated = F.col("has_undated")
    happened, touch = F.col("happened_at"), F.col("touched_at")
    too_early = (touch.isNull() | (happened < touch)) if clicks is not None else happened < touch
    reason = first_reason(
        ("invalid_traffic", is_removed),
        (unasked, is_orphan(is_asked)),
        ("unshown", ~F.col("is_shown") & F.lit(rules.rejects_unshown)),
        ("unclicked", ~F.col("is_touched")),
        ("before", happened.isNotNull() & too_early & ~has_undated),
        ("after", is_later(happened, than=touch, by=rules.window)),
        ("too_old", is_later(happened, than=F.col("shown_at"), by=rules.oldest)),
    )
    extra = ("is_removed", "is_asked", "is_touched", "has_undated", "touched_at")
    return touched.withColumn("reason", F.coalesce("reason", reason)).drop(*extra)


def _with_clicks(conversions: DataFrame, clicks: DataFrame, *, is_first: bool) -> DataFrame:
    """The conversions with their touch among the clicks on the same item; no row is lost.

    touched_at is null where no click is at or before the conversion (is_first: where none has a
    time), is_touched says whether there is a click at all, has_undated whether one has no time.
    """
    touches = clicks.select(*ITEM, "happened_at", F.lit(True).alias("is_touch"))
    rows = conversions.withColumn("is_touch", F.lit(False)).unionByName(
        touches, allowMissingColumns=True
    )
    of_item = Window.partitionBy(*ITEM)
    by_time = of_item.orderBy(F.col("happened_at").asc_nulls_first(), F.col("is_touch").desc())
    until_here = by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    time_of_touch = F.when(F.col("is_touch"), F.col("happened_at"))
    touched = (
        F.min(time_of_touch).over(of_item) if is_first else F.max(time_of_touch).over(until_here)
    )
    return (
        rows.withColumns(
            {
                "touched_at": touched,
                "is_touched": F.max("is_touch").over(of_item),
                "has_undated": F.max(F.col("is_touch") & F.col("happened_at").isNull()).over(
                    of_item
                ),
            }
        )
        .where(~F.col("is_touch"))
        .drop("is_touch")
    )
