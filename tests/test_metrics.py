"""The metrics' references: by hand, and against trec_eval. test_laws.py has what holds for all.

Spark's expressions are compared with these references elsewhere; here no Spark starts.
"""

import os
import random
from math import log2
from pathlib import Path

import ir_measures
import pytest

from ranklake.metrics import (
    DEFAULTS,
    METRICS,
    Denominator,
    Measure,
    Population,
    Ranking,
    measures_of,
    metric,
    per_query_measures,
)

GOLDEN = Path(__file__).parent / "golden" / "metrics.txt"

EXAMPLE = Ranking(gains=(1.0, 0.0, 1.0), missed=(1.0, 1.0, 1.0))
"""5 relevant items, hits at ranks 1 and 3: one name, many numbers, depending on the library."""
NOTHING_RELEVANT = Ranking(gains=(0.0, 0.0, 0.0))
NOTHING_FOUND = Ranking(gains=(0.0, 0.0), missed=(1.0,))
GRADED = Ranking(gains=(1.0, 0.0, 3.0), missed=(2.0,))


def value(name: str, ranking: Ranking, k: int) -> float | None:
    return metric(name).reference(ranking, k)


def ratio(name: str, rankings: list[Ranking], k: int) -> float:
    """The metric over several queries: the sum of their values over the sum of their parts."""
    m = metric(name)
    num = sum(m.reference(ranking, k) or 0.0 for ranking in rankings)
    return num / sum(m.reference_denominator(ranking, k) for ranking in rankings)


# each metric by hand, first on the example


def test_recall_divides_by_all_relevant_items() -> None:
    assert value("recall", EXAMPLE, 3) == 2 / 5


def test_precision_divides_by_k() -> None:
    assert value("precision", EXAMPLE, 3) == 2 / 3


def test_f1_is_the_harmonic_mean_of_precision_and_recall() -> None:
    assert value("f1", EXAMPLE, 3) == pytest.approx(2 * (2 / 3) * (2 / 5) / (2 / 3 + 2 / 5))
    assert value("f1", EXAMPLE, 3) == pytest.approx(2 * 2 / (3 + 5))


def test_ap_divides_by_all_relevant_items() -> None:
    assert value("ap", EXAMPLE, 3) == pytest.approx((1 / 1 + 2 / 3) / 5)


def test_rr_is_one_over_the_rank_of_the_first_hit() -> None:
    assert value("rr", EXAMPLE, 3) == 1 / 1
    assert value("rr", Ranking(gains=(0.0, 0.0, 1.0)), 3) == 1 / 3


def test_rr_does_not_look_beyond_k() -> None:
    assert value("rr", Ranking(gains=(0.0, 0.0, 1.0)), 2) == 0


def test_ndcg_has_all_relevant_items_in_its_ideal() -> None:
    ideal = 1 / log2(2) + 1 / log2(3) + 1 / log2(4)
    assert value("ndcg", EXAMPLE, 3) == pytest.approx((1 / log2(2) + 1 / log2(4)) / ideal)


def test_ndcg_has_linear_gains_in_the_best_order() -> None:
    ideal = 3 / log2(2) + 2 / log2(3) + 1 / log2(4)
    assert value("ndcg", GRADED, 3) == pytest.approx((1 / log2(2) + 3 / log2(4)) / ideal)
    assert value("ndcg", GRADED, 1) == pytest.approx(1 / 3)


def test_dcg_discounts_by_log2_of_rank_plus_one() -> None:
    assert value("dcg", EXAMPLE, 3) == pytest.approx(1 / log2(2) + 1 / log2(4))
    assert value("dcg", GRADED, 3) == pytest.approx(1 / log2(2) + 3 / log2(4))


def test_a_negative_gain_is_a_gain_of_zero() -> None:
    assert value("dcg", Ranking(gains=(-2.0, 1.0)), 2) == pytest.approx(1 / log2(3))
    assert value("recall", Ranking(gains=(-2.0, 1.0)), 2) == 1 / 1


def test_hit_rate_is_one_with_any_hit() -> None:
    assert value("hit_rate", EXAMPLE, 3) == 1
    assert value("hit_rate", Ranking(gains=(0.0, 1.0)), 1) == 0


def test_hits_counts_relevant_candidates() -> None:
    assert value("hits", EXAMPLE, 3) == 2
    assert value("hits", EXAMPLE, 1) == 1


def test_r_precision_is_precision_at_the_number_of_relevant_items() -> None:
    assert value("r_precision", EXAMPLE, 0) == 2 / 5
    assert value("r_precision", Ranking(gains=(1.0, 0.0, 1.0)), 0) == 1 / 2


def test_ctr_divides_clicks_by_shown_items() -> None:
    two_items = Ranking(gains=(0.0, 1.0))
    assert ratio("ctr", [EXAMPLE], 3) == 2 / 3
    assert ratio("ctr", [EXAMPLE, two_items, NOTHING_RELEVANT], 3) == (2 + 1 + 0) / (3 + 2 + 3)


def test_recall_micro_divides_by_the_relevant_items_of_all_queries() -> None:
    assert ratio("recall_micro", [EXAMPLE], 3) == 2 / 5
    one_of_one = Ranking(gains=(1.0,))
    assert ratio("recall_micro", [EXAMPLE, one_of_one, NOTHING_RELEVANT], 3) == (2 + 1) / (5 + 1)
    mean = (2 / 5 + 1 / 1) / 2
    assert ratio("recall", [EXAMPLE, one_of_one], 3) == pytest.approx(mean)


def test_precision_micro_divides_by_the_places_of_all_queries() -> None:
    assert ratio("precision_micro", [EXAMPLE], 3) == 2 / 3
    assert ratio("precision_micro", [EXAMPLE, Ranking(gains=(1.0,))], 3) == (2 + 1) / (3 + 3)


def test_every_metric_stands_in_this_file() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [m.name for m in METRICS if f'"{m.name}", EXAMPLE' not in text.replace("[", "")] == []


# the worked example of the README


def test_three_of_four_relevant_items_in_the_first_ten() -> None:
    ranking = Ranking(gains=(1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0), missed=(1.0,))
    assert value("recall", ranking, 10) == 3 / 4
    assert value("precision", ranking, 10) == 3 / 10
    assert value("f1", ranking, 10) == pytest.approx(6 / 14)
    assert round(6 / 14, 4) == 0.4286


# cases that others got wrong


def test_recall_is_cut_at_k() -> None:
    gains = [0.0] * 12
    gains[0] = gains[1] = gains[11] = 1.0
    assert value("recall", Ranking(tuple(gains)), 10) == 2 / 3


def test_recall_at_one_of_many_relevant_items_is_small() -> None:
    ranking = Ranking(gains=(1.0,), missed=(1.0,) * 42)
    assert value("recall", ranking, 1) == 1 / 43
    assert value("hit_rate", ranking, 1) == 1


@pytest.mark.parametrize("name", ["recall", "f1", "ap", "rr", "ndcg", "hit_rate", "r_precision"])
def test_without_a_relevant_item_it_is_undefined(name: str) -> None:
    assert value(name, NOTHING_RELEVANT, 3) is None
    assert metric(name).null_when == "the query has no relevant item"


@pytest.mark.parametrize("name", ["precision", "hits", "dcg"])
def test_without_a_relevant_item_it_is_zero(name: str) -> None:
    assert value(name, NOTHING_RELEVANT, 3) == 0
    assert metric(name).null_when == "never"


@pytest.mark.parametrize("name", [m.name for m in METRICS])
def test_with_a_relevant_item_that_is_not_found_it_is_zero(name: str) -> None:
    assert value(name, NOTHING_FOUND, 2) == 0


def test_a_query_without_candidates_has_values_too() -> None:
    empty = Ranking(gains=(), missed=(1.0,))
    assert [value(name, empty, 3) for name in ("recall", "precision", "ndcg")] == [0, 0, 0]


def test_a_list_shorter_than_k_still_divides_by_k() -> None:
    assert value("precision", Ranking(gains=(1.0, 0.0)), 3) == 1 / 3


def test_recall_is_whole_where_precision_is_not() -> None:
    ranking = Ranking(gains=(1.0, 0.0, 1.0, 0.0, 0.0))
    assert value("recall", ranking, 5) == 2 / 2
    assert value("precision", ranking, 5) == 2 / 5


def test_an_item_clicked_twice_is_one_relevant_item() -> None:
    a_clicked_twice = Ranking(gains=(1.0, 0.0, 0.0))
    assert value("precision", a_clicked_twice, 3) == 1 / 3
    assert value("recall", a_clicked_twice, 3) == 1


# trec_eval

KS = (1, 3, 5, 10)
SEED = 20_260_101
OF_TREC_EVAL = {
    "recall": ir_measures.R,
    "precision": ir_measures.P,
    "ap": ir_measures.AP,
    "rr": ir_measures.RR,
    "ndcg": ir_measures.nDCG,
    "hit_rate": ir_measures.Success,
}


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


def judged(rankings: dict[str, Ranking]) -> dict[str, dict[str, int]]:
    return {
        query: {f"d{n}": int(gain) for n, gain in enumerate((*ranking.gains, *ranking.missed))}
        for query, ranking in rankings.items()
    }


def scored(rankings: dict[str, Ranking]) -> dict[str, dict[str, float]]:
    """Scores without ties, which put the candidates into the order of the ranking."""
    return {
        query: {f"d{n}": -float(n) for n in range(ranking.n_candidates)}
        for query, ranking in rankings.items()
    }


@pytest.fixture(scope="module")
def trec_eval() -> dict[tuple[str, str], float]:
    """The values of trec_eval by query and measure; it has no RR@k, which MS MARCO's script has."""
    rankings = random_rankings(300)
    at_k = [measure @ k for measure in OF_TREC_EVAL.values() for k in KS]
    whole = [ir_measures.AP, ir_measures.RR, ir_measures.nDCG, ir_measures.Rprec]
    asked = {
        ir_measures.pytrec_eval: [*at_k, *whole],
        ir_measures.msmarco: [ir_measures.RR @ k for k in KS],
    }
    return {
        (found.query_id, str(found.measure)): found.value
        for provider, measures in asked.items()
        for found in provider.evaluator(measures, judged(rankings)).iter_calc(scored(rankings))
    }


@pytest.mark.parametrize("name", OF_TREC_EVAL)
def test_it_is_what_trec_eval_says(name: str, trec_eval: dict[tuple[str, str], float]) -> None:
    n_undefined = 0
    for query, ranking in random_rankings(300).items():
        for k in KS:
            ours = value(name, ranking, k)
            theirs = trec_eval[query, str(OF_TREC_EVAL[name] @ k)]
            n_undefined += ours is None
            assert (ours or 0.0) == pytest.approx(theirs, abs=1e-9), (SEED, query, k, ranking)
    assert (n_undefined > 0) == (name != "precision")  # trec_eval has 0 where ours is undefined


@pytest.mark.parametrize(
    ("name", "measure"), [("ap", "AP"), ("rr", "RR"), ("ndcg", "nDCG"), ("r_precision", "Rprec")]
)
def test_without_a_cut_off_it_is_what_trec_eval_says(
    name: str, measure: str, trec_eval: dict[tuple[str, str], float]
) -> None:
    for query, ranking in random_rankings(300).items():
        ours = value(name, ranking, 0) or 0.0
        assert ours == pytest.approx(trec_eval[query, measure], abs=1e-9), (SEED, query, ranking)


# the catalogue


def test_names_and_aliases_name_one_metric_each() -> None:
    names = [name for m in METRICS for name in (m.name, *m.aliases)]
    assert len(names) == len({*names})
    assert all(metric(name).name in names for name in names)


def test_an_unknown_metric_is_refused_with_the_known_ones_and_the_nearest() -> None:
    with pytest.raises(KeyError) as caught:
        metric("Recal")
    sentence = caught.value.args[0]
    assert sentence.startswith("unknown metric 'Recal', known are recall, precision")
    assert sentence.endswith("; did you mean 'recall'?")


def test_the_usual_population_of_precision_is_all_queries() -> None:
    first = {m.name: m.populations[0] for m in METRICS if m.denominator is Denominator.QUERIES}
    assert first["precision"] is Population.ALL
    assert {first[name] for name in DEFAULTS if name not in ("precision", "ctr")} == {
        Population.WITH_RELEVANT
    }


def test_a_metric_is_of_one_query_or_made_of_one_that_is() -> None:
    for m in METRICS:
        assert (m.column is None) == bool(m.sums_of)
        assert metric(m.summand).column is not None


def test_every_measure_brings_its_hit_rate() -> None:
    found = [(m.name, k) for m, k in measures_of(["recall", "r_precision"], [1, 5])]
    assert found == [
        ("recall", 1),
        ("recall", 5),
        ("r_precision", 0),
        ("hit_rate", 1),
        ("hit_rate", 5),
        ("hit_rate", 0),
    ]


def test_measures_are_listed_once() -> None:
    columns = [m.column for m in per_query_measures(["ctr", "recall_micro", "hits", "R"], [5])]
    assert columns == ["hits_at_5", "recall_at_5", "hit_rate_at_5"]
    assert measures_of(["hit_rate"], [5]) == (Measure(metric("hit_rate"), 5),)


def test_every_metric_says_how_it_reads() -> None:
    for m in METRICS:
        sentence = m.reads_as.format(value="0.62", k=10)
        assert "0.62" in sentence
        assert "{" not in sentence


def test_no_published_meaning_changes_unseen() -> None:
    """A metric that comes to mean something else gets another name; UPDATE_GOLDEN=1 accepts it."""
    found = "".join(f"{m.name}: {m.formula}; null: {m.null_when}\n" for m in METRICS)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")
