"""Nested input, one row a query with an array of its candidates: the numbers of flat rows."""

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tables import DAY
from test_plan import NEVER, plan
from test_reference_agrees import Query, expected, numbers, random_queries

from ranklake import Evaluation, evaluate, pipeline, read
from ranklake.config import of_values
from ranklake.errors import ConfigError, ContractError
from ranklake.metrics import measure
from ranklake.pipeline.assembled import frames_of
from ranklake.pipeline.frames import Frames
from ranklake.pipeline.inputs import day_of

ADS = pa.list_(pa.struct([("ad_id", pa.string()), ("bid", pa.float64()), ("is_test", pa.bool_())]))
REQUESTS = pa.schema(
    [
        *(("request_id", pa.string()), ("model_version", pa.string()), ("device", pa.string())),
        *(("user_id", pa.string()), ("ads", ADS), ("event_date", pa.date32())),
    ]
)
COLUMNS = {"query_id": "request_id", "item_id": "candidate.ad_id", "score": "candidate.bid"}
ASKED = {
    "labels": ["worth", "click", "conversion"],
    "gains": {"worth": {"click": 1.0, "conversion": 3.0}},
    "metrics": ["recall", "precision", "ap", "rr", "ndcg", "hit_rate", "ctr", "rbp"],
    "ks": [1, 3, 10],
    "slices": {"columns": ["device"]},
}


def once_each(queries: Sequence[Query]) -> list[Query]:
    """The queries with the first row of each item alone."""
    found = []
    for q in queries:
        rows = dict(reversed(q.rows))
        found.append(Query(q.query_id, q.model, [*rows.items()], q.gains, None, None))
    return found


def of_query(q: Query) -> dict[str, Any]:
    n = int(q.query_id[1:])
    return {
        **{"request_id": q.query_id, "model_version": q.model, "user_id": f"u{n % 97}"},
        **{"device": ("tv", "web", None)[n % 3], "event_date": DAY},
    }


def requests(queries: Sequence[Query], *, has_dirt: bool) -> list[dict[str, Any]]:
    """One row a query; with dirt, also nulls, items without a name and test ads in the arrays."""
    rng = random.Random(7)
    rows = []
    for q in queries:
        ads: list[Any] = [{"ad_id": i, "bid": s, "is_test": False} for i, s in q.rows]
        if has_dirt:
            for dirt in (None, {"ad_id": ""}, {"ad_id": None, "bid": 9.0}, {"ad_id": "t"}):
                if rng.random() < 0.2:
                    ads.insert(rng.randint(0, len(ads)), dirt and {"is_test": False, **dirt})
            if rng.random() < 0.2:
                ads.append({"ad_id": "house", "bid": 99.0, "is_test": True})
            ads = [ad for ad in ads if not ad or ad["ad_id"] != "t"]
        rows.append({**of_query(q), "ads": ads})
    if has_dirt:
        empty = Query("q0", "a", [], {}, None, None)
        rows += [
            {**of_query(empty), "request_id": f"e{n}", "ads": ads}
            for n, ads in enumerate([None, [], []])
        ]
    return rows


def events(queries: Sequence[Query], *, gain: float = 0.0) -> pa.Table:
    rows = [
        {"query_id": q.query_id, "item_id": item}
        for q in queries
        for item, worth in q.gains.items()
        if worth >= gain
    ]
    return pa.Table.from_pylist([*rows, {"query_id": "e0", "item_id": "a"}])


def measured(
    spark: SparkSession, shown: DataFrame, queries: Sequence[Query], **options: Any
) -> Evaluation:
    return evaluate(
        shown,
        spark.createDataFrame(events(queries)),
        conversions=spark.createDataFrame(events(queries, gain=3.0)),
        **{**ASKED, **options},
    )


def nested_frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist([*rows], schema=REQUESTS))


def nested(spark: SparkSession, rows: Sequence[Mapping[str, Any]], **options: Any) -> Any:
    """What `measured` takes to evaluate the rows as they are nested."""
    given = {"columns": {"impressions": COLUMNS}, "nested": {"impressions": "ads"}}
    return {"shown": nested_frame(spark, rows), **given, **options}


def agrees(found: Evaluation, queries: Sequence[Query]) -> int:
    """How many numbers there are of the label `worth` and every query; each is the reference's."""
    n = 0
    for key, value in numbers(
        found.metrics.filter(pa.compute.equal(found.metrics["slice"], "all"))
    ).items():
        model, label, name, _, k, population = key
        if label != "worth" or name not in ASKED["metrics"] or name == "ctr":
            continue
        m = measure(f"{name}@{k}" if k else name)
        wanted = next(p for p in m.metric.populations if p.value == population)
        of_model = [q for q in queries if q.model == model]
        assert value == pytest.approx(expected(m, wanted, of_model), rel=1e-12), key
        n += 1
    return n


def test_dirty_nested_rows_have_the_references_numbers(spark: SparkSession) -> None:
    queries = random_queries()
    rows = requests(queries, has_dirt=True)
    given = nested(spark, rows)
    given["nested"] = {"impressions": "filter(ads, ad -> ad is null or not ad.is_test)"}
    found = measured(spark, queries=queries, **given)
    assert agrees(found, queries) > 2 * len(ASKED["metrics"])
    counted = {
        (row["model_version"], row["name"]): row["value"] for row in found.quality.to_pylist()
    }
    assert counted["a", "impressions.dropped.empty"] == 3
    ads = [ad for row in rows for ad in row["ads"] or () if row["model_version"] == "a"]
    assert counted["a", "impressions.dropped.null_candidate"] == sum(ad is None for ad in ads) > 5
    assert counted["a", "impressions.no_item_id"] == sum(
        ad is not None and not ad["ad_id"] for ad in ads
    )
    assert counted["a", "queries.all"] == sum(q.model == "a" for q in queries)


def test_ranks_found_in_the_row_are_those_of_flat_rows(
    spark: SparkSession, plans: list[str]
) -> None:
    queries = once_each(random_queries())
    given = nested(spark, requests(queries, has_dirt=True), unique_key=True)
    given["nested"] = {"impressions": "filter(ads, ad -> not coalesce(ad.is_test, false))"}
    found = measured(spark, queries=queries, **given)
    assert agrees(found, queries) > 2 * len(ASKED["metrics"])
    flat = [
        {**of_query(q), "query_id": q.query_id, "item_id": item, "score": score}
        for q in queries
        for item, score in q.rows
    ]
    shown = spark.createDataFrame(pa.Table.from_pylist(flat))
    same = measured(spark, shown, queries, unique_key=True)
    assert plans == ["nested", "pruned"]
    assert content(found.metrics) == content(same.metrics)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the plans that are taken."""
    taken: list[str] = []

    def told(*given: Any, **known: Any) -> Frames:
        frames = frames_of(*given, **known)
        taken.append(frames.plan[0])
        return frames

    monkeypatch.setattr(pipeline, "frames_of", told)
    return taken


def content(rows: pa.Table) -> list[str]:
    """The rows in one order; bit for bit, as sums of any order may differ in the last one."""
    names = sorted(set(rows.column_names) - {"run_id", "definition_hash"})
    return sorted(str([_rounded(row[name]) for name in names]) for row in rows.to_pylist())


def _rounded(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


# the plan


def frames(
    spark: SparkSession,
    rows: Sequence[Mapping[str, Any]],
    *,
    where: str | None = None,
    **options: Any,
) -> Frames:
    config = of_values({**ONE_ROW, **options})
    return frames_of(day_of(sources(spark, rows, where=where), config, DAY), config, {})


def sources(
    spark: SparkSession, rows: Sequence[Mapping[str, Any]], *, where: str | None = None
) -> dict[str, read.Source]:
    clicked = pa.table({"query_id": ["q1"], "item_id": ["b"], "event_date": [DAY]})
    shown = nested_frame(spark, [{"event_date": DAY, "model_version": "v1", **row} for row in rows])
    return {
        "impressions": read.mapped(
            "impressions", shown, columns=COLUMNS, candidates="ads", where=where
        ),
        "clicks": read.mapped("clicks", spark.createDataFrame(clicked), columns={}),
    }


ONE_ROW = {"ks": [1, 10], "unique_key": True, "metrics": ["recall", "ndcg"]}
TWO_ADS = [{"ad_id": "a", "bid": 2.0}, {"ad_id": "b", "bid": 1.0}]


def above_broadcasts(text: str) -> str:
    """The plan without what is sent to every executor: the side of the labels."""
    kept, skip = [], None
    for line in text.split("\n"):
        depth = len(line) - len(line.lstrip(" :+-|"))
        if skip is not None and depth > skip:
            continue
        skip = depth if "BroadcastExchange" in line else None
        kept.append(line)
    return "\n".join(kept)


def test_candidates_are_ranked_without_a_shuffle_or_a_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    request = {"request_id": "q1", "ads": TWO_ADS, "event_date": DAY, "model_version": "v1"}
    nested_frame(spark, [request]).write.parquet(str(tmp_path / "requests"))
    clicked = pa.table({"query_id": ["q1"], "item_id": ["b"], "event_date": [DAY]})
    spark.createDataFrame(clicked).write.parquet(str(tmp_path / "clicks"))
    given = {name: {"format": "parquet", "path": str(tmp_path / name)} for name in ("clicks",)}
    given["impressions"] = {
        **{"format": "parquet", "path": str(tmp_path / "requests")},
        **{"candidates": "ads", "columns": COLUMNS, "where": "device is null"},
    }
    config = of_values({**ONE_ROW, "labels": ["click"], "inputs": given})
    opened = read.opened(spark, config.inputs.given())
    found = frames_of(day_of(opened, config, DAY), config, {})
    assert found.plan[0] == "nested"
    text = plan(found.measured(config.per_query))
    assert not [word for word in NEVER if word in text]
    log = above_broadcasts(text)
    exchanges = [n for n, line in enumerate(log.split("\n")) if " Exchange " in line]
    ranking = [n for n, line in enumerate(log.split("\n")) if "sort_array(candidates" in line]
    others = [n for n, line in enumerate(log.split("\n")) if re.search(r"\b(Window|Sort) \[", line)]
    assert len(exchanges) == 1  # of hits
    assert exchanges < ranking  # it is printed above what it shuffles
    assert max(others) < min(exchanges)  # over the measured queries
    (join,) = [n for n, line in enumerate(log.split("\n")) if "LeftSemi" in line]
    (scored,) = [n for n, line in enumerate(log.split("\n")) if "isnan(" in line]
    below = [line for line in log.split("\n")[join:] if "transform(" in line]
    assert scored < join  # arrays of queries without a label are mapped, and no more
    assert len(below) == 1
    counts = plan(found.queries())
    assert "Exchange" not in counts
    assert "transform" not in counts  # the array's length is enough


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"unique_key": False}, "unique_key = false: a query may stand in two rows"),
        ({"rules": {"depth": 5}}, "rules.depth or rules.score_type differs from its default"),
        ({"measures": ["P(rel=2)@5"]}, "precision(rel=2)@5 reads the hits in a way of its own"),
        ({"measures": ["auc"]}, "a measure needs ties, scores or judged items"),
    ],
)
def test_what_needs_other_orders_is_ranked_as_flat_rows(
    spark: SparkSession, options: Mapping[str, Any], reason: str
) -> None:
    found = frames(spark, [{"request_id": "q1", "ads": TWO_ADS}], **options)
    assert found.in_rows is None
    assert found.plan[1].endswith(f"; not nested: {reason}")


def ranks(found: Frames) -> list[list[int]]:
    return [row["hit_ranks"] for row in found.measured(found.config.per_query).collect()]


def test_positions_are_places_in_the_array(spark: SparkSession) -> None:
    ads = [None, *TWO_ADS]
    found = frames(spark, [{"request_id": "q1", "ads": ads}], rank_by="position")
    assert ranks(found) == [[2]]
    config = of_values({**ONE_ROW, "rank_by": "position"})
    rows = day_of(sources(spark, [{"request_id": "q1", "ads": ads}]), config, DAY).rows
    shown = rows["impressions"].where("is_candidate").collect()
    assert [row["position"] for row in shown] == [2, 3]


@pytest.mark.parametrize(
    "rows",
    [
        [{"request_id": "q1", "ads": [*TWO_ADS, {"ad_id": "a", "bid": 0.5}]}],
        [{"request_id": "q1", "ads": TWO_ADS}] * 2,
        [{"request_id": "q1", "ads": TWO_ADS}, {"request_id": "q1", "ads": TWO_ADS[:1]}],
        [{"request_id": "q1", "ads": TWO_ADS[:1]}, {"request_id": "q1", "ads": TWO_ADS[1:]}],
    ],
    ids=["an item twice", "a row twice", "two rows", "two halves"],
)
def test_a_broken_promise_stops_the_run(
    spark: SparkSession, rows: Sequence[Mapping[str, Any]]
) -> None:
    with pytest.raises(Exception, match="two rows of a nested input"):
        ranks(frames(spark, rows))


# refusals


@pytest.mark.parametrize(
    ("candidates", "columns", "problems"),
    [
        (
            "device",
            {**COLUMNS, "user_id": "nosuch"},
            ["candidates 'device' is string, expected array<struct<...>>", "column 'user_id'"],
        ),
        (
            "transform(ads, ad -> ad.bid)",
            COLUMNS,
            ["candidates 'transform(ads, ad -> ad.bid)' is array<double>, expected array<struct"],
        ),
        ("adz", COLUMNS, ["candidates 'adz': ", "adz"]),
        (
            "ads",
            {"item_id": "candidate.nosuch", "score": "candidate.ad_id"},
            [
                *("column 'item_id': ", "`nosuch`", "column 'score' is string, expected double"),
                *("column 'query_id' is missing and not mapped; there are request_id,",),
                "candidate.ad_id, candidate.bid",
            ],
        ),
    ],
)
def test_what_is_no_array_of_candidates_is_told_with_everything_else(
    spark: SparkSession, candidates: str, columns: Mapping[str, str], problems: Sequence[str]
) -> None:
    shown = nested_frame(spark, [{"request_id": "q1", "ads": TWO_ADS}])
    with pytest.raises(ContractError) as refused:
        read.mapped("impressions", shown, columns=columns, candidates=candidates, place="s3://log")
    assert all(problem.startswith("impressions: s3://log: ") for problem in refused.value.problems)
    assert [words for words in problems if words not in str(refused.value)] == []


def test_fields_of_our_names_need_no_entry(spark: SparkSession) -> None:
    shown = spark.sql(
        "SELECT 'q1' AS query_id, array(named_struct('item_id', 'a', 'score', 2.0D)) AS candidate"
    )
    found = read.mapped("impressions", shown, columns={}, candidates="candidate").rows
    assert set(found.columns) >= {"query_id", "item_id", "score", "position"}
    assert found.columns == [*read_names(found), "is_wanted", "is_candidate"]


def read_names(rows: DataFrame) -> list[str]:
    return [name for name in rows.columns if not name.startswith("is_")]


def test_only_impressions_and_scores_hold_candidates() -> None:
    with pytest.raises(ConfigError, match=r"inputs.clicks.candidates: found 'ads', expected"):
        of_values({"inputs": {"clicks": {"path": "clicks", "candidates": "ads"}}})
