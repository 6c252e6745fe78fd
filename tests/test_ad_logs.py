"""Two real logs of ads and recommendations: facts that an independent SQL engine found in them."""

from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tables import DAY, value

from ranklake import Evaluation, evaluate
from ranklake.estimate import jackknife

# ../shared/data/README.md, computed there with DuckDB.
N_ADS, N_CLICKED_ADS = 39_948, 6_728
CLICKS_BY_PLACE = {  # (depth, position): rows, clicks
    ("1", "1"): (11_053, 1_964),
    ("2", "1"): (10_072, 2_416),
    ("2", "2"): (9_367, 1_224),
    ("3", "1"): (3_292, 602),
    ("3", "2"): (3_165, 315),
    ("3", "3"): (2_999, 207),
}
STD_ERR = {"user_id": 0.001874, "advertiser_id": 0.005578}
"""Of the click rate, clustered; of users, each unknown one is a cluster of its own."""

CLICKS_BY_POLICY = {  # campaign: rows of each policy, clicks of random, clicks of bts
    "all": (10_000, 38, 42),
    "men": (10_000, 46, 69),
    "women": (10_000, 46, 46),
}
STD_ERR_OF_DIFFERENCE = {"all": 0.00089, "men": 0.00107, "women": 0.00096}
CLICKS_BY_POSITION = {"1": (9_935, 38), "2": (10_174, 51), "3": (9_891, 41)}
"""Of the policy random."""

ROWS_BY_ZONE = {"UTC": 7_245, "Asia/Tokyo": 7_245 - 1_628 + 1_785}
"""Of 2019-11-25: those that are of the next day in Tokyo go, those of the day before come."""


def click_rates(found: Evaluation, slice_name: str, model: str = "v1") -> dict[str, Any]:
    """By value of the slice, how many rows and how many clicks."""
    of_slice = [
        row
        for row in found.metrics.to_pylist()
        if (row["metric"], row["model_version"], row["slice"]) == ("ctr", model, slice_name)
    ]
    assert all(row["value"] == row["num"] / row["den"] for row in of_slice)
    return {row["slice_value"]: (row["den"], row["num"]) for row in of_slice}


def at_one(rows: DataFrame, clicked: DataFrame, **options: Any) -> Evaluation:
    """The click rate where each query has the one item of its row."""
    options = {"metrics": ["ctr"], "ks": [1], "unique_key": True, **options}
    return evaluate(rows, clicked.where("click = 1"), **options)


@pytest.fixture(scope="module")
def search_ads(spark: SparkSession, shared_data: Path) -> DataFrame:
    path = shared_data / "data" / "kdd12_ads" / "click_prediction_small.parquet"
    log = spark.read.parquet(str(path))
    return log.select(
        *(F.lit(DAY).alias("event_date"), F.lit("v1").alias("model_version")),
        *(F.col("row_id").cast("string").alias("query_id"), "depth", "position", "click"),
        F.col("position").alias("place"),
        *(F.col(name).cast("string") for name in ("user_id", "advertiser_id")),
        F.col("ad_id").cast("string").alias("item_id"),
    )


def test_search_ads_have_the_click_rates_of_their_places(
    spark: SparkSession, search_ads: DataFrame
) -> None:
    options: Mapping[str, Any] = {
        "rank_by": "position",
        "unknown_users": ["0"],
        "slices": {"columns": ["depth", "place"], "crosses": [["depth", "place"]]},
    }
    by_user = at_one(search_ads, search_ads, **options)
    assert click_rates(by_user, "all") == {"all": (N_ADS, N_CLICKED_ADS)}
    both = "depth,place"
    found = {tuple(at.split(",")): n for at, n in click_rates(by_user, both).items()}
    assert found == CLICKS_BY_PLACE
    for at, name in enumerate(("depth", "place")):
        added: dict[str, Any] = {}
        for key, counts in CLICKS_BY_PLACE.items():
            added[key[at]] = np.add(added.get(key[at], (0, 0)), counts)
        assert click_rates(by_user, name) == {key: tuple(n) for key, n in added.items()}

    of_advertisers = search_ads.drop("user_id").withColumnRenamed("advertiser_id", "user_id")
    by_advertiser = at_one(of_advertisers, of_advertisers, rank_by="position")
    found_std_err = {
        "user_id": value(by_user.metrics, "ctr", 1, column="std_err"),
        "advertiser_id": value(by_advertiser.metrics, "ctr", 1, column="std_err"),
    }
    assert found_std_err == pytest.approx(STD_ERR, rel=0.2)


@pytest.fixture(scope="module")
def recommendations(spark: SparkSession, shared_data: Path) -> DataFrame:
    log = spark.read.parquet(str(shared_data / "data" / "obd" / "obd_small.parquet"))
    query = F.concat_ws("/", "behavior_policy", "campaign", "row_id")
    return log.select(
        query.alias("query_id"),
        F.col("behavior_policy").alias("model_version"),
        F.col("item_id").cast("string"),
        *("campaign", "position", "click", F.col("position").alias("place")),
        F.col("ts").alias("event_ts"),
    )


def test_an_ab_test_of_two_policies_has_its_click_rates(
    spark: SparkSession, recommendations: DataFrame
) -> None:
    options: Mapping[str, Any] = {
        "rank_by": "position",
        "slices": {"columns": ["campaign", "place"]},
    }
    dated = recommendations.drop("event_ts").withColumn("event_date", F.lit(DAY))
    found = at_one(dated, dated, **options)
    assert click_rates(found, "place", "random") == CLICKS_BY_POSITION
    for n, model in enumerate(("random", "bts"), start=1):
        expected = {name: (of[0], of[n]) for name, of in CLICKS_BY_POLICY.items()}
        assert click_rates(found, "campaign", model) == expected
    estimated = {name: difference(found, name) for name in CLICKS_BY_POLICY}
    for name, (rows, random, bts) in CLICKS_BY_POLICY.items():
        assert estimated[name][0] == pytest.approx((bts - random) / rows)
        assert estimated[name][1] == pytest.approx(STD_ERR_OF_DIFFERENCE[name], rel=0.2)


def difference(found: Evaluation, campaign: str) -> tuple[float, float]:
    """bts minus random, and its standard error: no query is in both arms."""
    sums = {
        row["model_version"]: row
        for row in found.metric_sums.to_pylist()
        if (row["metric"], row["slice"], row["slice_value"]) == ("ctr", "campaign", campaign)
    }
    arms = [
        jackknife(np.array([sums[name]["num"]]), np.array([sums[name]["den"]]))
        for name in ("random", "bts")
    ]
    random, bts = ((arm.value[0], arm.std_err[0]) for arm in arms)
    return bts[0] - random[0], float(np.hypot(bts[1], random[1]))


@pytest.mark.parametrize("zone", ROWS_BY_ZONE)
def test_a_row_is_of_the_day_that_its_zone_says(recommendations: DataFrame, zone: str) -> None:
    of_day = partial(at_one, recommendations, recommendations, day=date(2019, 11, 25), zone=zone)
    found = of_day(rank_by="position")
    counted = sum(
        value(found.metrics, "ctr", 1, model=model, column="n_queries")
        for model in ("random", "bts")
    )
    assert counted == ROWS_BY_ZONE[zone]
