"""Rows → one row of counts a query. These queries are in every mean, ranked or not."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake.schemas import QUERY, QUERY_KEYS


def hashed(rows: DataFrame) -> DataFrame:
    """The rows with query_hash: 64 bits to shuffle, sort and join on.

    Two queries may share a hash: whatever must tell them apart also compares query_id.
    """
    return rows.withColumn("query_hash", F.xxhash64("query_id"))


def distinct_items(candidates: DataFrame) -> DataFrame:
    """One row per (model_version, query, item): bucket, and the range of slice_id over its rows.

    The shuffle is on query_hash alone, so that counting by query needs no other.
    """
    return (
        candidates.repartition("query_hash")
        .groupBy(*QUERY_KEYS, "item_id")
        .agg(
            F.max("bucket").alias("bucket"),
            F.max("slice_id").alias("slice_id"),
            F.min("slice_id").alias("min_slice_id"),
        )
    )


def counted(candidates: DataFrame, *, unique_key: bool) -> DataFrame:
    """One row per (model_version, query) that has a candidate.

    n_candidates      distinct items
    bucket            the query's cluster
    slice_id          its slice values; where its rows disagree, the largest
    has_mixed_slices  whether they disagree
    With `unique_key` an item stands once by contract: rows are counted, and none is shuffled.
    """
    items = (
        candidates.withColumn("min_slice_id", F.col("slice_id"))
        if unique_key
        else distinct_items(candidates)
    )
    return items.groupBy(*QUERY_KEYS).agg(
        F.count(F.lit(1)).cast("int").alias("n_candidates"),
        F.max("bucket").alias("bucket"),
        F.max("slice_id").alias("slice_id"),
        (F.min("min_slice_id") < F.max("slice_id")).alias("has_mixed_slices"),
    )


def asked(base: DataFrame, *, models: Sequence[str]) -> DataFrame:
    """One row per (model, query of the log): every asked query belongs to every scored model.

    bucket and slice_id are as `counted`; min_slice_id is less than slice_id where rows disagree.
    """
    queries = base.groupBy(*QUERY).agg(
        F.max("bucket").alias("bucket"),
        F.max("slice_id").alias("slice_id"),
        F.min("slice_id").alias("min_slice_id"),
    )
    every_model = F.explode(F.array(*[F.lit(name) for name in models]))
    return queries.withColumn("model_version", every_model)


def counted_for(queries: DataFrame, *, candidates: DataFrame) -> DataFrame:
    """The asked queries as `counted`, n_candidates 0 where the model lists nothing; none is lost.

    `candidates` holds one row per (model, query, item).
    """
    n_candidates = candidates.groupBy(*QUERY_KEYS).agg(
        F.count(F.lit(1)).cast("int").alias("n_candidates")
    )
    return (
        queries.join(n_candidates, on=list(QUERY_KEYS), how="left")
        .withColumns(
            {
                "n_candidates": F.coalesce("n_candidates", F.lit(0)),
                "has_mixed_slices": F.col("min_slice_id") < F.col("slice_id"),
            }
        )
        .drop("min_slice_id")
    )
