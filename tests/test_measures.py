"""Measure strings: what they say, their one canonical form, and what is refused."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known import OF_THE_MEAN

from ranklake.metrics import (
    METRICS,
    NO_CUTOFF,
    SHOWN,
    Cutoff,
    Measure,
    Metric,
    Need,
    Option,
    measure,
    measures_of,
    metric,
    metric_with_options,
    needs_of,
    of_series,
    per_query_measures,
    with_defaults,
)

settings.register_profile("steady", deadline=None, derandomize=True)  # also on a busy machine
settings.load_profile("steady")

numbers = st.one_of(st.integers(1, 99), st.decimals("0.001", "99", places=3)).map(str)
between_0_and_1 = st.decimals("0.001", "0.999", places=3).map(str)
tables = st.dictionaries(st.integers(1, 9), numbers, min_size=1, max_size=3).map(
    lambda gains: "{" + ",".join(f"{grade}:{gain}" for grade, gain in gains.items()) + "}"
)


def values_of(option: Option) -> st.SearchStrategy[str]:
    """Texts of the option's values, its default among them."""
    generated = {
        "rel": numbers,
        "beta": numbers,
        "max_gain": numbers,
        "p": between_0_and_1,
        "gain": tables,
    }
    words = [option.default, *(v for v in option.values.split(", ") if v.isidentifier())]
    return st.sampled_from(words) | generated.get(option.name, st.nothing())


@st.composite
def measure_strings(draw: st.DrawFn, of: Metric | None = None) -> str:
    """A metric by any of its names, some of its options in any order, and a cut-off."""
    m = of or draw(st.sampled_from(METRICS))
    options = draw(st.permutations(m.options))[: draw(st.integers(0, len(m.options)))]
    if {option.name for option in options} >= {"rel", "max_gain"}:  # refused together
        options = [option for option in options if option.name != "rel"]
    inside = draw(st.sampled_from((",", ", ", " , "))).join(
        f"{option.name}={draw(values_of(option))}" for option in options
    )
    cutoffs = st.integers(1, 1_000_000).map(str) | st.just("shown")
    k = {
        Cutoff.REQUIRED: cutoffs.map("@{}".format),
        Cutoff.OPTIONAL: cutoffs.map("@{}".format) | st.just(""),
        Cutoff.NONE: st.just(""),
    }[m.cutoff]
    name = draw(st.sampled_from((m.name, *m.aliases)))
    return name + (f"({inside})" if inside else "") + draw(k)


any_measure = measure_strings().map(measure)


# what a string says


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("recall@10", "recall@10"),
        ("P(rel=2)@5", "precision(rel=2)@5"),
        ("nDCG(ideal=candidates, gain=exp2)@10", "ndcg(gain=exp2,ideal=candidates)@10"),
        ("nDCG(gain=linear,ideal=judged)@10", "ndcg@10"),
        ("nDCG(gain={2: 3.0, 1:1})@3", "ndcg(gain={1:1,2:3})@3"),
        ("AP", "ap"),
        ("MAP(denom=min_k_rel)@20", "ap(denom=min_k_rel)@20"),
        ("mrr@10", "rr@10"),
        ("F1(beta=1.0)@5", "f1@5"),
        ("f_beta(beta=2.0)@5", "f1(beta=2)@5"),
        ("Success(rel=any)@1", "hit_rate@1"),
        ("Rprec", "r_precision"),
        ("GAUC", "auc(average=n)"),
        ("rbp(p=0.80)@10", "rbp@10"),
        ("ctr@shown", "ctr@shown"),
        ("  P( rel = 2 )@010\n", "precision(rel=2)@10"),
    ],
)
def test_a_measure_has_one_canonical_string(text: str, canonical: str) -> None:
    assert str(measure(text)) == canonical
    assert measure(canonical) == measure(text)


def test_a_measure_knows_its_metric_cut_off_and_options() -> None:
    found = measure("nDCG(rel=2, gain={1:1,2:3}, ideal=judged)@10")
    assert (found.metric, found.k) == (metric("ndcg"), 10)
    assert found.options == (("gain", "{1:1,2:3}"), ("rel", "2"))
    assert found.variant == "gain={1:1,2:3},rel=2"
    assert found.values["gain"] == ((1.0, 1.0), (2.0, 3.0))
    assert found.values["rel"] == 2.0
    assert (found.values["ideal"], found.values["tie_break"]) == ("judged", "run")
    assert (measure("AP").k, measure("P@shown").k) == (NO_CUTOFF, SHOWN)


@given(measure_strings())
def test_the_canonical_string_says_the_same_measure(text: str) -> None:
    found = measure(text)
    assert str(measure(str(found))) == str(found)
    assert measure(str(found)) == found
    assert measure(str(found)).values == found.values


@given(any_measure.filter(lambda found: found.options), st.data())
def test_the_order_of_options_means_nothing(found: Measure, data: st.DataObject) -> None:
    mixed = data.draw(st.permutations(found.options))
    inside = ",".join(f"{name}={text}" for name, text in mixed)
    assert measure(str(found).replace(found.variant, inside)) == found


@pytest.mark.parametrize("m", METRICS, ids=lambda m: m.name)
def test_a_default_that_is_said_is_the_default(m: Metric) -> None:
    inside = ",".join(f"{option.name}={option.default}" for option in m.options)
    assert metric_with_options(f"{m.name}({inside})") == Measure(m)


# what is refused

REFUSED = [
    ("Recal@5", "unknown metric 'Recal', known are recall, precision,", "mean 'recall'?"),
    ("rеcall@5", "'rеcall@5' is no measure, expected one such as", ""),
    (
        "P(rell=2)@5",
        "P(rell=2)@5: unknown option 'rell' of precision, known are denom, rel",
        "rel'?",
    ),
    ("tied(rel=2)@5", "unknown option 'rel' of tied, known are none", ""),
    ("recall(p=0.5)@5", "unknown option 'p' of recall", "denom, rel, tie_break, average"),
    ("ndcg(ideal=judge)@5", "ideal: found 'judge', expected one of judged, candidates", "judged'?"),
    ("dcg(tie_break=best)@5", "expected one of run, item_id_desc, item_id_asc, expected", ""),
    ("P(denom=min_k_rel)@5", "denom: found 'min_k_rel', expected one of k, min_k_n", ""),
    ("P(rel=0)@5", "rel: found '0', expected a number above 0", ""),
    ("P(rel=-1)@5", "rel: found '-1', expected a number above 0", ""),
    ("P(rel=nan)@5", "rel: found 'nan', expected a number above 0", ""),
    ("P(rel=inf)@5", "rel: found 'inf', expected a number above 0", ""),
    ("rbp(p=1)@5", "rbp(p=1)@5: p: found '1', expected", ""),
    ("ndcg(gain=exp)@5", "gain: found 'exp', expected linear, exp2, binary or a table", ""),
    ("ndcg(gain={})@5", "gain: found '{}', expected linear, exp2", ""),
    ("ndcg(gain={1})@5", "gain: found '{1}', expected linear, exp2", ""),
    ("ndcg(gain={a:1})@5", "gain: found '{a:1}', expected linear", ""),
    ("ndcg(gain={1:-1})@5", "gain: found '{1:-1}', expected", "gains 0 or more"),
    ("ndcg(gain={1:inf})@5", "gain: found '{1:inf}', expected", "gains 0 or more"),
    ("ndcg(gain={1:2,1:3})@5", "gain: found '{1:2,1:3}', expected", "each grade once"),
    ("P(rel=1,rel=2)@5", "P(rel=1,rel=2)@5: rel is given more than once", ""),
    ("P", "P: precision needs a cut-off, such as P@10", ""),
    ("P(rel=2)", "precision needs a cut-off, such as P(rel=2)@10", ""),
    ("auc@5", "auc@5: auc has no cut-off", ""),
    ("Rprec@shown", "Rprec@shown: r_precision has no cut-off", ""),
    ("P@0", "P@0: found @0, expected @1 to @1000000 or @shown", ""),
    ("P@1000001", "found @1000001, expected @1 to @1000000", ""),
    ("P@ten", "found @ten, expected @1 to @1000000", ""),
    ("P@1e1", "found @1e1, expected @1 to @1000000", ""),
    ("P@٣", "'P@٣' is no measure, expected one such as", ""),
    ("P(rel=1_0)@5", "found '1_0', expected a number above 0", ""),
]
MALFORMED = [
    *("", " ", "@5", "()", "P@", "P@-1", "P@5@5", "P@ 5", "P @5", "P(rel=2", "P rel=2)@5"),
    *("P)rel=2(@5", "P(rel)@5", "P(rel=)@5", "P(=2)@5", "P(,rel=2)@5", "P(rel=2,,denom=k)@5"),
    *("P(rel=2;denom=k)@5", "P(rel=2)(denom=k)@5", "P((rel=2))@5", "P(rel=(2))@5", "P[rel=2]@5"),
    *("ndcg(gain={{1:2}})@5", "ndcg(gain={1:2)@5", "ndcg(gain=1:2})@5", "ndcg(gain={1:{2:3}})@5"),
    *(
        "ndcg(gain={1:2}x)@5",
        "ndcg(gain=1:2)@5",
        "P\n@5",
        "P@5\nR@5",
        "P@5;R@5",
        "P@5 -- x",
        "P\0@5",
    ),
]


@pytest.mark.parametrize(("text", "reason", "hint"), REFUSED)
def test_it_is_refused_with_what_is_expected(text: str, reason: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        measure(text)
    assert hint in str(caught.value)


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        measure(text)


def test_a_cut_off_of_its_own_is_refused_where_cut_offs_are_given_apart() -> None:
    assert metric_with_options("P(rel=2)") == Measure(metric("precision"), 0, (("rel", "2"),))
    with pytest.raises(ValueError, match=r"^P@5: has a cut-off of its own"):
        metric_with_options("P@5")


@given(st.text(alphabet="PRapndcgrel(){}=,:@0123.-_ \n٣", max_size=40) | st.text(max_size=40))
def test_any_text_is_a_measure_or_refused(text: str) -> None:
    try:
        found = measure(text)
    except ValueError:
        return
    assert measure(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "recall" + "l" * 100_000 + "@5",
        "P(" * 50_000,
        "P" + "(" * 50_000 + ")" * 50_000 + "@5",
        "P(" + "rel=2," * 20_000 + ")@5",
        "ndcg(gain={" + "1:2," * 20_000 + "})@5",
        "P(rel=" + "9" * 100_000 + ")@5",
        "P(" + " " * 100_000 + ")@5",
    ],
    ids=lambda text: text[:8],
)
def test_very_long_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|known|more than once"):
        measure(text)


# what it is counted by, and where it stands


def column_of(found: Measure) -> str:
    return found.column


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("recall@10", "recall_at_10"),
        ("AP", "ap"),
        ("P@shown", "precision_at_shown"),
        ("AP(denom=min_k_rel)@20", "ap_denom_min_k_rel_at_20"),
        ("nDCG(ideal=candidates,gain=exp2)@5", "ndcg_gain_exp2_ideal_candidates_at_5"),
        ("nDCG(gain={1:0.5,2:3})@5", "ndcg_gain_1_0p5_2_3_at_5"),
        ("RBP(p=0.95)", "rbp_p_0p95"),
        ("ctr@3", "hits_at_3"),
        ("cvr@3", "hits_at_3"),
        ("recall_micro", "hits"),
        ("GAUC", "auc"),
        ("recall(average=weighted)@5", "recall_at_5"),
    ],
)
def test_a_column_is_named_without_brackets(text: str, column: str) -> None:
    assert measure(text).column == column


def per_query(found: Measure) -> str:
    """The measure of one query's values that it adds up."""
    options = tuple(pair for pair in found.options if pair[0] not in OF_THE_MEAN)
    return str(replace(found, metric=metric(found.metric.summand), options=options))


@st.composite
def two_of_a_metric(draw: st.DrawFn) -> tuple[Measure, Measure]:
    """Two measures, as a rule of one metric: those have similar columns."""
    m = draw(st.sampled_from(METRICS))
    others = measure_strings(m) | measure_strings()
    return measure(draw(measure_strings(m))), measure(draw(others))


@settings(max_examples=500)
@given(two_of_a_metric())
def test_other_values_have_other_columns(both: tuple[Measure, Measure]) -> None:
    one, other = both
    other = replace(other, k=one.k)
    assert (one.column == other.column) == (per_query(one) == per_query(other))
    assert re.fullmatch(r"[a-z][a-z0-9_]*", one.column)


@pytest.mark.parametrize(
    ("text", "counting"),
    [
        ("P(rel=2,denom=min_k_n)@5", "hit_rate(rel=2)@5"),
        ("recall(tie_break=expected,average=weighted)@5", "hit_rate(tie_break=best)@5"),
        ("hit_rate(rel=3)@1", "hit_rate(rel=3)@1"),
        ("ndcg(gain=exp2)@shown", "hit_rate@shown"),
        ("r_precision", "hit_rate"),
        ("ctr@3", "hit_rate@3"),
    ],
)
def test_the_hit_rate_of_the_same_relevance_counts_its_queries(text: str, counting: str) -> None:
    assert str(measure(text).counting) == counting


def test_f1_of_means_is_made_of_precision_and_recall() -> None:
    derived = measure("F1(mean=of_means,beta=2,rel=2,average=weighted,tie_break=item_id_asc)@5")
    shared = "(average=weighted,rel=2,tie_break=item_id_asc)@5"
    assert [*map(str, derived.parts)] == [f"precision{shared}", f"recall{shared}"]
    assert derived.is_derived
    assert not measure("F1@5").is_derived
    assert measure("F1@5").parts == ()


def test_a_derived_measure_has_the_columns_of_its_parts() -> None:
    found = measures_of([], [], ["F1(mean=of_means)@5"])
    assert [*map(str, found)] == ["f1(mean=of_means)@5", "precision@5", "recall@5", "hit_rate@5"]
    columns = [*map(column_of, per_query_measures(found))]
    assert columns == ["precision_at_5", "recall_at_5", "hit_rate_at_5"]


def test_a_weighted_mean_brings_the_unweighted_one() -> None:
    found = measures_of([], [], ["GAUC", "P(average=weighted,rel=2)@5"])
    assert [*map(str, found)] == [
        *("auc(average=n)", "precision(average=weighted,rel=2)@5", "hit_rate", "auc"),
        *("hit_rate(rel=2)@5", "precision(rel=2)@5"),
    ]
    assert [m.weight for m in found] == ["n_candidates", "weight", "", "", "", ""]


def test_every_measure_brings_its_hit_rate() -> None:
    found = [(m.metric.name, m.k) for m in measures_of(["recall", "r_precision"], [1, 5])]
    assert found == [
        *(("recall", 1), ("recall", 5), ("r_precision", 0)),
        *(("hit_rate", 1), ("hit_rate", 5), ("hit_rate", 0)),
    ]


def test_measures_are_listed_once() -> None:
    found = measures_of(["ctr", "recall_micro", "hits", "R"], [5], ["recall@5", "P(rel=any)@5"])
    names = ["ctr@5", "recall_micro@5", "hits@5", "recall@5", "precision@5", "hit_rate@5"]
    assert [*map(str, found)] == names
    columns = [*map(column_of, per_query_measures(found))]
    assert columns == ["hits_at_5", "recall_at_5", "precision_at_5", "hit_rate_at_5"]
    assert measures_of(["hit_rate"], [5]) == (Measure(metric("hit_rate"), 5),)


def test_options_of_a_metric_go_to_every_cut_off() -> None:
    found = measures_of(["P(rel=2)", "GAUC"], [1, 5])
    assert [*map(str, found)][:3] == ["precision(rel=2)@1", "precision(rel=2)@5", "auc(average=n)"]


def test_needs_are_those_of_the_metric_and_of_ties_over_all_orders() -> None:
    assert needs_of(measures_of(["recall", "ctr"], [5])) == set()
    assert needs_of([measure("recall(tie_break=item_id_asc)@5")]) == set()
    assert needs_of([measure("recall(tie_break=worst)@5")]) == {Need.TIES}
    assert needs_of(map(measure, ("auc", "judged@5", "log_loss"))) == {*Need}


@given(any_measure)
def test_a_row_of_a_series_names_its_measure(found: Measure) -> None:
    assert of_series(found.metric.name, found.variant, found.k) == found


# defaults that are not the metric's own


@pytest.mark.parametrize(
    ("text", "defaults", "expected"),
    [
        ("AP(rel=2)@5", {"denom": "k", "rel": "1"}, "ap(denom=k,rel=2)@5"),
        ("AP@5", {"denom": "k"}, "ap(denom=k)@5"),
        ("AP(denom=rel)@5", {"denom": "k"}, "ap@5"),
        ("AP( denom = rel )@5", {"denom": "k"}, "ap@5"),
        ("AP", {"denom": "rel"}, "ap"),
        (
            "nDCG(gain={1:2})@5",
            {"gain": "exp2", "ideal": "k_ones"},
            "ndcg(gain={1:2},ideal=k_ones)@5",
        ),
        ("P@shown", {"rel": "2"}, "precision(rel=2)@shown"),
        ("P", {"rel": "2"}, "precision(rel=2)"),
        ("P@5", {}, "precision@5"),
    ],
)
def test_defaults_fill_what_is_not_said(text: str, defaults: dict[str, str], expected: str) -> None:
    assert with_defaults(text, defaults) == expected


@given(any_measure)
def test_no_defaults_change_nothing(found: Measure) -> None:
    assert with_defaults(str(found), {}) == str(found)


# numbers and lines


@pytest.mark.parametrize(
    "text", ["rbp(p=0.9999999999999)@5", "dcg(gain={1:2,1.00000000000001:3})@5"]
)
def test_a_number_of_many_digits_stays_a_value_of_its_option(text: str) -> None:
    assert str(measure(str(measure(text)))) == str(measure(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [("P(rel=1e12)@5", "P(rel=1e-12)@5"), ("dcg(gain={1:1e20})@5", "dcg(gain={1:1e-20})@5")],
)
def test_signs_in_numbers_make_other_columns(one: str, other: str) -> None:
    assert measure(one).column != measure(other).column


@pytest.mark.parametrize(
    "text", ["dcg(gain={nan:1})@5", "dcg(gain={inf:1})@5", "dcg(gain={-1:2})@5", "P@" + "9" * 5000]
)
def test_a_number_that_cannot_be_is_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        measure(text)


def test_a_refusal_is_one_line() -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        measure("P(\nrel=x)@5")
    assert "\n" not in str(caught.value)


def test_defaults_are_canonical_too() -> None:
    assert with_defaults("P@5", {"rel": "2.0"}) == "precision(rel=2)@5"
