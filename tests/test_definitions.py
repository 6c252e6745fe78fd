"""What a number means, as data: equal hashes exactly where two numbers may be compared."""

from typing import Any

import pytest

from ranklake.config import (
    EvalConfig,
    definition_hash,
    definitions,
    merged_definitions,
    redefinitions,
)

SLICES = {"device": None, "country": ("BR", "DE")}
BASE = {
    "metrics": ("recall", "precision"),
    "labels": ("click",),
    "slices": {"columns": ("device", "country"), "crosses": (("device", "country"),)},
}
SERIES = {
    "slice": "country",
    "label": "click",
    "metric": "recall",
    "population": "with_relevant",
    "variant": "",
    "k": 10,
}


def defined(slice_lists: dict[str, Any] = SLICES, **changes: Any) -> dict[str, Any]:
    return definitions(EvalConfig.model_validate({**BASE, **changes}), slice_lists)


def hashed(defined: dict[str, Any], **changes: Any) -> str:
    return definition_hash(defined, {**SERIES, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"zone": "Europe/Berlin"},
        {"n_buckets": 100},
        {"unshown_clicks": "reject"},
        {"gains": {"click": {"click": 2.0}}},
        {"slice_lists": {**SLICES, "country": ("BR", "US")}},
        {"slice_lists": {**SLICES, "country": None}},
    ],
)
def test_what_changes_a_number_changes_its_hash(changes: dict[str, Any]) -> None:
    assert hashed(defined(**changes)) != hashed(defined())


@pytest.mark.parametrize(
    "changes",
    [
        {"evaluation": "another"},
        {"candidates": ("scored",)},
        {"rank_by": "position"},
        {"confidence": 0.9},
        {"detail": "none"},
        {"unique_key": True},
        {"unknown_users": ("0",)},
        {"ks": (1, 2)},
        {"lake": {"path": "elsewhere"}},
        {"inputs": {"clicks": {"path": "elsewhere"}}},
        {"models": {"models:/ctr/42": "ctr-42"}},
        {"labels": ("click", "conversion")},
        {"metrics": ("recall", "hit_rate")},
        {"gains": {"engaged": {"click": 1.0}}},
        {"slice_lists": {**SLICES, "device": ("tv",)}},
    ],
)
def test_what_changes_no_number_leaves_its_hash(changes: dict[str, Any]) -> None:
    assert hashed(defined(**changes)) == hashed(defined())


@pytest.mark.parametrize(
    "changes",
    [
        {"metric": "precision"},
        {"metric": "n_queries"},
        {"population": "all"},
        {"variant": "rel=2"},
        {"slice": "device"},
        {"slice": "all"},
        {"slice": "device,country"},
    ],
)
def test_another_kind_of_series_has_another_hash(changes: dict[str, Any]) -> None:
    assert hashed(defined(), **changes) != hashed(defined())


def test_labels_with_other_gains_have_other_hashes() -> None:
    two = defined(labels=("click", "conversion"))
    assert hashed(two, label="conversion") != hashed(two, label="click")


def test_cut_offs_share_a_definition() -> None:
    assert hashed(defined(), k=1) == hashed(defined(), k=10)


def test_the_hit_rate_means_the_same_whether_it_was_asked_for_or_not() -> None:
    asked = defined(metrics=("recall", "hit_rate"))
    assert hashed(defined(), metric="hit_rate") == hashed(asked, metric="hit_rate")


def test_the_order_of_gains_is_not_part_of_the_hash() -> None:
    one = defined(labels=("buy",), gains={"buy": {"click": 1.0, "conversion": 5.0}})
    two = defined(labels=("buy",), gains={"buy": {"conversion": 5.0, "click": 1.0}})
    assert hashed(one, label="buy") == hashed(two, label="buy")


# redefinitions


def test_equal_definitions_redefine_nothing() -> None:
    assert redefinitions(defined(), defined()) == []


def test_the_first_run_redefines_nothing() -> None:
    assert redefinitions({}, defined()) == []


def test_what_only_one_side_defines_is_no_redefinition() -> None:
    more = defined(metrics=("recall", "ap"), labels=("click", "conversion"))
    assert redefinitions(defined(), more) == []
    assert redefinitions(more, defined()) == []


def test_each_redefinition_says_what_was_and_what_would_be() -> None:
    published = defined()
    now = defined(
        evaluation="another",
        n_buckets=100,
        gains={"click": {"click": 2.0}},
        slice_lists={**SLICES, "country": ("BR", "US")},
    )
    assert redefinitions(published, now) == [
        'evaluation: the tables hold "default", this run defines "another"',
        "n_buckets: the tables hold 400, this run defines 100",
        'labels.click: the tables hold {"click": 1.0}, this run defines {"click": 2.0}',
        'slices.country: the tables hold ["BR", "DE"], this run defines ["BR", "US"]',
    ]


def test_a_metric_that_came_to_mean_something_else_is_a_redefinition() -> None:
    published = defined()
    published["metrics"]["recall"] = {"formula": "h / min(k, |G|)", "null_when": "never"}
    (sentence,) = redefinitions(published, defined())
    assert sentence.startswith('metrics.recall: the tables hold {"formula": "h / min(k, |G|)"')


def test_the_lake_remembers_what_a_later_run_left_out() -> None:
    first = {"zone": "UTC", "labels": {"eng": {"click": 1.0}}, "slices": {"country": ["A"]}}
    second = {"zone": "UTC", "labels": {"click": {"click": 1.0}}, "slices": {"country": None}}
    merged = merged_definitions([first, second])
    assert merged["labels"] == {"eng": {"click": 1.0}, "click": {"click": 1.0}}
    assert merged["slices"] == {"country": ["A"]}
    third = {"zone": "UTC", "labels": {"eng": {"conversion": 5.0}}, "slices": {"country": ["C"]}}
    changed = redefinitions(merged, third)
    assert [sentence.split(":")[0] for sentence in changed] == ["labels.eng", "slices.country"]


def test_a_rule_that_was_not_set_is_a_definition_too() -> None:
    """Unlike a slice whose values were open, which keeps its rows when it gets a list."""
    (sentence,) = redefinitions(defined(), defined(rules={"depth": 2}))
    assert sentence == "rules.depth: the tables hold null, this run defines 2"
    assert redefinitions(defined(), defined({**SLICES, "device": ("tv",)})) == []
