"""The world with a known truth: ranklake's sums on its log are its own, and its intervals cover."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from scipy import stats

from benchmarks import replications
from benchmarks.replications import ALPHA, DIFFERENCE, Replication
from ranklake import evaluate
from ranklake.comparison import Verdict
from ranklake.population import (
    BASELINE,
    CANDIDATE,
    DEVICES,
    MODELS,
    SERVING,
    Drawn,
    Population,
    Values,
    ranks,
)

K = 10
N_BUCKETS = 50
N_USERS = 1_000
"""Of a replication here; the benchmark draws more of them, and more often."""


def test_values_of_two_queries_are_those_of_the_definitions() -> None:
    """Clicked: ranks 1 and 3 of four; and rank 4. On top are the first two places."""
    scores = np.array([[0.9, 0.2, 0.5, 0.1], [0.4, 0.3, 0.2, 0.1]])
    clicked = np.array([[True, False, False, False], [False, False, False, True]])
    clicked[0, 1] = True
    drawn = Drawn(np.array([0, 1]), np.array([0, 2]), {BASELINE: scores, SERVING: scores}, clicked)
    assert ranks(scores).tolist() == [[1, 3, 2, 4], [1, 2, 3, 4]]
    assert drawn.recall(BASELINE, 2).num.tolist() == [1 / 2, 0]
    ideal = 1 + 1 / np.log2(3)
    assert drawn.ndcg(BASELINE, 4).num.tolist() == pytest.approx([1.5 / ideal, 1 / np.log2(5)])
    assert drawn.ctr(2).mean == 1 / 4
    assert [name for name, part in drawn.parts() if len(part.user)] == ["desktop", "tablet"]


def test_users_are_alike_in_their_own_queries() -> None:
    """Click rates of a user's queries correlate, and without click_sigma they do not."""
    for sigma, least, most in ((0.8, 0.1, 1.0), (0.0, -0.05, 0.05)):
        drawn = Population(click_sigma=sigma, taste_sigma=0).drawn(4_000, np.random.default_rng(3))
        clicks = drawn.is_clicked.sum(axis=1)
        is_pair = drawn.user[1:] == drawn.user[:-1]
        correlation = np.corrcoef(clicks[1:][is_pair], clicks[:-1][is_pair])[0, 1]
        assert least < correlation < most


def test_a_lift_is_on_its_device_alone() -> None:
    world = Population(lift={**dict.fromkeys(DEVICES, 0.0), "tablet": 0.4}, lift_sigma=0)
    of_device = dict(world.drawn(30_000, np.random.default_rng(5)).parts())
    deltas = {
        name: part.recall(CANDIDATE, K).mean - part.recall(BASELINE, K).mean
        for name, part in of_device.items()
    }
    assert deltas["tablet"] > 0.05
    assert max(abs(deltas[name]) for name in ("desktop", "mobile")) < 0.01


def test_ranklakes_sums_on_the_log_are_those_of_the_draw(spark: SparkSession) -> None:
    drawn = replications.WORLD.drawn(300, np.random.default_rng(1))
    found = evaluate(
        **{name: spark.createDataFrame(rows) for name, rows in _log(drawn).items()},
        **{"ks": [K], "metrics": ["recall", "ndcg", "ctr"], "n_buckets": N_BUCKETS},
        slices={"columns": ["device"]},
    )
    of_query = found.per_query().select("query_id", "bucket").distinct().toArrow().to_pylist()
    bucket = np.zeros(len(drawn.user), dtype=np.int64)
    for row in of_query:
        bucket[int(row["query_id"])] = row["bucket"]
    stored = {
        tuple(row[name] for name in ("model_version", "slice_value", "metric")): row
        for row in found.metric_sums.to_pylist()
        if row["k"] == K
        and row["population"] == ("all" if row["metric"] == "ctr" else "with_relevant")
    }
    is_on = {"all": np.ones(len(bucket), dtype=bool)} | {
        name: drawn.device == number for number, name in enumerate(DEVICES)
    }
    n_compared = 0
    for value, of in is_on.items():
        for model in MODELS:
            part, buckets = drawn.where(of), bucket[of]
            wanted = {"recall": part.recall(model, K), "ndcg": part.ndcg(model, K)}
            wanted |= {"ctr": part.ctr(K)} if model == SERVING else {}
            for metric, values in wanted.items():
                row = stored[model, value, metric]
                for name, expected in zip(("num", "den"), _summed(values, buckets), strict=True):
                    assert row[name] == pytest.approx(expected, abs=1e-9), (model, value, metric)
                n_compared += 1
    assert n_compared == 4 * (3 * 2 + 1)


def _summed(values: Values, buckets: np.ndarray) -> list[np.ndarray]:
    return [np.bincount(buckets, part, N_BUCKETS) for part in values]


def _log(drawn: Drawn) -> dict[str, pa.Table]:
    """The draw as logs of one day: one row an item of a query, of a click, and of a score."""
    n_queries, n_items = drawn.is_clicked.shape
    query = np.repeat(np.arange(n_queries), n_items)
    key = {
        "query_id": pa.array(query.astype(str)),
        "item_id": pa.array(np.char.add("i", np.tile(np.arange(n_items), n_queries).astype(str))),
    }
    clicked = pa.array(drawn.is_clicked.ravel())
    names = np.array([*DEVICES])
    impressions = {
        **key,
        "user_id": pa.array(drawn.user[query].astype(str)),
        "model_version": pa.array(np.full(len(query), SERVING)),
        "score": pa.array(drawn.scores[SERVING].ravel()),
        "position": pa.array(ranks(drawn.scores[SERVING]).ravel().astype(np.int32)),
        "device": pa.array(names[drawn.device[query]]),
    }
    scores = [
        pa.table({**key, "model_version": np.full(len(query), model), "score": of_model.ravel()})
        for model, of_model in drawn.scores.items()
        if model != SERVING
    ]
    return {
        "impressions": pa.table(impressions),
        "clicks": pa.table(key).filter(clicked),
        "scores": pa.concat_tables(scores),
    }


@pytest.fixture(scope="module")
def world() -> tuple[dict[str, float], list[Replication]]:
    """The truth, and what 150 draws say."""
    values = replications.truth(300_000)
    return values, [replications.replicated(seed, N_USERS) for seed in range(150)]


def test_intervals_cover_the_truth_and_those_of_independent_rows_do_not(
    world: tuple[dict[str, float], list[Replication]],
) -> None:
    """150 draws: a share of 95 % is seen as 90 to 99 % (2.8 standard errors)."""
    values, found = world
    for name, value in values.items():
        covered = np.mean([one.intervals[name].has(value) for one in found])
        assert 0.90 <= covered <= 0.995, name
        naive = np.mean([one.naive[name].has(value) for one in found])
        assert naive < (0.93 if name == DIFFERENCE else 0.88), name


def test_the_same_ranker_is_no_better_than_itself() -> None:
    found = [replications.split(seed, N_USERS) for seed in range(150)]
    rows = [one.rows.to_pylist() for one in found]
    p_values = [row[0]["p_value"] for row in rows]
    assert {row[0]["pairing"] for row in rows} == {"disjoint"}
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    n_failed = sum(one.verdict is Verdict.FAIL for one in found)
    assert n_failed <= stats.binom.ppf(0.999, len(found), ALPHA / 2)


def test_a_planted_drop_is_found_as_often_as_promised(
    world: tuple[dict[str, float], list[Replication]],
) -> None:
    values, found = world
    max_drop = -values[DIFFERENCE] - 2.8 * np.std([one.delta for one in found], ddof=1)
    failed = [
        replications.dropped(seed, N_USERS, max_drop).verdict is Verdict.FAIL for seed in range(150)
    ]
    assert 0.68 <= np.mean(failed) <= 0.92
