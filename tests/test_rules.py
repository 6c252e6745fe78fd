"""The rules: each changes the order or the queries of random judged runs as plain Python does."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ranklake import evaluate
from ranklake.config import of_values
from ranklake.errors import ContractError
from ranklake.metrics import Denominator, Measure, Population, Ranking, measures_of
from ranklake.pipeline.checks import _refuse
from ranklake.pipeline.inputs import _refuse_by_rule

SEED = 20260301
KS = (1, 3, 10)
NAMES = ("recall", "precision", "ap", "rr", "ndcg", "hit_rate", "hits", "dcg", "judged", "auc")
SCORES = (0.0, 0.5, 0.5, 1.0, 1.0 + 1e-9, None, math.nan, -math.inf)


@dataclass(frozen=True)
class Row:
    """One candidate row."""

    item: str
    score: float | None
    tie_key: float | None


@dataclass(frozen=True)
class Query:
    """One query: its candidate rows as listed, and the grades of its judged items (or None)."""

    query_id: str
    rows: Sequence[Row]
    grades: Mapping[str, float] | None


def random_queries() -> list[Query]:
    """Ties, NaN, duplicates, grades from -1, queries nobody judged, queries without candidates."""
    rng = random.Random(SEED)
    queries = []
    for n in range(160):
        items = [str(rng.randint(1, 40)) for _ in range(rng.randint(0, 14))]
        rows = [Row(i, rng.choice(SCORES), rng.choice([None, 1.0, 2.0, 3.0])) for i in items]
        pool = [*dict.fromkeys(items), *(str(40 + rng.randint(1, 9)) for _ in range(2))]
        judged = rng.sample(pool, k=rng.randint(1, len(pool)))
        grades = {item: float(rng.choice([-1, 0, 0, 1, 2, 3])) for item in judged}
        queries.append(Query(f"q{n}", rows, grades if rng.random() < 0.9 else None))
    return queries


def best_of_each(rows: Sequence[Row]) -> list[Row]:
    """One row an item: its best score, and its largest tie key."""
    found = []
    for item in dict.fromkeys(row.item for row in rows):
        own = [row for row in rows if row.item == item]
        scores = [row.score for row in own if not is_none(row.score)]
        keys = [row.tie_key for row in own if row.tie_key is not None]
        found.append(Row(item, max(scores, default=None), max(keys, default=None)))
    return found


def is_none(score: float | None) -> bool:
    return score is None or math.isnan(score)


def by_score(rows: Sequence[Row]) -> list[Row]:
    """Stable: the best score first, none last."""
    scored = sorted((r for r in rows if not is_none(r.score)), key=lambda r: -(r.score or 0.0))
    return [*scored, *(row for row in rows if is_none(row.score))]


def by_item(rows: Sequence[Row], *, descending: bool = True) -> list[Row]:
    return sorted(rows, key=lambda row: row.item.encode(), reverse=descending)


def default(query: Query) -> list[Row]:
    return by_score(by_item(best_of_each(query.rows)))


def only_judged(query: Query) -> list[Row]:
    grades = query.grades or {}
    rows = by_score(by_item(best_of_each(query.rows), descending=False))
    return [row for row in rows if grades.get(row.item, -1) >= 0][:4]


def as_floats_with_keys(query: Query) -> list[Row]:
    """1 + 1e-9 is 1 as a float; equal scores go by the largest key, without one last."""
    rows = [
        replace(row, score=1.0 if row.score and 1 < row.score < 2 else row.score)
        for row in best_of_each(query.rows)
    ]
    keyed = sorted(by_item(rows), key=lambda row: -(row.tie_key or 0.0))
    return by_score(keyed)


def nan_first_numbers_compared(query: Query) -> list[Row]:
    """NaN before all, null left out, equal scores by the item's number, every row counts."""
    rows = [row for row in query.rows if row.score is not None]
    numbered = sorted(rows, key=lambda row: int(row.item), reverse=True)
    nan = [row for row in numbered if math.isnan(row.score or 0.0)]
    return [*nan, *by_score([row for row in numbered if row not in nan])]


@dataclass(frozen=True)
class Case:
    """Rules, the order that they mean, and which queries are evaluated under them."""

    rules: Mapping[str, Any]
    order: Callable[[Query], list[Row]]
    counts: Callable[[Query], bool] = lambda query: query.grades is not None
    names: Sequence[str] = NAMES


CASES = {
    "default": Case({}, default),
    "only judged, four of them, ascending": Case(
        {"unjudged": "drop", "tie_break": "item_id_asc", "depth": 4, "missing_in_run": "zero"},
        only_judged,
    ),
    "floats, tie key, every candidate's query, none without": Case(
        {
            **{"score_type": "float", "tie_break": "column:tie_key desc"},
            **{"missing_in_truth": "zero", "missing_in_run": "skip", "no_relevant": "one"},
        },
        as_floats_with_keys,
        counts=lambda query: bool(query.rows),
    ),
}


def ranking(query: Query, order: Sequence[Row]) -> Ranking:
    grades = query.grades or {}
    shown = {row.item for row in order}
    return Ranking(
        gains=tuple(grades.get(row.item, 0.0) for row in order),
        missed=tuple(grade for item, grade in grades.items() if item not in shown),
        scores=tuple(None if is_none(row.score) else row.score for row in order),
        judged=tuple(grades.get(row.item, -1) >= 0 for row in order),
    )


def found(spark: SparkSession, case: Case, queries: Sequence[Query]) -> dict[Any, float | None]:
    shown = [
        {"query_id": q.query_id, "item_id": r.item, "score": r.score, "tie_key": r.tie_key}
        for q in queries
        for r in q.rows
    ]
    judged = [
        {"query_id": q.query_id, "item_id": item, "gain": grade}
        for q in queries
        for item, grade in (q.grades or {}).items()
    ]
    result = evaluate(
        spark.createDataFrame(pa.Table.from_pylist(shown)),
        judgments=spark.createDataFrame(pa.Table.from_pylist(judged)),
        labels=["judgment"],
        metrics=list(case.names),
        ks=list(KS),
        rules=dict(case.rules),
    )
    keys = ("metric", "k", "population")
    return {tuple(row[key] for key in keys): row["value"] for row in result.metrics.to_pylist()}


def expected(m: Measure, population: Population, rankings: Sequence[Ranking], one: bool) -> float:
    num = den = 0.0
    for of_query in rankings:
        value = m.metric.reference(of_query, m.k)
        is_counted = population is Population.ALL or bool(of_query.n_relevant)
        if m.metric.denominator is Denominator.DEFINED:
            is_counted = value is not None
        if is_counted:
            num += float(one) if value is None else value
            den += m.metric.reference_denominator(of_query, m.k)
    return num / den


@pytest.mark.parametrize("name", CASES)
def test_a_run_under_the_rules_is_what_plain_python_makes_of_them(
    spark: SparkSession, name: str
) -> None:
    case = CASES[name]
    queries = random_queries()
    numbers = found(spark, case, queries)
    counted = [query for query in queries if case.counts(query)]
    rankings = [ranking(query, case.order(query)) for query in counted]
    for m in measures_of(case.names, KS):
        for population in m.metric.populations:
            value = expected(m, population, rankings, case.rules.get("no_relevant") == "one")
            number = numbers[m.metric.name, m.k, population.value]
            assert number == pytest.approx(value, rel=1e-9), f"{m}, {population}, seed {SEED}"


def test_copies_are_ranked_and_counted_each_but_relevant_once(spark: SparkSession) -> None:
    """NaN is first, candidates without a score are gone, and equal scores go by the number."""
    rules = {
        **{"duplicates": "keep", "nan_scores": "first", "null_scores": "drop"},
        "tie_key_type": "native",
    }
    queries = random_queries()
    case = Case(rules, nan_first_numbers_compared, names=("recall", "precision", "ap", "ndcg"))
    numbers = found(spark, case, queries)
    per_query: dict[tuple[str, int], list[float]] = {}
    for query in queries:
        relevant = {item: g for item, g in (query.grades or {}).items() if g > 0}
        order = [row.item for row in case.order(query)]
        for k in KS if relevant else ():
            hits = [rank for rank, item in enumerate(order[:k], start=1) if item in relevant]
            ideal = sorted(relevant.values(), reverse=True)[:k]
            values = {
                "recall": len(hits) / len(relevant),
                "precision": len(hits) / k,
                "ap": sum(n / rank for n, rank in enumerate(hits, start=1)) / len(relevant),
                "ndcg": sum(relevant[order[rank - 1]] / math.log2(rank + 1) for rank in hits)
                / sum(gain / math.log2(rank + 2) for rank, gain in enumerate(ideal)),
            }
            for name, value in values.items():
                per_query.setdefault((name, k), []).append(value)
    assert max(map(max, per_query.values())) > 1
    for (name, k), values in per_query.items():
        mean = sum(values) / len(values)
        assert numbers[name, k, "with_relevant"] == pytest.approx(mean, rel=1e-9), (name, k, SEED)


def test_a_seeded_hash_orders_equal_scores_without_favour(spark: SparkSession) -> None:
    """One of five equal scores is relevant: over all orders 1 / rank is (1 + ... + 1/5) / 5."""
    shown = [
        {"query_id": f"q{n}", "item_id": f"q{n}-{i}", "score": 1.0, "position": i + 1}
        for n in range(400)
        for i in range(5)
    ]
    frames = (
        spark.createDataFrame(pa.Table.from_pylist(shown)),
        spark.createDataFrame(pa.Table.from_pylist(shown[::5])).select("query_id", "item_id"),
    )
    found = {
        rule: evaluate(*frames, measures=["RR"], rules={"tie_break": rule}).metrics.to_pylist()
        for rule in ("hash(1)", "hash(2)", "column:position asc", "column:position desc")
    }
    rr = {
        rule: next(r["value"] for r in rows if r["metric"] == "rr") for rule, rows in found.items()
    }
    assert rr["column:position asc"] == 1
    assert rr["column:position desc"] == 1 / 5
    mean = sum(1 / rank for rank in range(1, 6)) / 5
    spread = math.sqrt(sum((1 / rank - mean) ** 2 for rank in range(1, 6)) / 5 / 400)
    assert abs(rr["hash(1)"] - mean) < 4 * spread
    assert abs(rr["hash(2)"] - mean) < 4 * spread
    assert rr["hash(1)"] != rr["hash(2)"]


# rules that take something for an error


@pytest.mark.parametrize(
    ("rule", "finding"),
    [("nan_scores", "nan_score"), ("null_scores", "null_score"), ("negative", "negative_gain")],
)
def test_a_value_that_a_rule_forbids_stops_the_run(rule: str, finding: str) -> None:
    audits = {"impressions": {"v1": {"n_rows": 9, "nan_score": 0, "null_score": 0, finding: 2}}}
    with pytest.raises(ContractError, match=f"impressions: {finding}: found 2 of 9 rows.*{rule}"):
        _refuse_by_rule(audits, of_values({"rules": {rule: "error"}}))
    _refuse_by_rule(audits, of_values({}))
    clean = {"impressions": {"v1": {**audits["impressions"]["v1"], finding: 0}}}
    _refuse_by_rule(clean, of_values({"rules": {rule: "error"}}))


@pytest.mark.parametrize(
    ("rule", "check"),
    [
        ("missing_in_run", "queries.without_candidates"),
        ("missing_in_truth", "queries.unlabelled"),
        ("no_relevant", "queries.without_relevant.click"),
    ],
)
def test_a_query_that_a_rule_forbids_stops_the_run(rule: str, check: str) -> None:
    rows = [{"model_version": "v1", "name": check, "value": 2.0, "n_rows": 9}]
    with pytest.raises(ContractError, match=f"v1: {check}: found 2 of 9.*rules.{rule}"):
        _refuse(rows, of_values({"rules": {rule: "error"}}))
    _refuse(rows, of_values({}))
    _refuse([{**rows[0], "value": 0.0}], of_values({"rules": {rule: "error"}}))


def test_every_rule_that_forbids_something_stops_a_run(spark: SparkSession) -> None:
    """One run breaks three rules: all of it is told, with the names that quality has."""
    shown = [
        {"query_id": query, "item_id": "a", "score": 1.0} for query in ("judged", "never judged")
    ]
    judged = [
        {"query_id": query, "item_id": "a", "gain": 0.0} for query in ("judged", "without run")
    ]
    with pytest.raises(ContractError) as refused:
        evaluate(
            spark.createDataFrame(pa.Table.from_pylist(shown)),
            judgments=spark.createDataFrame(pa.Table.from_pylist(judged)),
            labels=["judgment"],
            rules=dict.fromkeys(("missing_in_run", "missing_in_truth", "no_relevant"), "error"),
        )
    assert [problem.split(", expected")[0] for problem in refused.value.problems] == [
        "model: queries.without_candidates: found 1 of 2",
        "model: queries.without_relevant.judgment: found 2 of 2",
        "model: queries.unlabelled: found 1 of 2",
    ]


def test_a_depth_cuts_each_order_where_a_measure_has_its_own(spark: SparkSession) -> None:
    """b and c have equal scores: of the first two, c is in the run's order, b in the other one."""
    shown = [
        {"query_id": "q", "item_id": item, "score": score}
        for item, score in (("a", 0.9), ("b", 0.5), ("c", 0.5))
    ]
    numbers = evaluate(
        spark.createDataFrame(pa.Table.from_pylist(shown)),
        spark.createDataFrame(pa.Table.from_pylist([{"query_id": "q", "item_id": "b"}])),
        measures=["RR", "RR(tie_break=item_id_asc)", "recall(tie_break=expected)"],
        rules={"depth": 2},
    ).metrics.to_pylist()
    values = {(r["metric"], r["variant"]): r["value"] for r in numbers if r["population"] == "all"}
    assert values["rr", ""] == 0
    assert values["rr", "tie_break=item_id_asc"] == 1 / 2


def test_an_ideal_and_judged_items_are_of_the_order_that_they_are_measured_in(
    spark: SparkSession,
) -> None:
    """Of equal scores and a depth of one, a is the candidate in ascending order, d in the run's."""
    shown = [
        {"query_id": "q", "item_id": item, "score": score}
        for item, score in (("a", 0.5), ("b", 0.5), ("c", 0.4), ("d", 0.5))
    ]
    judged = [
        {"query_id": "q", "item_id": item, "gain": gain} for item, gain in (("a", 0.0), ("b", 1.0))
    ]
    numbers = evaluate(
        spark.createDataFrame(pa.Table.from_pylist(shown)),
        judgments=spark.createDataFrame(pa.Table.from_pylist(judged)),
        labels=["judgment"],
        measures=[
            *("ndcg(ideal=candidates,tie_break=item_id_asc)@5", "judged(tie_break=item_id_asc)@1"),
            "judged@1",
        ],
        rules={"depth": 1},
    ).metrics.to_pylist()
    values = {(r["metric"], r["variant"]): r["value"] for r in numbers if r["population"] == "all"}
    assert values["judged", "tie_break=item_id_asc"] == 1
    assert values["judged", ""] == 0
    assert values["ndcg", "ideal=candidates,tie_break=item_id_asc"] == 0


def test_duplicates_are_shown_where_they_are_an_error(spark: SparkSession) -> None:
    shown = [{"query_id": "q", "item_id": item, "score": 1.0} for item in ("a", "b", "b")]
    clicked = [{"query_id": "q", "item_id": "a"}]
    with pytest.raises(ContractError, match="item 'b' stands 2 times for query 'q'"):
        evaluate(
            spark.createDataFrame(pa.Table.from_pylist(shown)),
            spark.createDataFrame(pa.Table.from_pylist(clicked)),
            rules={"duplicates": "error"},
        )
