"""Every option of the metrics by hand, on the references; then relevance and gains of trec_eval."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from math import comb, log2
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, RR, Accuracy, Judged, NumRet, P, R, Rprec, SetF, Success, nDCG
from known import OF_THE_MEAN

from ranklake.metrics import METRICS, Ranking, measure, metric_with_options

EXAMPLE = Ranking(gains=(1.0, 0.0, 1.0), missed=(1.0, 1.0, 1.0))
"""5 relevant items, hits at ranks 1 and 3: one name, many numbers, depending on the library."""
TWO_OF_FIVE = Ranking(gains=(1.0, 0.0), missed=(1.0, 1.0))
GRADED = Ranking(gains=(1.0, 0.0, 3.0), missed=(2.0,))
FOUR_GRADES = Ranking(gains=(1.0, 2.0, 0.0, 3.0), missed=(2.0,))
TIED = Ranking(gains=(0.0, 1.0, 0.0, 1.0), scores=(3.0, 2.0, 2.0, 2.0))
"""Three candidates share ranks 2 to 4; two of them are relevant."""


def value(text: str, ranking: Ranking) -> float | None:
    asked = measure(text)
    return asked.metric.reference(ranking, asked.k, asked.values)


def test_every_option_and_choice_stands_in_this_file() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    quoted = re.findall(r'"(\w+\([a-z][^"]+\))(?:@\w+)?"', text)
    measures = [metric_with_options(one) for one in quoted]
    given = {(m.metric.name, *option) for m in measures for option in m.options}
    options = [(m.name, o) for m in METRICS for o in m.options if o.name not in OF_THE_MEAN]
    assert {(name, o.name) for name, o in options} == {found[:2] for found in given}
    choices = {(o.name, v) for _, o in options for v in o.values.split(", ") if v.isidentifier()}
    defaults = {(o.name, o.default) for _, o in options}
    assert choices - defaults <= {found[1:] for found in given}


# denominators


@pytest.mark.parametrize(
    ("text", "example", "two_of_five"),
    [
        ("ap@3", (1 / 1 + 2 / 3) / 5, (1 / 1) / 3),
        ("ap(denom=min_k_rel)@3", (1 / 1 + 2 / 3) / 3, (1 / 1) / 3),
        ("ap(denom=k)@3", (1 / 1 + 2 / 3) / 3, (1 / 1) / 3),
        ("ap(denom=hits)@3", (1 / 1 + 2 / 3) / 2, (1 / 1) / 1),
        ("ap(denom=min_rel_n)@3", (1 / 1 + 2 / 3) / 3, (1 / 1) / 2),
        ("ap(denom=min_k_rel)@10", (1 / 1 + 2 / 3) / 5, (1 / 1) / 3),
        ("ap(denom=k)@10", (1 / 1 + 2 / 3) / 10, (1 / 1) / 10),
        ("ap(denom=min_rel_n)@1", (1 / 1) / 3, (1 / 1) / 2),
    ],
)
def test_ap_has_five_denominators(text: str, example: float, two_of_five: float) -> None:
    assert value(text, EXAMPLE) == pytest.approx(example)
    assert value(text, TWO_OF_FIVE) == pytest.approx(two_of_five)


def test_ap_without_a_cut_off_has_its_denominators_too() -> None:
    assert value("ap(denom=min_k_rel)", EXAMPLE) == pytest.approx((1 / 1 + 2 / 3) / 5)
    assert value("ap(denom=k)", TWO_OF_FIVE) == 1 / 2


def test_ap_over_no_hits_is_zero() -> None:
    assert value("ap(denom=hits)@2", Ranking(gains=(0.0, 0.0, 1.0))) == 0
    assert value("ap(denom=min_rel_n)@2", Ranking(gains=(), missed=(1.0,))) == 0


def test_precision_of_a_short_list_divides_by_k_or_by_the_list() -> None:
    assert value("P@3", TWO_OF_FIVE) == 1 / 3
    assert value("P(denom=min_k_n)@3", TWO_OF_FIVE) == 1 / 2
    assert value("P(denom=min_k_n)@1", TWO_OF_FIVE) == 1 / 1
    assert value("P(denom=min_k_n)@3", Ranking(gains=())) == 0


def test_recall_can_be_over_what_k_places_can_hold() -> None:
    assert value("R@3", EXAMPLE) == 2 / 5
    assert value("R(denom=min_k_rel)@3", EXAMPLE) == 2 / 3
    assert value("R(denom=min_k_rel)@10", EXAMPLE) == 2 / 5
    assert value("R(denom=min_k_rel)", EXAMPLE) == 2 / 5


def test_beta_weighs_recall() -> None:
    precision, recall = 2 / 3, 2 / 5
    f2 = (1 + 4) * precision * recall / (4 * precision + recall)
    assert value("f_beta(beta=2)@3", EXAMPLE) == pytest.approx(f2)
    assert value("f_beta(beta=2)@3", EXAMPLE) == pytest.approx(5 * 2 / (4 * 5 + 3))
    assert value("f1(beta=0.5)@3", EXAMPLE) == pytest.approx(5 / 4 * 2 / (1 / 4 * 5 + 3))
    assert value("f1(beta=2)@1", TWO_OF_FIVE) == pytest.approx(5 * 1 / (4 * 3 + 1))


def test_shown_is_the_number_of_slots_of_the_query() -> None:
    two_slots = replace(EXAMPLE, n_slots=2)
    assert value("P@shown", two_slots) == 1 / 2
    assert value("R@shown", two_slots) == 1 / 5
    assert value("R(denom=min_k_rel)@shown", two_slots) == 1 / 2
    assert value("P@shown", EXAMPLE) == 2 / 3


def test_f1_without_any_place_is_zero() -> None:
    assert value("F1@shown", Ranking(gains=(), missed=(1.0,))) == 0


# relevance


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("recall(rel=2)@4", 2 / 3),
        ("recall(rel=2.5)@4", 1 / 1),
        ("precision(rel=2)@4", 2 / 4),
        ("f1(rel=2)@4", 2 * 2 / (4 + 3)),
        ("ap(rel=2)@4", (1 / 2 + 2 / 4) / 3),
        ("rr(rel=2)@4", 1 / 2),
        ("rr(rel=3)", 1 / 4),
        ("hit_rate(rel=2)@1", 0),
        ("hit_rate(rel=2)@2", 1),
        ("hits(rel=2)@4", 2),
        ("r_precision(rel=2)", 1 / 3),
        ("auc(rel=2)", 1 / 4),
        ("rbp(rel=2)@4", (1 - 0.8) * (0.8**1 + 0.8**3)),
        ("dcg(rel=2)@2", 1 / log2(2) + 2 / log2(3)),
        ("ndcg(rel=2)@2", (1 / log2(2) + 2 / log2(3)) / (3 / log2(2) + 2 / log2(3))),
    ],
)
def test_a_gain_below_rel_is_not_relevant(text: str, expected: float) -> None:
    assert value(text, FOUR_GRADES) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["recall", "f1", "ap", "rr", "hit_rate", "ndcg"])
def test_without_an_item_of_that_gain_it_is_undefined(name: str) -> None:
    assert value(f"{name}(rel=4)@3", FOUR_GRADES) is None


@pytest.mark.parametrize("text", ["precision(rel=4)@3", "hits(rel=4)@3", "rbp(rel=4)@3"])
def test_without_an_item_of_that_gain_it_is_zero(text: str) -> None:
    assert value(text, FOUR_GRADES) == 0


# gains and ideals


@pytest.mark.parametrize(
    ("text", "found", "ideal"),
    [
        ("ndcg@3", (1 / log2(2) + 3 / log2(4)), (3 / log2(2) + 2 / log2(3) + 1 / log2(4))),
        ("ndcg(gain=exp2)@3", 1 / log2(2) + 7 / log2(4), 7 / log2(2) + 3 / log2(3) + 1 / log2(4)),
        ("ndcg(gain=binary)@3", 1 / log2(2) + 1 / log2(4), 1 + 1 / log2(3) + 1 / log2(4)),
        ("ndcg(gain=binary,rel=2)@3", 1 / log2(4), 1 / log2(2) + 1 / log2(3)),
        (
            "ndcg(gain={1:5,3:2})@3",
            5 / log2(2) + 2 / log2(4),
            5 / log2(2) + 2 / log2(3) + 2 / log2(4),
        ),
        ("ndcg(gain_respects_rel=true,rel=2)@3", 3 / log2(4), 3 / log2(2) + 2 / log2(3)),
        ("ndcg(gain_respects_rel=false,rel=2)@1", 1 / log2(2), 3 / log2(2)),
        (
            "ndcg(gain={1:5,3:2},gain_respects_rel=true,rel=2)@3",
            2 / log2(4),
            2 / log2(2) + 2 / log2(3),
        ),
        ("ndcg(ideal=candidates)@3", 1 / log2(2) + 3 / log2(4), 3 / log2(2) + 1 / log2(3)),
        ("ndcg(ideal=candidates)", 1 / log2(2) + 3 / log2(4), 3 / log2(2) + 1 / log2(3)),
        ("ndcg(ideal=k_ones)@2", 1 / log2(2), 1 / log2(2) + 1 / log2(3)),
        ("ndcg(ideal=k_ones)", 1 + 3 / log2(4), 1 + 1 / log2(3) + 1 / log2(4)),
        ("ndcg(ideal_cut=none)@1", 1 / log2(2), 3 / log2(2) + 2 / log2(3) + 1 / log2(4)),
        ("ndcg(ideal=candidates,ideal_cut=none)@1", 1 / log2(2), 3 / log2(2) + 1 / log2(3)),
    ],
)
def test_ndcg_has_gains_and_ideals(text: str, found: float, ideal: float) -> None:
    assert value(text, GRADED) == pytest.approx(found / ideal)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dcg(gain=exp2)@3", 1 / log2(2) + 7 / log2(4)),
        ("dcg(gain=binary)@3", 1 / log2(2) + 1 / log2(4)),
        ("dcg(gain={3:4})@3", 1 / log2(2) + 4 / log2(4)),
        ("dcg(gain_respects_rel=true,rel=3)@3", 3 / log2(4)),
    ],
)
def test_dcg_has_the_same_gains(text: str, expected: float) -> None:
    assert value(text, GRADED) == pytest.approx(expected)


def test_ndcg_is_zero_where_nothing_could_gain() -> None:
    assert value("ndcg(gain={1:0,2:0,3:0})@3", GRADED) == 0
    assert value("ndcg(ideal=candidates)@3", Ranking(gains=(0.0,), missed=(1.0,))) == 0


def test_one_relevant_item_is_never_as_good_as_k_of_them() -> None:
    ideal = 1 / log2(2) + 1 / log2(3) + 1 / log2(4)
    assert value("ndcg(ideal=k_ones)@3", Ranking(gains=(1.0,))) == pytest.approx(1 / ideal)


def test_rbp_has_a_persistence_and_graded_gains() -> None:
    assert value("rbp(p=0.5)@3", GRADED) == (1 - 0.5) * (0.5**0 + 0.5**2)
    graded = (1 - 0.5) * (1 / 3 * 0.5**0 + 3 / 3 * 0.5**2)
    assert value("rbp(max_gain=3,p=0.5)@3", GRADED) == pytest.approx(graded)
    assert value("rbp(max_gain=2,p=0.5)@3", GRADED) == (1 - 0.5) * (1 / 2 + 2 / 2 * 0.5**2)


# equal scores


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hits(tie_break=expected)@2", 2 * 1 / 3),
        ("hits(tie_break=best)@2", 1),
        ("hits(tie_break=worst)@2", 0),
        ("hits(tie_break=expected)@3", 2 * 2 / 3),
        ("hits(tie_break=best)@3", 2),
        ("hits(tie_break=worst)@3", 1),
        ("hits(tie_break=worst)", 2),
        ("recall(tie_break=expected)@2", 2 / 3 / 2),
        ("recall(tie_break=best)@2", 1 / 2),
        ("recall(tie_break=worst)@2", 0 / 2),
        ("precision(tie_break=expected)@3", 4 / 3 / 3),
        ("precision(tie_break=best)@3", 2 / 3),
        ("precision(tie_break=worst)@3", 1 / 3),
        ("hit_rate(tie_break=expected)@2", 1 - comb(1, 1) / comb(3, 1)),
        ("hit_rate(tie_break=expected)@3", 1),
        ("hit_rate(tie_break=best)@2", 1),
        ("hit_rate(tie_break=worst)@2", 0),
        ("dcg(tie_break=expected)@2", 2 / 3 / log2(3)),
        ("ndcg(tie_break=expected)@2", 2 / 3 / log2(3) / (1 / log2(2) + 1 / log2(3))),
    ],
)
def test_ties_are_averaged_or_the_best_or_the_worst(text: str, expected: float) -> None:
    assert value(text, TIED) == pytest.approx(expected)


def test_the_chance_of_a_hit_is_one_less_the_chance_of_drawing_misses_only() -> None:
    five_alike = Ranking(gains=(1.0, 0.0, 1.0, 0.0, 0.0), scores=(1.0,) * 5)
    missed = comb(5 - 2, 2) / comb(5, 2)
    assert value("hit_rate(tie_break=expected)@2", five_alike) == pytest.approx(1 - missed)


def test_ties_are_averaged_after_grades_have_become_gains() -> None:
    alike = Ranking(gains=(1.0, 3.0), scores=(1.0, 1.0))
    assert value("dcg(tie_break=expected)@1", alike) == (1 + 3) / 2
    assert value("dcg(gain=exp2,tie_break=expected)@1", alike) == (1 + 7) / 2
    assert value("ndcg(gain=exp2,tie_break=expected)@1", alike) == (1 + 7) / 2 / 7
    assert value("hits(rel=2,tie_break=best)@1", alike) == 1
    assert value("hits(rel=2,tie_break=expected)@1", alike) == 1 / 2
    assert value("hits(rel=2,tie_break=worst)@1", alike) == 0


@pytest.mark.parametrize(
    "text",
    [
        *("recall(tie_break=item_id_asc)@1", "precision(tie_break=item_id_desc)@1"),
        *("f1(tie_break=item_id_asc)@1", "ap(tie_break=item_id_asc)@1"),
        *("rr(tie_break=item_id_asc)@1", "ndcg(tie_break=item_id_asc)@1"),
        *("hit_rate(tie_break=item_id_desc)@1", "hits(tie_break=item_id_asc)@1"),
        *("dcg(tie_break=item_id_desc)@1", "rbp(tie_break=item_id_asc)@1"),
        *("r_precision(tie_break=item_id_asc)", "judged(tie_break=item_id_asc)@1"),
    ],
)
def test_a_named_order_of_ties_is_the_one_that_a_ranking_already_has(text: str) -> None:
    alike = Ranking(gains=(0.0, 1.0), scores=(1.0, 1.0), judged=(False, True))
    assert value(text, alike) == 0


# trec_eval: with its relevance levels and its tables of gains

KS = (1, 3, 5, 10)
SEED = 20_260_101
AT_K = {
    "recall": R,
    "recall(rel=2)": R(rel=2),
    "precision": P,
    "precision(rel=2)": P(rel=2),
    "ap": AP,
    "ap(rel=2)": AP(rel=2),
    "rr": RR,
    "rr(rel=2)": RR(rel=2),
    "hit_rate": Success,
    "hit_rate(rel=2)": Success(rel=2),
    "ndcg": nDCG,
    "ndcg(gain=exp2)": nDCG(gains={1: 1, 2: 3, 3: 7}),
    "ndcg(gain=binary)": nDCG(gains={1: 1, 2: 1, 3: 1}),
    "ndcg(gain=binary,rel=2)": nDCG(gains={1: 0, 2: 1, 3: 1}),
    "ndcg(gain={2:3,3:9})": nDCG(gains={2: 3, 3: 9}),
    "ndcg(gain_respects_rel=true,rel=3)": nDCG(gains={1: 0, 2: 0, 3: 3}),
}
WHOLE = {
    "ap": AP,
    "ap(rel=2)": AP(rel=2),
    "rr": RR,
    "rr(rel=2)": RR(rel=2),
    "ndcg": nDCG,
    "ndcg(gain=exp2)": nDCG(gains={1: 1, 2: 3, 3: 7}),
    "r_precision": Rprec,
    "r_precision(rel=2)": Rprec(rel=2),
    "hits": NumRet(rel=1),
    "hits(rel=3)": NumRet(rel=3),
    "f1(beta=2)": SetF(beta=4.0),
}
"""Over the whole ranking; trec_eval calls our beta squared its beta."""


def random_rankings(n: int) -> dict[str, Ranking]:
    """Queries with graded gains, most of them 0, of which some relevant items were not ranked."""
    draw = random.Random(SEED)
    grades = (0, 0, 0, 1, 2, 3)
    rankings = {}
    for query in range(n):
        gains = tuple(float(draw.choice(grades)) for _ in range(draw.randint(1, 15)))
        missed = tuple(float(draw.randint(1, 3)) for _ in range(draw.randint(0, 3)))
        rankings[f"q{query}"] = Ranking(gains, missed)
    return rankings


RANKINGS = random_rankings(300)
BY_JUDGED = {
    query: replace(ranking, judged=tuple(place % 3 > 0 for place in range(ranking.n_candidates)))
    for query, ranking in RANKINGS.items()
}


def theirs(
    asked: ir_measures.Measure,
    rankings: dict[str, Ranking],
    provider: ir_measures.providers.Provider = ir_measures.pytrec_eval,
) -> dict[str, float]:
    """The measure's value by query; scores without ties put the candidates into their order."""
    judgments, scores = {}, {}
    for query, ranking in rankings.items():
        gains = [*enumerate((*ranking.gains, *ranking.missed))]
        unjudged = {place for place, is_judged in enumerate(ranking.judged) if not is_judged}
        judgments[query] = {f"d{n}": int(gain) for n, gain in gains if n not in unjudged}
        scores[query] = {f"d{n}": -float(n) for n in range(ranking.n_candidates)}
    found = provider.evaluator([asked], judgments).iter_calc(scores)
    return {one.query_id: one.value for one in found}


def compare(text: str, expected: dict[str, float], k: Callable[[Ranking], int]) -> int:
    """How many of our values are undefined; each of them, and no other, is 0 there."""
    n_undefined = 0
    named = metric_with_options(text)
    for query, ranking in RANKINGS.items():
        ours = named.metric.reference(ranking, k(ranking), named.values)
        n_undefined += ours is None
        assert (ours or 0.0) == pytest.approx(expected[query], abs=1e-9), (SEED, query, ranking)
    return n_undefined


@pytest.mark.parametrize("text", AT_K)
@pytest.mark.parametrize("k", KS)
def test_it_is_what_trec_eval_says(text: str, k: int) -> None:
    provider = ir_measures.msmarco if text.startswith("rr") else ir_measures.pytrec_eval
    expected = theirs(AT_K[text] @ k, RANKINGS, provider)
    n_undefined = compare(text, expected, lambda ranking: k)
    assert (n_undefined > 0) == (not text.startswith("precision"))


@pytest.mark.parametrize("text", WHOLE)
def test_without_a_cut_off_it_is_what_trec_eval_says(text: str) -> None:
    no_cutoff = not text.startswith("f1")
    expected = theirs(WHOLE[text], RANKINGS)
    compare(text, expected, lambda ranking: 0 if no_cutoff else ranking.n_candidates)


@pytest.mark.parametrize("k", KS)
def test_ideal_candidates_is_trec_eval_without_the_others_judgments(k: int) -> None:
    expected = theirs(nDCG @ k, {q: replace(r, missed=()) for q, r in RANKINGS.items()})
    compare("ndcg(ideal=candidates)", expected, lambda ranking: k)


@pytest.mark.parametrize("k", KS)
def test_judged_is_what_ir_measures_says(k: int) -> None:
    found = theirs(Judged @ k, BY_JUDGED, ir_measures.judged)
    assert len(found) > 200
    for query, expected in found.items():
        assert value(f"judged@{k}", BY_JUDGED[query]) == expected


@pytest.mark.parametrize(("named", "rel"), [("auc", 1), ("auc(rel=2)", 2)])
def test_auc_without_ties_is_the_accuracy_of_ir_measures(named: str, rel: int) -> None:
    mixed = {q: r for q, r in RANKINGS.items() if min(r.gains) < rel <= max(r.gains)}
    assert len(mixed) > 150
    for query, expected in theirs(Accuracy(rel=rel), mixed, ir_measures.accuracy).items():
        assert value(named, RANKINGS[query]) == pytest.approx(expected), (SEED, query)
