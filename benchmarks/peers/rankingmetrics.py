"""pyspark's RankingMetrics (MLlib): precision, recall, ndcg and average precision at every k.

Where a query has more relevant items than k, its average precision divides by k and ranklake's by
all of them; so the first cut-offs of that metric are computed, and not compared.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.mllib.evaluation import RankingMetrics
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.measures import KS, Found
from benchmarks.peers.sessions import local

MOST_RELEVANT = 2
"""Relevant items of one query, at most: from this cut-off on both mean the same by ap."""


def prepared(options: Mapping[str, Any]) -> Callable[[], Found]:
    """Options: log."""
    spark = local("RankingMetrics")
    return lambda: {"all": _means(_lists(spark, options["log"]))}


def _lists(spark: SparkSession, log: str) -> DataFrame:
    """One row per query with a click: its items best first, and the clicked ones."""
    impressions = spark.read.parquet(f"{log}/impressions")
    clicks = spark.read.parquet(f"{log}/clicks")
    best_first = F.sort_array(F.collect_list(F.struct("score", "item_id")), asc=False)
    ranked = impressions.groupBy("query_id").agg(best_first.getField("item_id").alias("ranked"))
    clicked = clicks.groupBy("query_id").agg(F.collect_set("item_id").alias("clicked"))
    return ranked.join(clicked, on="query_id").select("ranked", "clicked")


def _means(lists: DataFrame) -> dict[str, float]:
    pairs = lists.rdd.map(tuple).cache()  # every number reads them again
    metrics, means = RankingMetrics(pairs), {}
    for k in KS:
        means[f"precision_at_{k}"] = metrics.precisionAt(k)
        means[f"recall_at_{k}"] = metrics.recallAt(k)
        means[f"ndcg_at_{k}"] = metrics.ndcgAt(k)
        ap = metrics.meanAveragePrecisionAt(k)
        if k >= MOST_RELEVANT:
            means[f"ap_at_{k}"] = ap
    pairs.unpersist()
    return means
