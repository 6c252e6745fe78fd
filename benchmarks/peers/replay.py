"""RePlay (replay-rec): OfflineMetrics on Spark or on Polars, in an environment of its own.

Its Polars form wants an older Polars than ours. Where a query has more relevant items than k, MAP
divides by k and ranklake's ap by all of them; so the first cut-offs of MAP are not compared.
"""

import os
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measures import KS, Found

REQUIREMENTS = ("replay-rec[spark]==0.22.0", "pyspark==4.1.3", "setuptools<81")
MOST_RELEVANT = 2
"""Relevant items of one query, at most: from this cut-off on both mean the same by MAP."""

NAMES = {
    "Recall": "recall",
    "Precision": "precision",
    "MAP": "ap",
    "NDCG": "ndcg",
    "HitRate": "hit_rate",
}


def installed(home: Path) -> str:
    """The Python of the environment, which is made in `home` unless it is there.

    Raises CalledProcessError when the packages cannot be installed.
    """
    python, ready = home / "bin" / "python", home / "ready"
    if not ready.is_file() or ready.read_text() != "\n".join(REQUIREMENTS):
        venv.create(home, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS]
        subprocess.run(command, check=True, capture_output=True, text=True)
        ready.write_text("\n".join(REQUIREMENTS))
    return str(python)


def prepared(options: Mapping[str, Any]) -> Callable[[], Found]:
    """Options: log, form (spark or polars)."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    read = _with_spark if options["form"] == "spark" else _with_polars
    frames = read(options["log"])
    return lambda: {"all": _means(*frames())}


def _with_spark(log: str) -> Callable[[], tuple[Any, Any]]:
    from benchmarks.peers.sessions import local

    spark = local("RePlay")

    def frames() -> tuple[Any, Any]:
        impressions = spark.read.parquet(f"{log}/impressions")
        recommendations = impressions.selectExpr("query_id", "item_id", "score as rating")
        return recommendations, spark.read.parquet(f"{log}/clicks").select("query_id", "item_id")

    return frames


def _with_polars(log: str) -> Callable[[], tuple[Any, Any]]:
    import polars as pl

    def frames() -> tuple[Any, Any]:
        columns = ["query_id", "item_id", pl.col("score").alias("rating")]
        impressions = pl.read_parquet(f"{log}/impressions/*/*.parquet", hive_partitioning=False)
        clicks = pl.read_parquet(f"{log}/clicks/*/*.parquet", hive_partitioning=False)
        return impressions.select(columns), clicks.select("query_id", "item_id")

    return frames


def _means(recommendations: Any, truth: Any) -> dict[str, float]:
    from replay import metrics

    ks = [*KS]
    asked = [getattr(metrics, name)(ks) for name in NAMES] + [metrics.MRR([max(KS)])]
    found = metrics.OfflineMetrics(asked)(recommendations, truth)
    means = {"rr": found[f"MRR@{max(KS)}"]}
    for name, value in found.items():
        metric, _, k = name.partition("@")
        if metric in NAMES and not (metric == "MAP" and int(k) < MOST_RELEVANT):
            means[f"{NAMES[metric]}_at_{k}"] = value
    return means
