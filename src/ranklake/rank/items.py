"""Rows of candidates and labels → one row an item: the shuffle, and the deduplication."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.rank.order import Order
from ranklake.schemas import QUERY_KEYS


def by_position(candidates: DataFrame) -> DataFrame:
    """The candidates scored by the order in which they were shown: position 1 scores highest."""
    return candidates.withColumn("score", -F.col("position").cast("double"))


def items(
    candidates: DataFrame, *, labels: DataFrame, gains: Sequence[str], order: Order
) -> DataFrame:
    """One row per (model, query, item), each item once, partitioned by the query.

    n_rows    candidate rows of the item; 0 for a labelled item that was no candidate
    score     the best of them; null when never scored
    <gains>   the largest gain of each label, 0 without one
    is_judged whether a judgment says so, where the labels tell
    item_bucket the cluster of the item, where the candidates tell
    copy      0, 1, ... where the order keeps copies: then every candidate row is one of the rows
    """
    rows = candidates.withColumn("n_rows", F.lit(1)).unionByName(
        labels.withColumn("n_rows", F.lit(0)), allowMissingColumns=True
    )
    is_clustered = "item_bucket" in rows.columns
    once = (
        rows.repartition(*QUERY_KEYS)  # the one shuffle: all that follows reuses it
        .groupBy(*QUERY_KEYS, "item_id")
        .agg(
            F.sum("n_rows").cast("int").alias("n_rows"),
            *_scores(order),
            *([F.max("is_judged").alias("is_judged")] if "is_judged" in rows.columns else []),
            *([order.first_key()] if order.column else []),
            *([F.max("item_bucket").alias("item_bucket")] if is_clustered else []),
            *[F.coalesce(F.max(gain), F.lit(0.0)).alias(gain) for gain in gains],
        )
    )
    return once.transform(_copied) if order.keeps_copies else once


def _scores(order: Order) -> list[Column]:
    if not order.keeps_copies:
        return [F.max("score").alias("score")]
    scores = F.collect_list(F.when(F.col("n_rows") > 0, F.struct("score")))
    return [F.sort_array(scores, asc=False).alias("scores")]


def _copied(items: DataFrame) -> DataFrame:
    """One row per candidate row, the best first: copy counts them; items without one stay."""
    return (
        items.select("*", F.posexplode_outer("scores").alias("copy", "of"))
        .withColumns(
            {
                "score": F.col("of.score"),
                "copy": F.coalesce("copy", F.lit(0)),
                "n_rows": F.least("n_rows", F.lit(1)),
            }
        )
        .drop("scores", "of")
    )
