"""Hits (and counts) → one row a query: every metric at every k, and the arrays they come from."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.metrics import Measure, Ranking
from ranklake.metrics.atoms import Atoms
from ranklake.metrics.probabilities import as_probability
from ranklake.schemas import QUERY_EXTRAS, QUERY_KEYS

_INTS = "array<int>"
_DOUBLES = "array<double>"


def measured(hits: DataFrame, *, measures: Sequence[Measure]) -> DataFrame:
    """One row per (model, query, label) of the ranked queries that the model has.

    Columns are those of query_metrics without its date; hit_ranks, hit_gains and ideal_gains are
    the sufficient statistic of every ranking metric at every k. n_rows counts candidate rows,
    duplicates among them. A query of a served model without any candidate is gone.
    """
    mixed = F.min("min_slice_id") < F.max("slice_id")
    is_relevant, is_hit = F.col("gain") > 0, (F.col("gain") > 0) & F.col("rank").isNotNull()
    is_first = is_relevant & F.col("ideal_rank").isNotNull()
    hit = F.when(is_hit, F.struct("rank", "gain"))
    ideal_gains = F.collect_list(F.when(is_first, F.col("gain")))
    extras = [name for name in QUERY_EXTRAS if name in hits.columns]
    per_query = hits.groupBy(*QUERY_KEYS, "label").agg(
        F.max("bucket").alias("bucket"),
        F.max("slice_id").alias("slice_id"),
        F.coalesce(mixed, F.lit(False)).alias("has_mixed_slices"),
        *[F.max(name).alias(_other(name)) for name in extras],
        *([_scored_hits(is_hit)] if "score" in hits.columns else []),
        _count(F.max("n_candidates")).alias("n_candidates"),
        _count(F.max("n_rows")).alias("n_rows"),
        _count(F.count_if(is_first)).alias("n_relevant"),
        _count(F.count_if(is_hit)).alias("n_retrieved"),
        F.sort_array(F.collect_list(hit)).alias("ranked_hits"),
        F.sort_array(ideal_gains, asc=False).alias("ideal_gains"),
        *[_value(measure) for measure in measures],
    )
    return (
        per_query.where(F.col("bucket").isNotNull())
        .withColumns(
            {"hit_ranks": F.col("ranked_hits.rank"), "hit_gains": F.col("ranked_hits.gain")}
        )
        .drop("ranked_hits")
        .withColumnsRenamed({_other(name): name for name in extras})
    )


def revalued(hits: DataFrame, *, measures: Sequence[Measure]) -> DataFrame:
    """One row per (model, query, label) that has a hit row: the measures' columns alone."""
    return hits.groupBy(*QUERY_KEYS, "label").agg(*[_value(measure) for measure in measures])


def valued_without_hits(queries: DataFrame, *, measures: Sequence[Measure]) -> DataFrame:
    """The queries, none of which has a relevant item, with the measures' columns: 0 or null."""
    return queries.withColumns({m.column: _without_hits(m).cast("double") for m in measures})


def _other(name: str) -> str:
    """Another name: Spark takes a column in an aggregate for the alias of that name beside it."""
    return f"{name}_of_query"


def _value(measure: Measure) -> Column:
    column = measure.metric.column
    if column is None:
        raise ValueError(f"{measure} is made of {measure.metric.summand}")
    return column(Atoms(measure), measure.k).cast("double").alias(measure.column)


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
    return queries.transform(valued_without_hits, measures=measures).withColumns(
        {
            "label": F.explode(F.array(*[F.lit(label) for label in labels])),
            "n_rows": F.col("n_candidates"),
            "n_relevant": F.lit(0),
            "n_retrieved": F.lit(0),
            "n_scored_hits": F.lit(0),
            "hit_ranks": F.array().cast(_INTS),
            "hit_gains": F.array().cast(_DOUBLES),
            "ideal_gains": F.array().cast(_DOUBLES),
        }
    )


def _without_hits(measure: Measure) -> Column:
    """The measure's value of a query without any relevant item."""
    if measure.metric.of_counts:
        return F.coalesce(F.col(measure.metric.of_counts), F.lit(0.0))
    return F.lit(measure.metric.reference(Ranking(gains=()), measure.k, measure.values))


def _scored_hits(is_hit: Column) -> Column:
    return _count(F.count_if(is_hit & as_probability(F.col("score")).isNotNull())).alias(
        "n_scored_hits"
    )


def _count(value: Column) -> Column:
    return F.coalesce(value, F.lit(0)).cast("int")
