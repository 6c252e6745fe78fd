"""Queries with very many candidates: ranked in bounded memory, or left out and told."""

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tables import DAY, value

from ranklake import evaluate
from ranklake.errors import RanklakeWarning


def log(spark: SparkSession, sizes: dict[str, int]) -> DataFrame:
    """Queries of the given sizes: item i<n> has the score -n, so that i0 is the first."""
    queries = spark.createDataFrame([*sizes.items()], "query_id string, size int")
    return queries.select(
        F.lit(DAY).alias("event_date"),
        F.lit("v1").alias("model_version"),
        "query_id",
        F.explode(F.sequence(F.lit(0), F.col("size") - 1)).alias("n"),
    ).selectExpr("* except (n)", "concat('i', n) as item_id", "cast(-n as double) as score")


def clicked(spark: SparkSession, *keys: tuple[str, str]) -> DataFrame:
    rows = [(DAY, query, item) for query, item in keys]
    return spark.createDataFrame(rows, "event_date date, query_id string, item_id string")


@pytest.mark.parametrize("unique_key", [True, False])
def test_a_query_over_the_limit_is_left_out_counted_and_named(
    spark: SparkSession, unique_key: bool
) -> None:
    shown = log(spark, {"hot": 101, "full": 100, "small": 2, "quiet": 3})
    clicks = clicked(spark, ("hot", "i0"), ("full", "i99"), ("small", "i1"))
    with pytest.warns(
        RanklakeWarning, match=r"1 queries have more than 100 .* 'hot' of v1 \(101\)"
    ):
        found = evaluate(
            shown,
            clicks,
            ks=[2],
            metrics=["recall", "precision"],
            max_candidates_per_query=100,
            unique_key=unique_key,
        )
    assert value(found.metrics, "recall", 2) == 1 / 2  # of full and small
    assert value(found.metrics, "precision", 2, population="all") == pytest.approx(1 / 2 / 3)
    quality = {row["name"]: (row["value"], row["n_rows"]) for row in found.quality.to_pylist()}
    assert quality["queries.too_large"] == (1, 4)
    assert quality["queries.largest"] == (100, 3)
    assert quality["queries.all"] == (3, 3)
    assert quality["impressions.dropped.redelivered"] == (0, 206)
    assert quality["clicks.dropped.orphan"] == (0, 3)
    left = {row["query_id"] for row in found.per_query().collect()}
    assert left == {"full", "small", "quiet"}


def test_a_query_of_200_000_candidates_is_ranked_beside_a_thousand_small_ones(
    spark: SparkSession,
) -> None:
    sizes = {"huge": 200_000} | {f"q{n}": 10 for n in range(1_000)}
    clicks = clicked(spark, ("huge", "i199999"), ("huge", "i4"), ("q7", "i0"))
    found = evaluate(
        log(spark, sizes),
        clicks,
        ks=[5],
        metrics=["recall", "ap", "auc"],
        max_candidates_per_query=200_000,
    )
    assert value(found.metrics, "recall", 5) == pytest.approx((1 / 2 + 1) / 2)
    assert value(found.metrics, "ap", 5) == pytest.approx((1 / 5 / 2 + 1) / 2)
    # Of the pairs with the other 199,998 items, i4 wins all but four, and the last one none.
    auc = (199_998 - 4) / (2 * 199_998)
    assert value(found.metrics, "auc", 0) == pytest.approx((auc + 1) / 2)
    quality = {row["name"]: row["value"] for row in found.quality.to_pylist()}
    assert quality["queries.largest"] == 200_000
    assert quality["queries.too_large"] == 0
