"""Libraries' own test cases, replayed: their inputs through ours, against their numbers."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from parity import (
    Case,
    Replay,
    best_first,
    by_query,
    expected_in,
    first,
    graded,
    mismatches,
    ordered,
    ordered_ones,
    replayed,
)
from pyspark.sql import SparkSession

EXACT = 1e-9

REPLAYED = {
    *("apache_spark", "sb-ai-lab_RePlay", "recommenders-team_recommenders", "scikit-learn"),
    *("MobileTeleSystems_RecTools", "wikimedia_search-MjoLniR"),
    *("usnistgov_trec_eval", "cvangysel_pytrec_eval"),  # in test_parity_trec_eval.py
}
NO_COUNTERPART = {
    "apache_spark": {"precision of the graded case": "there a grade of 0 is relevant, here not"},
    "sb-ai-lab_RePlay": {
        "expected_mean.RocAuc": "it is of the top k, auc of all candidates",
        "confidence_half_width_alpha_0.95@2": "intervals are a jackknife over users, not z·s/√n",
        "descriptor_case.half_width_alpha_0.05": "the same",
        "median@2": "means are published; per_query has what medians are made of",
        "descriptor_case.median": "the same",
    },
    "cvangysel_pytrec_eval": {"empty": "a run without any candidate is an error"},
    "terrierteam_ir_measures": {"cwl.qrels, cwl.run": "no expected values beside them"},
    "AmenRa_ranx": {"qrels, run": "no expected values beside them"},
}
"""What the folders hold and is not replayed, and why."""


def test_every_folder_of_test_cases_is_replayed_or_listed(shared_data: Path) -> None:
    folders = {path.name for path in (shared_data / "fixtures").iterdir() if path.is_dir()}
    assert folders == REPLAYED | {*NO_COUNTERPART}


# Spark

SPARK_NAMES = {
    "precisionAt": "precision",
    "recallAt": "recall",
    "ndcgAt": "ndcg",
    "meanAveragePrecisionAt": "ap",
}


def spark_case(name: str, lists: Sequence[Sequence[Any]]) -> Case:
    """Predictions, labels and, if given, the labels' grades of each query."""
    gains, run = {}, {}
    for query, (predicted, labels, *grades) in enumerate(lists):
        worth = grades[0] if grades else [1.0] * len(labels)
        gains[f"q{query}"] = dict(zip(map(str, labels), worth, strict=True))
        run[f"q{query}"] = ordered(predicted)
    return Case(name, gains, run)


def spark_values(expected: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Our measure and Spark's value of each number."""
    at_k = [
        (f"{SPARK_NAMES[name]}@{k}", value)
        for name, values in expected.items()
        if name in SPARK_NAMES
        for k, value in values.items()
    ]
    uncut = expected.get("meanAveragePrecision")
    return at_k if uncut is None else [*at_k, ("ap", uncut)]


@pytest.mark.parametrize(
    ("preset", "lists", "n_values"),
    [
        ("spark_mllib", "prediction_and_labels", 28),
        ("spark_mllib_graded", "prediction_labels_relevance", 4),
    ],
)
def test_sparks_ranking_metrics_are_reproduced(
    preset: str, lists: str, n_values: int, spark: SparkSession, shared_data: Path
) -> None:
    suite = expected_in(shared_data, "apache_spark")
    chosen = [of for of in suite["cases"] if lists in of]
    cases = [spark_case(f"case{n}", of[lists]) for n, of in enumerate(chosen)]
    values = [spark_values(of["expected"]) for of in chosen]
    asked = {text for text, _ in chain(*values)}
    found = replayed(spark, cases, sorted(asked), preset=preset)
    pairs = [
        ((case.name, text), found.mean(case.name, text), value)
        for case, of_case in zip(cases, values, strict=True)
        for text, value in of_case
    ]
    assert len(pairs) == n_values
    assert mismatches(pairs, suite["tolerance"]) == []


# RePlay

REPLAY_NAMES = {
    "Precision": "precision",
    "Recall": "recall",
    "HitRate": "hit_rate",
    "MRR": "rr",
    "MAP": "ap",
    "NDCG": "ndcg",
}


@pytest.fixture(scope="module")
def replay_tests(shared_data: Path) -> dict[str, Any]:
    return expected_in(shared_data, "sb-ai-lab_RePlay")


@pytest.fixture(scope="module")
def replay(spark: SparkSession, replay_tests: Mapping[str, Any]) -> Replay:
    recommended = best_first(replay_tests["recommendations[query,item,score]"])
    ones = by_query([(q, i) for q, items in recommended.items() for i in items])
    lists = replay_tests["per_list_cases"]
    cases = [
        Case("main", by_query(replay_tests["ground_truth[query,item]"]), recommended),
        Case("descriptor", ones, recommended),
        *(
            Case(f"list{n}", {"q": ordered_ones(of["ground_truth"])}, {"q": ordered(of["pred"])})
            for n, of in enumerate(lists)
        ),
    ]
    measures = [f"{name}@{k}" for name in REPLAY_NAMES.values() for k in (1, 2, 3, 5, 10)]
    return replayed(spark, cases, measures, preset="replay", tie_key_type="native")


def test_replays_means_are_reproduced(replay: Replay, replay_tests: Mapping[str, Any]) -> None:
    pairs = [
        ((name, k), replay.mean("main", f"{REPLAY_NAMES[name]}@{k}"), value)
        for name, values in replay_tests["expected_mean"].items()
        if name in REPLAY_NAMES
        for k, value in values.items()
    ]
    descriptor = replay_tests["descriptor_case"]["mean"]
    pairs.append(("descriptor", replay.mean("descriptor", "precision@5"), descriptor))
    assert len(pairs) == 24
    assert mismatches(pairs, replay_tests["tolerance"]) == []


def test_replays_values_per_query_are_reproduced(
    replay: Replay, replay_tests: Mapping[str, Any]
) -> None:
    pairs = [
        ((name, query), replay.of_query("main", query, f"{REPLAY_NAMES[name]}@2"), value)
        for name, values in replay_tests["expected_per_query@2"].items()
        for query, value in values.items()
    ]
    pairs += [
        (("descriptor", query), replay.of_query("descriptor", query, "precision@5"), value)
        for query, value in replay_tests["descriptor_case"]["per_query"].items()
    ]
    assert len(pairs) == 21
    assert mismatches(pairs, EXACT) == []


def test_replays_values_per_list_are_reproduced(
    replay: Replay, replay_tests: Mapping[str, Any]
) -> None:
    zeros = {name: [0.0, 0.0] for name in REPLAY_NAMES}
    pairs = [
        # Without a ground truth the query is in no mean here; its undefined values are their 0.
        ((n, name, k), replay.of_query(f"list{n}", "q", f"{REPLAY_NAMES[name]}@{k}") or 0.0, value)
        for n, of in enumerate(replay_tests["per_list_cases"])
        for name, values in of.get("expected", zeros).items()
        for k, value in zip(of["ks"], values, strict=True)
    ]
    assert len(pairs) == 36
    assert mismatches(pairs, EXACT) == []


# recommenders

RECOMMENDERS_NAMES = {
    "precision_at_k": "precision@10",
    "recall_at_k": "recall@10",
    "ndcg_at_k (binary)": "ndcg@10",
    "ndcg_at_k": "ndcg@10",
    "map": "ap",
    "map_at_k": "ap@10",
}
LINEAR = "ndcg(gain=linear)@6"


def test_recommenders_values_are_reproduced(spark: SparkSession, shared_data: Path) -> None:
    tests = expected_in(shared_data, "recommenders-team_recommenders")
    rated = by_query(tests["rating_true[user,item,rating]"])
    predicted = best_first(tests["rating_pred[user,item,prediction]"])
    wiki, at_10, cuts = tests["wiki_graded"], tests["expected_k10"], tests["r_precision_at_k"]
    short = {user: ordered_ones(range(3)) for user in "ab"}
    cases = [
        Case("main", rated, predicted),
        Case("true_vs_true", rated, rated),
        Case("short", short, short),
        Case("wiki", {"q": graded(wiki["true[item,rel]"])}, {"q": ordered(wiki["pred_order"])}),
        *(Case(f"cut{k}", rated, first(predicted, int(k))) for k in cuts),
    ]
    asked = [*RECOMMENDERS_NAMES.values(), LINEAR, "precision@5", "r_precision"]
    found = replayed(spark, cases, [*dict.fromkeys(asked)], preset="recommenders")
    pairs = [
        ((case, name), found.mean(case, RECOMMENDERS_NAMES[name]), value)
        for case, values in (("main", at_10), ("true_vs_true", at_10["true_vs_true"]))
        for name, value in values.items()
        if name in RECOMMENDERS_NAMES
    ]
    pairs += [(k, found.mean(f"cut{k}", "r_precision"), value) for k, value in cuts.items()]
    pairs += [
        ("short", found.mean("short", "precision@5"), tests["short_list"]["expected"]),
        ("wiki", found.mean("wiki", LINEAR), wiki["expected_ndcg_linear_log2_ideal_all_judged"]),
    ]
    assert len(pairs) == 15
    assert mismatches(pairs, tests["tolerance"]) == []


# RecTools, MjoLniR, scikit-learn: no preset, options in the measures

RECTOOLS_MEASURES = {
    ("MAP", "divide_by_k", False): "ap@{}",
    ("MAP", "divide_by_k", True): "ap(denom=k)@{}",
    ("NDCG", "divide_by_achievable", False): "ndcg(gain=binary,ideal=k_ones)@{}",
    ("NDCG", "divide_by_achievable", True): "ndcg(gain=binary)@{}",
    ("MRR", "k", None): "rr@{}",
}
MJOLNIR = "ndcg(gain=exp2,ideal=candidates)"
SKLEARN = ("ndcg(ideal=candidates,tie_break=expected)", "ndcg(ideal=candidates)")
"""With ties averaged, and with ties ignored."""

Expected = tuple[str, str, str, float, float]
"""Case, query, measure, value and tolerance."""


def rectools(tests: Mapping[str, Any]) -> tuple[list[Case], list[Expected]]:
    """Ranks are trusted, gaps and all: fillers stand in the gaps."""
    cases, expected = [], []
    for name in ("MAP", "NDCG", "MRR"):
        run: dict[str, dict[str, float]] = {}
        for user, item, rank in tests[name]["reco[user,item,rank]"]:
            run.setdefault(str(user), {})[str(item)] = -rank
        for items in run.values():
            gaps = {*range(1, 10)} - {-score for score in items.values()}
            items.update({f"filler{rank}": -rank for rank in gaps})
        cases.append(Case(name, by_query(tests[name]["interactions[user,item]"]), run))
        values = next(v for key, v in tests[name].items() if key.startswith("expected_users"))
        for of in values:
            option = next((key for key in of if key.startswith("divide")), "k")
            chosen = of[option] if option != "k" else None
            text = RECTOOLS_MEASURES[name, option, chosen].format(of["k"])
            per_user = next(v for v in of.values() if isinstance(v, list))
            expected += [(name, str(u), text, v, EXACT) for u, v in enumerate(per_user, start=1)]
    return cases, expected


def lists_of(
    mjolnir: Mapping[str, Any], sklearn: Mapping[str, Any]
) -> Iterator[tuple[Case, Expected]]:
    """A list each: its gains and scores by place."""
    lists = [
        *((of["labels_by_position"], range(0, -4, -1), MJOLNIR, of) for of in mjolnir["cases"]),
        *(
            (sklearn["true_relevance"], of["scores"], SKLEARN["ignore_ties" in of], of)
            for of in sklearn["cases"]
        ),
    ]
    for n, (gains, scores, named, of) in enumerate(lists):
        case = Case(f"list{n}", {"q": graded(enumerate(gains))}, {"q": graded(enumerate(scores))})
        text = f"{named}@{of['k']}" if "k" in of else named
        yield case, (case.name, "q", text, of["ndcg"], of.get("tol", EXACT))


def test_rectools_mjolnir_and_scikit_learn_are_reproduced(
    spark: SparkSession, shared_data: Path
) -> None:
    cases, expected = rectools(expected_in(shared_data, "MobileTeleSystems_RecTools"))
    mjolnir = expected_in(shared_data, "wikimedia_search-MjoLniR")
    for case, value in lists_of(mjolnir, expected_in(shared_data, "scikit-learn")):
        cases.append(case)
        expected.append(value)
    found = replayed(spark, cases, sorted({text for _, _, text, _, _ in expected}))
    assert len(expected) == 32 + 20 + 10 + 2 + 5
    assert not [
        (case, query, text, found.of_query(case, query, text), value)
        for case, query, text, value, tolerance in expected
        if mismatches([(text, found.of_query(case, query, text), value)], tolerance)
    ]
