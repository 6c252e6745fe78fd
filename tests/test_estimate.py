"""Sums → value, standard error, interval: by hand, by brute force, and by how often it is right."""

from collections.abc import Mapping, Sequence
from datetime import date
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from scipy import stats

from ranklake.aggregate.series import Scope, metric_sums
from ranklake.estimate import MIN_CLUSTERS, MIN_NONZERO, estimated, jackknife
from ranklake.metrics import measure, measures_of

Array = npt.NDArray[np.float64]
SEED = 20_260_101


def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def jackknife_of(num: Sequence[float], den: Sequence[float]) -> tuple[float, float]:
    found = jackknife(np.array([num], dtype=float), np.array([den], dtype=float))
    return float(found.value[0]), float(found.std_err[0])


# the jackknife


def test_three_buckets_by_hand() -> None:
    """Without each bucket the ratio is 2/3, 1/3, 3/4; their mean is 7/12."""
    value, std_err = jackknife_of([1, 2, 0], [2, 2, 1])
    deviations = (2 / 3 - 7 / 12, 1 / 3 - 7 / 12, 3 / 4 - 7 / 12)
    assert value == 3 / 5
    assert std_err == pytest.approx(sqrt(2 / 3 * sum(d**2 for d in deviations)))
    assert std_err == pytest.approx(sqrt(7 / 108))


def test_empty_buckets_count_for_nothing() -> None:
    assert jackknife_of([1, 0, 2, 0, 0], [2, 0, 2, 1, 0]) == jackknife_of([1, 2, 0], [2, 2, 1])


def test_buckets_of_equal_size_give_the_standard_error_of_a_mean() -> None:
    values = [0.1, 0.4, 0.4, 0.9]
    _, std_err = jackknife_of(values, [1, 1, 1, 1])
    assert std_err == pytest.approx(np.std(values, ddof=1) / sqrt(4))


def test_it_is_what_a_loop_over_buckets_gives() -> None:
    draw = rng()
    den = draw.integers(0, 5, size=(20, 50)).astype(float)
    num = den * draw.random(size=(20, 50))
    found = jackknife(num, den)
    for row in range(20):
        used = [b for b in range(50) if den[row, b] > 0]
        without = [
            sum(num[row, c] for c in used if c != b) / sum(den[row, c] for c in used if c != b)
            for b in used
        ]
        mean = sum(without) / len(used)
        squares = sum((one - mean) ** 2 for one in without)
        expected = sqrt((len(used) - 1) / len(used) * squares)
        assert found.std_err[row] == pytest.approx(expected), (SEED, row)
        assert found.n_clusters[row] == len(used)


def test_it_is_what_leaving_each_cluster_out_of_the_queries_gives() -> None:
    draw = rng()
    cluster = draw.integers(0, 40, size=500)
    value = draw.random(size=500)
    num = np.bincount(cluster, weights=value, minlength=40)
    den = np.bincount(cluster, minlength=40).astype(float)
    without = np.array([value[cluster != c].mean() for c in range(40)])
    mean, std_err = jackknife_of(list(num), list(den))
    assert mean == pytest.approx(value.mean())
    assert std_err == pytest.approx(sqrt(39 / 40 * ((without - without.mean()) ** 2).sum()))


def test_days_are_added_bucket_by_bucket() -> None:
    """A user's luck stays with them: adding the days' variances would be far too sure."""
    draw = rng()
    den = np.full(400, 5.0)
    luck = draw.beta(2, 2, size=400)
    days = [draw.binomial(5, luck).astype(float) for _ in range(7)]
    _, week = jackknife_of(sum(days), 7 * den)
    pooled = sum(days) / 35
    assert week == pytest.approx(np.std(pooled, ddof=1) / sqrt(400))
    as_if_independent = sqrt(sum(jackknife_of(day, den)[1] ** 2 for day in days)) / 7
    assert week > 1.8 * as_if_independent


def test_without_a_denominator_there_is_no_value() -> None:
    value, std_err = jackknife_of([0, 0], [0, 0])
    assert np.isnan(value)
    assert np.isnan(std_err)


def test_one_bucket_has_a_value_and_no_standard_error() -> None:
    value, std_err = jackknife_of([1, 0], [2, 0])
    assert value == 1 / 2
    assert np.isnan(std_err)


# the rows of metrics

KEY = {"model_version": "v1", "slice": "all", "slice_value": "all", "label": "click", "variant": ""}


def series(
    metric: str, num: Sequence[float] | Array, den: Sequence[float] | Array, **more: Any
) -> dict[str, Any]:
    """One row of metric_sums: k is 5 and the population with_relevant, unless it says more."""
    key = {**KEY, "metric": metric, "population": "with_relevant", "k": 5}
    sums = {"num": np.asarray(num, dtype=float), "den": np.asarray(den, dtype=float)}
    return {**key, **sums, "fingerprint": None, "definition_hash": "h", **more}


def group(recall: Array, n_queries: Array, hits: Array | None = None, **key: Any) -> pa.Table:
    """A recall per bucket (its sum over queries that all have a relevant item), and its counts."""
    hit_rate = recall if hits is None else hits
    rows = [
        series("n_queries", 2 * n_queries, 2 * n_queries, k=0, population="all", **key),
        series("n_queries", n_queries, n_queries, k=0, **key),
        series("hit_rate", hit_rate, n_queries, **key),
        series("recall", recall, n_queries, **key),
        series("recall", recall, 2 * n_queries, population="all", **key),
    ]
    return pa.Table.from_pylist(rows)


def recall_row(table: pa.Table, population: str = "with_relevant") -> Mapping[str, Any]:
    rows = estimated(table, confidence=0.95).to_pylist()
    (row,) = [r for r in rows if (r["metric"], r["population"]) == ("recall", population)]
    return row


def ones(n: int, of: int = 400) -> Array:
    """One query in each of the first n buckets."""
    return np.where(np.arange(of) < n, 1.0, 0.0)


def mixed(n_hits: int, n: int) -> Array:
    """A recall of 1 in the first n_hits buckets, of 0 in the others up to n."""
    return ones(n_hits) * ones(n)


def test_a_row_has_the_value_and_its_t_interval() -> None:
    num, den = mixed(100, 200), ones(200)
    row = recall_row(group(num, den))
    std_err = sqrt(0.5 * 0.5 / 199)  # of a mean of 200 values, half of them 1
    half = stats.t.ppf(0.975, df=199) * std_err
    assert row["status"] == "ok"
    assert row["value"] == 100 / 200
    assert row["std_err"] == pytest.approx(std_err)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((0.5 - half, 0.5 + half))
    assert (row["num"], row["den"], row["n_clusters"], row["window_days"]) == (100, 200, 200, 1)


def test_a_row_says_how_many_queries_are_defined() -> None:
    table = group(mixed(100, 200), ones(200))
    counts = [
        (row["n_queries"], row["n_defined"])
        for row in (recall_row(table), recall_row(table, "all"))
    ]
    assert counts == [(400, 200), (400, 400)]


def test_a_wider_confidence_is_a_wider_interval() -> None:
    table = group(mixed(100, 200), ones(200))
    low, high = (estimated(table, confidence=c).to_pylist()[-1] for c in (0.8, 0.99))
    assert low["std_err"] == high["std_err"]
    assert high["ci_low"] < low["ci_low"] < low["ci_high"] < high["ci_high"]


def test_an_interval_stays_within_the_metrics_range() -> None:
    assert recall_row(group(mixed(199, 200), ones(200)))["ci_high"] == 1
    one_user_found_it_all = 10 * ones(1)
    row = recall_row(group(one_user_found_it_all, ones(400) + 9 * ones(1)))
    assert row["status"] == "ok"
    assert row["value"] - 1.9 * row["std_err"] < 0
    assert row["ci_low"] == 0


def test_a_count_has_no_upper_end() -> None:
    draw = rng()
    n_queries = ones(200)
    candidates = n_queries * draw.integers(10, 90, size=400)
    count = series("n_candidates", candidates, n_queries, k=0, population="all")
    table = pa.concat_tables([group(mixed(100, 200), n_queries), pa.Table.from_pylist([count])])
    row = estimated(table, confidence=0.95).to_pylist()[-1]
    assert row["status"] == "ok"
    assert row["ci_high"] > row["value"] > 10


@pytest.mark.parametrize(
    ("why", "recall", "n_queries", "hits"),
    [
        (
            "fewer than 30 clusters",
            mixed(MIN_CLUSTERS - 10, MIN_CLUSTERS - 1),
            ones(MIN_CLUSTERS - 1),
            None,
        ),
        ("fewer than 10 queries above zero", mixed(MIN_NONZERO - 1, 200), ones(200), None),
        ("no variance at all", ones(200), ones(200), None),
        ("no variance but for rounding", ones(200) / 3, ones(200), ones(200)),
        ("a single cluster", 50 * ones(1), 100 * ones(1), None),
    ],
)
def test_too_little_data_gives_a_value_without_an_interval(
    why: str, recall: Array, n_queries: Array, hits: Array | None
) -> None:
    row = recall_row(group(recall, n_queries, hits=hits))
    assert row["status"] == "insufficient", why
    assert row["value"] == pytest.approx(recall.sum() / n_queries.sum())
    assert (row["std_err"], row["ci_low"], row["ci_high"]) == (None, None, None)


def test_just_enough_data_gives_an_interval() -> None:
    assert recall_row(group(mixed(20, MIN_CLUSTERS), ones(MIN_CLUSTERS)))["status"] == "ok"
    assert recall_row(group(mixed(MIN_NONZERO, 200), ones(200)))["status"] == "ok"


def test_without_a_relevant_item_the_value_is_null() -> None:
    nothing = np.zeros(400)
    row = recall_row(group(nothing, nothing))
    assert row["status"] == "insufficient"
    assert (row["value"], row["n_clusters"], row["n_defined"]) == (None, 0, 0)


def test_the_count_of_queries_is_no_row_of_its_own() -> None:
    table = estimated(group(mixed(100, 200), ones(200)), confidence=0.95)
    assert "n_queries" not in table["metric"].to_pylist()
    assert {"num", "den", "n_queries", "n_defined"} <= {*table.column_names}


def test_models_and_days_are_counted_apart() -> None:
    monday, tuesday = date(2026, 1, 5), date(2026, 1, 6)
    tables = [
        group(mixed(100, 200), ones(200), event_date=monday),
        group(mixed(50, 100), ones(100), event_date=tuesday),
        group(mixed(40, 80), ones(80), event_date=tuesday, model_version="v2"),
    ]
    rows = estimated(pa.concat_tables(tables), confidence=0.95).to_pylist()
    counts = {
        (row["event_date"], row["model_version"]): row["n_defined"]
        for row in rows
        if (row["metric"], row["population"]) == ("recall", "with_relevant")
    }
    assert counts == {(monday, "v1"): 200, (tuesday, "v1"): 100, (tuesday, "v2"): 80}


def test_it_reads_what_metric_sums_writes() -> None:
    rows = [
        {
            "model_version": "v1",
            "label": label,
            "slice": "all",
            "slice_value": "all",
            "bucket": bucket,
            "n_queries": None if label else 1.0,
            "n_candidates": None if label else 10.0,
            "fingerprint": None if label else bucket,
            "n_with_relevant": 1.0 if label else None,
            "n_relevant": 1.0 if label else None,
            "recall_at_5": float(bucket % 2) if label else None,
            "hit_rate_at_5": float(bucket % 2) if label else None,
        }
        for bucket in range(60)
        for label in (None, "click")
    ]
    sums = metric_sums(
        pa.Table.from_pylist(rows),
        measures=measures_of(["recall"], [5]),
        scope=Scope(labels=["click"], served=["v1"], n_buckets=60),
        definition_hash=lambda row: "h",
    )
    row = recall_row(sums)
    assert (row["value"], row["status"], row["n_defined"]) == (1 / 2, "ok", 60)


# how often the interval holds the truth


def test_the_interval_holds_the_truth_as_often_as_it_says_and_the_naive_one_does_not() -> None:
    """1000 logs of 200 users: each user has a recall of their own, and 1 to 19 queries."""
    draw = rng()
    n_logs, n_users, truth = 1_000, 200, 2 / (2 + 3)
    n_queries = draw.integers(1, 20, size=(n_logs, n_users))
    found = draw.binomial(n_queries, draw.beta(2, 3, size=(n_logs, n_users)))
    tables = [
        group(found[n].astype(float), n_queries[n].astype(float), model_version=f"log{n}")
        for n in range(n_logs)
    ]
    rows = estimated(pa.concat_tables(tables), confidence=0.95).to_pylist()
    ours = [r for r in rows if (r["metric"], r["population"]) == ("recall", "with_relevant")]
    covered = np.mean([row["ci_low"] <= truth <= row["ci_high"] for row in ours])
    assert 0.93 <= covered <= 0.97, SEED

    value, n = found.sum(axis=1) / n_queries.sum(axis=1), n_queries.sum(axis=1)
    naive = stats.norm.ppf(0.975) * np.sqrt(value * (1 - value) / n)
    assert np.mean(np.abs(value - truth) <= naive) < 0.85, SEED


def test_f_of_means_without_any_hit_is_zero() -> None:
    zeros, ones_ = np.zeros(40), np.ones(40)
    common = {
        **{"model_version": "v1", "label": "click", "slice": "all", "slice_value": "all"},
        **{"variant": "", "definition_hash": "h", "fingerprint": None, "den": ones_},
    }
    rows = [
        {**common, "population": population, "metric": name, "k": k, "num": num}
        for population in ("all", "with_relevant")
        for name, k, num in (
            *(("precision", 5, zeros), ("recall", 5, zeros)),
            *(("hit_rate", 5, zeros), ("n_queries", 0, ones_)),
        )
    ]
    derived = [measure("f1(mean=of_means)@5")]
    table = estimated(pa.Table.from_pylist(rows), confidence=0.95, derived=derived).to_pylist()
    assert [(row["value"], row["status"]) for row in table if row["metric"] == "f1"] == [
        (0.0, "insufficient"),
        (0.0, "insufficient"),
    ]


def test_f_of_means_is_left_out_bucket_by_bucket_like_a_loop_does() -> None:
    draw = rng()
    n_queries = draw.integers(1, 5, size=60).astype(float)
    n_defined = np.minimum(n_queries, draw.integers(0, 3, size=60)).astype(float)
    found = {"precision": 0.2 * n_defined, "recall": n_defined * draw.random(size=60)}
    rows = [
        {
            **{"model_version": "v1", "label": "click", "slice": "all", "slice_value": "all"},
            **{"population": "with_relevant", "variant": "", "definition_hash": "h"},
            **{"metric": name, "k": k, "num": num, "den": den, "fingerprint": None},
        }
        for name, k, num, den in (
            ("precision", 5, found["precision"], n_defined),
            ("recall", 5, found["recall"], n_defined),
            ("hit_rate", 5, n_defined, n_defined),
            ("n_queries", 0, n_defined, n_defined),
        )
    ]
    counts = {**rows[-1], "population": "all", "num": n_queries, "den": n_queries}
    derived = measure("f1(mean=of_means,beta=2)@5")
    table = estimated(
        pa.Table.from_pylist([*rows, counts]), confidence=0.95, derived=[derived]
    ).to_pylist()
    (row,) = [row for row in table if row["metric"] == "f1"]

    def f2(used: npt.NDArray[np.bool_]) -> float:
        p, r = (found[name][used].sum() / n_defined[used].sum() for name in found)
        return float(5 * p * r / (4 * p + r))

    used = n_defined > 0
    without = [f2(used & (np.arange(60) != bucket)) for bucket in range(60) if used[bucket]]
    spread = sqrt((used.sum() - 1) / used.sum() * sum((v - np.mean(without)) ** 2 for v in without))
    assert row["variant"] == "beta=2,mean=of_means"
    assert row["value"] == pytest.approx(f2(used), rel=1e-12)
    assert row["std_err"] == pytest.approx(spread, rel=1e-9)
    assert row["n_defined"] == n_defined.sum()
