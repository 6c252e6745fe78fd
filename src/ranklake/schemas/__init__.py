"""Every table: its columns, types, nullability and meaning. The inputs' contracts, and the lake."""

from ranklake.schemas.inputs import (
    CLICKS,
    CONVERSIONS,
    IMPRESSIONS,
    INPUTS,
    JUDGMENTS,
    SCORES,
)
from ranklake.schemas.lake import (
    COMPARISONS,
    LAKE,
    METRIC_SUMS,
    METRICS,
    MODEL_VERSION,
    PARTITIONS,
    QUALITY,
    QUERY_METRICS,
    RUNS,
    SERIES,
    arrow_schema,
    is_model_version,
)
from ranklake.schemas.table import Check, Column, Table

__all__ = [
    "CLICKS",
    "COMPARISONS",
    "CONVERSIONS",
    "IMPRESSIONS",
    "INPUTS",
    "JUDGMENTS",
    "LAKE",
    "METRICS",
    "METRIC_SUMS",
    "MODEL_VERSION",
    "PARTITIONS",
    "QUALITY",
    "QUERY_METRICS",
    "RUNS",
    "SCORES",
    "SERIES",
    "Check",
    "Column",
    "Table",
    "arrow_schema",
    "is_model_version",
]
