"""What the run found on its way → the rows of the table quality."""

from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake import quality
from ranklake.config import EvalConfig
from ranklake.pipeline.frames import Frames
from ranklake.pipeline.inputs import Day


def checks_of(
    day: Day, frames: Frames, queries: DataFrame, bucket_sums: pa.Table, config: EvalConfig
) -> pa.Table:
    """One row per (model, check), without event_date and run_id.

    Findings of an input without models stand with every model of the run.
    """
    orphans = _orphans(day, frames, queries)
    rows: list[dict[str, Any]] = []
    for model, raw in day.models.items():
        name = "impressions" if model in day.served else "scores"
        counts = day.audits[name][raw]
        is_log = frames.served is not None and model in day.served
        found = [
            *quality.of_input(name, counts),
            *quality.of_queries(
                bucket_sums,
                model=model,
                labels=config.labels,
                usable_rows=counts["usable"] if is_log else None,
            ),
            *(
                row
                for other in _without_models(day)
                for row in quality.of_input(other, day.audits[other][None])
            ),
            *orphans,
        ]
        rows += [{"model_version": model, **row} for row in found]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


_SCHEMA = pa.schema(
    [
        ("model_version", pa.string()),
        ("name", pa.string()),
        ("value", pa.float64()),
        ("n_rows", pa.int64()),
        ("limit", pa.float64()),
        ("status", pa.string()),
    ]
)


def _without_models(day: Day) -> list[str]:
    return [
        name
        for name, audit in day.audits.items()
        if None in audit and name not in ("impressions", "scores")
    ]


def _orphans(day: Day, frames: Frames, queries: DataFrame) -> list[dict[str, Any]]:
    """Events of queries (or deliveries) that are not in the day's log.

    Known only where the run has every model of the log, and the events say which day is theirs.
    """
    if not day.every_model or frames.served is None:
        return []
    dated = {name: rows for name, rows in frames.events.items() if "event_date" in rows.columns}
    unmatched = [_unmatched(name, rows, frames, queries) for name, rows in dated.items()]
    if not unmatched:
        return []
    counts = reduce(DataFrame.unionByName, unmatched).groupBy("name").count().collect()
    found = {row["name"]: row["count"] for row in counts}
    return [
        quality.check(f"{name}.orphans", found.get(name, 0), day.count(name, "usable"))
        for name in dated
    ]


def _unmatched(name: str, events: DataFrame, frames: Frames, queries: DataFrame) -> DataFrame:
    """One row per event without a query (or delivery) in the log: the input's name."""
    key = "query_id" if "query_id" in events.columns else "impression_id"
    deliveries = frames.impressions
    log = queries if key == "query_id" or deliveries is None else deliveries
    orphans = events.join(log.select(key), on=[key], how="left_anti")
    return orphans.select(F.lit(name).alias("name"))
