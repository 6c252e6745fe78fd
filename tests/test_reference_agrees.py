"""Spark against the plain references: every metric, option and k on random queries, in few runs."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ranklake import Evaluation, evaluate
from ranklake.metrics import (
    METRICS,
    NO_CUTOFF,
    SHOWN,
    Cutoff,
    Denominator,
    Measure,
    Need,
    Population,
    Ranking,
    measure,
    metric,
)

TIED = metric("tied")

SEED = 20260101
N_QUERIES = 320
KS = (1, 2, 3, 5, 10, 50)
MODELS = ("a", "b")
SCORES = (0.0, -0.0, 0.5, 0.5, 1.0, 1.5, -2.0, None, math.nan, math.inf, -math.inf)
VARIANTS = (
    *("recall(rel=2)", "recall(denom=min_k_rel)", "precision(denom=min_k_n)", "precision(rel=3)"),
    *(
        f"{name}(tie_break={ties})"
        for name in ("recall", "precision", "hits", "hit_rate")
        for ties in ("expected", "best", "worst", "item_id_asc")
    ),
    *("f1(beta=2)", "f1(rel=2)", "f1(tie_break=item_id_asc)"),
    *(f"ap(denom={denom})" for denom in ("min_k_rel", "k", "hits", "min_rel_n")),
    *("ap(rel=2)", "ap(tie_break=item_id_asc)", "ap(rel=2,tie_break=item_id_asc)"),
    *(
        "rr(rel=2)",
        "rr(tie_break=item_id_asc)",
        "hit_rate(rel=2)",
        "hit_rate(rel=2,tie_break=best)",
    ),
    *(
        "ndcg(gain=exp2)",
        "ndcg(gain=binary)",
        "ndcg(gain=binary,rel=2)",
        "ndcg(gain={1:3,2:9,3:2})",
    ),
    *("ndcg(gain_respects_rel=true,rel=2)", "ndcg(gain={1:9,3:1},gain_respects_rel=true,rel=2)"),
    *("ndcg(ideal=candidates)", "ndcg(ideal=k_ones)", "ndcg(ideal_cut=none)"),
    *(
        "ndcg(ideal=candidates,ideal_cut=none)",
        "ndcg(tie_break=expected)",
        "dcg(tie_break=expected)",
    ),
    *("ndcg(gain=exp2,ideal=candidates,tie_break=expected)", "dcg(gain=exp2,rel=2)"),
    *("rbp(p=0.5)", "rbp(max_gain=3)", "rbp(rel=2,tie_break=item_id_asc)"),
    *(f"{name}(average=weighted)" for name in ("recall", "precision", "ndcg")),
    *("recall(average=weighted,rel=2)", "r_precision(rel=2)", "auc(rel=2)", "auc(average=n)"),
    *("auc(average=weighted)", "r_precision(tie_break=item_id_asc)"),
)
RANKING_METRICS = [m for m in METRICS if not m.needs & {Need.JUDGED, Need.SCORES}]


def every_measure(variants: Sequence[str]) -> list[Measure]:
    """The metrics and variants at every k, without one and at n_slots, as far as they allow it."""
    plain = [Measure(m) for m in RANKING_METRICS if not m.of_label]
    options = [measure(text if text.split("(")[0] in UNCUT else f"{text}@1") for text in variants]
    return [
        *(replace(m, k=k) for m in plain for k in cutoffs(m, KS)),
        *(replace(m, k=k) for m in options for k in cutoffs(m, KS[2:4])),
    ]


UNCUT = {m.name for m in METRICS if m.cutoff is not Cutoff.REQUIRED}


def cutoffs(m: Measure, ks: Sequence[int]) -> list[int]:
    without = [] if m.metric.cutoff is Cutoff.REQUIRED else [NO_CUTOFF]
    return [*without, *(() if m.metric.cutoff is Cutoff.NONE else (*ks, SHOWN))]


@dataclass(frozen=True)
class Query:
    """One random query of one model: its rows as logged, and the gain of each relevant item."""

    query_id: str
    model: str
    rows: Sequence[tuple[str, float | None]]
    gains: Mapping[str, float]
    n_slots: int | None
    weight: float | None

    def ranking(self, tie_break: str = "") -> Ranking:
        """The order that the contract asks for, the slow way: three stable sorts."""
        scores: dict[str, list[float]] = {item: [] for item, _ in self.rows}
        for item, score in self.rows:
            if score is not None and not math.isnan(score):
                scores[item].append(score)
        is_descending = tie_break != "item_id_asc"
        order = sorted(scores, key=lambda item: item.encode(), reverse=is_descending)
        order = sorted(order, key=lambda item: max(scores[item], default=0.0), reverse=True)
        order = sorted(order, key=lambda item: not scores[item])
        missed = [gain for item, gain in self.gains.items() if item not in scores]
        return Ranking(
            gains=tuple(self.gains.get(item, 0.0) for item in order),
            missed=tuple(missed),
            scores=tuple(max(scores[item], default=None) for item in order),
            judged=tuple(item in self.gains for item in order),
            n_slots=self.n_slots,
        )


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
        slots, weight = rng.choice([None, 1, 4, 40]), rng.choice([None, 0.5, 2.0])
        queries.append(Query(f"q{n}", rng.choice(MODELS), rows, gains, slots, weight))
    return queries


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    return random_queries()


@pytest.fixture(scope="module")
def result(spark: SparkSession, queries: list[Query]) -> Evaluation:
    shown = [
        {
            **{"query_id": q.query_id, "model_version": q.model, "item_id": item, "score": score},
            **{"n_slots": q.n_slots, "weight": q.weight},
        }
        for q in queries
        for item, score in q.rows
    ]
    events = [
        {"query_id": q.query_id, "item_id": item, "gain": gain}
        for q in queries
        for item, gain in q.gains.items()
    ]
    converted = [event for event in events if event["gain"] == 3.0]
    of_means = [f"f1(beta=2,mean=of_means)@{k}" for k in KS]
    return evaluate(
        spark.createDataFrame(pa.Table.from_pylist(shown)),
        spark.createDataFrame(pa.Table.from_pylist(events)).drop("gain"),
        conversions=spark.createDataFrame(pa.Table.from_pylist(converted)).drop("gain"),
        labels=["worth", "click", "conversion"],
        gains={"worth": {"click": 1.0, "conversion": 3.0}},
        metrics=[],
        measures=[*map(str, every_measure(VARIANTS)), *of_means, *(f"cvr@{k}" for k in KS)],
        ks=list(KS),
        tie_diagnostics=True,
    )


@pytest.fixture(scope="module")
def found(result: Evaluation) -> dict[tuple[Any, ...], float | None]:
    return numbers(result.metrics)


def numbers(rows: pa.Table) -> dict[tuple[Any, ...], float | None]:
    keys = ("model_version", "label", "metric", "variant", "k", "population")
    return {tuple(row[key] for key in keys): row["value"] for row in rows.to_pylist()}


def expected(m: Measure, population: Population, queries: Sequence[Query]) -> float:
    """The ratio of the two sums over the queries, from their references."""
    num = den = 0.0
    for query in queries:
        ranking = query.ranking(m.tie_break)
        value = m.metric.reference(ranking, m.k, m.values)
        weights = {"weight": query.weight or 1.0, "n_candidates": ranking.n_candidates, "": 1.0}
        weight = weights[m.weight]
        is_counted = population is Population.ALL or bool(
            ranking.at(m.values.get("rel")).n_relevant
        )
        if m.metric.denominator is Denominator.DEFINED:
            part = float(value is not None)
        else:
            part = m.metric.reference_denominator(ranking, m.k) * is_counted
        num, den = num + weight * (value or 0.0), den + weight * part
    return num / den


@pytest.mark.parametrize("m", every_measure(VARIANTS), ids=str)
def test_spark_agrees_with_the_reference(
    m: Measure, found: dict[tuple[Any, ...], float | None], queries: list[Query]
) -> None:
    for model in MODELS:
        of_model = [query for query in queries if query.model == model]
        for population in m.metric.populations:
            number = found[model, "worth", m.metric.name, m.variant, m.k, population.value]
            assert number == pytest.approx(expected(m, population, of_model), rel=1e-12), (
                f"{m}, {model}, {population}, seed {SEED}"
            )


def test_f_of_means_is_made_of_the_means(
    found: dict[tuple[Any, ...], float | None], queries: list[Query]
) -> None:
    for model in MODELS:
        of_model = [query for query in queries if query.model == model]
        for k in KS:
            for population in (Population.WITH_RELEVANT, Population.ALL):
                p, r = (expected(measure(f"{n}@{k}"), population, of_model) for n in "PR")
                number = found[model, "worth", "f1", "beta=2,mean=of_means", k, population.value]
                assert number == pytest.approx(5 * p * r / (4 * p + r), rel=1e-12)


def test_cvr_divides_conversions_by_clicks(
    found: dict[tuple[Any, ...], float | None], queries: list[Query]
) -> None:
    assert not [key for key in found if key[1] != "conversion" and key[2] == "cvr"]
    for model in MODELS:
        rankings = [query.ranking() for query in queries if query.model == model]
        for k in KS:
            clicks = sum(gain > 0 for ranking in rankings for gain in ranking.gains[:k])
            conversions = sum(gain == 3 for ranking in rankings for gain in ranking.gains[:k])
            number = found[model, "conversion", "cvr", "", k, "all"]
            assert number == pytest.approx(conversions / clicks, rel=1e-12)


def test_quality_says_what_ties_decide_and_where_relevant_items_are(
    result: Evaluation, queries: list[Query]
) -> None:
    checks = {(row["model_version"], row["name"]): row for row in result.quality.to_pylist()}
    for model in MODELS:
        rankings = [query.ranking() for query in queries if query.model == model]
        n_relevant = sum(ranking.n_relevant for ranking in rankings)
        n_retrieved = sum(ranking.hits(NO_CUTOFF) for ranking in rankings)
        for k in KS:
            within = sum(ranking.hits(k) for ranking in rankings)
            bounds = {
                f"ties.{name}_{bound}.worth@{k}": expected(
                    measure(f"{name}(tie_break={bound})@{k}"),
                    metric(name).populations[0],
                    [query for query in queries if query.model == model],
                )
                for name in ("precision", "recall")
                for bound in ("worst", "best")
            }
            wanted = {
                f"ties.tied.worth@{k}": sum(TIED.reference(r, k) or 0 for r in rankings),
                f"queries.short@{k}": sum(r.n_candidates <= k for r in rankings),
                f"relevant_items.within.worth@{k}": within,
                f"relevant_items.below.worth@{k}": n_retrieved - within,
                "relevant_items.never_candidates.worth": n_relevant - n_retrieved,
                **bounds,
            }
            values = {name: checks[model, name]["value"] for name in wanted}
            assert values == pytest.approx(wanted, rel=1e-12)
            assert checks[model, f"ties.tied.worth@{k}"]["n_rows"] == len(rankings)
    assert any(row["value"] for (_, name), row in checks.items() if name.startswith("ties.tied"))


def test_the_random_queries_hold_every_case(queries: list[Query]) -> None:
    rankings = [query.ranking() for query in queries]
    assert any(not ranking.n_relevant for ranking in rankings)
    assert any(ranking.missed for ranking in rankings)
    assert any(ranking.n_candidates < 5 for ranking in rankings)
    assert any(len(query.rows) > len({item for item, _ in query.rows}) for query in queries)
    assert {score for query in queries for _, score in query.rows} >= {None, math.inf, -math.inf}


# scores that are probabilities


def test_calibration_and_log_loss_are_over_every_scored_candidate(spark: SparkSession) -> None:
    rng = random.Random(SEED)
    shown, clicked = [], []
    for n in range(60):
        for item in range(rng.randint(1, 6)):
            row = {"query_id": f"q{n}", "item_id": f"i{item}"}
            shown.append(
                {**row, "score": rng.choice([None, 0.0, 1.0, 5.0, math.inf, rng.random()])}
            )
            if rng.random() < 0.15:
                clicked.append(row)
    result = evaluate(
        spark.createDataFrame(pa.Table.from_pylist(shown)),
        spark.createDataFrame(pa.Table.from_pylist(clicked)),
        metrics=["calibration", "log_loss"],
        score_is_probability=True,
    )
    clicks = [(row["query_id"], row["item_id"]) for row in clicked]
    outcomes = [(row["score"], (row["query_id"], row["item_id"]) in clicks) for row in shown]
    scored = [(score, happened) for score, happened in outcomes if score is not None and score <= 1]
    losses = [
        -math.log(min(max(p if happened else 1 - p, 1e-15), 1 - 1e-15)) for p, happened in scored
    ]
    found = numbers(result.metrics)
    predicted = sum(p for p, _ in scored)
    assert found["model", "click", "calibration", "", 0, "all"] == pytest.approx(
        predicted / sum(happened for _, happened in scored), rel=1e-12
    )
    assert found["model", "click", "log_loss", "", 0, "all"] == pytest.approx(
        sum(losses) / len(scored), rel=1e-9
    )
