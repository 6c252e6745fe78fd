"""Every metric, defined once. This package imports no Spark; `metrics.atoms` does."""

from ranklake.metrics.catalog import DEFAULTS, HIT_RATE, METRICS, metric
from ranklake.metrics.measures import Measure, measures_of, per_query_measures
from ranklake.metrics.metric import NO_CUTOFF, Denominator, Metric, Population, column_name
from ranklake.metrics.ranking import Ranking

__all__ = [
    "DEFAULTS",
    "HIT_RATE",
    "METRICS",
    "NO_CUTOFF",
    "Denominator",
    "Measure",
    "Metric",
    "Population",
    "Ranking",
    "column_name",
    "measures_of",
    "metric",
    "per_query_measures",
]
