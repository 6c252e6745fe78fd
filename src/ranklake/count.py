"""Rows → one row of counts a query. These queries are in every mean, ranked or not."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.metrics.probabilities import score_sums
from ranklake.schemas import QUERY, QUERY_KEYS


def hashed(rows: DataFrame) -> DataFrame:
    """The rows with query_hash: 64 bits to shuffle, sort and join on.

    Two queries may share a hash: whatever must tell them apart also compares query_id.
    """
    return rows.withColumn("query_hash", F.xxhash64("query_id"))


def distinct_items(candidates: DataFrame) -> DataFrame:
    """One row per (model_version, query, item): the largest of each value over its rows.

    min_slice_id is the smallest slice_id, where there is one. The shuffle is by query_hash alone:
    counting the items of a query needs no other.
    """
    keys = [*QUERY_KEYS, "item_id"]
    values = [F.max(name).alias(name) for name in candidates.columns if name not in keys]
    if "slice_id" in candidates.columns:
        values.append(F.min("slice_id").alias("min_slice_id"))
    shuffled = candidates.repartition("query_hash")
    return shuffled.groupBy(*keys).agg(*values) if values else shuffled.select(*keys).distinct()


def counted(candidates: DataFrame, *, is_unique: bool) -> DataFrame:
    """One row per (model_version, query) that has a candidate.

    n_candidates      distinct items
    bucket            the query's cluster
    slice_id          its slice values; where its rows disagree, the largest
    has_mixed_slices  whether they disagree
    n_slots, weight   of the query, the largest, where the candidates have them
    score_sum, ...    as metrics.probabilities.score_sums, where the candidates have scores
    Where `is_unique` every row is an item of its own, and none is shuffled. Else the counts are
    shuffled once more: who reads them reads that shuffle, and items are told apart once in a job.
    """
    items = (
        candidates.withColumn("min_slice_id", F.col("slice_id"))
        if is_unique
        else distinct_items(candidates)
    )
    counts = items.groupBy(*QUERY_KEYS).agg(
        _n_candidates(),
        F.max("bucket").alias("bucket"),
        F.max("slice_id").alias("slice_id"),
        (F.min("min_slice_id") < F.max("slice_id")).alias("has_mixed_slices"),
        *_extras(items),
    )
    return counts if is_unique else counts.repartition(*QUERY_KEYS)


def counted_in_rows(queries: DataFrame) -> DataFrame:
    """As `counted`, of one row per (model, query) that says n_candidates itself: no shuffle."""
    others = [name for name in queries.columns if name not in ("candidates", "has_mixed_slices")]
    return queries.select(*others, F.lit(False).alias("has_mixed_slices"))


def known_whole(queries: DataFrame) -> DataFrame:
    """The same rows, of which Spark has to know every column.

    Who reads counts for a few columns would have them counted again, for those alone; counts that
    look the same everywhere are counted once in a job, and their shuffle is used again. Joins look
    for keys that are null, though none is: so everyone does.
    """
    return queries.where(
        F.col("model_version").isNotNull()
        & F.col("query_id").isNotNull()
        & (F.col("n_candidates") >= 0)
        & (F.col("bucket") >= 0)
        & F.col("slice_id").isNotNull()
        & F.col("has_mixed_slices").isNotNull()
    )


def _n_candidates() -> Column:
    return F.count(F.lit(1)).cast("int").alias("n_candidates")


def _extras(items: DataFrame) -> list[Column]:
    maxima = [F.max(n).alias(n) for n in ("n_slots", "weight") if n in items.columns]
    sums = score_sums(F.col("score")) if "score" in items.columns else {}
    return [*maxima, *[column.alias(name) for name, column in sums.items()]]


def repeated(candidates: DataFrame) -> DataFrame:
    """One row per model_version: n_rows candidates, of which n_found repeat an item of a query."""
    items = candidates.groupBy(*QUERY_KEYS, "item_id").agg(F.count(F.lit(1)).alias("n"))
    return items.groupBy("model_version").agg(
        F.sum("n").alias("n_rows"), F.sum(F.col("n") - 1).alias("n_found")
    )


def without_candidates(queries: DataFrame) -> DataFrame:
    """One row per model_version: n_rows queries, of which n_found have no candidate."""
    return queries.groupBy("model_version").agg(
        F.count(F.lit(1)).alias("n_rows"), F.count_if(F.col("n_candidates") == 0).alias("n_found")
    )


def asked(base: DataFrame, *, models: Sequence[str]) -> DataFrame:
    """One row per (model, query of the log): every asked query belongs to every scored model.

    bucket, slice_id, n_slots and weight are as `counted`; min_slice_id is less than slice_id where
    rows disagree.
    """
    queries = base.groupBy(*QUERY).agg(
        *[F.max(name).alias(name) for name in base.columns if name not in QUERY],
        F.min("slice_id").alias("min_slice_id"),
    )
    every_model = F.explode(F.array(*[F.lit(name) for name in models]))
    return queries.withColumn("model_version", every_model)


def counted_for(queries: DataFrame, *, candidates: DataFrame) -> DataFrame:
    """The asked queries as `counted`, n_candidates 0 where the model lists nothing; none is lost.

    `candidates` holds one row per (model, query, item).
    """
    counts = candidates.groupBy(*QUERY_KEYS).agg(_n_candidates(), *_extras(candidates))
    return (
        queries.join(counts, on=list(QUERY_KEYS), how="left")
        .withColumns(
            {
                "n_candidates": F.coalesce("n_candidates", F.lit(0)),
                "has_mixed_slices": F.col("min_slice_id") < F.col("slice_id"),
            }
        )
        .drop("min_slice_id")
    )
