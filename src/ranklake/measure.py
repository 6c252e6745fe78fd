"""Hits (and counts) → one row a query: every metric at every k, and the arrays they come from."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.metrics import Measure, Ranking
from ranklake.metrics.atoms import Atoms
from ranklake.schemas import QUERY_KEYS

_INTS = "array<int>"
_DOUBLES = "array<double>"


def measured(hits: DataFrame, *, measures: Sequence[Measure]) -> DataFrame:
    """One row per (model, query, label) of the ranked queries that the model has.

    Columns are those of query_metrics without its date; hit_ranks, hit_gains and ideal_gains are
    the sufficient statistic of every ranking metric at every k. n_rows counts candidate rows,
    duplicates among them. A query of a served model without any candidate is gone.
    """
    atoms = Atoms()
    mixed = F.min("min_slice_id") < F.max("slice_id")
    hit = F.when(atoms.is_hit(0), F.struct("rank", "gain"))
    ideal_gains = F.collect_list(F.when(atoms.is_relevant(), F.col("gain")))
    values = [m.metric.column(atoms, m.k).alias(m.column) for m in measures if m.metric.column]
    per_query = hits.groupBy(*QUERY_KEYS, "label").agg(
        F.max("bucket").alias("bucket"),
        F.max("slice_id").alias("slice_id"),
        F.coalesce(mixed, F.lit(False)).alias("has_mixed_slices"),
        _count(F.max("n_candidates")).alias("n_candidates"),
        _count(F.max("n_rows")).alias("n_rows"),
        _count(F.count_if(atoms.is_relevant())).alias("n_relevant"),
        _count(F.count_if(atoms.is_hit(0))).alias("n_retrieved"),
        F.sort_array(F.collect_list(hit)).alias("ranked_hits"),
        F.sort_array(ideal_gains, asc=False).alias("ideal_gains"),
        *values,
    )
    return (
        per_query.where(F.col("bucket").isNotNull())
        .withColumns(
            {"hit_ranks": F.col("ranked_hits.rank"), "hit_gains": F.col("ranked_hits.gain")}
        )
        .drop("ranked_hits")
    )


def without_duplicates(measured: DataFrame) -> DataFrame:
    """The rows as they are; a query with an item twice fails the job that reads them.

    What `unique_key` promises is so verified for free, on the rows that were ranked.
    """
    found = "candidates: unique_key = true, and an item stands more than once in query "
    message = F.concat(F.lit(found), "query_id", F.lit(" of model "), "model_version")
    is_broken = F.col("n_rows") > F.col("n_candidates")
    # A filter, because an unused column would be pruned and never looked at.
    return measured.where(
        F.when(is_broken, F.raise_error(message).cast("boolean")).otherwise(F.lit(True))
    )


def unranked(
    queries: DataFrame, *, labels: Sequence[str], measures: Sequence[Measure]
) -> DataFrame:
    """One row per query and label, for queries without any relevant item; columns as `measured`.

    Their values are known without ranking: 0, or null where the metric is undefined.
    """
    nothing = Ranking(gains=())
    values = {m.column: F.lit(m.metric.reference(nothing, m.k)).cast("double") for m in measures}
    return queries.withColumns(
        {
            "label": F.explode(F.array(*[F.lit(label) for label in labels])),
            "n_rows": F.col("n_candidates"),
            "n_relevant": F.lit(0),
            "n_retrieved": F.lit(0),
            "hit_ranks": F.array().cast(_INTS),
            "hit_gains": F.array().cast(_DOUBLES),
            "ideal_gains": F.array().cast(_DOUBLES),
            **values,
        }
    )


def _count(value: Column) -> Column:
    return F.coalesce(value, F.lit(0)).cast("int")
