"""Per-query rows → sums a bucket and slice. Small: buckets times slice values, not queries."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.aggregate.series import FINGERPRINT, shown_column

_KEYS = ("model_version", "label", "slice", "slice_value", "bucket")
_FINE_KEYS = ("model_version", "label", "bucket", "slice_id")


def query_sums(queries: DataFrame, *, ks: Sequence[int]) -> DataFrame:
    """Sums over all queries, one row per (model, bucket, slice_id); label is null: they have none.

    `queries` holds one row per (model, query). The fingerprint is the bit_xor of the query ids'
    hashes: equal for two models exactly when both saw the same queries (but for chance).
    """
    return queries.groupBy("model_version", "bucket", "slice_id").agg(
        F.lit(None).cast("string").alias("label"),
        F.count(F.lit(1)).cast("double").alias("n_queries"),
        _sum("n_candidates"),
        F.sum(F.col("has_mixed_slices").cast("double")).alias("n_mixed_slices"),
        F.bit_xor(F.xxhash64("query_id")).alias(FINGERPRINT),
        *[
            F.sum(F.least(F.lit(k), F.col("n_candidates")).cast("double")).alias(shown_column(k))
            for k in ks
        ],
    )


def value_sums(measured: DataFrame, *, columns: Sequence[str]) -> DataFrame:
    """Sums over the queries with a relevant item, one row per (model, label, bucket, slice_id)."""
    return measured.groupBy(*_FINE_KEYS).agg(
        F.count(F.lit(1)).cast("double").alias("n_with_relevant"),
        _sum("n_relevant"),
        _sum("n_retrieved"),
        *[_sum(column) for column in columns],
    )


def aggregated(queries: DataFrame, measured: DataFrame, *, dictionary: DataFrame) -> DataFrame:
    """One row per (model, label, slice, slice_value, bucket): every sum; null where it has no part.

    `queries` are query_sums, with a null label; `measured` are value_sums. `dictionary` holds one
    row per slice_id and slice that it is in.
    """
    fine = queries.unionByName(measured, allowMissingColumns=True)
    sums = [column for column in fine.columns if column not in (*_FINE_KEYS, FINGERPRINT)]
    return (
        fine.join(F.broadcast(dictionary), on=["slice_id"], how="inner")
        .groupBy(*_KEYS)
        .agg(*[_sum(column) for column in sums], F.bit_xor(FINGERPRINT).alias(FINGERPRINT))
    )


def _sum(column: str) -> Column:
    return F.sum(F.col(column).cast("double")).alias(column)
