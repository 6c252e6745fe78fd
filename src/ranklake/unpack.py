"""Rows of query_metrics → the hits they were made of, so that new metrics need no log."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.metrics import Measure
from ranklake.schemas import QUERY_KEYS


def is_stored(measure: Measure) -> bool:
    """Whether the hit arrays suffice for the measure: else it needs the log."""
    return not measure.needs and not measure.options_of("tie_break")


def hits(stored: DataFrame) -> DataFrame:
    """One row per relevant item of a row of query_metrics: its gain, and its rank (null: missed).

    item_id tells the items of a query apart; n_candidates, and n_slots where there is one, stand
    on every row. The other columns of rank.ranked are for rank.read_as to add.
    """
    of_query = ["n_candidates", *(["n_slots"] if "n_slots" in stored.columns else [])]
    keys = [*QUERY_KEYS, "label", *of_query]
    items = F.concat(_retrieved(), _missed())
    return (
        stored.withColumn("query_hash", F.xxhash64("query_id"))
        .select(*keys, F.posexplode(items).alias("item", "of"))
        .select(*keys, F.col("item").cast("string").alias("item_id"), "of.rank", "of.gain")
    )


def with_values(stored: DataFrame, values: DataFrame) -> DataFrame:
    """The stored rows, each with the new columns of `values`, which replace old ones."""
    keys = [*QUERY_KEYS, "label"]
    new = [name for name in values.columns if name not in keys]
    hashed = stored.drop(*new).withColumn("query_hash", F.xxhash64("query_id"))
    return hashed.join(values, on=keys, how="left").drop("query_hash")


def _retrieved() -> Column:
    return F.transform(
        F.arrays_zip("hit_ranks", "hit_gains"),
        lambda hit: F.struct(hit["hit_ranks"].alias("rank"), hit["hit_gains"].alias("gain")),
    )


def _missed() -> Column:
    """Each gain of the ideal order as often as it stands there more than among the hits."""
    nowhere = F.lit(None).cast("int").alias("rank")
    return F.flatten(
        F.transform(
            F.array_distinct("ideal_gains"),
            lambda gain: F.array_repeat(
                F.struct(nowhere, gain.alias("gain")),
                _times(F.col("ideal_gains"), gain) - _times(F.col("hit_gains"), gain),
            ),
        )
    )


def _times(gains: Column, gain: Column) -> Column:
    return F.size(F.filter(gains, lambda one: one == gain))
