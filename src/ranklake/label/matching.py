"""Events → the impressions that they name, which stay where they are: was it shown, and when."""

from collections.abc import Callable
from datetime import timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ranklake.schemas import ITEM

_HASH = "named_hash"


def matched(
    events: DataFrame, *, impressions: DataFrame, at: str, sends_hashes: bool = True
) -> DataFrame:
    """The events, each with the impression that it names: by impression_id, else by query and item.

    One row per row of `events`: none is lost. query_id and item_id become those of the impression,
    where there is one. Adds
        happened_at  timestamp  the event's time, its column `at`; null: it has none
        shown_at     timestamp  the event_ts of the impression, of its first delivery; null: none
        is_shown     boolean    whether there is such an impression
        has_delivery boolean    whether it was looked for by impression_id
    Where `sends_hashes` the hashes of what the events name go to the impressions, which then are
    not shuffled: only those that are named.
    """
    timed = events.withColumns({"happened_at": _or_never(events, at), "has_delivery": F.lit(False)})
    has_items = set(ITEM) <= set(events.columns)
    if not {"impression_id"} <= set(events.columns) & set(impressions.columns):
        return _with_shown(timed, _by_item(impressions, timed, sends_hashes), [*ITEM])
    names_delivery = is_given("impression_id")
    named = timed.where(names_delivery).withColumn("has_delivery", F.lit(True))
    own = {name: F.col(name) if has_items else F.lit(None).cast("string") for name in ITEM}
    by_delivery = _with_shown(
        named.withColumns({f"own_{name}": value for name, value in own.items()}).drop(*ITEM),
        _by_delivery(impressions, named, sends_hashes),
        ["impression_id"],
    ).withColumns({name: F.coalesce(name, f"own_{name}") for name in ITEM})
    by_delivery = by_delivery.drop(*[f"own_{name}" for name in ITEM])
    if not has_items:
        return by_delivery
    others = timed.where(~names_delivery)
    by_item = _with_shown(others, _by_item(impressions, others, sends_hashes), [*ITEM])
    return by_delivery.unionByName(by_item)


def is_given(name: str) -> Column:
    """Whether the column names something: it is neither null nor empty."""
    return F.coalesce(F.col(name) != "", F.lit(False))


def _or_never(rows: DataFrame, at: str) -> Column:
    return F.col(at) if at in rows.columns else F.lit(None).cast("timestamp")


def _with_shown(events: DataFrame, shown: DataFrame, keys: list[str]) -> DataFrame:
    found = events.join(shown, on=keys, how="left")
    return found.withColumn("is_shown", F.coalesce("is_shown", F.lit(False)))


def _by_item(impressions: DataFrame, events: DataFrame, sends_hashes: bool) -> DataFrame:
    """One row per query_id and item_id that the events name and that was shown."""
    named = _named(impressions, events, F.xxhash64, ITEM, sends_hashes)
    first = F.min(_or_never(impressions, "event_ts")).alias("shown_at")
    return named.groupBy(*ITEM).agg(first).withColumn("is_shown", F.lit(True))


def _by_delivery(impressions: DataFrame, events: DataFrame, sends_hashes: bool) -> DataFrame:
    """One row per impression_id that the events name and that was shown: its query and item.

    An id that stands for two items is that of the one that was shown first.
    """
    keys = ("impression_id",)
    named = _named(impressions, events, F.xxhash64, keys, sends_hashes)
    first = F.min(_or_never(impressions, "event_ts")).alias("shown_at")
    items = named.repartition("impression_id").groupBy(*keys, *ITEM).agg(first)
    earliest = Window.partitionBy(*keys).orderBy(F.col("shown_at").asc_nulls_last(), *ITEM)
    return (
        items.withColumn("place", F.row_number().over(earliest))
        .where("place = 1")
        .drop("place")
        .withColumn("is_shown", F.lit(True))
    )


def _named(
    impressions: DataFrame,
    events: DataFrame,
    hashed: Callable[..., Column],
    keys: tuple[str, ...],
    sends_hashes: bool,
) -> DataFrame:
    """The impressions whose keys some event names (and by chance of the hash a few others)."""
    hashes = events.select(hashed(*keys).alias(_HASH)).distinct()
    times = [name for name in ("event_ts",) if name in impressions.columns]
    rows = impressions.select(*dict.fromkeys((*keys, *ITEM)), *times)
    sent = F.broadcast(hashes) if sends_hashes else hashes
    return rows.withColumn(_HASH, hashed(*keys)).join(sent, on=[_HASH], how="left_semi").drop(_HASH)


def asked_among(events: DataFrame, *, impressions: DataFrame, sends_hashes: bool) -> DataFrame:
    """One row per query of the log that the events name: its query_id."""
    named = _named(impressions.select(*ITEM), events, F.xxhash64, ("query_id",), sends_hashes)
    return named.select("query_id").distinct()


def is_later(at: Column, *, than: Column, by: timedelta | None) -> Column:
    """Whether `at` is more than that length of time after `than` (None: never, of any length)."""
    if by is None:
        return F.lit(False)
    # In whole numbers: Comet does not add an interval to a timestamp.
    return F.unix_micros(at) - F.unix_micros(than) > F.lit(by // timedelta(microseconds=1))


def first_reason(*reasons: tuple[str, Column]) -> Column:
    """The first reason whose condition is true; null where none is: the event counts."""
    nothing = F.lit(None).cast("string")
    return reduce(
        lambda later, one: F.when(one[1], F.lit(one[0])).otherwise(later),
        reversed(reasons),
        nothing,
    )
