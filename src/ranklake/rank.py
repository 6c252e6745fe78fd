"""Candidates and gains → hits: the ranks of the relevant items. The windows, and the one shuffle.

Order inside a query: score descending, unscored last, then item_id descending by UTF-8 bytes
(trec_eval's rule): total, so that no partitioning and no rerun changes a rank.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ranklake.schemas import QUERY_KEYS

_QUERY_VALUES = ("n_candidates", "n_rows", "bucket", "slice_id", "min_slice_id")


def by_position(candidates: DataFrame) -> DataFrame:
    """The candidates scored by the order in which they were shown: position 1 scores highest."""
    return candidates.withColumn("score", -F.col("position").cast("double"))


def items(
    candidates: DataFrame,
    *,
    labels: DataFrame,
    queries: DataFrame | None = None,
    gains: Sequence[str],
) -> DataFrame:
    """One row per (model, query, item), each item once, partitioned by query_hash.

    n_rows    candidate rows of the item; 0 for a labelled item that was no candidate
    score     the best of them; null when never scored
    <gains>   the largest gain of each label, 0 without one
    bucket, slice_id, min_slice_id
              of the query; null on rows of `labels`, and of scored candidates, which know them by
              `queries`: one row (without an item) per query of a scored model
    """
    rows = candidates.withColumn("n_rows", F.lit(1)).unionByName(
        labels.withColumn("n_rows", F.lit(0)), allowMissingColumns=True
    )
    if queries is not None:
        rows = rows.unionByName(queries.withColumn("n_rows", F.lit(0)), allowMissingColumns=True)
    # Rows of `queries` bring the range of slice_id, rows of candidates a single one.
    smallest = F.col("slice_id") if queries is None else F.coalesce("min_slice_id", "slice_id")
    return (
        rows.repartition("query_hash")  # the one shuffle: all that follows reuses it
        .groupBy(*QUERY_KEYS, "item_id")
        .agg(
            F.sum("n_rows").cast("int").alias("n_rows"),
            F.max("score").alias("score"),
            F.max("bucket").alias("bucket"),
            F.max("slice_id").alias("slice_id"),
            F.min(smallest).alias("min_slice_id"),
            *[F.coalesce(F.max(gain), F.lit(0.0)).alias(gain) for gain in gains],
        )
    )


def numbered(items: DataFrame, *, gains: Sequence[str]) -> DataFrame:
    """The relevant items of each query, and one or two rows that speak for the query itself.

    rank          int   1 is best; null where the item was no candidate
    n_candidates  int   on the last candidate; null elsewhere
    n_rows        int   on the last candidate: candidate rows of the query, duplicates among them
    bucket, slice_id, min_slice_id
                        on the last candidate, over all candidates; else the row's own
    Every other row, the irrelevant candidates, is gone: no metric reads them.
    """
    is_candidate = F.col("n_rows") > 0
    order = _per_query().orderBy(
        is_candidate.desc(), F.col("score").desc_nulls_last(), F.col("item_id").desc()
    )
    up_to_here = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    next_is_candidate = F.lead(is_candidate, 1, False).over(order)
    ranked = items.select(
        *QUERY_KEYS,
        "item_id",
        *gains,
        F.when(is_candidate, F.row_number().over(order)).alias("rank"),
        (is_candidate & ~next_is_candidate).alias("is_last"),
        F.sum("n_rows").over(up_to_here).cast("int").alias("n_rows"),
        F.max("bucket").over(up_to_here).alias("bucket"),
        F.max("slice_id").over(up_to_here).alias("slice_id"),
        F.min("min_slice_id").over(up_to_here).alias("min_slice_id"),
    )
    is_query_row = F.col("item_id").isNull()
    return ranked.where(_any_relevant(gains) | F.col("is_last") | is_query_row).withColumns(
        {
            "n_candidates": F.when(F.col("is_last"), F.col("rank")),
            "n_rows": F.when(F.col("is_last"), F.col("n_rows")),
        }
    )


def ranked(numbered: DataFrame, *, labels: Sequence[tuple[str, str]]) -> DataFrame:
    """The hits: one row per (model, query, label, relevant item), and one for the query itself.

    gain          double  above 0 for a relevant item; 0 on a row that speaks for the query only
    hits_so_far   int     relevant candidates at this rank or above
    ideal_rank    int     1 is the highest gain
    n_relevant    int     relevant items of the query
    rank, n_candidates, n_rows, bucket, slice_id, min_slice_id as `numbered`.
    `labels` pairs each label with its column of gains.
    """
    speaks_for_query = F.col("n_candidates").isNotNull() | F.col("item_id").isNull()
    hits = _by_label(numbered, labels).where((F.col("gain") > 0) | speaks_for_query)
    per_label = _per_query("label")
    is_relevant = (F.col("gain") > 0).cast("int")
    by_rank = per_label.orderBy(F.col("rank").asc_nulls_last(), F.col("item_id").desc())
    by_gain = per_label.orderBy(F.col("gain").desc(), F.col("item_id").desc())
    return hits.withColumns(
        {
            "hits_so_far": F.sum(is_relevant).over(
                by_rank.rowsBetween(Window.unboundedPreceding, Window.currentRow)
            ),
            "ideal_rank": F.row_number().over(by_gain),
            "n_relevant": F.sum(is_relevant).over(
                by_gain.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
            ),
        }
    )


def _by_label(numbered: DataFrame, labels: Sequence[tuple[str, str]]) -> DataFrame:
    """One row per row of `numbered` and label, with the gain of that label alone."""
    gains = [
        F.struct(F.lit(name).alias("label"), F.col(gain).alias("gain")) for name, gain in labels
    ]
    return numbered.withColumn("each", F.explode(F.array(*gains))).select(
        *QUERY_KEYS, "item_id", "rank", *_QUERY_VALUES, "each.label", "each.gain"
    )


def _per_query(*more: str) -> WindowSpec:
    return Window.partitionBy(*QUERY_KEYS, *more)


def _any_relevant(gains: Sequence[str]) -> Column:
    return reduce(lambda one, other: one | other, [F.col(gain) > 0 for gain in gains])
