"""Every metric, defined once. This package imports no Spark; `metrics.atoms` does."""

from ranklake.metrics.catalog import DEFAULTS, METRICS, metric
from ranklake.metrics.chosen import measures_of, needs_of, per_query_measures
from ranklake.metrics.measures import Measure, spelled
from ranklake.metrics.metric import (
    CLICK,
    CONVERSION,
    CONVERSION_VALUE,
    JUDGMENT,
    NO_CUTOFF,
    SHOWN,
    Cutoff,
    Denominator,
    Metric,
    Need,
    Population,
)
from ranklake.metrics.options import Option
from ranklake.metrics.ranking import Ranking
from ranklake.metrics.strings import MAX_K, measure, metric_with_options, of_series, with_defaults

__all__ = [
    "CLICK",
    "CONVERSION",
    "CONVERSION_VALUE",
    "DEFAULTS",
    "JUDGMENT",
    "MAX_K",
    "METRICS",
    "NO_CUTOFF",
    "SHOWN",
    "Cutoff",
    "Denominator",
    "Measure",
    "Metric",
    "Need",
    "Option",
    "Population",
    "Ranking",
    "measure",
    "measures_of",
    "metric",
    "metric_with_options",
    "needs_of",
    "of_series",
    "per_query_measures",
    "spelled",
    "with_defaults",
]
