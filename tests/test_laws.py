"""Laws: what holds for every ranking, whatever its items. On the references, without Spark."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, permutations, product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from known import OF_ALL_CANDIDATES

from ranklake.metrics import METRICS, Metric, Ranking, measure, metric, metric_with_options

settings.register_profile("steady", deadline=None, derandomize=True)  # also on a busy machine
settings.load_profile("steady")

gains = st.sampled_from((0.0, 0.0, 0.0, 1.0, 2.0, 3.0))
positive = st.sampled_from((1.0, 2.0, 3.0))
cutoffs = st.integers(1, 15)
each_metric = st.sampled_from(METRICS)
WITHOUT_CUTOFF = ("recall", "ap", "rr", "ndcg", "hit_rate", "hits", "dcg", "rbp")
UNDEFINED = {
    "never": lambda q, k: False,
    "the query has no relevant item": lambda q, k: not any(g > 0 for g in q.gains + q.missed),
    "the query has no candidate": lambda q, k: not q.gains,
    "no candidate is relevant, or every one is": lambda q, k: len({g > 0 for g in q.gains}) < 2,
    "nothing was shown": lambda q, k: not q.gains,
    "no query has a relevant item": lambda q, k: not any(g > 0 for g in q.gains + q.missed),
    "there is no query": lambda q, k: False,
    "there is no click in the top k": lambda q, k: not any(q.clicked[:k]),
    "no candidate with a score is relevant": lambda q, k: not any(g > 0 for g in q.gains),
    "no candidate has a score": lambda q, k: not q.gains,
}


@st.composite
def all_rankings(draw: st.DrawFn) -> Ranking:
    """Rankings without equal scores; the scores are probabilities."""
    found = tuple(draw(st.lists(gains, max_size=12)))
    flags = st.lists(st.booleans(), min_size=len(found), max_size=len(found)).map(tuple)
    return Ranking(
        gains=found,
        missed=tuple(draw(st.lists(positive, max_size=4))),
        scores=tuple(1 / (place + 2) for place in range(len(found))),
        judged=draw(flags),
        clicked=draw(flags),
    )


rankings = all_rankings()


@st.composite
def tied_rankings(draw: st.DrawFn) -> Ranking:
    """Rankings of up to 6 candidates with few scores, some of them null."""
    found = tuple(draw(st.lists(gains, max_size=6)))
    n_scored = draw(st.integers(0, len(found)))
    scores = draw(st.lists(st.integers(0, 2), min_size=n_scored, max_size=n_scored))
    nulls = (None,) * (len(found) - n_scored)
    missed = tuple(draw(st.lists(positive, max_size=2)))
    return Ranking(found, missed, scores=(*sorted(map(float, scores), reverse=True), *nulls))


def orders(ranking: Ranking) -> Iterator[Ranking]:
    """The ranking in every order of equal scores."""
    pairs = zip(ranking.scores, ranking.gains, strict=True)
    blocks = [[gain for _, gain in some] for _, some in groupby(pairs, key=lambda pair: pair[0])]
    for chosen in product(*map(permutations, blocks)):
        yield replace(ranking, gains=tuple(gain for block in chosen for gain in block))


def over_orders(text: str, ranking: Ranking, k: int) -> list[float]:
    """The values of all orders of equal scores, where they are defined."""
    plain = metric_with_options(text)
    found = [plain.metric.reference(one, k, plain.values) for one in orders(ranking)]
    return [one for one in found if one is not None]


def with_ties(text: str, tie_break: str, ranking: Ranking, k: int) -> float | None:
    """The value of the measure where its option tie_break is the given one."""
    name, _, inside = text.removesuffix(")").partition("(")
    options = ",".join(filter(None, (inside, f"tie_break={tie_break}")))
    named = metric_with_options(f"{name}({options})")
    return named.metric.reference(ranking, k, named.values)


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
    """A ratio of sums is undefined over one query where its denominator is 0."""
    is_undefined = m.reference(ranking, k) is None or not m.reference_denominator(ranking, k)
    assert is_undefined == UNDEFINED[m.null_when](ranking, k)


@given(st.sampled_from([n for n in WITHOUT_CUTOFF if n != "ndcg"]), rankings, cutoffs)
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
    same = replace(ranking, gains=swapped(ranking.gains, one, other))
    assert m.reference(same, k) == m.reference(ranking, k)


@given(st.sampled_from([m for m in METRICS if m.name != "log_loss"]), rankings, cutoffs, st.data())
def test_moving_a_hit_up_past_a_miss_never_lowers_it(
    m: Metric, ranking: Ranking, k: int, data: st.DataObject
) -> None:
    places = [n for n in misses(ranking) if n + 1 < ranking.n_candidates and ranking.gains[n + 1]]
    assume(places)
    miss = data.draw(st.sampled_from(places))
    better = replace(ranking, gains=swapped(ranking.gains, miss, miss + 1))
    assert m.reference(better, k) >= m.reference(ranking, k) - 1e-12
    before, after = (value("log_loss", one, 0) for one in (ranking, better))
    assert after <= before + 1e-12


@given(
    st.sampled_from([m for m in METRICS if m.name not in OF_ALL_CANDIDATES]),
    *(rankings, cutoffs, st.integers(1, 5)),
)
def test_an_irrelevant_tail_changes_shown_items_only(
    m: Metric, ranking: Ranking, k: int, n: int
) -> None:
    longer = replace(
        ranking,
        gains=(*ranking.gains, *[0.0] * n),
        scores=(*ranking.scores, *(-float(place) for place in range(n))),
    )
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


@given(rankings, cutoffs)
def test_explicit_defaults_are_the_defaults(ranking: Ranking, k: int) -> None:
    for m in METRICS:
        assert m.reference(ranking, k, m.defaults) == m.reference(ranking, k)


@given(st.sampled_from(("recall", "precision", "hits", "ndcg")), rankings, cutoffs)
def test_without_equal_scores_all_tie_breaks_agree(name: str, ranking: Ranking, k: int) -> None:
    expected = value(name, ranking, k)
    assert with_ties(name, "expected", ranking, k) == pytest.approx(expected)
    if name != "ndcg":
        assert with_ties(name, "best", ranking, k) == expected
        assert with_ties(name, "worst", ranking, k) == expected


AVERAGED = st.sampled_from(
    [
        *("recall", "recall(denom=min_k_rel)", "recall(rel=2)", "precision", "hits"),
        *("precision(denom=min_k_n)", "precision(rel=2)", "hit_rate", "hit_rate(rel=2)"),
        *("dcg", "dcg(gain=exp2)", "dcg(gain={1:3,2:1})", "ndcg", "ndcg(gain=exp2)"),
        *("ndcg(ideal=candidates)", "ndcg(ideal=k_ones)", "ndcg(gain=binary,rel=2)"),
    ]
)
EXTREME = st.sampled_from(
    [
        *("hits", "hits(rel=2)", "recall", "recall(denom=min_k_rel)", "recall(rel=2)"),
        *("precision", "precision(denom=min_k_n)", "hit_rate", "hit_rate(rel=2)"),
    ]
)
small_cutoffs = st.integers(1, 7)


@settings(max_examples=60)
@given(AVERAGED, tied_rankings(), small_cutoffs)
def test_expected_is_the_mean_over_all_orders_of_equal_scores(
    text: str, ranking: Ranking, k: int
) -> None:
    found = over_orders(text, ranking, k)
    averaged = with_ties(text, "expected", ranking, k)
    assert (averaged is None) == (not found)
    assert averaged is None or averaged == pytest.approx(sum(found) / len(found))


@settings(max_examples=60)
@given(EXTREME, tied_rankings(), small_cutoffs)
def test_best_and_worst_are_the_ends_over_all_orders_of_equal_scores(
    text: str, ranking: Ranking, k: int
) -> None:
    found = over_orders(text, ranking, k)
    assume(found)
    worst, best = (with_ties(text, which, ranking, k) for which in ("worst", "best"))
    assert (worst, best) == pytest.approx((min(found), max(found)))
    expected = with_ties(text, "expected", ranking, k)
    assert worst - 1e-12 <= expected <= best + 1e-12
    assert value("tied", ranking, k) == (len({*over_orders("hits", ranking, k)}) > 1)


@given(AVERAGED, EXTREME, tied_rankings(), small_cutoffs, st.data())
def test_the_order_of_equal_scores_changes_nothing_where_it_is_not_looked_at(
    text: str, extreme: str, ranking: Ranking, k: int, data: st.DataObject
) -> None:
    other = data.draw(st.sampled_from([*orders(ranking)][:120]))
    assert with_ties(text, "expected", other, k) == pytest.approx(
        with_ties(text, "expected", ranking, k)
    )
    for which in ("best", "worst"):
        assert with_ties(extreme, which, other, k) == with_ties(extreme, which, ranking, k)
    assert value("tied", other, k) == value("tied", ranking, k)
    assert value("auc", other, k) == value("auc", ranking, k)


@given(rankings)
def test_auc_of_the_reversed_order_is_one_less_auc(ranking: Ranking) -> None:
    found = value("auc", ranking, 0)
    assume(found is not None)
    backwards = replace(ranking, gains=ranking.gains[::-1])
    assert value("auc", backwards, 0) == pytest.approx(1 - found)


@given(rankings, cutoffs)
def test_the_perfect_order_is_ideal_only_with_every_judged_item(ranking: Ranking, k: int) -> None:
    assume(any(ranking.gains))
    perfect = replace(ranking, gains=tuple(sorted(ranking.gains, reverse=True)))
    of_candidates = measure("ndcg(ideal=candidates)").values
    for cut in (k, 0):
        assert metric("ndcg").reference(perfect, cut, of_candidates) == pytest.approx(1)
    is_one = value("ndcg", perfect, 0) == pytest.approx(1, abs=1e-9)
    assert is_one == (not perfect.missed)
