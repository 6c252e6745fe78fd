"""Polars: the same metrics in its lazy expressions, run by its streaming engine."""

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from benchmarks.measures import IDEAL_DCG, KS, N_BUCKETS, Found, summed

RELEVANT = pl.col("relevant")


def prepared(options: Mapping[str, Any]) -> Callable[[], Found]:
    """Options: log, and if wanted dedup (by query and item)."""
    sums = bucket_sums(options["log"], dedup=bool(options.get("dedup")))

    def run() -> Found:
        return summed(sums.collect(engine="streaming").to_dicts())

    return run


def bucket_sums(log: str, *, dedup: bool = False) -> pl.LazyFrame:
    """One row of sums per (bucket, device); only queries with a click are ranked."""
    impressions = pl.scan_parquet(f"{log}/impressions/*/*.parquet", hive_partitioning=False)
    clicks = pl.scan_parquet(f"{log}/clicks/*/*.parquet", hive_partitioning=False)
    if dedup:
        impressions = impressions.group_by("query_id", "item_id").agg(
            pl.col("score", "user_id", "device").max()
        )
    labels = clicks.unique(["query_id", "item_id"])
    counts = impressions.group_by("query_id").agg(
        (pl.col("user_id").first().hash() % N_BUCKETS).alias("bucket"),
        pl.col("device").first(),
        pl.len().alias("n"),
    )
    measured = _hits(impressions, labels).group_by("query_id").agg(*_of_query())
    joined = counts.join(measured, on="query_id", how="left")
    return joined.group_by("bucket", "device").agg(*_sums())


def _hits(impressions: pl.LazyFrame, labels: pl.LazyFrame) -> pl.LazyFrame:
    """The ranks of the clicked candidates, best first."""
    ordered = (
        impressions.join(labels, on="query_id", how="semi")
        .select("query_id", "item_id", "score")
        .sort(["query_id", "score", "item_id"], descending=[False, True, True], nulls_last=True)
    )
    ranked = ordered.with_columns(pl.int_range(1, pl.len() + 1).over("query_id").alias("rank"))
    hits = ranked.join(labels, on=["query_id", "item_id"], how="inner").sort("query_id", "rank")
    return hits.with_columns(
        pl.int_range(1, pl.len() + 1).over("query_id").alias("hits_so_far"),
        (1 / (pl.col("rank") + 1).log(2)).alias("discount"),
    )


def _of_query() -> list[pl.Expr]:
    rank = pl.col("rank")
    precision = pl.col("hits_so_far") / rank
    return [
        pl.len().cast(pl.Float64).alias("relevant"),
        (1 / rank.min()).alias("rr"),
        *[(rank <= k).sum().alias(f"hits_{k}") for k in KS],
        *[precision.filter(rank <= k).sum().alias(f"precisions_{k}") for k in KS],
        *[pl.col("discount").filter(rank <= k).sum().alias(f"dcg_{k}") for k in KS],
    ]


def _sums() -> list[pl.Expr]:
    """The sums over queries; those without a hit are null and add nothing."""
    sums = {
        "n_queries": pl.len(),
        "n_candidates": pl.col("n").sum(),
        "n_with_relevant": RELEVANT.is_not_null().sum(),
        "rr": pl.col("rr").sum(),
    }
    for k in KS:
        hits = pl.col(f"hits_{k}")
        sums |= {
            f"recall_at_{k}": (hits / RELEVANT).sum(),
            f"precision_at_{k}": (hits / k).sum(),
            f"f1_at_{k}": (2 * hits / (RELEVANT + k)).sum(),
            f"ap_at_{k}": (pl.col(f"precisions_{k}") / RELEVANT).sum(),
            f"ndcg_at_{k}": (pl.col(f"dcg_{k}") / _ideal_dcg(k)).sum(),
            f"hit_rate_at_{k}": (hits > 0).sum(),
        }
    return [value.alias(name) for name, value in sums.items()]


def _ideal_dcg(k: int) -> pl.Expr:
    n = pl.min_horizontal(RELEVANT, pl.lit(k)).cast(pl.Int64)
    return n.replace_strict(list(range(len(IDEAL_DCG))), IDEAL_DCG, return_dtype=pl.Float64)
