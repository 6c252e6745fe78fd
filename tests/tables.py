"""Small inputs inline: rows by the columns that matter, everything else from one default row."""

from collections.abc import Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from ranklake import schemas

DAY = date(2026, 1, 1)

_DEFAULTS: Mapping[str, Any] = {
    "event_date": DAY,
    "model_version": "v1",
    "query_id": "q1",
    "score": 0.0,
    "clicked": 0.0,
    "gain": 1.0,
}
_ARROW = {
    "STRING": pa.string(),
    "DOUBLE": pa.float64(),
    "INT": pa.int32(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
}


def table(
    spark: SparkSession, name: str, *rows: Mapping[str, Any], slices: tuple[str, ...] = ()
) -> DataFrame:
    """The rows as the input of that name. A column that is unknown to its contract fails."""
    contract = next(t for t in schemas.INPUTS if t.name == name)
    contract = contract.plus(schemas.Column(column, "STRING", "a slice") for column in slices)
    given = {key for row in rows for key in row}
    unknown = given - set(contract.names)
    assert not unknown, f"{name} has no column {unknown}"
    names = [n for n in contract.names if n in given or (n in _DEFAULTS and name in _USES[n])]
    fields = [pa.field(n, _ARROW[contract.column(n).type]) for n in names]
    filled = [{n: row.get(n, _DEFAULTS.get(n)) for n in names} for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(filled, schema=pa.schema(fields)))


_USES = {
    "event_date": ("impressions", "clicks", "conversions", "scores", "judgments"),
    "model_version": ("impressions", "scores"),
    "query_id": ("impressions", "clicks", "conversions", "scores", "judgments"),
    "score": ("impressions", "scores"),
    "clicked": (),
    "gain": ("judgments",),
}


def impressions(
    spark: SparkSession, *rows: Mapping[str, Any], slices: tuple[str, ...] = ()
) -> DataFrame:
    """Impressions of one query, model and day, unless a row says otherwise."""
    return table(spark, "impressions", *rows, slices=slices)


def clicks(spark: SparkSession, *rows: Mapping[str, Any]) -> DataFrame:
    """Clicks of one query and day, unless a row says otherwise."""
    return table(spark, "clicks", *rows)


def value(
    metrics: pa.Table,
    metric: str,
    k: int = 0,
    *,
    model: str = "v1",
    population: str | None = None,
    label: str = "click",
    slice: tuple[str, str] = ("all", "all"),
    column: str = "value",
) -> Any:
    """One number of a metrics table; the metric's first population unless told."""
    from ranklake.metrics import metric as metric_named

    wanted = population or metric_named(metric).populations[0].value
    found = [
        row
        for row in metrics.to_pylist()
        if (row["metric"], row["k"], row["model_version"]) == (metric, k, model)
        and (row["population"], row["label"]) == (wanted, label)
        and (row["slice"], row["slice_value"]) == slice
    ]
    assert len(found) == 1, (
        f"{len(found)} rows of {metric}@{k}, {model}, {wanted}, {label}, {slice}"
    )
    return found[0][column]


def same(one: Any, other: Any) -> bool:
    """Whether they are equal, but for the order in which their numbers were added up."""
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-12, abs=1e-12)
    return bool(one == other)
