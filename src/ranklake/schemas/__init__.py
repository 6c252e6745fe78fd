"""Every table: its columns, types, nullability and meaning. The inputs' contracts, and the lake."""

from ranklake.schemas.arrow import arrow_schema
from ranklake.schemas.inputs import (
    CLICKS,
    CONVERSIONS,
    IMPRESSIONS,
    INPUTS,
    JUDGMENTS,
    ROW_LABELS,
    SCORES,
)
from ranklake.schemas.keys import IS_WANTED, ITEM, OF_QUERY, QUERY, QUERY_EXTRAS, QUERY_KEYS
from ranklake.schemas.lake import (
    COMPARISONS,
    EVERY_QUERY,
    LAKE,
    METRIC_SUMS,
    METRICS,
    MODEL_VERSION,
    NO_VALUE,
    QUALITY,
    QUERY_EXTRA_COLUMNS,
    QUERY_METRICS,
    RARE_VALUE,
    RUNS,
    SliceLists,
    is_model_version,
)
from ranklake.schemas.table import Check, Column, Table

__all__ = [
    "CLICKS",
    "COMPARISONS",
    "CONVERSIONS",
    "EVERY_QUERY",
    "IMPRESSIONS",
    "INPUTS",
    "IS_WANTED",
    "ITEM",
    "JUDGMENTS",
    "LAKE",
    "METRICS",
    "METRIC_SUMS",
    "MODEL_VERSION",
    "NO_VALUE",
    "OF_QUERY",
    "QUALITY",
    "QUERY",
    "QUERY_EXTRAS",
    "QUERY_EXTRA_COLUMNS",
    "QUERY_KEYS",
    "QUERY_METRICS",
    "RARE_VALUE",
    "ROW_LABELS",
    "RUNS",
    "SCORES",
    "Check",
    "Column",
    "SliceLists",
    "Table",
    "arrow_schema",
    "is_model_version",
]
