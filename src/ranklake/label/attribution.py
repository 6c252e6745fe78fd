"""Conversions of a user → the touch that gets each: the last or the first, of any day."""

from collections.abc import Sequence
from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ranklake.label.conversions import ConversionRules
from ranklake.label.matching import first_reason, is_later
from ranklake.schemas import ITEM

REASONS = ("redelivered", "late", "without_touch", "other_day", "too_old")
"""Why a conversion of a user does not count."""

_TOUCH = ("happened_at", *ITEM, "shown_at", "is_own")


def attributed(
    conversions: DataFrame, *, touches: DataFrame, keys: Sequence[str], rules: ConversionRules
) -> DataFrame:
    """The conversions with the query_id and item_id of their touch (else their own), and reasons.

    One row per row of `conversions`, which have the reasons of `without_copies`, conversion_ts and
    the `keys` (user_id and item_id or advertiser_id). `touches` hold one row per touch: the keys,
    query_id, item_id, shown_at, happened_at, and is_own: whether it is of the day. A touch gets a
    conversion at or after it; of two at the same time the one with the larger (is_first: smaller)
    query_id and item_id.
    """
    own = {*conversions.columns}
    named = {key: f"key_{place}" for place, key in enumerate(keys)}
    of_keys = [F.col(key).alias(name) for key, name in named.items()]
    offered = touches.select(*of_keys, F.struct(*_TOUCH).alias("offered"), "happened_at")
    asking = conversions.withColumns(
        {"happened_at": F.col("conversion_ts")} | {name: F.col(key) for key, name in named.items()}
    )
    found = (
        asking.unionByName(offered.withColumn("is_touch", F.lit(True)), allowMissingColumns=True)
        .withColumn("touch", _touch([*named.values()], rules))
        .where(F.col("is_touch").isNull())
    )
    happened = F.col("happened_at")
    reason = first_reason(
        (
            "without_touch",
            F.col("touch").isNull()
            | is_later(happened, than=F.col("touch.happened_at"), by=rules.window),
        ),
        ("other_day", ~F.col("touch.is_own")),
        ("too_old", is_later(happened, than=F.col("touch.shown_at"), by=rules.oldest)),
    )
    return (
        found.withColumn("reason", F.coalesce("reason", reason))
        .withColumns({n: F.coalesce(f"touch.{n}", *({n} & own)) for n in ITEM})
        .drop("offered", "touch", "is_touch", *named.values())
    )


def _touch(keys: Sequence[str], rules: ConversionRules) -> Column:
    """The touch of the row's conversion, as a struct; null where there is none."""
    since = Window.unboundedPreceding
    if rules.is_first and rules.window is not None:
        since = -_micros(rules.window)
    by_time = Window.partitionBy(*keys).orderBy(F.unix_micros("happened_at"))
    until_here = by_time.rangeBetween(since, Window.currentRow)
    choose = F.min if rules.is_first else F.max
    return choose("offered").over(until_here)


def _micros(length: timedelta) -> int:
    return length // timedelta(microseconds=1)
