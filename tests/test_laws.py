"""Laws: what holds for every ranking, whatever its items. On the references, without Spark."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ranklake.metrics import METRICS, Metric, Ranking, metric

settings.register_profile("steady", deadline=None, derandomize=True)  # also on a busy machine
settings.load_profile("steady")

gains = st.sampled_from((0.0, 0.0, 0.0, 1.0, 2.0, 3.0))
positive = st.sampled_from((1.0, 2.0, 3.0))
cutoffs = st.integers(1, 15)
each_metric = st.sampled_from(METRICS)
rankings = st.builds(
    Ranking,
    gains=st.lists(gains, max_size=12).map(tuple),
    missed=st.lists(positive, max_size=4).map(tuple),
)
WITHOUT_CUTOFF = ("recall", "ap", "rr", "ndcg", "hit_rate", "hits", "dcg")


def value(name: str, ranking: Ranking, k: int) -> float | None:
    return metric(name).reference(ranking, k)


def swapped(gains: tuple[float, ...], one: int, other: int) -> tuple[float, ...]:
    new = list(gains)
    new[one], new[other] = new[other], new[one]
    return tuple(new)


def misses(ranking: Ranking) -> list[int]:
    return [place for place, gain in enumerate(ranking.gains) if gain == 0]


@given(each_metric, rankings, cutoffs)
def test_values_are_within_the_metrics_range(m: Metric, ranking: Ranking, k: int) -> None:
    found = m.reference(ranking, k)
    part = m.reference_denominator(ranking, k)
    assert found is None or 0 <= found <= m.upper * max(part, 1.0) + 1e-12


@given(each_metric, rankings, cutoffs)
def test_undefined_is_exactly_what_null_when_says(m: Metric, ranking: Ranking, k: int) -> None:
    needs_relevant = m.null_when == "the query has no relevant item"
    is_undefined = needs_relevant and not ranking.n_relevant
    assert (m.reference(ranking, k) is None) == is_undefined


@given(st.sampled_from(("recall", "ap", "rr", "hit_rate", "hits", "dcg")), rankings, cutoffs)
def test_a_longer_list_never_lowers_it(name: str, ranking: Ranking, k: int) -> None:
    assume(value(name, ranking, k) is not None)
    assert value(name, ranking, k + 1) >= value(name, ranking, k)


@given(rankings, cutoffs)
def test_ndcg_is_one_exactly_when_the_first_k_are_as_good_as_can_be(
    ranking: Ranking, k: int
) -> None:
    assume(ranking.n_relevant)
    top = [*ranking.gains[:k], *[0.0] * k][:k]
    ideal = [*ranking.ideal[:k], *[0.0] * k][:k]
    assert (value("ndcg", ranking, k) == pytest.approx(1, abs=1e-9)) == (top == ideal)


@given(rankings, cutoffs)
def test_the_best_order_has_ndcg_one(ranking: Ranking, k: int) -> None:
    assume(ranking.n_relevant)
    best = Ranking(gains=(*ranking.ideal, 0.0, 0.0))
    assert value("ndcg", best, k) == pytest.approx(1)
    assert value("rr", best, k) == 1


@given(each_metric, rankings, cutoffs, st.data())
def test_swapping_two_misses_changes_nothing(
    m: Metric, ranking: Ranking, k: int, data: st.DataObject
) -> None:
    places = misses(ranking)
    assume(len(places) >= 2)
    one, other = data.draw(st.permutations(places))[:2]
    same = Ranking(swapped(ranking.gains, one, other), ranking.missed)
    assert m.reference(same, k) == m.reference(ranking, k)


@given(each_metric, rankings, cutoffs, st.data())
def test_moving_a_hit_up_past_a_miss_never_lowers_it(
    m: Metric, ranking: Ranking, k: int, data: st.DataObject
) -> None:
    places = [n for n in misses(ranking) if n + 1 < ranking.n_candidates and ranking.gains[n + 1]]
    assume(places)
    miss = data.draw(st.sampled_from(places))
    better = Ranking(swapped(ranking.gains, miss, miss + 1), ranking.missed)
    assert m.reference(better, k) >= m.reference(ranking, k) - 1e-12


@given(each_metric, rankings, cutoffs, st.integers(1, 5))
def test_an_irrelevant_tail_changes_shown_items_only(
    m: Metric, ranking: Ranking, k: int, n: int
) -> None:
    longer = Ranking((*ranking.gains, *[0.0] * n), ranking.missed)
    assert m.reference(longer, k) == m.reference(ranking, k)
    before, after = (m.reference_denominator(r, k) for r in (ranking, longer))
    assert after - before == (
        min(k, ranking.n_candidates + n) - min(k, ranking.n_candidates) if m.served_only else 0
    )


@given(st.sampled_from(WITHOUT_CUTOFF), rankings, st.integers(0, 5))
def test_a_cut_off_beyond_the_list_is_none(name: str, ranking: Ranking, beyond: int) -> None:
    k = max(ranking.n_candidates, ranking.n_relevant, 1) + beyond
    assert value(name, ranking, k) == value(name, ranking, 0)


@given(st.lists(gains, max_size=10), st.integers(0, 10), positive, cutoffs)
def test_with_one_relevant_item_recall_is_the_hit_rate(
    rest: list[float], place: int, gain: float, k: int
) -> None:
    items = [0.0] * len(rest)
    items.insert(place, gain)
    ranking = Ranking(tuple(items))
    assert value("recall", ranking, k) == value("hit_rate", ranking, k)
    assert value("ap", ranking, k) == value("rr", ranking, k)


@given(rankings, cutoffs)
def test_f1_lies_between_precision_and_recall(ranking: Ranking, k: int) -> None:
    assume(ranking.n_relevant)
    ends = sorted((value("precision", ranking, k), value("recall", ranking, k)))
    assert ends[0] - 1e-12 <= value("f1", ranking, k) <= ends[1] + 1e-12


@given(rankings, cutoffs)
def test_precision_and_recall_count_the_same_hits(ranking: Ranking, k: int) -> None:
    assume(ranking.n_relevant)
    hits = value("hits", ranking, k)
    assert value("precision", ranking, k) * k == pytest.approx(hits)
    assert value("recall", ranking, k) * ranking.n_relevant == pytest.approx(hits)


@given(rankings, cutoffs, st.sampled_from((2.0, 10.0)))
def test_ndcg_does_not_depend_on_the_unit_of_gain(ranking: Ranking, k: int, unit: float) -> None:
    assume(ranking.n_relevant)
    same = Ranking(*(tuple(unit * g for g in some) for some in (ranking.gains, ranking.missed)))
    assert value("ndcg", same, k) == pytest.approx(value("ndcg", ranking, k))
    assert value("dcg", same, k) == pytest.approx(unit * value("dcg", ranking, k))
