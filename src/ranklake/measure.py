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


def of_queries(hits: DataFrame, *, queries: DataFrame) -> DataFrame:
    """The hits, each with what is known of its query; hits of other queries are gone.

    `queries` holds one row per (model, query). Both are partitioned alike: nothing is shuffled.
    """
    return hits.hint("shuffle_hash").join(queries, on=list(QUERY_KEYS), how="inner")


def measured(hits: DataFrame, *, measures: Sequence[Measure]) -> DataFrame:
    """One row per (model, query, label) that has a hit; `hits` are as `of_queries` leaves them.

    Columns are those of query_metrics without its date; hit_ranks, hit_gains and ideal_gains are
    the sufficient statistic of every ranking metric at every k. n_rows, where the hits have it, is
    above 1 if an item stands more than once.
    """
    is_relevant, is_hit = F.col("gain") > 0, (F.col("gain") > 0) & F.col("rank").isNotNull()
    is_first = is_relevant & F.col("ideal_rank").isNotNull()
    hit = F.when(is_hit, F.struct("rank", "gain"))
    ideal_gains = F.collect_list(F.when(is_first, F.col("gain")))
    of_query = [name for name in (*_OF_QUERY, *QUERY_EXTRAS) if name in hits.columns]
    per_query = hits.groupBy(*QUERY_KEYS, "label", *of_query).agg(
        *([_scored_hits(is_hit)] if "score" in hits.columns else []),
        *([_copies().alias("n_rows")] if "n_rows" in hits.columns else []),
        _count(F.count_if(is_first)).alias("n_relevant"),
        _count(F.count_if(is_hit)).alias("n_retrieved"),
        F.sort_array(F.collect_list(hit)).alias("ranked_hits"),
        F.sort_array(ideal_gains, asc=False).alias("ideal_gains"),
        *[_value(measure) for measure in measures],
    )
    return per_query.withColumns(
        {"hit_ranks": F.col("ranked_hits.rank"), "hit_gains": F.col("ranked_hits.gain")}
    ).drop("ranked_hits")


def _copies() -> Column:
    """How often an item stands; a query that was ranked in two parts has two best items."""
    return F.greatest(F.max("n_rows"), F.count_if(F.col("ideal_rank") == 1))


_OF_QUERY = ("bucket", "slice_id", "has_mixed_slices", "n_candidates")
"""What is known of every query, hit or not."""


def revalued(hits: DataFrame, *, measures: Sequence[Measure]) -> DataFrame:
    """One row per (model, query, label) that has a hit row: the measures' columns alone."""
    return hits.groupBy(*QUERY_KEYS, "label").agg(*[_value(measure) for measure in measures])


def valued_without_hits(queries: DataFrame, *, measures: Sequence[Measure]) -> DataFrame:
    """The queries, none of which has a relevant item, with the measures' columns: 0 or null."""
    return queries.withColumns({m.column: _without_hits(m).cast("double") for m in measures})


def _value(measure: Measure) -> Column:
    column = measure.metric.column
    if column is None:
        raise ValueError(f"{measure} is made of {measure.metric.summand}")
    return column(Atoms(measure), measure.k).cast("double").alias(measure.column)


def without_duplicates(measured: DataFrame) -> DataFrame:
    """The rows without n_rows; a query with an item twice fails the job that reads them.

    What `unique_key` promises is so verified for free, on the rows that were ranked.
    """
    found = "candidates: unique_key = true, and an item stands more than once in query "
    or_parts = F.lit(" (or the query stands in two rows of a nested input)")
    message = F.concat(F.lit(found), "query_id", F.lit(" of model "), "model_version", or_parts)
    is_broken = F.coalesce("n_rows", F.lit(0)) > 1
    # A filter, because an unused column would be pruned and never looked at.
    return measured.where(
        F.when(is_broken, F.raise_error(message).cast("boolean")).otherwise(F.lit(True))
    ).drop("n_rows")


def completed(
    queries: DataFrame, *, measured: DataFrame, labels: Sequence[str], measures: Sequence[Measure]
) -> DataFrame:
    """One row per query and label: as `measured` where that has one, else what is known unranked.

    Without a hit a value is 0, or null where the metric is undefined. `queries` holds one row per
    (model, query) and is partitioned as `measured` is: with one label nothing is shuffled.
    """
    of_queries = [name for name in queries.columns if name not in QUERY_KEYS]
    found = measured.drop(*of_queries)
    if len(labels) == 1:  # then it is known without a join, which would ask for a shuffle by it
        asked, keys, found = queries.withColumn("label", F.lit(labels[0])), [], found.drop("label")
    else:
        each_label = F.explode(F.array(*[F.lit(label) for label in labels]))
        asked, keys = queries.withColumn("label", each_label), ["label"]
    rows = asked.join(found.hint("shuffle_hash"), on=[*QUERY_KEYS, *keys], how="left")
    has_none = F.col("n_relevant").isNull()
    return rows.withColumns(
        {
            **{m.column: _or_without_hits(m, has_none) for m in measures},
            **{name: F.coalesce(name, F.lit(0)) for name in _COUNTS if name in found.columns},
            **{name: F.coalesce(name, F.array().cast(type_)) for name, type_ in _LISTS.items()},
        }
    )


def _or_without_hits(measure: Measure, has_none: Column) -> Column:
    value = F.when(has_none, _without_hits(measure)).otherwise(F.col(measure.column))
    return value.cast("double").alias(measure.column)


_COUNTS = ("n_relevant", "n_retrieved", "n_scored_hits")
_LISTS = {"hit_ranks": _INTS, "hit_gains": _DOUBLES, "ideal_gains": _DOUBLES}


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
