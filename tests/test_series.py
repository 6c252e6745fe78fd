"""Bucket sums → metric_sums: every numerator and denominator by hand, on three buckets, k = 3.

bucket 0   q1: 5 candidates, 2 relevant items, one of them in the first 3
           q2: 2 candidates, nothing relevant
bucket 2   q3: 10 candidates, 1 relevant item, in the first 3
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from ranklake.aggregate.series import Scope, metric_sums
from ranklake.metrics import METRICS, measures_of, per_query_measures

K = 3
_OF_OTHER_LABELS = ("conversion_value", "cvr")
NAMES = tuple(
    m.name for m in METRICS if m.has_cutoff and m.name not in (*_OF_OTHER_LABELS, "judged")
)
Q1_Q2, Q3 = -(2**63) + 1, 2**62 + 1  # 64 bits: a double would lose the last of them

OF_QUERIES = [
    {
        "bucket": 0,
        "n_queries": 2.0,
        "n_candidates": 7.0,
        "n_shown_at_3": 3.0 + 2.0,
        "fingerprint": Q1_Q2,
    },
    {
        "bucket": 2,
        "n_queries": 1.0,
        "n_candidates": 10.0,
        "n_shown_at_3": 3.0,
        "fingerprint": Q3,
    },
]
OF_LABELS = [
    {
        "bucket": 0,
        "label": "click",
        "n_with_relevant": 1.0,
        "n_relevant": 2.0,
        "recall_at_3": 1 / 2,
        "precision_at_3": 1 / 3,
        "hits_at_3": 1.0,
    },
    {
        "bucket": 2,
        "label": "click",
        "n_with_relevant": 1.0,
        "n_relevant": 1.0,
        "recall_at_3": 1 / 1,
        "precision_at_3": 1 / 3,
        "hits_at_3": 1.0,
    },
]
KEY = {"model_version": "v1", "label": None, "slice": "all", "slice_value": "all"}


def bucket_sums(*rows: Mapping[str, Any]) -> pa.Table:
    """Rows as sums.aggregated leaves them: of model v1, over all queries, unless they say more."""
    values = [m.column for m in per_query_measures(measures_of(NAMES, [K]))]
    counts = ["n_queries", "n_candidates", "n_shown_at_3", "n_with_relevant", "n_relevant"]
    others = {name for row in rows for name in row} - {*KEY, "bucket", "fingerprint"}
    counts += sorted(others - {*counts, *values})
    schema = pa.schema(
        [
            *((name, pa.string()) for name in KEY),
            ("bucket", pa.int32()),
            *((name, pa.float64()) for name in (*counts, *values)),
            ("fingerprint", pa.int64()),
        ]
    )
    return pa.Table.from_pylist([{**KEY, **row} for row in rows], schema=schema)


def summed(
    *rows: Mapping[str, Any],
    names: Sequence[str] = NAMES,
    labels: Sequence[str] = ("click",),
    served: Sequence[str] = ("v1",),
    measures: Sequence[str] = (),
    undefined: float = 0.0,
) -> list[dict[str, Any]]:
    return metric_sums(
        bucket_sums(*rows),
        measures=measures_of(names, [K], measures),
        scope=Scope(labels=labels, served=served, n_buckets=3, undefined=undefined),
        definition_hash=lambda row: "/".join(str(row[name]) for name in ("metric", "population")),
    ).to_pylist()


def sums_of(rows: Sequence[Mapping[str, Any]], **key: Any) -> tuple[list[float], list[float]]:
    (row,) = [row for row in rows if all(row[name] == value for name, value in key.items())]
    return row["num"], row["den"]


@pytest.mark.parametrize(
    ("metric", "population", "num", "den"),
    [
        ("recall", "with_relevant", [1 / 2, 0, 1 / 1], [1, 0, 1]),
        ("recall", "all", [1 / 2, 0, 1 / 1], [2, 0, 1]),
        ("precision", "with_relevant", [1 / 3, 0, 1 / 3], [1, 0, 1]),
        ("precision", "all", [1 / 3, 0, 1 / 3], [2, 0, 1]),
        ("hits", "all", [1, 0, 1], [2, 0, 1]),
        ("ctr", "all", [1, 0, 1], [3 + 2, 0, 3]),
        ("recall_micro", "all", [1, 0, 1], [2, 0, 1]),
        ("precision_micro", "all", [1, 0, 1], [2 * 3, 0, 1 * 3]),
        ("n_queries", "all", [2, 0, 1], [2, 0, 1]),
        ("n_queries", "with_relevant", [1, 0, 1], [1, 0, 1]),
        ("n_candidates", "all", [5 + 2, 0, 10], [2, 0, 1]),
        ("n_relevant", "all", [2 + 0, 0, 1], [2, 0, 1]),
    ],
)
def test_num_and_den_are_the_sums_of_each_bucket(
    metric: str, population: str, num: list[float], den: list[float]
) -> None:
    rows = summed(*OF_QUERIES, *OF_LABELS)
    assert sums_of(rows, metric=metric, population=population) == (num, den)


def test_every_metric_has_a_series_for_each_of_its_populations() -> None:
    rows = summed(*OF_QUERIES, *OF_LABELS)
    found = [(row["metric"], row["population"]) for row in rows if row["k"] == K]
    asked = [(m.name, str(p)) for m in METRICS if m.name in NAMES for p in m.populations]
    assert sorted(found) == sorted(asked)


def test_a_metric_that_nothing_was_summed_for_is_zero() -> None:
    rows = summed(*OF_QUERIES, *OF_LABELS)
    assert sums_of(rows, metric="dcg", population="all") == ([0, 0, 0], [2, 0, 1])


def test_a_label_without_any_relevant_item_has_its_queries() -> None:
    rows = summed(*OF_QUERIES, *OF_LABELS, labels=("click", "conversion"))
    conversion = [row for row in rows if row["label"] == "conversion"]
    assert sums_of(conversion, metric="recall", population="all") == ([0, 0, 0], [2, 0, 1])
    assert sums_of(conversion, metric="recall", population="with_relevant") == ([0] * 3, [0] * 3)
    assert sums_of(conversion, metric="ctr") == ([0, 0, 0], [3 + 2, 0, 3])


def test_the_fingerprint_stands_with_the_count_of_all_queries_bit_by_bit() -> None:
    rows = summed(*OF_QUERIES, *OF_LABELS)
    found = {(r["metric"], r["population"]): r["fingerprint"] for r in rows if r["fingerprint"]}
    assert found == {("n_queries", "all"): [Q1_Q2, 0, Q3]}


def test_a_model_that_was_not_shown_has_no_click_through_rate() -> None:
    rows = summed(*OF_QUERIES, *OF_LABELS, served=())
    assert {*NAMES} - {row["metric"] for row in rows} == {"ctr"}


def test_models_slices_and_values_are_kept_apart() -> None:
    other_model = [{**row, "model_version": "v2"} for row in OF_QUERIES[:1]]
    mobile = [{**row, "slice": "device", "slice_value": "mobile"} for row in OF_QUERIES[1:]]
    rows = summed(*OF_QUERIES, *other_model, *mobile, names=["recall"])
    counts = {
        (row["model_version"], row["slice"], row["slice_value"]): row["num"]
        for row in rows
        if (row["metric"], row["population"]) == ("n_queries", "all")
    }
    assert counts == {
        ("v1", "all", "all"): [2, 0, 1],
        ("v2", "all", "all"): [2, 0, 0],
        ("v1", "device", "mobile"): [0, 0, 1],
    }


def test_a_metric_without_cut_off_has_k_zero() -> None:
    rows = summed(*OF_QUERIES, *OF_LABELS, names=["r_precision"])
    assert {row["k"] for row in rows if row["metric"] == "r_precision"} == {0}


def test_every_row_has_the_hash_of_its_own_definition() -> None:
    rows = summed(*OF_QUERIES, *OF_LABELS)
    assert all(row["definition_hash"] == f"{row['metric']}/{row['population']}" for row in rows)


def test_without_any_query_there_is_no_series() -> None:
    assert summed() == []


def test_a_threshold_has_the_queries_that_reach_it_in_its_denominator() -> None:
    rows = summed(
        *OF_QUERIES,
        {**OF_LABELS[0], "recall_rel_2_at_3": 0.0, "defined_hit_rate_rel_2_at_3": 0.0},
        {**OF_LABELS[1], "recall_rel_2_at_3": 1 / 1, "defined_hit_rate_rel_2_at_3": 1.0},
        names=[],
        measures=["recall(rel=2)@3"],
    )
    of_rel = [row for row in rows if row["variant"] == "rel=2"]
    assert sums_of(of_rel, metric="recall", population="with_relevant") == ([0, 0, 1], [0, 0, 1])
    assert sums_of(of_rel, metric="recall", population="all") == ([0, 0, 1], [2, 0, 1])


def test_a_weighted_mean_has_weights_in_both_sums() -> None:
    rows = summed(
        *({**row, "weight": weight} for row, weight in zip(OF_QUERIES, (4.0, 3.0), strict=True)),
        {**OF_LABELS[0], "recall_at_3_by_weight": 0.5, "defined_hit_rate_at_3_by_weight": 1.0},
        {**OF_LABELS[1], "recall_at_3_by_weight": 3.0, "defined_hit_rate_at_3_by_weight": 3.0},
        names=[],
        measures=["recall(average=weighted)@3"],
    )
    weighted = [row for row in rows if row["variant"] == "average=weighted"]
    assert sums_of(weighted, metric="recall", population="with_relevant") == (
        [0.5, 0, 3],
        [1, 0, 3],
    )
    assert sums_of(weighted, metric="recall", population="all") == ([0.5, 0, 3], [4, 0, 3])


def test_an_undefined_value_counts_as_the_rule_says() -> None:
    rows = summed(*OF_QUERIES, *OF_LABELS, undefined=1.0)
    assert sums_of(rows, metric="recall", population="all") == ([1 / 2 + 1, 0, 1], [2, 0, 1])
    assert sums_of(rows, metric="recall", population="with_relevant")[0] == [1 / 2, 0, 1]
    assert sums_of(rows, metric="precision", population="all")[0] == [1 / 3, 0, 1 / 3]


def test_conversions_are_divided_by_the_clicks_of_the_same_places() -> None:
    converted = [{**row, "label": "conversion", "hits_at_3": 1.0} for row in OF_LABELS[1:]]
    clicked = [{**row, "hits_at_3": 2.0} for row in OF_LABELS]
    rows = summed(*OF_QUERIES, *clicked, *converted, names=["cvr"], labels=("click", "conversion"))
    assert [row["label"] for row in rows if row["metric"] == "cvr"] == ["conversion"]
    assert sums_of(rows, metric="cvr") == ([0, 0, 1], [2, 0, 2])


def test_the_value_of_conversions_is_of_a_label_of_its_own() -> None:
    of_values = [
        {**row, "label": "conversion_value", "conversion_value_at_3": 7.0} for row in OF_LABELS
    ]
    labels = ("click", "conversion_value")
    rows = summed(*OF_QUERIES, *OF_LABELS, *of_values, names=["conversion_value"], labels=labels)
    found = [row for row in rows if row["metric"] == "conversion_value"]
    assert {row["label"] for row in found} == {"conversion_value"}
    assert sums_of(found, metric="conversion_value", population="all")[0] == [7, 0, 7]


def test_the_cut_off_of_a_page_is_its_number_of_places() -> None:
    queries = [
        {**row, "n_slots": slots, "n_shown_at_shown": shown}
        for row, slots, shown in zip(OF_QUERIES, (8.0, 4.0), (6.0, 4.0), strict=True)
    ]
    labels = [{**row, "hits_at_shown": 1.0} for row in OF_LABELS]
    rows = summed(*queries, *labels, names=[], measures=["ctr@shown", "precision_micro@shown"])
    assert sums_of(rows, metric="ctr", k=-1) == ([1, 0, 1], [6, 0, 4])
    assert sums_of(rows, metric="precision_micro", k=-1) == ([1, 0, 1], [8, 0, 4])
