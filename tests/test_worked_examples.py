"""Small logs whose numbers a reader can check by hand, through the whole job."""

import math
from datetime import date

import pytest
from pyspark.sql import SparkSession
from tables import clicks, impressions, table, value

from ranklake import evaluate
from ranklake.errors import ContractError

ALL = ["recall", "precision", "f1", "ap", "rr", "ndcg", "hit_rate", "ctr", "hits", "dcg"]
MICRO = ["r_precision", "recall_micro", "precision_micro"]


def test_three_of_four_relevant_items_in_the_top_ten(spark: SparkSession) -> None:
    """The worked example of the README: recall 0.75, precision 0.30, F1 0.4286."""
    shown = [{"item_id": f"i{n:02}", "score": 100.0 - n} for n in range(1, 13)]
    clicked = [{"item_id": item} for item in ("i01", "i04", "i09", "i12")]
    found = evaluate(
        impressions(spark, *shown), clicks(spark, *clicked), ks=[10], metrics=ALL + MICRO
    )
    assert value(found.metrics, "recall", 10) == 3 / 4
    assert value(found.metrics, "precision", 10) == pytest.approx(3 / 10)
    assert value(found.metrics, "f1", 10) == pytest.approx(2 * 0.3 * 0.75 / (0.3 + 0.75))
    assert value(found.metrics, "ap", 10) == pytest.approx((1 / 1 + 2 / 4 + 3 / 9) / 4)
    assert value(found.metrics, "rr", 10) == 1
    assert value(found.metrics, "hits", 10) == 3
    assert value(found.metrics, "r_precision") == 2 / 4
    assert value(found.metrics, "recall_micro", 10) == 3 / 4
    assert value(found.metrics, "precision_micro", 10) == pytest.approx(3 / 10)
    assert value(found.metrics, "ctr", 10) == pytest.approx(3 / 10)
    dcg = 1 / math.log2(2) + 1 / math.log2(5) + 1 / math.log2(10)
    ideal = sum(1 / math.log2(rank + 1) for rank in (1, 2, 3, 4))
    assert value(found.metrics, "ndcg", 10) == pytest.approx(dcg / ideal)


def test_the_four_candidates_of_the_readme(spark: SparkSession) -> None:
    scores = {"ad-1": 0.30, "ad-2": 0.70, "ad-3": 0.90, "ad-4": 0.10}
    shown = [{"item_id": item, "score": score} for item, score in scores.items()]
    clicked = clicks(spark, {"item_id": "ad-2"}, {"item_id": "ad-4"})
    found = evaluate(impressions(spark, *shown), clicked, ks=[3])
    assert value(found.metrics, "recall", 3) == 1 / 2
    assert value(found.metrics, "precision", 3) == pytest.approx(1 / 3)
    assert value(found.metrics, "f1", 3) == pytest.approx(2 * 1 / (3 + 2))
    assert value(found.metrics, "ap", 3) == pytest.approx((1 / 2) / 2)
    assert value(found.metrics, "rr", 3) == 1 / 2
    ndcg = (1 / math.log2(3)) / (1 / math.log2(2) + 1 / math.log2(3))
    assert value(found.metrics, "ndcg", 3) == pytest.approx(ndcg)


def test_a_query_without_a_click_counts_in_precision_and_not_in_recall(spark: SparkSession) -> None:
    shown = impressions(
        spark,
        {"query_id": "clicked", "item_id": "a", "score": 2.0},
        {"query_id": "clicked", "item_id": "b", "score": 1.0},
        {"query_id": "ignored", "item_id": "a", "score": 1.0},
    )
    clicked = clicks(spark, {"query_id": "clicked", "item_id": "a"})
    found = evaluate(shown, clicked, ks=[2], metrics=["recall", "precision", "ctr"])
    assert value(found.metrics, "recall", 2) == 1
    assert value(found.metrics, "recall", 2, population="all") == 1 / 2
    assert value(found.metrics, "precision", 2) == (1 / 2 + 0) / 2
    assert value(found.metrics, "precision", 2, population="with_relevant") == 1 / 2
    assert value(found.metrics, "ctr", 2) == 1 / (2 + 1)  # one query shows a single item
    assert value(found.metrics, "recall", 2, column="n_queries") == 2
    assert value(found.metrics, "recall", 2, column="n_defined") == 1


def test_dirt_changes_no_number_and_is_counted(spark: SparkSession) -> None:
    """Duplicates, repeated clicks, NaN and null scores, null keys, orphans, an unshown item."""
    nan = float("nan")
    shown = impressions(
        spark,
        {"item_id": "a", "score": 3.0, "user_id": "u"},
        {"item_id": "a", "score": 1.0, "user_id": "u"},  # again, with a worse score
        {"item_id": "b", "score": 2.0, "user_id": "0"},
        {"item_id": "c", "score": nan, "user_id": "u"},
        {"item_id": "d", "score": None, "user_id": "u"},
        {"item_id": None, "user_id": "u"},
        {"item_id": "e", "query_id": "", "user_id": "u"},
    )
    clicked = clicks(
        spark,
        *[{"item_id": "b"}] * 3,
        {"item_id": "c"},
        {"item_id": "unshown"},
        {"item_id": "a", "query_id": "orphan"},
        {"item_id": None},
    )
    found = evaluate(shown, clicked, ks=[2, 4], metrics=["recall", "ndcg"], unknown_users=["0"])
    assert value(found.metrics, "recall", 2) == 1 / 3  # a, b | d, c: unscored last, then item desc
    assert value(found.metrics, "recall", 4) == 2 / 3
    ideal = sum(1 / math.log2(rank + 1) for rank in (1, 2, 3))
    assert value(found.metrics, "ndcg", 4) == pytest.approx(
        (1 / math.log2(3) + 1 / math.log2(5)) / ideal
    )
    assert value(found.metrics, "recall", 2, column="n_queries") == 1
    quality = {row["name"]: row["value"] for row in found.quality.to_pylist()}
    expected = {
        "impressions.rows": 7,
        "impressions.no_item_id": 1,
        "impressions.no_query_id": 1,
        "impressions.null_score": 1,
        "impressions.nan_score": 1,
        "impressions.unknown_user": 1,
        "impressions.dropped.redelivered": 1,
        "clicks.rows": 7,
        "clicks.no_item_id": 1,
        "clicks.dropped.orphan": 1,
        "relevant_items.never_candidates.click": 1,
    }
    assert {name: quality[name] for name in expected} == expected


def test_unshown_clicks_can_be_rejected(spark: SparkSession) -> None:
    shown = impressions(spark, {"item_id": "a", "score": 2.0}, {"item_id": "b", "score": 1.0})
    clicked = clicks(spark, {"item_id": "b"}, {"item_id": "never shown"})
    kept = evaluate(shown, clicked, ks=[2], metrics=["recall"])
    rejected = evaluate(shown, clicked, ks=[2], metrics=["recall"], unshown_clicks="reject")
    assert value(kept.metrics, "recall", 2) == 1 / 2
    assert value(rejected.metrics, "recall", 2) == 1


def test_labels_are_separate_targets_of_one_ranking(spark: SparkSession) -> None:
    """A conversion may be worth more; the order of the candidates is the same."""
    shown = [
        {"item_id": name, "score": score} for name, score in (("a", 3.0), ("b", 2.0), ("c", 1.0))
    ]
    found = evaluate(
        impressions(spark, *shown),
        clicks(spark, {"item_id": "b"}, {"item_id": "c"}),
        conversions=table(spark, "conversions", {"item_id": "c"}),
        labels=["click", "conversion", "worth"],
        gains={"worth": {"click": 1.0, "conversion": 5.0}},
        ks=[2, 3],
        metrics=["recall", "ndcg", "dcg"],
    )
    assert value(found.metrics, "recall", 2, label="click") == 1 / 2
    assert value(found.metrics, "recall", 2, label="conversion") == 0
    assert value(found.metrics, "recall", 3, label="conversion") == 1
    dcg = 1 / math.log2(3) + 5 / math.log2(4)
    assert value(found.metrics, "dcg", 3, label="worth") == pytest.approx(dcg)
    assert value(found.metrics, "ndcg", 3, label="worth") == pytest.approx(
        dcg / (5 / 1 + 1 / math.log2(3))
    )


def test_labels_on_the_row_need_no_clicks(spark: SparkSession) -> None:
    """y_true beside y_score is the simplest input of all; a model may have no label at all."""
    shown = impressions(
        spark,
        {"item_id": "a", "score": 1.0, "clicked": 0.0},
        {"item_id": "b", "score": 2.0, "clicked": 1.0},
        {
            "item_id": "a",
            "score": 2.0,
            "clicked": 0.0,
            "model_version": "unlucky",
            "query_id": "q2",
        },
    )
    found = evaluate(shown, ks=[1], metrics=["recall", "precision"])
    assert value(found.metrics, "recall", 1) == 1
    assert value(found.metrics, "recall", 1, model="unlucky") is None
    assert value(found.metrics, "precision", 1, model="unlucky") == 0
    graded = table(
        spark, "impressions", {"item_id": "a", "gain": 0.0}, {"item_id": "b", "gain": 2.0}
    )
    found = evaluate(graded, labels=["judgment"], ks=[1], metrics=["dcg"])
    assert value(found.metrics, "dcg", 1, label="judgment") == 2  # equal scores: item desc


def test_ranking_by_position_is_the_order_as_shown(spark: SparkSession) -> None:
    shown = impressions(
        spark,
        {"item_id": "a", "score": 1.0, "position": 1},
        {"item_id": "b", "score": 9.0, "position": 2},
    )
    found = evaluate(
        shown, clicks(spark, {"item_id": "a"}), rank_by="position", ks=[1], metrics=["recall"]
    )
    assert value(found.metrics, "recall", 1) == 1


def test_every_asked_query_belongs_to_every_scored_model(spark: SparkSession) -> None:
    """Recall is 0 where a scored model lists nothing, and unlabelled queries count in precision."""
    shown = impressions(
        spark,
        {"query_id": "q1", "item_id": "a", "score": 1.0, "model_version": "served"},
        {"query_id": "q2", "item_id": "a", "score": 1.0, "model_version": "served"},
        {"query_id": "q3", "item_id": "a", "score": 1.0, "model_version": "served"},
    )
    scored = table(
        spark,
        "scores",
        {"query_id": "q1", "item_id": "z", "score": 2.0, "model_version": "offline"},
        {"query_id": "q1", "item_id": "a", "score": 1.0, "model_version": "offline"},
        {
            "query_id": "q9",
            "item_id": "a",
            "score": 1.0,
            "model_version": "offline",
        },  # nobody asked
    )
    clicked = clicks(spark, {"query_id": "q1", "item_id": "a"}, {"query_id": "q2", "item_id": "a"})
    found = evaluate(
        shown, clicked, scores=scored, ks=[1, 2], metrics=["recall", "precision", "ctr"]
    )
    assert value(found.metrics, "recall", 1, model="offline") == 0
    assert value(found.metrics, "recall", 2, model="offline") == (1 + 0) / 2
    assert value(found.metrics, "precision", 2, model="offline") == pytest.approx(
        (1 / 2 + 0 + 0) / 3
    )
    assert value(found.metrics, "recall", 2, model="offline", column="n_queries") == 3
    assert value(found.metrics, "ctr", 1, model="served") == 2 / 3
    assert "ctr" not in [
        r["metric"] for r in found.metrics.to_pylist() if r["model_version"] == "offline"
    ]


def test_a_query_whose_rows_disagree_on_a_slice_counts_once_and_is_found(
    spark: SparkSession,
) -> None:
    """For served and scored models alike, ranked or only counted."""
    rows = [
        {"query_id": query, "item_id": item, "score": 1.0, "device": device, "model_version": "on"}
        for query, devices in (("q1", "xy"), ("q2", "xy"), ("q3", "xx"))
        for item, device in zip("ab", devices, strict=True)
    ]
    scored = [
        {"query_id": query, "item_id": "a", "score": 1.0, "model_version": "off"}
        for query in ("q1", "q2", "q3")
    ]
    found = evaluate(
        impressions(spark, *rows, slices=("device",)),
        clicks(spark, {"query_id": "q1", "item_id": "a"}),
        scores=table(spark, "scores", *scored),
        ks=[1],
        metrics=["precision"],
        slices={"columns": ["device"]},
    )
    mixed = {
        row["model_version"]: row["value"]
        for row in found.quality.to_pylist()
        if row["name"] == "queries.mixed_slices"
    }
    assert mixed == {"on": 2, "off": 2}
    for model in ("on", "off"):
        queries = [
            value(
                found.metrics, "precision", 1, model=model, column="n_queries", slice=("device", of)
            )
            for of in ("x", "y")
        ]
        assert sum(queries) == 3


def test_judgments_say_which_queries_there_are(spark: SparkSession) -> None:
    """A judged query without candidates is 0; candidates without a judgment are not evaluated."""
    judged = table(
        spark,
        "judgments",
        {"query_id": "q1", "item_id": "a", "gain": 2.0},
        {"query_id": "q1", "item_id": "b", "gain": 0.0},
        {"query_id": "q2", "item_id": "a", "gain": 1.0},
        {"query_id": "q3", "item_id": "a", "gain": -1.0},
    )
    scored = table(
        spark,
        "scores",
        {"query_id": "q1", "item_id": "a", "score": 1.0},
        {"query_id": "q4", "item_id": "a", "score": 1.0},
    )
    found = evaluate(
        judgments=judged,
        scores=scored,
        labels=["judgment"],
        ks=[1],
        metrics=["recall", "precision"],
    )
    assert value(found.metrics, "recall", 1, label="judgment") == (1 + 0) / 2
    assert value(found.metrics, "precision", 1, label="judgment") == pytest.approx((1 + 0 + 0) / 3)


def test_a_label_that_is_no_number_counts_for_nothing_and_is_counted(spark: SparkSession) -> None:
    nan, inf = float("nan"), float("inf")
    graded = table(
        spark,
        "impressions",
        {"item_id": "a", "score": 4.0, "gain": nan},
        {"item_id": "b", "score": 3.0, "gain": inf},
        {"item_id": "c", "score": 2.0, "gain": 1.0},
        {"item_id": "d", "score": 1.0, "gain": None},
    )
    found = evaluate(graded, labels=["judgment"], ks=[3], metrics=["recall", "ndcg"])
    assert value(found.metrics, "recall", 3, label="judgment", column="num") == 1
    assert value(found.metrics, "ndcg", 3, label="judgment") == pytest.approx(1 / math.log2(4))
    quality = {row["name"]: row["value"] for row in found.quality.to_pylist()}
    assert quality["impressions.bad_gain"] == 2


def test_slices_and_crosses(spark: SparkSession) -> None:
    """Rare values go to __other__, null has a name, and a query's values are its own."""
    shown = impressions(
        spark,
        *[
            {"query_id": query, "item_id": "a", "score": 1.0, "device": device, "country": country}
            for query, device, country in (
                ("q1", "mobile", "BR"),
                ("q2", "mobile", "US"),
                ("q3", "tv", "BR"),
                ("q4", None, "BR"),
            )
        ],
        slices=("device", "country"),
    )
    found = evaluate(
        shown,
        clicks(spark, {"query_id": "q1", "item_id": "a"}, {"query_id": "q3", "item_id": "a"}),
        ks=[1],
        metrics=["precision"],
        slices={
            "columns": ["device", "country"],
            "crosses": [["device", "country"]],
            "values": {"device": ["mobile"]},
        },
    )
    values = {
        (row["slice"], row["slice_value"]): (row["value"], row["n_queries"])
        for row in found.metrics.to_pylist()
        if (row["metric"], row["population"]) == ("precision", "all")
    }
    assert values == {
        ("all", "all"): (2 / 4, 4),
        ("device", "mobile"): (1 / 2, 2),
        ("device", "__other__"): (1, 1),
        ("device", "__null__"): (0, 1),
        ("country", "BR"): (2 / 3, 3),
        ("country", "US"): (0, 1),
        ("device,country", "mobile,BR"): (1, 1),
        ("device,country", "mobile,US"): (0, 1),
        ("device,country", "__other__,BR"): (1, 1),
        ("device,country", "__null__,BR"): (0, 1),
    }


def test_unique_key_is_believed_and_verified_on_the_ranked_rows(spark: SparkSession) -> None:
    once = [{"item_id": "a", "score": 2.0}, {"item_id": "b", "score": 1.0}]
    clicked = clicks(spark, {"item_id": "a"})
    options = {"ks": [2], "metrics": ["precision", "ctr"]}
    true = evaluate(impressions(spark, *once), clicked, unique_key=True, **options)
    assert value(true.metrics, "precision", 2) == 1 / 2
    twice = impressions(spark, *once, {"item_id": "b", "score": 1.0})
    with pytest.raises(ContractError, match="q1"):
        evaluate(twice, clicked, unique_key=True, **options)
    deduplicated = evaluate(twice, clicked, **options)
    assert value(deduplicated.metrics, "ctr", 2) == 1 / 2


def test_events_may_name_the_delivery_instead_of_the_item(spark: SparkSession) -> None:
    shown = impressions(
        spark,
        {"item_id": "a", "score": 2.0, "impression_id": "d1"},
        {"item_id": "b", "score": 1.0, "impression_id": "d2"},
    )
    clicked = clicks(spark, {"impression_id": "d2"}, {"impression_id": "lost"}).drop("query_id")
    found = evaluate(shown, clicked, ks=[1, 2], metrics=["recall"])
    assert (value(found.metrics, "recall", 1), value(found.metrics, "recall", 2)) == (0, 1)
    quality = {row["name"]: row["value"] for row in found.quality.to_pylist()}
    assert quality["clicks.dropped.orphan"] == 1


def test_a_day_is_taken_by_the_clock_of_the_zone(spark: SparkSession) -> None:
    """The query's day is that of its first impression: rows after midnight stay with it."""
    from datetime import UTC, datetime

    def at(day: int, hour: int, minute: int) -> datetime:
        return datetime(2026, 1, day, hour, minute, tzinfo=UTC)

    # In Tokyo (UTC+9) the first of January is 2025-12-31T15:00Z to 2026-01-01T15:00Z.
    shown = impressions(
        spark,
        {
            "query_id": "before",
            "item_id": "a",
            "score": 2.0,
            "event_ts": datetime(2025, 12, 31, 14, 59, tzinfo=UTC),
        },
        {
            "query_id": "before",
            "item_id": "b",
            "score": 1.0,
            "event_ts": datetime(2025, 12, 31, 15, 1, tzinfo=UTC),
        },
        {
            "query_id": "first",
            "item_id": "a",
            "score": 2.0,
            "event_ts": datetime(2025, 12, 31, 15, 0, tzinfo=UTC),
        },
        {"query_id": "late", "item_id": "a", "score": 2.0, "event_ts": at(1, 14, 59)},
        {"query_id": "late", "item_id": "b", "score": 1.0, "event_ts": at(1, 15, 1)},
        {"query_id": "after", "item_id": "a", "score": 2.0, "event_ts": at(1, 15, 0)},
    ).drop("event_date")
    clicked = clicks(
        spark, {"query_id": "late", "item_id": "b"}, {"query_id": "before", "item_id": "b"}
    )
    found = evaluate(
        shown,
        clicked,
        day=date(2026, 1, 1),
        zone="Asia/Tokyo",
        ks=[2],
        metrics=["recall", "precision"],
    )
    assert value(found.metrics, "recall", 2, column="n_queries") == 2
    assert value(found.metrics, "recall", 2) == 1
