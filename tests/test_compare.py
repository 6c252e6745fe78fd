"""Two models' sums → differences, p-values, verdicts: by hand, brute force and other tools."""

from collections.abc import Mapping, Sequence
from datetime import date
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ranklake.comparison import (
    Comparison,
    Question,
    Series,
    Side,
    Verdict,
    benjamini_hochberg,
    compared,
    differences,
    holm,
    sign_flips,
)
from ranklake.config import Gate, of_values
from ranklake.errors import ConfigError
from ranklake.estimate import added, series_of
from ranklake.metrics import of_series

Array = npt.NDArray[np.float64]
SEED = 20_260_105
DAY = date(2026, 1, 5)
RECALL = Series("all", "all", "click", "with_relevant", "recall", "", 5)


def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


def sums(
    num: Sequence[float] | Array,
    den: Sequence[float] | Array,
    *,
    model: str = "v1",
    metric: str = "recall",
    value: str = "all",
    ids: Sequence[int] | npt.NDArray[np.int64] | None = None,
    definition: str = "h",
    judged: float | None = None,
) -> pa.Table:
    """The rows of metric_sums of one metric at 5; every query has a relevant item.

    `ids` are the hashes of the buckets' queries; by default each bucket has its own.
    """
    num, den = np.asarray(num, dtype=float), np.asarray(den, dtype=float)
    hashes = np.arange(len(num)) + 1 if ids is None else np.asarray(ids)
    place = {"slice": "all" if value == "all" else "device", "slice_value": value, "label": "click"}
    key = {"model_version": model, **place, "variant": "", "definition_hash": definition}
    rows = [
        {"metric": "n_queries", "k": 0, "population": "all", "num": den, "den": den},
        {"metric": "n_queries", "k": 0, "population": "with_relevant", "num": den, "den": den},
        {"metric": "hit_rate", "k": 5, "population": "with_relevant", "num": num, "den": den},
        {"metric": metric, "k": 5, "population": "with_relevant", "num": num, "den": den},
    ]
    if judged is not None:
        share = {"metric": "judged", "k": 5, "population": "all", "num": judged * den, "den": den}
        rows.append(share)
    full = [{"fingerprint": hashes if n == 0 else None, **key, **row} for n, row in enumerate(rows)]
    return pa.Table.from_pylist(full)


def side(*tables: pa.Table, model: str = "v1", days: Sequence[date] = (DAY,), **known: Any) -> Side:
    facts = {"run_id": "r", "label_as_of": None, "is_mature": True, "shows_all": True, **known}
    return Side(model=model, days=days, sums=added([pa.concat_tables(tables)]), **facts)


def pair(one: Sequence[float] | Array, other: Sequence[float] | Array, den: Array) -> Any:
    return series_of(sums(one, den)).take([1]), series_of(sums(other, den)).take([1])


def gate(*rules: Mapping[str, Any]) -> Gate:
    return of_values({"gate": {"rules": rules}}).gate


def compared_at(
    one: Array, other: Array, den: Array, *, rules: Sequence[dict[str, Any]] = ()
) -> Comparison:
    """v2, whose recall@5 has the sums `one`, against v1."""
    candidate = side(sums(one, den, model="v2"), model="v2")
    question = Question([RECALL], gate(*rules))
    return compared(candidate, side(sums(other, den)), question)


# the difference


def test_three_buckets_by_hand() -> None:
    """Without each bucket the values are 2/3, 1/3, 3/4 and 1/3, 1/3, 1/2: they differ by

    1/3, 0, 1/4, whose mean is 7/36.
    """
    found = differences(*pair([1, 2, 0], [1, 1, 0], np.array([2.0, 2, 1])))
    deviations = (1 / 3 - 7 / 36, 0 - 7 / 36, 1 / 4 - 7 / 36)
    assert found.delta.value[0] == pytest.approx(3 / 5 - 2 / 5)
    assert found.delta.std_err[0] == pytest.approx(sqrt(2 / 3 * sum(d**2 for d in deviations)))
    assert found.relative.value[0] == pytest.approx(3 / 2 - 1)
    ratios = np.array([2 / 1, 1 / 1, 3 / 2]) - 1  # (2/3)/(1/3), (1/3)/(1/3), (3/4)/(1/2)
    expected = sqrt(2 / 3 * ((ratios - ratios.mean()) ** 2).sum())
    assert found.relative.std_err[0] == pytest.approx(expected)


def test_it_is_what_leaving_each_cluster_out_of_the_queries_gives() -> None:
    """Some clusters have queries of one model alone: they count on its side."""
    draw = rng()
    cluster = draw.integers(0, 60, size=2_000)
    of_both = draw.random(2_000) < 0.8
    value = draw.random(size=(2, 2_000))
    has = np.stack([of_both | (cluster < 50), of_both | (cluster > 5)])
    num, den = (
        [np.bincount(cluster, weights=part[side] * has[side], minlength=60) for side in (0, 1)]
        for part in (value, np.ones_like(value))
    )
    one, other = (series_of(sums(n, d)).take([1]) for n, d in zip(num, den, strict=True))
    found = differences(one, other)
    without = np.array(
        [
            value[0][has[0] & (cluster != c)].mean() - value[1][has[1] & (cluster != c)].mean()
            for c in range(60)
        ]
    )
    assert found.delta.value[0] == pytest.approx(value[0][has[0]].mean() - value[1][has[1]].mean())
    expected = sqrt(59 / 60 * ((without - without.mean()) ** 2).sum())
    assert found.delta.std_err[0] == pytest.approx(expected)
    assert found.delta.n_clusters[0] == 60


def test_a_row_has_the_paired_t_test_of_equal_buckets() -> None:
    """Where each bucket has one query, it is the paired t-test of scipy."""
    draw = rng()
    one, other = draw.random(size=(2, 200))
    (row,) = compared_at(one, other, np.ones(200)).rows.to_pylist()
    expected = stats.ttest_rel(one, other)
    interval = expected.confidence_interval(0.95)
    assert row["delta"] == pytest.approx(one.mean() - other.mean())
    assert row["p_value"] == pytest.approx(expected.pvalue)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((interval.low, interval.high))
    power = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert row["mde"] == pytest.approx(power * row["std_err"])
    assert row["mde"] == pytest.approx(2.8 * row["std_err"], rel=1e-3)


def test_pairing_takes_away_what_both_have_in_common() -> None:
    draw = rng()
    luck = draw.random(400)
    better = luck + 0.01 + 0.02 * draw.random(400)
    paired, apart = compared_at(better, luck, np.ones(400)), stats.ttest_ind(better, luck)
    (row,) = paired.rows.to_pylist()
    assert row["p_value"] < 1e-6 < 0.1 < apart.pvalue


def test_the_interval_stays_within_what_can_be() -> None:
    draw = rng()
    one, other = (draw.random(31) < 0.97).astype(float), (draw.random(31) < 0.03).astype(float)
    (row,) = compared_at(one, other, np.ones(31)).rows.to_pylist()
    assert row["delta"] + stats.t.ppf(0.975, 30) * row["std_err"] > 1
    assert row["ci_high"] == 1


def test_models_that_are_the_same_in_every_bucket_surely_do_not_differ() -> None:
    """But for the last digits, which depend on the order in which Spark adds."""
    same = rng().random(100)
    rules = [{"measure": "recall@5", "max_drop": 0}]
    found = compared_at(same, np.nextafter(same, 1), np.ones(100), rules=rules)
    for row in found.rows.to_pylist():
        assert (row["status"], row["ci_low"], row["ci_high"]) == ("same", 0, 0)
        assert row["delta"] == pytest.approx(0, abs=1e-15)
        assert row["p_value"] == 1
    assert found.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("n_buckets", "n_hits"), [(29, 20), (200, 9)], ids=["buckets", "queries above zero"]
)
def test_too_little_data_gives_a_difference_without_an_interval(
    n_buckets: int, n_hits: int
) -> None:
    one = np.where(np.arange(n_buckets) < n_hits, 1.0, 0.0)
    other = np.where(np.arange(n_buckets) < n_hits - 5, 1.0, 0.0)
    rules = [{"measure": "recall@5", "max_drop": 0.5}]
    found = compared_at(one, other, np.ones(n_buckets), rules=rules)
    row, ruled = found.rows.to_pylist()
    assert (row["status"], row["delta"]) == ("insufficient", pytest.approx(5 / n_buckets))
    assert [row[n] for n in ("std_err", "ci_low", "p_value", "mde")] == [None] * 4
    assert (ruled["verdict"], found.verdict) == ("INCONCLUSIVE", Verdict.INCONCLUSIVE)
    assert "too little data" in ruled["reason"]


def test_a_candidate_without_any_hit_fails_all_the_same() -> None:
    baseline = (rng().random(200) < 0.5).astype(float)
    rules = [{"measure": "recall@5", "max_drop": 0.01}]
    assert compared_at(np.zeros(200), baseline, np.ones(200), rules=rules).verdict is Verdict.FAIL


# many tests


def test_adjusted_p_values_are_those_of_statsmodels() -> None:
    draw = rng()
    for size in (1, 2, 7, 50):
        p_values = np.round(draw.random(size) ** 3, 3)  # with ties
        for ours, name in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
            assert ours(p_values) == pytest.approx(multipletests(p_values, method=name)[1])
        gaps = np.insert(p_values, [0, size], np.nan)
        assert holm(gaps)[1:-1] == pytest.approx(holm(p_values))
        assert np.isnan(holm(gaps)[[0, -1]]).all()


def test_sign_flips_are_those_of_all_flips() -> None:
    """10 buckets have 1024 flips, that can all be looked at."""
    draw = rng()
    one, other = draw.random(size=(2, 10))
    parts = one - other
    signs = 1.0 - 2 * ((np.arange(1024)[:, None] >> np.arange(10)) & 1)
    exact = np.mean(np.abs(signs @ parts) >= abs(parts.sum()) - 1e-12)
    found = sign_flips(*pair(one, other, np.ones(10)))
    assert found[0] == pytest.approx(exact, abs=4 * sqrt(exact * (1 - exact) / 10_000) + 1e-4)


def test_sign_flips_are_never_zero_and_only_of_equal_denominators() -> None:
    one, other = np.full(400, 1.0), np.zeros(400)
    assert sign_flips(*pair(one, other, np.ones(400)))[0] == 1 / 10_001
    assert sign_flips(*pair(other, other, np.ones(400)))[0] == 1
    unequal = series_of(sums(other, 2 * np.ones(400))).take([1])
    assert np.isnan(sign_flips(series_of(sums(one, np.ones(400))).take([1]), unequal)).all()


# who saw what


@pytest.mark.parametrize(
    ("changed", "kind", "n_paired"),
    [(0, "same_queries", 80), (30, "partial", 20), (40, "disjoint", 0)],
)
def test_pairing_is_told_by_the_hashes_of_the_queries(
    changed: int, kind: str, n_paired: int
) -> None:
    draw, den = rng(), 2 * np.ones(40)
    ids = np.arange(40) + 1
    others = np.where(np.arange(40) < changed, -ids, ids)
    candidate = side(sums(draw.random(40), den, model="v2", ids=others), model="v2")
    found = compared(candidate, side(sums(draw.random(40), den)), Question([RECALL]))
    (row,) = found.rows.to_pylist()
    assert (row["pairing"], row["n_paired_queries"], row["n_queries"]) == (kind, n_paired, 80)


def test_signs_are_not_flipped_of_what_is_made_of_other_values() -> None:
    """F of mean precision and mean recall is no mean of the buckets' F."""
    draw, of_f = rng(), of_series("f1", "mean=of_means", 5)
    found = []
    for _ in range(2):
        tables = [
            sums(draw.random(100), np.ones(100), metric=name) for name in ("precision", "recall")
        ]
        rows = pa.concat_tables([tables[0], tables[1].filter(pc.field("metric") == "recall")])
        found.append(series_of(rows, derived=[of_f]))
    names = found[0].keys["metric"].to_pylist()
    p_values = dict(zip(names, sign_flips(*found), strict=True))
    assert np.isnan(p_values["f1"])
    assert 0 < p_values["recall"] <= 1


def test_what_is_defined_differently_is_not_compared() -> None:
    values, den = rng().random(40), np.ones(40)
    other = side(sums(values, den, definition="other"))
    candidate = side(sums(values, den, model="v2"), model="v2")
    with pytest.raises(ConfigError) as refused:
        compared(candidate, other, Question([RECALL]))
    assert any("found definition h of v2 and other of v1" in p for p in refused.value.problems)
    with pytest.raises(ConfigError, match="40 buckets of v2 and 50 of v1"):
        compared(candidate, side(sums(rng().random(50), np.ones(50))), Question([RECALL]))


# windows


def test_any_split_of_the_sums_gives_the_same_value_and_interval() -> None:
    draw = rng()
    days = [(draw.random(60) * 5, draw.integers(0, 6, 60).astype(float)) for _ in range(6)]
    tables = [sums(num * (den > 0), den, ids=draw.integers(0, 2**62, 60)) for num, den in days]
    at_once = series_of(added(tables))
    nested = series_of(added([added(tables[:1]), added(tables[1:4]), added(tables[4:])]))
    for name in ("value", "without", "num", "den"):
        assert getattr(nested, name) == pytest.approx(getattr(at_once, name), nan_ok=True)
    whole, split = (added(t)["fingerprint"].to_pylist() for t in (tables, tables[::-1]))
    assert whole == split
    assert (
        whole[0]
        == np.bitwise_xor.reduce(
            [np.array(t["fingerprint"].to_pylist()[0]) for t in tables]
        ).tolist()
    )


def test_days_are_neither_averaged_nor_taken_for_independent() -> None:
    """A busy day weighs more, and a user's luck stays with them."""
    draw = rng()
    luck, n_queries = draw.beta(2, 2, size=400), [np.full(400, n) for n in (1.0, 9.0)]
    days = [draw.binomial(n.astype(int), luck).astype(float) for n in n_queries]
    window = series_of(added(map(sums, days, n_queries))).take([1])
    assert window.value[0] == pytest.approx(sum(days).sum() / 4_000)
    averaged = np.mean([day.mean() / n[0] for day, n in zip(days, n_queries, strict=True)])
    assert window.value[0] != pytest.approx(averaged, rel=1e-4)
    pooled = sum(days) / 10
    assert window.estimates.std_err[0] == pytest.approx(np.std(pooled, ddof=1) / 20)


def test_what_means_two_things_is_not_added() -> None:
    one = sums([1], [1])
    with pytest.raises(ConfigError, match="found definitions h and other"):
        added([one, sums([1], [1], definition="other")])
    with pytest.raises(ConfigError, match="found 1 and 2 buckets"):
        added([one, sums([1, 1], [1, 1])])


# the gate


def shifted(delta: float, std_err: float, n: int = 100) -> tuple[Array, Array]:
    """Two models whose means differ by `delta`, with that standard error: one query a bucket."""
    noise = np.tile([1.0, -1.0], n // 2)
    noise *= std_err * sqrt(n) / np.std(noise, ddof=1)
    baseline = rng().random(n) / 10 + 0.4
    return baseline + delta + noise, baseline


@pytest.mark.parametrize(
    ("delta", "verdict"),
    [
        (0.0, "PASS"),
        (-0.002, "PASS"),
        (-0.004, "INCONCLUSIVE"),
        (-0.006, "INCONCLUSIVE"),
        (-0.009, "FAIL"),
    ],
)
def test_a_rule_is_about_the_whole_interval(delta: float, verdict: str) -> None:
    """± 1.98 standard errors of 0.001 around delta, against an allowed drop of 0.005."""
    one, other = shifted(delta, 0.001)
    found = compared_at(
        one, other, np.ones(100), rules=[{"measure": "recall@5", "max_drop": 0.005}]
    )
    assert found.rows.to_pylist()[1]["verdict"] == verdict
    assert found.verdict == verdict


def test_a_relative_drop_is_of_the_baseline() -> None:
    one, other = shifted(-0.02, 0.001)  # of about 0.45: 4.4 %
    for allowed, verdict in ((0.06, "PASS"), (0.03, "FAIL")):
        rules = [{"measure": "recall@5", "max_relative_drop": allowed}]
        assert compared_at(one, other, np.ones(100), rules=rules).verdict == verdict


@pytest.mark.parametrize(
    ("ceiling", "verdict"), [(0.60, "PASS"), (0.55, "INCONCLUSIVE"), (0.5, "FAIL")]
)
def test_a_ceiling_is_a_floor_of_what_is_left(ceiling: float, verdict: str) -> None:
    one, _ = shifted(0, 0.01)
    rule = {"measure": "recall@5", "ceiling": ceiling}
    assert compared_at(1 - one, one, np.ones(100), rules=[rule]).verdict == verdict


@pytest.mark.parametrize(
    ("floor", "verdict"), [(0.40, "PASS"), (0.45, "INCONCLUSIVE"), (0.5, "FAIL")]
)
def test_a_floor_is_about_the_candidate_alone(floor: float, verdict: str) -> None:
    one, _ = shifted(0, 0.01)
    found = compared_at(one, one, np.ones(100), rules=[{"measure": "recall@5", "floor": floor}])
    assert found.verdict == verdict


@pytest.mark.parametrize("floor", [0.05, 0.99])
def test_a_floor_says_nothing_of_too_little_data(floor: float) -> None:
    """Three buckets have a value, and no interval."""
    rule = {"measure": "recall@5", "floor": floor}
    found = compared_at(np.array([1.0, 1, 2]), np.ones(3), np.full(3, 2.0), rules=[rule])
    assert found.verdict == "INCONCLUSIVE"
    assert found.rows.to_pylist()[1]["reason"] == "too little data for an interval"


def test_floors_of_many_guardrails_raise_a_false_alarm_as_often_as_one() -> None:
    """2.2 standard errors above the value: a FAIL alone, none among twenty; so for ceilings."""
    one = 0.45 + np.tile([1.0, -1.0], 50) * 0.1 * sqrt(99 / 100)  # its standard error is 0.01
    for kind, bound in (("floor", 0.472), ("ceiling", 0.428)):
        rule = {"measure": "recall@5", kind: bound}
        rules = [{**rule, "name": f"{n}"} for n in range(20)]
        alone = compared_at(one, one, np.ones(100), rules=[rule])
        among_many = compared_at(one, one, np.ones(100), rules=rules)
        assert (alone.verdict, among_many.verdict) == ("FAIL", "INCONCLUSIVE"), kind


def test_guardrails_together_raise_a_false_alarm_as_often_as_one() -> None:
    """-2.2 standard errors below what is allowed: a FAIL alone, none among twenty."""
    one, other = shifted(-0.0022 - 0.005, 0.001)
    rule = {"measure": "recall@5", "max_drop": 0.005}
    alone = compared_at(one, other, np.ones(100), rules=[rule])
    rules = [{**rule, "name": f"{n}"} for n in range(20)]
    among_many = compared_at(one, other, np.ones(100), rules=rules)
    primary = compared_at(one, other, np.ones(100), rules=[{**rule, "role": "primary"}, *rules])
    assert (alone.verdict, among_many.verdict) == ("FAIL", "INCONCLUSIVE")
    assert primary.rows.to_pylist()[1]["verdict"] == "FAIL"
    info = compared_at(one, other, np.ones(100), rules=[{**rule, "role": "info"}])
    assert (info.verdict, info.rows.to_pylist()[1]["verdict"]) == ("PASS", "FAIL")


def test_every_value_of_a_slice_is_a_test_of_its_own() -> None:
    one, other = shifted(-0.02, 0.001)
    den = np.ones(100)
    tables = {
        model: [
            sums(values, den, model=model, value=value)
            for value, values in (("all", other), ("mobile", other), ("tablet", of_tablet))
        ]
        for model, of_tablet in (("v2", one), ("v1", other))
    }
    candidate, baseline = (side(*tables[m], model=m) for m in ("v2", "v1"))

    def verdicts(of: Side = candidate, **rule: Any) -> dict[str, Any]:
        asked = Question(gate=gate({"measure": "recall@5", "max_drop": 0.01, **rule}))
        found = compared(of, baseline, asked)
        return {row["slice_value"]: row["verdict"] for row in found.rows.to_pylist()}

    assert verdicts(slice="device") == {"mobile": "PASS", "tablet": "FAIL"}
    assert verdicts(slice="device", slice_value="mobile") == {"mobile": "PASS"}
    assert verdicts(slice="device", slice_value="watch") == {"watch": "INCONCLUSIVE"}
    watch = sums(one, den, model="v2", value="watch")
    with_watch = side(*tables["v2"], watch, model="v2")  # the baseline has none
    assert verdicts(with_watch, slice="device")["watch"] == "INCONCLUSIVE"
    with pytest.raises(
        ConfigError, match=r"slice 'devise' is not published.*did you mean 'device'"
    ):
        verdicts(slice="devise")


def test_a_rule_without_a_label_is_about_every_label() -> None:
    """Also where it names a slice value: the other label is worse there."""
    one, other = shifted(-0.02, 0.001)
    den = np.ones(100)
    sides = []
    for model, of_conversions in (("v2", one), ("v1", other)):
        tables = [sums(other, den, model=model), sums(other, den, model=model, value="mobile")]
        converted = sums(of_conversions, den, model=model, value="mobile")
        at = converted.schema.get_field_index("label")
        label = pa.array(["conversion"] * len(converted))
        sides.append(side(*tables, converted.set_column(at, "label", label), model=model))
    rule = {"measure": "recall@5", "max_drop": 0.01, "slice": "device", "slice_value": "mobile"}
    rows = compared(sides[0], sides[1], Question(gate=gate(rule))).rows.to_pylist()
    assert {row["label"]: row["verdict"] for row in rows} == {"click": "PASS", "conversion": "FAIL"}


@pytest.mark.parametrize(
    ("judged", "verdict"), [(0.9, "INCONCLUSIVE"), (0.995, "PASS"), (None, "INCONCLUSIVE")]
)
def test_what_nobody_saw_is_not_taken_for_irrelevant(judged: float | None, verdict: str) -> None:
    one, other = shifted(0.01, 0.001)
    den = np.ones(100)
    candidate = side(
        sums(one, den, model="v2", metric="precision", judged=judged), model="v2", shows_all=False
    )
    rule = {"measure": "precision@5", "max_drop": 0.0, "population": "with_relevant"}
    baseline = side(sums(other, den, metric="precision"))
    found = compared(candidate, baseline, Question(gate=gate(rule)))
    (row,) = found.rows.to_pylist()
    assert row["verdict"] == verdict
    assert row["judged_at_k"] == (None if judged is None else pytest.approx(judged))
    assert row["baseline_judged_at_k"] == 1
