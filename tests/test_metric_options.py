"""Every option of the metrics by hand, on the references; then relevance and gains of trec_eval."""

import random
import re
from dataclasses import replace
from math import comb, log2
from pathlib import Path

import ir_measures
import pytest
from ir_measures import AP, NumRet, P, R, Rprec, RR, SetF, Success, nDCG

from ranklake.metrics import METRICS, Ranking, measure, metric_with_options

EXAMPLE = Ranking(gains=(1.0, 0.0, 1.0), missed=(1.0, 1.0, 1.0))
"""5 relevant items, hits at ranks 1 and 3: one name, many numbers, depending on the library."""
TWO_OF_FIVE = Ranking(gains=(1.0, 0.0), missed=(1.0, 1.0))
GRADED = Ranking(gains=(1.0, 0.0, 3.0), missed=(2.0,))
FOUR_GRADES = Ranking(gains=(1.0, 2.0, 0.0, 3.0), missed=(2.0,))
TIED = Ranking(gains=(0.0, 1.0, 0.0, 1.0), scores=(3.0, 2.0, 2.0, 2.0))
"""Three candidates share ranks 2 to 4; two of them are relevant."""
OF_THE_MEAN = ("average", "mean")
"""Options that the value of one query does not know."""


def value(text: str, ranking: Ranking) -> float | None:
    asked = measure(text)
    return asked.metric.reference(ranking, asked.k, asked.values)


def test_every_option_stands_in_this_file() -> None:
    quoted = re.findall(r'"(\w+\([^"]+\)(?:@\w+)?)"', Path(__file__).read_text(encoding="utf-8"))
    given = {(m.metric.name, *pair) for m in map(_named, quoted) for pair in m.options}
    options = [(m.name, o) for m in METRICS for o in m.options if o.name not in OF_THE_MEAN]
    assert [(m, o.name) for m, o in options if (m, o.name) not in {g[:2] for g in given}] == []
    named = {(o.name, text) for _, o in options for text in re.findall(r"\b\w+\b", o.values)}
    choices = {
        (name, text) for name, text in named if text in ("exp2", "binary") or "denom" in name
    }
    assert choices - {("denom", "rel"), ("denom", "k")} <= {g[1:] for g in given}


def _named(text: str):
    return metric_with_options(text.partition("@")[0])


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
        ("ndcg(gain={1:5,3:2})@3", 5 / log2(2) + 2 / log2(4), 5 / log2(2) + 2 / log2(3)),
        ("ndcg(gain_respects_rel=true,rel=2)@3", 3 / log2(4), 3 / log2(2) + 2 / log2(3)),
        ("ndcg(gain_respects_rel=false,rel=2)@1", 1 / log2(2), 3 / log2(2)),
        ("ndcg(gain={1:5,3:2},gain_respects_rel=true,rel=2)@3", 2 / log2(4), 2 / log2(2)),
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
        ("dcg(gain={3:4})@3", 4 / log2(4)),
        ("dcg(gain_respects_rel=true,rel=3)@3", 3 / log2(4)),
    ],
)
def test_dcg_has_the_same_gains(text: str, expected: float) -> None:
    assert value(text, GRADED) == pytest.approx(expected)


def test_ndcg_is_zero_where_nothing_could_gain() -> None:
    assert value("ndcg(gain={9:1})@3", GRADED) == 0
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


# trec_eval: see also its relevance levels and its table of gains

KS = (1, 3, 5, 10)
SEED = 20_260_101
AT_K = {
    "recall": R,
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
    "ndcg(gain={2:3,3:9})": nDCG(gains={1: 0, 2: 3, 3: 9}),
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
}
