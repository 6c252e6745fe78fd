"""What the plan does not do: the reasons why it is still fast at a thousand times the data."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tables import DAY, clicks, impressions, table

from ranklake import read
from ranklake.aggregate import sums
from ranklake.config import EvalConfig, of_values
from ranklake.metrics import measures_of, per_query_measures
from ranklake.pipeline.assembled import frames_of
from ranklake.pipeline.frames import Frames
from ranklake.pipeline.inputs import day_of

NEVER = (
    "SortAggregate",
    "BatchEvalPython",
    "ArrowEvalPython",
    "PythonUDF",
    "BroadcastNestedLoopJoin",
    "CartesianProduct",
    "RoundRobinPartitioning",
)


def plan(frame: DataFrame) -> str:
    """The physical plan as text."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


def details(frame: DataFrame) -> str:
    """The physical plan with the whole argument of every node."""
    explained = frame.sparkSession._jvm.PythonSQLUtils.explainString
    return str(explained(frame._jdf.queryExecution(), "formatted"))


def shuffles(text: str) -> list[str]:
    """The first column that each shuffle partitions by."""
    return re.findall(r"\bExchange hashpartitioning\((\w+)", text)


@pytest.fixture(scope="module")
def config() -> EvalConfig:
    return of_values({"ks": [1, 10], "candidates": ["served"], "unique_key": True})


@pytest.fixture(scope="module")
def frames(
    spark: SparkSession, config: EvalConfig, tmp_path_factory: pytest.TempPathFactory
) -> Frames:
    """The frames of a log of two models."""
    return stored_frames(spark, config, tmp_path_factory.mktemp("plan"), models=("m1", "m2"))


def stored_frames(
    spark: SparkSession, config: EvalConfig, home: Path, *, models: Sequence[str]
) -> Frames:
    """The frames of a log in files; each model has a query of its own, with one item."""
    of_model = [
        {
            "item_id": "a",
            "model_version": model,
            "query_id": f"q{n}",
            "device": "tv",
            "user_id": "u",
        }
        for n, model in enumerate(models, start=1)
    ]
    shown = impressions(spark, *of_model, slices=("device",))
    given = {"impressions": shown, "clicks": clicks(spark, {"item_id": "a"})}
    sources = {}
    for name, rows in given.items():
        rows.write.parquet(str(home / name))
        stored = spark.read.parquet(str(home / name))
        sources[name] = read.mapped(name, stored, columns={}, slices=["device"])
    return frames_of(day_of(sources, config, DAY), config, {"device": None})


def test_ranked_rows_take_one_shuffle_behind_the_filter_on_labelled_queries(
    frames: Frames, config: EvalConfig
) -> None:
    text = plan(frames.measured(config.per_query))
    assert not [word for word in NEVER if word in text]
    assert text.count("REPARTITION_BY_COL") == 1
    candidates = text[text.index("REPARTITION_BY_COL") :]
    assert re.search(r"BroadcastHashJoin .*LeftSemi, BuildRight", candidates)
    ranked = text[text.index("ShuffledHashJoin") : text.index("REPARTITION_BY_COL")]
    assert "Window" in ranked
    assert ranked.count("Exchange") == 1  # the one that the text ends in
    assert "Window" not in candidates


def test_the_other_shuffles_are_of_label_hashes_and_of_one_row_a_query(
    frames: Frames, config: EvalConfig
) -> None:
    text = plan(frames.measured(config.per_query))
    below = [part.split("\n")[1] for part in re.split(r"\bExchange hashpartitioning", text)[1:]]
    assert len(below) == 4
    assert sum("Union" in line for line in below) == 1  # candidates and labels
    assert all("HashAggregate" in line for line in below if "Union" not in line)


@pytest.mark.parametrize("is_unique", [True, False])
@pytest.mark.parametrize("models", [("m1",), ("m1", "m2")])
def test_queries_are_counted_once_for_whoever_asks(
    spark: SparkSession, tmp_path: Path, models: Sequence[str], is_unique: bool
) -> None:
    config = of_values({"ks": [1, 10], "candidates": ["served"], "unique_key": is_unique})
    frames = stored_frames(spark, config, tmp_path, models=models)
    row = frames.queries().first()
    assert row is not None
    named = spark.createDataFrame(
        [(row["slice_id"], "all", "all")], "slice_id long, slice string, slice_value string"
    )
    found = sums.aggregated(
        sums.query_sums(frames.queries(), ks=config.ks),
        sums.value_sums(frames.measured(config.per_query), measures=config.asked),
        dictionary=named,
    )
    found.collect()
    final = plan(found).split("== Initial Plan ==")[0]
    assert "isFinalPlan=true" in final
    assert "ReusedExchange" in final
    # Where items are told apart, they are so below the shuffle that everyone reads.
    assert len(re.findall(r"partial_max\(bucket", final)) == (1 if is_unique else 2)


def test_the_queries_without_hits_cost_no_shuffle_more(frames: Frames, config: EvalConfig) -> None:
    ranked, all_queries = (
        shuffles(plan(rows(config.per_query))) for rows in (frames.measured, frames.per_query)
    )
    counts = shuffles(plan(frames.queries()))  # made for the ranked rows, too, and used again
    assert sorted(all_queries) == sorted([*ranked, *counts])
    rows = frames.per_query(config.per_query)
    rows.collect()
    assert "ReusedExchange" in plan(rows).split("== Initial Plan ==")[0]


def test_many_labels_are_not_broadcast_and_change_no_number(
    frames: Frames, config: EvalConfig
) -> None:
    many = replace(frames, has_few_labels=False)
    text = plan(many.measured(config.per_query))
    assert "LeftSemi, BuildRight" not in text[text.index("REPARTITION_BY_COL") :]
    assert text.count("REPARTITION_BY_COL") == 1
    above = text[: text.index("REPARTITION_BY_COL")]
    assert above.rindex("LeftSemi") > above.rindex("Window")  # dropped before they are sorted
    rows = many.per_query(config.per_query).collect()
    assert sorted(map(str, rows)) == sorted(map(str, frames.per_query(config.per_query).collect()))
    assert many.plan[0] == "pruned late"


def test_the_default_metrics_take_one_window_sort_over_the_candidates(
    frames: Frames, config: EvalConfig
) -> None:
    text = plan(frames.measured(config.per_query))
    assert len(re.findall(r"\bWindow \[", text)) == 2  # of the candidates, and of the hits
    assert len(re.findall(r"\bSort \[", text)) == 2
    for window in re.findall(r"\bWindow \[.*", text):
        assert "sum(" not in window  # the place is all that they number


def test_ten_variants_take_the_shuffles_of_one(frames: Frames) -> None:
    variants = [
        *("P(rel=2)@5", "AP(denom=min_k_rel)@20", "nDCG(gain=exp2,ideal=candidates)@10"),
        *("nDCG(gain={1:3,2:9})@10", "RR(tie_break=item_id_asc)@10", "AP(rel=2)", "rbp@10"),
        *("recall(tie_break=expected)@5", "auc", "hit_rate(tie_break=best)@1", "F1(beta=2)@5"),
    ]
    one, many = (
        plan(frames.measured(per_query_measures(measures_of([], [], measures))))
        for measures in (variants[:1], variants)
    )
    assert len(shuffles(many)) == len(shuffles(one)) == 4
    assert not [word for word in NEVER if word in many]
    assert "tie_first" in many
    assert "tie_first" not in one  # what no measure needs costs nothing


def test_collected_lists_hold_hits_only_and_none_is_over_a_window(
    frames: Frames, config: EvalConfig
) -> None:
    text = plan(frames.measured(config.per_query))
    lines = text.split("\n")
    collecting = [n for n, line in enumerate(lines) if "collect_list" in line]
    windows = [n for n, line in enumerate(lines) if re.search(r"\bWindow \[", line)]
    hits = [n for n, line in enumerate(lines) if "Filter" in line and "gain_click" in line]
    assert collecting
    assert max(collecting) < min(windows)  # above the windows, which are printed below
    assert max(collecting) < min(hits)
    assert not [n for n in windows if "collect_list" in lines[n]]


def test_counting_shuffles_one_row_a_query_and_no_string_is_in_a_buffer(frames: Frames) -> None:
    text = plan(frames.queries())
    assert not [word for word in NEVER if word in text]
    assert "item_id" not in text  # a column that counting does not need is not read
    assert "ObjectHashAggregate" not in text
    assert "REPARTITION_BY_COL" not in text
    assert re.search(r"HashAggregate.*partial_count", text)  # combined before the shuffle


def test_sums_carry_no_string_in_their_buffers(
    spark: SparkSession, frames: Frames, config: EvalConfig
) -> None:
    measured = frames.measured(config.per_query)
    named = spark.createDataFrame(
        [(1, "all", "all")], "slice_id long, slice string, slice_value string"
    )
    text = plan(
        sums.aggregated(
            sums.query_sums(frames.queries(), ks=config.ks),
            sums.value_sums(measured, measures=config.asked),
            dictionary=named,
        )
    )
    assert not [word for word in NEVER if word in text]
    assert "collect_list" not in text  # the arrays are for the detail table only


def test_a_mapped_date_still_prunes_partitions(spark: SparkSession, tmp_path: Path) -> None:
    rows = table(spark, "impressions", {"item_id": "a"}, {"item_id": "b"})
    path = str(tmp_path / "log")
    rows.selectExpr("*", "'20260101' as dt").write.partitionBy("dt").parquet(path)
    given = spark.read.parquet(path).drop("event_date")
    source = read.mapped(
        "impressions", given, columns={"event_date": "to_date(cast(dt as string), 'yyyyMMdd')"}
    )
    from datetime import timedelta

    none = timedelta(0)
    kept = read.of_date(source, date(2026, 1, 1), zone="UTC", max_query_span=none, latest=none)
    filters = re.search(r"PartitionFilters: \[(.*)\]", details(kept))
    assert filters
    assert "dt#" in filters.group(1)
    assert kept.count() == 2
