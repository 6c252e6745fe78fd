"""A real click log: both rankers' numbers as an independent SQL engine computed them."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from tables import DAY, value

from ranklake import Evaluation, compare, evaluate
from ranklake.estimate import KEYS, added, estimated, jackknife

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


def run(
    spark: SparkSession,
    directory: Path,
    *,
    where: Column | None = None,
    half: Column | None = None,
    **options: Any,
) -> Evaluation:
    """The seven dates as one day: the published table is over all of them."""
    frames = {
        name: spark.read.parquet(str(directory / f"{name}.parquet"))
        for name in ("impressions", "clicks", "scores")
    }
    dated = {name: frame.withColumn("event_date", F.lit(DAY)) for name, frame in frames.items()}
    if where is not None:
        dated = {name: frame.where(where) for name, frame in dated.items()}
    if half is not None:
        dated["impressions"] = dated["impressions"].withColumn("half", half)
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


MEASURES = {"recall@1": "recall_at_1", "recall@5": "recall_at_5", "ndcg@10": "ndcg_at_10"}
NUMBERS = ("value", "ci_low", "ci_high", "num", "den", "n_queries", "n_defined")
N_DRAWS, N_SEEDS, N_BUCKETS = 10_000, 50, 400

Array = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def differences(found: Evaluation) -> Array:
    """other_half_ctr - logged of each query with a click, a column a measure; then one of 1."""
    names = ["model_version", "query_id", *MEASURES.values()]
    rows = found.per_query().where("n_relevant > 0").select(names).toArrow()
    by_model = [
        rows.filter(pc.field("model_version") == model).sort_by("query_id") for model in PUBLISHED
    ]
    logged, other = by_model
    assert logged["query_id"] == other["query_id"]
    deltas = [other[name].to_numpy() - logged[name].to_numpy() for name in MEASURES.values()]
    return np.stack([*deltas, np.ones(len(logged))], axis=1)


@pytest.fixture(scope="module")
def bootstrapped(differences: Array) -> Array:
    """The standard errors of the mean differences, by drawing queries again and again."""
    random = np.random.default_rng(1)
    n = len(differences)
    means = np.empty((N_DRAWS, len(MEASURES)))
    for draw in range(N_DRAWS):
        times = np.bincount(random.integers(0, n, n), minlength=n).astype(float)
        *sums, count = times @ differences
        means[draw] = np.array(sums) / count
    return means.std(axis=0, ddof=1)


def test_a_difference_and_its_interval_are_those_of_a_bootstrap(
    found: Evaluation, differences: Array, bootstrapped: Array
) -> None:
    """The bucket of a query is one hash: of 400 buckets the error's own error is 3.5 %."""
    rows = compare(found, "other_half_ctr", "logged", metrics=[*MEASURES]).rows.to_pylist()
    by_measure = {f"{row['metric']}@{row['k']}": row for row in rows}
    for place, measure in enumerate(MEASURES):
        row = by_measure[measure]
        assert row["pairing"] == "same_queries"
        assert row["delta"] == pytest.approx(differences[:, place].mean(), abs=1e-12)
        assert row["std_err"] == pytest.approx(bootstrapped[place], rel=0.12)
        low, high = (row["delta"] + sign * 1.96 * bootstrapped[place] for sign in (-1, 1))
        assert row["ci_low"] == pytest.approx(low, abs=0.15 * bootstrapped[place] * 1.96)
        assert row["ci_high"] == pytest.approx(high, abs=0.15 * bootstrapped[place] * 1.96)


def test_over_many_hashes_the_errors_are_those_of_a_bootstrap(
    differences: Array, bootstrapped: Array
) -> None:
    ratios = [_std_errs(differences, seed) / bootstrapped for seed in range(N_SEEDS)]
    assert np.mean(ratios, axis=0) == pytest.approx(np.ones(len(MEASURES)), abs=0.015)
    assert np.abs(np.array(ratios) - 1).max() < 0.15


def _std_errs(differences: Array, seed: int) -> Array:
    """ranklake's jackknife over 400 buckets, into which this seed puts the queries."""
    buckets = np.random.default_rng([2, seed]).integers(0, N_BUCKETS, len(differences))
    *sums, counts = (np.bincount(buckets, column, N_BUCKETS) for column in differences.T)
    num = np.array(sums)
    return jackknife(num, np.tile(counts, (len(num), 1))).std_err


def test_one_query_a_bucket_is_the_delta_method(differences: Array) -> None:
    deltas = differences[:, 0][None]
    found = jackknife(deltas, np.ones_like(deltas))
    delta_method = deltas.std(ddof=1) / np.sqrt(deltas.shape[1])
    assert found.std_err[0] == pytest.approx(delta_method, rel=0.01)


def test_parts_of_the_log_add_up_to_the_whole(
    spark: SparkSession, shared_data: Path, found: Evaluation
) -> None:
    """A third of the queries and the others: as two runs, and as two values of one run's slice."""
    directory = shared_data / "data" / "search_clicks"
    in_first = F.crc32("query_id") % 3 == 0
    parts = [
        run(spark, directory, where=of, ks=[1, 10], unique_key=True).metric_sums
        for of in (in_first, ~in_first)
    ]
    half = F.when(in_first, "first").otherwise("last")
    sliced = run(spark, directory, half=half, ks=[1, 10], slices={"columns": ["half"]})
    of_slices = sliced.metric_sums.filter(pc.field("slice") == "half")
    of_values = [of_slices.filter(pc.field("slice_value") == name) for name in ("first", "last")]
    whole = {_key(row): row for row in found.metrics.to_pylist()}
    keys = [name for name in KEYS if name not in ("slice", "slice_value")]
    for split in (parts, of_values):
        assert all(map(len, split))
        total = added(split, keys=keys)
        for name in ("slice", "slice_value"):
            total = total.append_column(name, pa.array(["all"] * len(total)))
        rows = estimated(total, confidence=0.95).to_pylist()
        assert len(rows) > 20
        for row in rows:
            expected = _numbers(whole[_key(row)])
            assert _numbers(row) == pytest.approx(expected, rel=1e-9, nan_ok=True), row


def _numbers(row: dict[str, Any]) -> list[float]:
    return [float("nan") if row[name] is None else row[name] for name in NUMBERS]


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEYS)
