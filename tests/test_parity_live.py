"""The same random queries through ranklake and through other evaluators as they are installed."""

import random
import warnings
from collections.abc import Mapping, Sequence
from statistics import fmean

import ir_measures
import pytest
import pytrec_eval
from parity import Case, Replay, mismatches, replayed
from pyspark.mllib.evaluation import RankingMetrics
from pyspark.sql import SparkSession

SEED = 20260101
N_QUERIES = 240
EXACT = 1e-9
POOL = [f"{letter}{n}" for letter in "dDä" for n in range(12)]
GRADES = (-1, -1, 0, 0, 1, 1, 2, 3)
SCORES = (-2.0, -0.5, 0.5, 0.5, 1.0, 1.0, 1.5, 3.0)
CASE = "random"
EQUAL_AS_FLOATS = 1e-12

Values = dict[str, dict[str, float]]


def random_case(*, seed: int = SEED) -> Case:
    """Ties, grades below 0, nothing relevant, no run, no judgments, few candidates."""
    rng = random.Random(seed)
    gains: Values = {}
    run: Values = {}
    for n in range(N_QUERIES):
        grades = GRADES[:4] if rng.random() < 0.1 else GRADES
        judged = rng.sample(POOL, rng.choice([1, 2, 5, 15]))
        gains[f"q{n}"] = {item: float(rng.choice(grades)) for item in judged}
        if rng.random() < 0.9:
            run[f"q{n}"] = random_run(rng, rng.choice([[], judged, judged]))
    run |= {f"unjudged{n}": random_run(rng, []) for n in range(10)}
    return Case(CASE, gains, run)


def random_run(rng: random.Random, among: Sequence[str]) -> dict[str, float]:
    """Scores of some items and of half of those, many equal."""
    found = [item for item in among if rng.random() < 0.5]
    found += rng.sample(POOL, rng.choice([1, 3, 8, 25]))
    rng.shuffle(found)
    return {item: rng.choice(SCORES) for item in found}


def spread(case: Case, step: float) -> Case:
    """The same items, with scores that grow by another step at each place."""
    run = {
        query: {item: score + place * step for place, (item, score) in enumerate(items.items())}
        for query, items in case.run.items()
    }
    return Case(case.name, case.gains, run)


def as_integers(gains: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, int]]:
    """The grades as trec_eval takes them."""
    return {query: {item: int(g) for item, g in items.items()} for query, items in gains.items()}


def test_the_random_queries_hold_every_case() -> None:
    case = random_case()
    assert {*case.gains} - {*case.run}
    assert {*case.run} - {*case.gains}
    judged = [(items, case.run.get(query, {})) for query, items in case.gains.items()]
    assert any(max(items.values()) <= 0 for items, _ in judged)
    assert any(min(items.values()) < 0 for items, _ in judged)
    assert any(0 < len(run) < 5 for _, run in judged)
    assert any(run and not {*run} & {*items} for items, run in judged)
    assert any(len({*run.values()}) < len(run) for _, run in judged)


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case()


# ir_measures

IR_MEASURES = (
    *("AP", "AP@5", "AP(rel=2)@10", "Rprec", "Rprec(rel=2)", "RR", "RR(rel=2)"),
    *("P@1", "P@5", "P@20", "P(rel=2)@5", "R@5", "R@20", "R(rel=2)@10"),
    *("nDCG", "nDCG@5", "nDCG@20", "Success@1", "Success@5", "Success(rel=3)@10"),
    *("RR@1", "RR@5", "RR@20", "RR(rel=2)@10"),
)
"""Written the same in both."""
IR_OTHERS = {
    "SetP": "P(denom=min_k_n)@1000",
    "SetP(rel=2)": "P(denom=min_k_n,rel=2)@1000",
    "SetR": "R",
    "SetR(rel=2)": "R(rel=2)",
    "nDCG(gains={1:3,2:9,3:2})": "nDCG(gain={1:3,2:9,3:2})",
    "nDCG(gains={1:3,2:9,3:2})@5": "nDCG(gain={1:3,2:9,3:2})@5",
}
IR_NAMES = {**{name: name for name in IR_MEASURES}, **IR_OTHERS}
IR_JUDGED = ("Judged@1", "Judged@5", "Judged@20")


@pytest.fixture(scope="module")
def by_ir_measures(case: Case) -> Mapping[str, ir_measures.CalcResults]:
    """By measure, each asked alone: of several nDCG at once ir_measures 0.4.3 mixes up values.

    Which, depends on the order of a set, and so on PYTHONHASHSEED.
    """
    gains = as_integers(case.gains)
    return {n: ir_measures.calc([ir_measures.parse_measure(n)], gains, case.run) for n in IR_NAMES}


@pytest.fixture(scope="module")
def as_ir_measures(spark: SparkSession, case: Case) -> Replay:
    asked = [*IR_NAMES.values(), *IR_JUDGED]
    return replayed(spark, [case, never_negative(case)], asked, preset="ir_measures")


@pytest.mark.parametrize("name", IR_NAMES)
def test_ir_measures_says_the_same(
    name: str, as_ir_measures: Replay, by_ir_measures: Mapping[str, ir_measures.CalcResults]
) -> None:
    asked, text, theirs = ir_measures.parse_measure(name), IR_NAMES[name], by_ir_measures[name]
    pairs = [
        (row.query_id, as_ir_measures.of_query(CASE, row.query_id, text) or 0.0, row.value)
        for row in theirs.per_query
        if row.measure == asked
    ]
    assert len(pairs) == N_QUERIES
    pairs.append(("mean", as_ir_measures.mean(CASE, text), theirs.aggregated[asked]))
    assert mismatches(pairs, EXACT) == [], f"seed {SEED}"


def never_negative(case: Case) -> Case:
    """The queries without a grade below 0: Judged of ir_measures takes one for a judgment."""
    gains = {query: items for query, items in case.gains.items() if min(items.values()) >= 0}
    return Case("never_negative", gains, {q: case.run[q] for q in gains if q in case.run})


@pytest.fixture(scope="module")
def judged_by_ir_measures(case: Case) -> ir_measures.CalcResults:
    asked, part = [ir_measures.parse_measure(name) for name in IR_JUDGED], never_negative(case)
    return ir_measures.calc(asked, as_integers(part.gains), part.run)


@pytest.mark.parametrize("name", IR_JUDGED)
def test_ir_measures_has_the_same_share_of_judged_items(
    name: str, as_ir_measures: Replay, judged_by_ir_measures: ir_measures.CalcResults
) -> None:
    pairs = [
        (q, as_ir_measures.of_query("never_negative", q, name) or 0.0, value)
        for q, asked, value in judged_by_ir_measures.per_query
        if str(asked) == name
    ]
    assert len(pairs) > N_QUERIES / 3
    assert mismatches(pairs, EXACT) == [], f"seed {SEED}"


def test_ir_measures_has_the_same_mean_share_of_judged_items(
    as_ir_measures: Replay, judged_by_ir_measures: ir_measures.CalcResults
) -> None:
    pairs = [
        (asked, as_ir_measures.mean("never_negative", str(asked)), value)
        for asked, value in judged_by_ir_measures.aggregated.items()
    ]
    assert mismatches(pairs, EXACT) == [], f"seed {SEED}"


# pytrec_eval, judged documents only

PYTREC_NAMES = {
    "map": "ap",
    "map_cut_5": "ap@5",
    "ndcg": "ndcg",
    "ndcg_cut_5": "ndcg@5",
    "P_5": "precision@5",
    "recall_5": "recall@5",
    "relative_P_5": "recall(denom=min_k_rel)@5",
    "recip_rank": "rr",
    "Rprec": "r_precision",
    "success_1": "hit_rate@1",
    "set_recall": "recall",
    "set_P": "precision(denom=min_k_n)@1000",
}


@pytest.fixture(scope="module")
def by_pytrec_eval(case: Case) -> dict[str, dict[str, float]]:
    evaluator = pytrec_eval.RelevanceEvaluator(
        as_integers(case.gains), {*PYTREC_NAMES}, judged_docs_only_flag=True
    )
    found: dict[str, dict[str, float]] = evaluator.evaluate(spread(case, EQUAL_AS_FLOATS).run)
    return found


@pytest.fixture(scope="module")
def as_pytrec_eval(spark: SparkSession, case: Case) -> Replay:
    measures = [*PYTREC_NAMES.values()]
    return replayed(
        spark, [spread(case, EQUAL_AS_FLOATS)], measures, preset="trec_eval", unjudged="drop"
    )


@pytest.mark.parametrize("name", PYTREC_NAMES)
def test_pytrec_eval_of_judged_documents_says_the_same(
    name: str, as_pytrec_eval: Replay, by_pytrec_eval: Mapping[str, Mapping[str, float]]
) -> None:
    text = PYTREC_NAMES[name]
    pairs = [
        (query, as_pytrec_eval.of_query(CASE, query, text) or 0.0, values[name])
        for query, values in by_pytrec_eval.items()
        if query in as_pytrec_eval.query_ids(CASE)
    ]
    assert len(pairs) > N_QUERIES / 3
    assert mismatches(pairs, EXACT) == [], f"seed {SEED}"


def test_pytrec_eval_of_judged_documents_has_the_same_means(
    as_pytrec_eval: Replay, by_pytrec_eval: Mapping[str, Mapping[str, float]]
) -> None:
    assert as_pytrec_eval.query_ids(CASE) == {*by_pytrec_eval}
    pairs = [
        (name, as_pytrec_eval.mean(CASE, text), fmean(v[name] for v in by_pytrec_eval.values()))
        for name, text in PYTREC_NAMES.items()
    ]
    assert mismatches(pairs, EXACT) == [], f"seed {SEED}"


# Spark

KS = (1, 5, 20)


@pytest.fixture(scope="module")
def by_spark(spark: SparkSession, case: Case) -> dict[str, float]:
    lists = [
        ([*case.run.get(query, ())], [item for item, gain in items.items() if gain > 0])
        for query, items in case.gains.items()
    ]
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        metrics = RankingMetrics(spark.sparkContext.parallelize(lists, 2))
    at_k = {
        "precision": metrics.precisionAt,
        "recall": metrics.recallAt,
        "ndcg": metrics.ndcgAt,
        "ap": metrics.meanAveragePrecisionAt,
    }
    values = {f"{name}@{k}": value(k) for name, value in at_k.items() for k in KS}
    return {**values, "ap": metrics.meanAveragePrecision}


def test_sparks_ranking_metrics_say_the_same(
    spark: SparkSession, case: Case, by_spark: Mapping[str, float]
) -> None:
    found = replayed(spark, [case], [*by_spark], preset="spark_mllib")
    pairs = [(text, found.mean(CASE, text), value) for text, value in by_spark.items()]
    assert len(pairs) == 13
    assert mismatches(pairs, EXACT) == [], f"seed {SEED}"
