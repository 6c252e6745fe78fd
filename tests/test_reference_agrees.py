"""Spark against the plain references: every metric and k on random queries, in one run."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tables import value

from ranklake import evaluate
from ranklake.metrics import METRICS, Metric, Population, Ranking

SEED = 20260101
N_QUERIES = 320
KS = (1, 2, 3, 5, 10, 50)
MODELS = ("a", "b")
SCORES = (0.0, -0.0, 0.5, 0.5, 1.0, 1.5, -2.0, None, math.nan, math.inf, -math.inf)


@dataclass(frozen=True)
class Query:
    """One random query of one model: its rows as logged, and the gain of each relevant item."""

    query_id: str
    model: str
    rows: Sequence[tuple[str, float | None]]
    gains: Mapping[str, float]

    def ranking(self) -> Ranking:
        """The order that the contract asks for, the slow way: three stable sorts."""
        scores: dict[str, list[float]] = {item: [] for item, _ in self.rows}
        for item, score in self.rows:
            if score is not None and not math.isnan(score):
                scores[item].append(score)
        order = sorted(scores, key=lambda item: item.encode(), reverse=True)
        order = sorted(order, key=lambda item: max(scores[item], default=0.0), reverse=True)
        order = sorted(order, key=lambda item: not scores[item])
        missed = [gain for item, gain in self.gains.items() if item not in scores]
        return Ranking(tuple(self.gains.get(item, 0.0) for item in order), tuple(missed))


def random_queries() -> list[Query]:
    """Ties, null, NaN and infinite scores, duplicates, no relevant item, unshown items, n < k."""
    rng = random.Random(SEED)
    queries = []
    for n in range(N_QUERIES):
        items = [f"{rng.choice('äzaZ0')}{i}" for i in range(rng.randint(1, 30))]
        rows = [(item, rng.choice(SCORES)) for item in items]
        rows += [(rng.choice(items), rng.choice(SCORES)) for _ in range(rng.randint(0, 3))]
        relevant = rng.sample(items, k=min(len(items), rng.choice([0, 0, 1, 1, 2, 5])))
        relevant += [f"never{i}" for i in range(rng.choice([0, 0, 0, 1, 3]))]
        gains = {item: rng.choice([1.0, 3.0]) for item in relevant}
        queries.append(Query(f"q{n}", rng.choice(MODELS), rows, gains))
    return queries


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    return random_queries()


@pytest.fixture(scope="module")
def found(spark: SparkSession, queries: list[Query]) -> pa.Table:
    shown = [
        {"query_id": q.query_id, "model_version": q.model, "item_id": item, "score": score}
        for q in queries
        for item, score in q.rows
    ]
    events = [
        {"query_id": q.query_id, "item_id": item, "gain": gain}
        for q in queries
        for item, gain in q.gains.items()
    ]
    converted = [event for event in events if event["gain"] == 3.0]
    return evaluate(
        spark.createDataFrame(pa.Table.from_pylist(shown)),
        spark.createDataFrame(pa.Table.from_pylist(events)).drop("gain"),
        conversions=spark.createDataFrame(pa.Table.from_pylist(converted)).drop("gain"),
        labels=["worth"],
        gains={"worth": {"click": 1.0, "conversion": 3.0}},
        ks=list(KS),
        metrics=[metric.name for metric in METRICS],
    ).metrics


def expected(metric: Metric, k: int, population: Population, rankings: Sequence[Ranking]) -> float:
    counted = [
        ranking for ranking in rankings if population is Population.ALL or ranking.n_relevant
    ]
    num = sum(metric.reference(ranking, k) or 0.0 for ranking in counted)
    return num / sum(metric.reference_denominator(ranking, k) for ranking in counted)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_spark_agrees_with_the_reference(
    metric: Metric, found: pa.Table, queries: list[Query]
) -> None:
    for model in MODELS:
        rankings = [query.ranking() for query in queries if query.model == model]
        for k in metric.cutoffs(KS):
            for population in metric.populations:
                number = value(
                    found, metric.name, k, model=model, population=population.value, label="worth"
                )
                assert number == pytest.approx(
                    expected(metric, k, population, rankings), rel=1e-12
                ), f"{metric.name}@{k}, {model}, {population}, seed {SEED}"


def test_the_random_queries_hold_every_case(queries: list[Query]) -> None:
    rankings = [query.ranking() for query in queries]
    assert any(not ranking.n_relevant for ranking in rankings)
    assert any(ranking.missed for ranking in rankings)
    assert any(ranking.n_candidates < 5 for ranking in rankings)
    assert any(len(query.rows) > len({item for item, _ in query.rows}) for query in queries)
    assert {score for query in queries for _, score in query.rows} >= {None, math.inf, -math.inf}
