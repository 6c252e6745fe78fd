"""A real click log: both rankers' numbers as an independent SQL engine computed them."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tables import DAY, value

from ranklake import Evaluation, evaluate

# ../shared/data/README.md, computed there with DuckDB.
PUBLISHED = {
    "logged": {
        "recall": {1: 0.260443, 3: 0.634283, 5: 0.836959, 10: 0.994470},
        "precision": {1: 0.256645, 3: 0.225036, 5: 0.186898, 10: 0.121786},
        "rr": {10: 0.601659},
        "ndcg": {10: 0.695918},
    },
    "other_half_ctr": {
        "recall": {1: 0.375661, 3: 0.677106, 5: 0.837007, 10: 0.994470},
        "precision": {1: 0.348477, 3: 0.236083, 5: 0.187149, 10: 0.121786},
        "rr": {10: 0.689935},
        "ndcg": {10: 0.751755},
    },
}
N_QUERIES, N_CLICKED = 35_064, 23_284


def run(spark: SparkSession, directory: Path, **options: object) -> Evaluation:
    """The seven dates as one day: the published table is over all of them."""
    frames = {
        name: spark.read.parquet(str(directory / f"{name}.parquet"))
        for name in ("impressions", "clicks", "scores")
    }
    dated = {name: frame.withColumn("event_date", F.lit(DAY)) for name, frame in frames.items()}
    return evaluate(
        dated["impressions"],
        dated["clicks"],
        scores=dated["scores"],
        day=DAY,
        rank_by="position",
        metrics=["recall", "precision", "rr", "ndcg"],
        **options,
    )


@pytest.fixture(scope="module")
def found(spark: SparkSession, shared_data: Path) -> Evaluation:
    return run(spark, shared_data / "data" / "search_clicks", unique_key=True)


def test_both_rankers_have_the_published_numbers(found: Evaluation) -> None:
    for model, metrics in PUBLISHED.items():
        for metric, at in metrics.items():
            for k, number in at.items():
                assert value(found.metrics, metric, k, model=model) == pytest.approx(
                    number, abs=1e-6
                )
        assert value(found.metrics, "recall", 10, model=model, column="n_queries") == N_QUERIES
        assert value(found.metrics, "recall", 10, model=model, column="n_defined") == N_CLICKED


def test_both_rankers_saw_the_same_queries(found: Evaluation) -> None:
    """The fingerprints prove it: what a paired comparison rests on."""
    prints = {
        row["model_version"]: row["fingerprint"]
        for row in found.metric_sums.to_pylist()
        if (row["metric"], row["population"]) == ("n_queries", "all")
    }
    assert prints["logged"] == prints["other_half_ctr"]
    assert len(set(prints["logged"])) == len(prints["logged"])


def test_without_the_unshown_clicks_the_first_ten_hold_everything(
    spark: SparkSession, shared_data: Path
) -> None:
    found = run(
        spark,
        shared_data / "data" / "search_clicks",
        unshown_clicks="reject",
        ks=[10],
        unique_key=True,
    )
    assert value(found.metrics, "recall", 10, model="logged") == 1
    assert value(found.metrics, "recall", 10, model="other_half_ctr") == 1
