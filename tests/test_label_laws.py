"""What may happen to a log without changing a number: copies, order, other clocks, bots."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tables import same
from user_logs import DAYS, HOUR, KNOWN_BY, MINUTE, SECOND, WINDOWS, as_input, as_tables, dirty

from ranklake import evaluate

Tables = dict[str, pa.Table]
Key = tuple[Any, ...]
Numbers = list[float | None]
Found = tuple[dict[Key, Numbers], Counter[str]]

DAY = DAYS[1]
N_BOT_QUERIES = 40
MOVED = timedelta(hours=3, minutes=17, microseconds=1)


def run(
    spark: SparkSession,
    tables: Tables,
    *,
    arranged: Callable[[DataFrame], DataFrame] = lambda frame: frame,
    moved: timedelta = timedelta(0),
) -> Found:
    """The numbers by their keys, and how many rows there are by input and reason."""
    frames = {name: arranged(as_input(spark, name, rows)) for name, rows in tables.items()}
    found = evaluate(
        frames["impressions"],
        frames["clicks"],
        conversions=frames["conversions"],
        day=DAY,
        label_as_of=datetime.fromtimestamp(KNOWN_BY / SECOND, UTC) + moved,
        labels=["click", "conversion", "conversion_value"],
        metrics=["recall", "ndcg", "conversion_value", "cvr"],
        ks=[1, 2],
        windows=WINDOWS,
        attribution={"key": "user_item"},
        traffic={"max_queries_per_hour": N_BOT_QUERIES - 1},
    )
    names = ("label", "population", "metric", "k", "slice", "slice_value")
    numbers = ("value", "std_err", "num", "den", "n_queries", "n_defined")
    metrics = {
        tuple(row[name] for name in names): [row[number] for number in numbers]
        for row in found.metrics.to_pylist()
    }
    counts = Counter({row["name"]: row["value"] for row in found.quality.to_pylist()})
    return metrics, +counts


@pytest.fixture(scope="module")
def log() -> Tables:
    return as_tables([dirty(seed) for seed in range(8)])


@pytest.fixture(scope="module")
def usual(spark: SparkSession, log: Tables) -> Found:
    return run(spark, log)


def test_a_row_that_comes_twice_is_only_a_copy(
    spark: SparkSession, log: Tables, usual: Found
) -> None:
    metrics, counts = run(spark, {name: pa.concat_tables([t, t]) for name, t in log.items()})
    before = usual[1]
    assert same(metrics, usual[0])
    rows = {name: before[f"{name}.rows"] for name in log}
    of_clicks = [name for name in before if name.startswith("clicks.dropped.")]
    # Each is a copy of a row that counts, or has the reason of the row that it is a copy of.
    new = Counter({name: before[name] for name in of_clicks})
    new["clicks.dropped.repeated"] += before["clicks.kept"]
    new["impressions.dropped.redelivered"] = rows["impressions"]
    new["conversions.dropped.invalid_keys"] = before["conversions.dropped.invalid_keys"]
    new["conversions.dropped.redelivered"] = (
        rows["conversions"] - new["conversions.dropped.invalid_keys"]
    )
    of_rows = [name for name in before if name.endswith((".rows", ".unknown_user", ".no_item_id"))]
    new |= Counter({name: before[name] for name in of_rows})
    assert counts - before == new
    assert before - counts == Counter()


def test_the_order_of_rows_files_and_arrivals_is_nothing(
    spark: SparkSession, log: Tables, usual: Found
) -> None:
    """Within what is known by label_as_of, and within what is not."""
    chance = random.Random(7)
    reordered = {}
    for name, table in log.items():
        rows = table.to_pylist()
        chance.shuffle(rows)
        for row in rows:
            if row.get("ingest_us") is not None:
                span = (KNOWN_BY - 48 * HOUR, KNOWN_BY)
                if row["ingest_us"] > KNOWN_BY:
                    span = (KNOWN_BY + 1, KNOWN_BY + 48 * HOUR)
                row["ingest_us"] = chance.randint(*span)
        reordered[name] = pa.Table.from_pylist(rows, schema=table.schema)
    metrics, counts = run(spark, reordered, arranged=lambda frame: frame.repartition(7, F.rand(3)))
    assert same(metrics, usual[0])
    assert counts == usual[1]


def test_another_clock_for_everybody_is_nothing(
    spark: SparkSession, log: Tables, usual: Found
) -> None:
    def later(frame: DataFrame) -> DataFrame:
        times = [name for name in frame.columns if name.endswith("_ts")]
        return frame.withColumns({name: F.col(name) + F.lit(MOVED) for name in times})

    metrics, counts = run(spark, log, arranged=later, moved=MOVED)
    assert same(metrics, usual[0])
    assert counts == usual[1]


def test_bots_that_the_rules_catch_are_only_counted(
    spark: SparkSession, log: Tables, usual: Found
) -> None:
    begin = KNOWN_BY - 30 * HOUR
    shown = [
        {
            **{"event_date": DAY, "query_id": f"bot {n}", "item_id": item, "user_id": "bot"},
            **{"advertiser_id": "x", "event_us": begin + n * MINUTE},
        }
        for n in range(N_BOT_QUERIES)
        for item in "ab"
    ]
    of_event = [{key: value for key, value in row.items() if key != "event_us"} for row in shown]
    clicked = [{**row, "at_us": begin + HOUR, "ingest_us": begin} for row in of_event]
    converted = [{**row, "at_us": begin + 2 * HOUR} for row in of_event]
    new = {"impressions": shown, "clicks": clicked, "conversions": converted}
    with_bots = {
        name: pa.concat_tables([table, pa.Table.from_pylist(new[name], schema=table.schema)])
        for name, table in log.items()
    }
    metrics, counts = run(spark, with_bots)
    assert same(metrics, usual[0])
    n = len(shown)
    assert counts - usual[1] == Counter(
        {
            **{f"{name}.rows": n for name in log},
            **{f"{name}.dropped.invalid_traffic": n for name in ("impressions", "clicks")},
            "conversions.dropped.redelivered": n - 2,  # all at once: one an item
            "conversions.dropped.without_touch": 2,
            "queries.invalid_traffic": N_BOT_QUERIES,
            "traffic.queries_per_hour": N_BOT_QUERIES,
        }
    )
    assert usual[1] - counts == Counter()
