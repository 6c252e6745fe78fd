"""What the logs say about the world, with the dirt that was asked for.

Every table is lazy and made of `spark.range` and Column expressions alone: no shuffle, no UDF, no
random state. Column names are those of schemas.inputs; device, placement and country are slices.
"""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake.simulate.draws import Draws, quantile
from ranklake.simulate.simulation import Simulation
from ranklake.simulate.world import (
    ITEM,
    clicked,
    estimate,
    event_date,
    item_id,
    later,
    queries,
    query_id,
    score,
    shown,
)

CONVERSION_DELAYS_S = (
    (0.0, 5),
    (66 / 227, 60),
    (0.5, 198),
    (0.75, 4_888),
    (0.9, 14_957),
    (1.0, 46_341),
)
"""Quantiles of the 227 delays from click to install of a real log of 100 000 ad clicks."""

_ROWS_PER_PARTITION = 2_000_000
_MEAN_CONVERSION_VALUE = 20.0


def impressions(
    spark: SparkSession, simulation: Simulation, *, n_partitions: int | None = None
) -> DataFrame:
    """One row a delivery of an item shown for a query, ordered by date and query.

    Duplicates repeat all columns but ingest_ts: they are sent a minute later.
    """
    draw = Draws(simulation.seed)
    lost = _lost_keys(simulation, draw, "impression", *ITEM, "delivery")
    return (
        _shown(spark, simulation, n_partitions)
        .withColumn("delivery", _deliveries(simulation, draw))
        .withColumn("sent_micros", later("shown_micros", seconds=60 * (F.col("delivery") - 1)))
        .select(
            event_date().alias("event_date"),
            F.timestamp_micros("shown_micros").alias("event_ts"),
            "model_version",
            *_keys(lost),
            "user_id",
            "position",
            _logged_score(simulation, draw, *ITEM).alias("score"),
            "device",
            "placement",
            "country",
            _ingest_ts(simulation, draw, "sent_micros", *ITEM, "delivery").alias("ingest_ts"),
            "n_slots",
        )
    )


def clicks(
    spark: SparkSession, simulation: Simulation, *, n_partitions: int | None = None
) -> DataFrame:
    """One row a click. event_date is that of the query; impression_id is null if none was shown."""
    draw = Draws(simulation.seed)
    click = (*ITEM, "kind")
    lost = _lost_keys(simulation, draw, "click", *click)
    pause_s = F.when(F.col("kind") == "first", 0.0).otherwise(draw.between(1, 60, "pause", *click))
    return (
        _shown(spark, simulation, n_partitions)
        .transform(clicked, simulation=simulation)
        .withColumn("kind", F.explode(_click_kinds(simulation, draw)))
        .withColumns(_claimed_keys(simulation, draw))
        .withColumn("click_micros", later("clicked_micros", seconds=pause_s))
        .select(
            *_keys(lost),
            event_date().alias("event_date"),
            F.timestamp_micros("click_micros").alias("click_ts"),
            _ingest_ts(simulation, draw, "click_micros", *click).alias("ingest_ts"),
        )
    )


def conversions(
    spark: SparkSession, simulation: Simulation, *, n_partitions: int | None = None
) -> DataFrame:
    """One row a clicked item that converted. event_date is that of the query."""
    draw = Draws(simulation.seed)
    lost = _lost_keys(simulation, draw, "conversion", *ITEM)
    delay_s = quantile(CONVERSION_DELAYS_S, draw.uniform("conversion delay", *ITEM))
    value = _MEAN_CONVERSION_VALUE * draw.exponential("value", *ITEM)
    return (
        _shown(spark, simulation, n_partitions)
        .transform(clicked, simulation=simulation)
        .where(draw.chance(simulation.conversion_share, "conversion", *ITEM))
        .withColumn("conversion_micros", later("clicked_micros", seconds=delay_s))
        .select(
            *_keys(lost),
            event_date().alias("event_date"),
            F.timestamp_micros("conversion_micros").alias("conversion_ts"),
            F.round(value, 2).alias("value"),
            _ingest_ts(simulation, draw, "conversion_micros", *ITEM).alias("ingest_ts"),
        )
    )


def scores(
    spark: SparkSession, simulation: Simulation, *, n_partitions: int | None = None
) -> DataFrame:
    """One row an item scored by the offline model: all that were shown, and some that were not."""
    draw = Draws(simulation.seed)
    model = simulation.offline_model
    slots = F.sequence(F.lit(0), F.col("n_candidates") + simulation.n_unshown_scored - 1)
    quality = F.lit(model.quality)
    return (
        _queries(spark, simulation, n_partitions)
        .withColumns({"model_version": F.lit(model.name), "slot": F.explode(slots)})
        .withColumn("estimate", estimate(draw, F.col("slot"), quality=quality))
        .withColumn("score", score(simulation, F.col("estimate")))
        .select(
            event_date().alias("event_date"),
            "model_version",
            "query_id",
            item_id(simulation, draw, F.col("slot")).alias("item_id"),
            _logged_score(simulation, draw, "model_version", *ITEM).alias("score"),
        )
    )


def partitions_per_date(simulation: Simulation) -> int:
    """So many that a partition, and the file it becomes, is neither tiny nor huge."""
    return 1 + simulation.n_rows_per_date // _ROWS_PER_PARTITION


def _queries(spark: SparkSession, simulation: Simulation, n_partitions: int | None) -> DataFrame:
    # a multiple of the dates, so that no partition spans two of them
    default = simulation.n_dates * partitions_per_date(simulation)
    return queries(spark, simulation, n_partitions=n_partitions or default)


def _shown(spark: SparkSession, simulation: Simulation, n_partitions: int | None) -> DataFrame:
    return _queries(spark, simulation, n_partitions).transform(shown, simulation=simulation)


def _deliveries(simulation: Simulation, draw: Draws) -> Column:
    """Numbers the deliveries of the row's item, one row each."""
    share = simulation.dirt.duplicate_share
    if not share:
        return F.lit(1)  # the same table as below, without a generator for each of 10^8 rows
    twice = draw.chance(share, "duplicate", *ITEM)
    return F.explode(F.when(twice, F.array(F.lit(1), F.lit(2))).otherwise(F.array(F.lit(1))))


def _click_kinds(simulation: Simulation, draw: Draws) -> Column:
    """The clicks that come of one clicked item: the first, and the dirt."""
    dirt = simulation.dirt
    extra = {
        "repeated": dirt.repeated_click_share,
        "unshown": dirt.unshown_click_share,
        "orphan": dirt.orphan_click_share,
    }
    return F.array_compact(
        F.array(
            F.lit("first"),
            *(F.when(draw.chance(share, kind, *ITEM), kind) for kind, share in extra.items()),
        )
    )


def _claimed_keys(simulation: Simulation, draw: Draws) -> dict[str, Column]:
    """The item, query and delivery that the click of this kind names."""
    is_unshown, is_orphan = F.col("kind") == "unshown", F.col("kind") == "orphan"
    unshown_item = item_id(simulation, draw, F.col("slot") + F.col("n_candidates"))
    orphan_query = query_id(F.col("query") + simulation.n_queries)
    delivery = F.concat_ws("-", orphan_query, "position")
    return {
        "item_id": F.when(is_unshown, unshown_item).otherwise(F.col("item_id")),
        "query_id": F.when(is_orphan, orphan_query).otherwise(F.col("query_id")),
        "impression_id": F.when(is_orphan, delivery).when(~is_unshown, F.col("impression_id")),
    }


def _lost_keys(simulation: Simulation, draw: Draws, event: str, *keys: str) -> Column:
    """Which key of the row is lost: 'query_id', 'item_id', or null for a sound row."""
    is_lost = draw.chance(simulation.dirt.null_key_share, f"{event} key", *keys)
    first_half = draw.uniform(f"{event} lost key", *keys) < 0.5
    return F.when(is_lost, F.when(first_half, "query_id").otherwise("item_id"))


def _keys(lost: Column) -> tuple[Column, ...]:
    """query_id, impression_id and item_id; whoever lost one of the ids cannot name a delivery."""
    return (
        F.when(~lost.eqNullSafe("query_id"), F.col("query_id")).alias("query_id"),
        F.when(lost.isNull(), F.col("impression_id")).alias("impression_id"),
        F.when(~lost.eqNullSafe("item_id"), F.col("item_id")).alias("item_id"),
    )


def _logged_score(simulation: Simulation, draw: Draws, *keys: str) -> Column:
    """The score as logged: null or NaN for as many rows as the dirt says."""
    dirt = simulation.dirt
    if not dirt.null_score_share + dirt.nan_score_share:
        return F.col("score")
    fate = draw.uniform("score lost", *keys)
    is_nan = fate >= 1 - dirt.nan_score_share
    sound_or_nan = F.when(is_nan, float("nan")).otherwise(F.col("score"))
    return F.when(fate >= dirt.null_score_share, sound_or_nan)


def _ingest_ts(simulation: Simulation, draw: Draws, micros: str, *keys: str) -> Column:
    """When the event of that instant reached the log."""
    soon = draw.between(1, 60, f"ingest of {micros}", *keys)
    hours_later = draw.between(3, 30, f"late ingest of {micros}", *keys) * 3_600
    is_late = draw.chance(simulation.dirt.late_share, f"late {micros}", *keys)
    return F.timestamp_micros(later(micros, seconds=F.when(is_late, hours_later).otherwise(soon)))
