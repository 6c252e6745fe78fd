"""Labels that arrive for days: running day by day and again when all are known is one run."""

import random
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from tables import same
from user_logs import DAYS, HOUR, MIDNIGHTS, MINUTE, SECOND, WINDOWS, as_input, as_tables, dirty

from ranklake import Lake, pipeline, write
from ranklake.config import EvalConfig, of_values
from ranklake.pipeline.backfill import standings
from ranklake.pipeline.publish import lake_tables

Tables = dict[str, pa.Table]

RUN = DAYS[:2]
ALL_KNOWN = MIDNIGHTS[-1] + 96 * HOUR
OF_ONE_RUN = {"run_id", "label_as_of"}


def instant(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / SECOND, UTC)


@pytest.fixture(scope="module")
def log() -> Tables:
    """Each event comes at once, or up to 60 hours after it happened."""
    chance = random.Random(11)
    tables = as_tables([dirty(seed) for seed in range(5)])
    for name in ("clicks", "conversions"):
        rows = tables[name].to_pylist()
        for row in rows:
            happened = row["at_us"] or MIDNIGHTS[1]
            row["ingest_us"] = happened + chance.choice((0, MINUTE, 20 * HOUR, 60 * HOUR))
        tables[name] = pa.Table.from_pylist(rows, schema=tables[name].schema)
    return tables


def arrive(spark: SparkSession, log: Tables, home: Path, *, after: int, until: int) -> None:
    """Appends to the inputs what the log gets in that time: impressions at the end of their day."""
    for name, table in log.items():
        if name == "impressions":
            end_of = {day: MIDNIGHTS[DAYS.index(day) + 1] for day in DAYS}
            ingest = pa.array([end_of[day] for day in table["event_date"].to_pylist()])
        else:
            ingest = table["ingest_us"]
        comes = pc.and_(pc.greater(ingest, after), pc.less_equal(ingest, until))
        rows = as_input(spark, name, table.filter(comes)).toArrow()
        write_deltalake(home / name, rows, mode="append", partition_by=["event_date"])


def lake_of(spark: SparkSession, home: Path, inputs: Path) -> EvalConfig:
    """A new lake, over the inputs there."""
    names = ("impressions", "clicks", "conversions")
    config = of_values(
        {
            **{"lake": {"path": str(home / "lake")}, "windows": WINDOWS, "zone": "UTC"},
            "inputs": {name: {"path": str(inputs / name)} for name in names},
            **{"attribution": {"key": "user_item"}, "labels": ["click", "conversion"]},
            **{"metrics": ["recall", "ndcg", "cvr"], "ks": [1, 2], "n_buckets": 50},
        }
    )
    write.create_tables(spark, config.lake, lake_tables(config))
    return config


def where(spark: SparkSession, config: EvalConfig, *, now: int) -> dict[date, str]:
    """How each published day stands at that time."""
    found = standings(spark, config, label_as_of=instant(ALL_KNOWN), now=instant(now))
    return {day: standing.kind for day, standing in found}


def contents(config: EvalConfig) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of every table that holds numbers, in one order, without the run that wrote them."""
    lake, tables = Lake(str(config.lake.path)), {}
    for name in ("metrics", "metric_sums", "quality", "query_metrics"):
        table = getattr(lake, name)()
        rows = table.drop_columns([c for c in OF_ONE_RUN if c in table.column_names]).to_pylist()
        tables[name] = sorted(rows, key=str)
    return tables


def test_day_by_day_and_again_when_all_is_known_is_one_run_at_the_end(
    spark: SparkSession, log: Tables, tmp_path: Path
) -> None:
    daily = lake_of(spark, tmp_path / "daily", tmp_path)
    known_by = 0
    for day, midnight in zip(RUN, MIDNIGHTS[1:], strict=False):
        arrive(spark, log, tmp_path, after=known_by, until=midnight)
        known_by = midnight
        pipeline.evaluate(spark, daily, day, label_as_of=instant(known_by))
    early = contents(daily)
    arrive(spark, log, tmp_path, after=known_by, until=ALL_KNOWN)
    assert where(spark, daily, now=known_by) == dict.fromkeys(RUN, "waiting")
    assert where(spark, daily, now=ALL_KNOWN) == dict.fromkeys(RUN, "stale")

    for day in RUN:
        pipeline.evaluate(spark, daily, day, label_as_of=instant(ALL_KNOWN))
    assert where(spark, daily, now=ALL_KNOWN) == dict.fromkeys(RUN, "fresh")
    at_once = lake_of(spark, tmp_path / "at_once", tmp_path)
    for day in RUN:
        pipeline.evaluate(spark, at_once, day, label_as_of=instant(ALL_KNOWN))
    late, once = contents(daily), contents(at_once)
    for name, rows in once.items():
        assert same(late[name], rows), name
        assert not same(early[name], rows), name
