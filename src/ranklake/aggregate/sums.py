"""Per-query rows → sums a bucket and slice. Small: buckets times slice values, not queries."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.aggregate.names import (
    FINGERPRINT,
    LARGEST,
    REPEATED,
    defined_column,
    short_column,
    shown_column,
    weighted_column,
)
from ranklake.metrics import SHOWN, Measure

_KEYS = ("model_version", "label", "slice", "slice_value", "bucket")
_FINE_KEYS = ("model_version", "label", "bucket", "slice_id")


def query_sums(queries: DataFrame, *, ks: Sequence[int]) -> DataFrame:
    """Sums over all queries, one row per (model, bucket, slice_id); label is null: they have none.

    `queries` holds one row per (model, query). The fingerprint is the bit_xor of the query ids'
    hashes: equal for two models exactly when both saw the same queries (but for chance).
    """
    has_none, n = F.col("n_candidates") == 0, F.col("n_candidates")
    places = {k: F.coalesce("n_slots", n) if k == SHOWN else F.lit(k) for k in ks}
    extras = {"weight": _weight("weight"), "n_scored": F.col("n_scored")}
    # A name of its own: the union's would reach down to the scan, and the counts be counted again.
    model = F.col("model_version").alias("model_version")
    return queries.groupBy(model, "bucket", "slice_id").agg(
        F.lit(None).cast("string").alias("label"),
        F.count(F.lit(1)).cast("double").alias("n_queries"),
        _sum("n_candidates"),
        F.count_if(has_none).cast("double").alias("n_without_candidates"),
        F.sum(F.col("has_mixed_slices").cast("double")).alias("n_mixed_slices"),
        F.bit_xor(F.xxhash64("query_id")).alias(FINGERPRINT),
        F.max("n_candidates").cast("double").alias(LARGEST),
        *[
            F.sum(F.least(place, n).cast("double")).alias(shown_column(k))
            for k, place in places.items()
        ],
        *[F.count_if(n <= k).cast("double").alias(short_column(k)) for k in ks if k > 0],
        *([_sum("n_slots", places[SHOWN])] if SHOWN in ks else []),
        *[_sum(name, value) for name, value in extras.items() if name in queries.columns],
    )


def value_sums(measured: DataFrame, *, measures: Sequence[Measure]) -> DataFrame:
    """Sums over the measured queries, one row per (model, label, bucket, slice_id).

    Those without a relevant item may be left out where no measure has a value for them.
    """
    values = {m.column: F.col(m.column) for m in measures}
    sums = {**values, **_weighted(measures), **_defined(measures)}
    return measured.groupBy(*_FINE_KEYS).agg(
        F.count_if(F.col("n_relevant") > 0).cast("double").alias("n_with_relevant"),
        _sum("n_relevant"),
        _sum("n_retrieved"),
        *([_sum(REPEATED, F.col("n_rows") > 1)] if "n_rows" in measured.columns else []),
        *([_sum("n_scored_hits")] if "n_scored_hits" in measured.columns else []),
        *[_sum(name, value) for name, value in sums.items()],
    )


def _weighted(measures: Sequence[Measure]) -> dict[str, Column]:
    return {
        weighted_column(m.column, m.weight): F.col(m.column) * _weight(m.weight)
        for m in measures
        if m.weight
    }


def _defined(measures: Sequence[Measure]) -> dict[str, Column]:
    """The queries where a measure is defined, each by its weight."""
    return {
        defined_column(column, m.weight): F.when(F.col(column).isNotNull(), _weight(m.weight))
        for m in measures
        for column in {m.column, m.counting.column}
        if m.counts_defined
    }


def _weight(name: str) -> Column:
    """What the query weighs: the column, 1 where null or without one."""
    return F.coalesce(F.col(name).cast("double"), F.lit(1.0)) if name else F.lit(1.0)


def aggregated(queries: DataFrame, measured: DataFrame, *, dictionary: DataFrame) -> DataFrame:
    """One row per (model, label, slice, slice_value, bucket): every sum; null where it has no part.

    `queries` are query_sums, with a null label; `measured` are value_sums. `dictionary` holds one
    row per slice_id and slice that it is in.
    """
    fine = queries.unionByName(measured, allowMissingColumns=True)
    sums = [c for c in fine.columns if c not in (*_FINE_KEYS, FINGERPRINT, LARGEST)]
    return (
        fine.join(F.broadcast(dictionary), on=["slice_id"], how="inner")
        .groupBy(*_KEYS)
        .agg(
            *[_sum(column) for column in sums],
            F.bit_xor(FINGERPRINT).alias(FINGERPRINT),
            F.max(LARGEST).alias(LARGEST),
        )
    )


def _sum(name: str, value: Column | None = None) -> Column:
    return F.sum((F.col(name) if value is None else value).cast("double")).alias(name)
