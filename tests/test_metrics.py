"""The metrics' references by hand, with their default options.

test_metric_options.py has the options and trec_eval, test_laws.py what holds for every ranking.

Spark's expressions are compared with these references elsewhere; here no Spark starts.
"""

import os
from math import log, log2
from pathlib import Path

import pytest
from known import OF_ALL_CANDIDATES

from ranklake.metrics import (
    DEFAULTS,
    METRICS,
    Denominator,
    Population,
    Ranking,
    metric,
)

GOLDEN = Path(__file__).parent / "golden" / "metrics.txt"

EXAMPLE = Ranking(
    gains=(1.0, 0.0, 1.0),
    missed=(1.0, 1.0, 1.0),
    scores=(0.75, 0.5, 0.25),
    clicked=(True, True, True),
)
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


def test_auc_is_the_share_of_pairs_in_the_right_order() -> None:
    assert value("auc", EXAMPLE, 0) == 1 / 2
    assert value("auc", Ranking(gains=(1.0, 1.0, 0.0, 0.0)), 0) == 4 / 4
    assert value("auc", Ranking(gains=(0.0, 0.0, 1.0)), 0) == 0 / 2


def test_auc_counts_pairs_of_equal_scores_as_a_half() -> None:
    ranking = Ranking(gains=(1.0, 0.0, 0.0, 1.0), scores=(3.0, 2.0, 2.0, 2.0))
    assert value("auc", ranking, 0) == (1 + 1 + 1 / 2 + 1 / 2) / (2 * 2)


def test_auc_has_candidates_without_a_score_last_and_equal() -> None:
    ranking = Ranking(gains=(0.0, 1.0, 0.0), scores=(-5.0, None, None))
    assert value("auc", ranking, 0) == (0 + 1 / 2) / (1 * 2)


@pytest.mark.parametrize("gains", [(), (0.0, 0.0), (1.0, 2.0)])
def test_auc_is_undefined_where_candidates_do_not_differ(gains: tuple[float, ...]) -> None:
    assert value("auc", Ranking(gains, missed=(1.0,)), 0) is None
    assert metric("auc").reference_denominator(Ranking(gains), 0) == 0


def test_rbp_weighs_each_rank_by_the_chance_of_looking_at_it() -> None:
    assert value("rbp", EXAMPLE, 3) == pytest.approx((1 - 0.8) * (0.8**0 + 0.8**2))
    assert value("rbp", EXAMPLE, 2) == pytest.approx((1 - 0.8) * 0.8**0)
    assert value("rbp", GRADED, 3) == pytest.approx((1 - 0.8) * (0.8**0 + 0.8**2))


def test_judged_divides_by_k_or_by_the_candidates_if_fewer() -> None:
    assert value("judged", EXAMPLE, 3) == 3 / 3
    ranking = Ranking(gains=(1.0, 0.0, 0.0), judged=(True, False, True))
    assert [value("judged", ranking, k) for k in (1, 2, 3, 10)] == [1 / 1, 1 / 2, 2 / 3, 2 / 3]
    assert value("judged", Ranking(gains=(), missed=(1.0,)), 3) is None


def test_tied_is_one_where_equal_scores_decide_the_hits() -> None:
    assert value("tied", EXAMPLE, 3) == 0
    ranking = Ranking(gains=(1.0, 1.0, 0.0), scores=(2.0, 1.0, 1.0))
    assert [value("tied", ranking, k) for k in (1, 2, 3)] == [0, 1, 0]
    alike = Ranking(gains=(1.0, 1.0), scores=(1.0, 1.0))
    assert value("tied", alike, 1) == 0


def test_cvr_divides_conversions_by_clicks() -> None:
    assert ratio("cvr", [EXAMPLE], 3) == 2 / 3
    one_click = Ranking(gains=(0.0, 1.0), clicked=(True, False))
    assert ratio("cvr", [EXAMPLE, one_click], 1) == (1 + 0) / (1 + 1)
    assert ratio("cvr", [EXAMPLE, one_click], 2) == (1 + 1) / (2 + 1)


def test_conversion_value_is_the_sum_of_the_gains_within_k() -> None:
    assert value("conversion_value", EXAMPLE, 3) == 1 + 1
    assert [value("conversion_value", GRADED, k) for k in (1, 2, 3, 0)] == [1, 1, 1 + 3, 1 + 3]


def test_calibration_divides_the_scores_by_the_relevant_candidates() -> None:
    assert ratio("calibration", [EXAMPLE], 0) == (0.75 + 0.5 + 0.25) / 2
    unscored = Ranking(gains=(0.0, 1.0), scores=(0.125, None))
    assert ratio("calibration", [EXAMPLE, unscored], 0) == (0.75 + 0.5 + 0.25 + 0.125) / (2 + 0)


def test_log_loss_is_a_mean_over_the_candidates_with_a_score() -> None:
    losses = -log(0.75) - log(1 - 0.5) - log(0.25)
    assert ratio("log_loss", [EXAMPLE], 0) == pytest.approx(losses / 3)
    unscored = Ranking(gains=(0.0, 1.0), scores=(0.125, None))
    both = losses - log(1 - 0.125)
    assert ratio("log_loss", [EXAMPLE, unscored], 0) == pytest.approx(both / (3 + 1))


def test_log_loss_of_a_wrong_certainty_is_finite() -> None:
    assert ratio("log_loss", [Ranking(gains=(0.0,), scores=(1.0,))], 0) == -log(1e-15)
    assert ratio("log_loss", [Ranking(gains=(1.0,), scores=(1.0,))], 0) == 0


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


@pytest.mark.parametrize("name", ["precision", "hits", "dcg", "rbp", "tied"])
def test_without_a_relevant_item_it_is_zero(name: str) -> None:
    assert value(name, NOTHING_RELEVANT, 3) == 0
    assert metric(name).null_when == "never"


@pytest.mark.parametrize("name", [m.name for m in METRICS if m.name not in OF_ALL_CANDIDATES])
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


def test_every_metric_says_how_it_reads() -> None:
    for m in METRICS:
        sentence = m.reads_as.format(value="0.62", k=10)
        assert "0.62" in sentence
        assert "{" not in sentence


def test_no_published_meaning_changes_unseen() -> None:
    """A metric that comes to mean something else gets another name; UPDATE_GOLDEN=1 accepts it."""
    found = "".join(
        f"{m.name}: {m.formula}; null: {m.null_when}; "
        f"options: {', '.join(f'{o.name}={o.default}' for o in m.options) or 'none'}\n"
        for m in METRICS
    )
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(found, encoding="utf-8")
    assert found == GOLDEN.read_text(encoding="utf-8")
