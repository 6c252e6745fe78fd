"""metric_sums → value, standard error, interval: the delete-a-bucket jackknife. numpy, no Spark.

Buckets are made of users, so that the queries and days of one user stay together; the interval is
Student's t with G - 1 degrees of freedom over the G buckets that hold any query (Cameron, Gelbach,
Miller 2011, on clusters, and on two clusterings at once; Efron and Tibshirani, An Introduction to
the Bootstrap, 1993, ch. 11).
"""

from ranklake.estimate.clusterings import Buckets, spread_over
from ranklake.estimate.jackknife import (
    Array,
    Estimates,
    is_rounding,
    jackknife,
    normal_quantile,
    p_value,
    ratios,
    spread,
    student_t,
)
from ranklake.estimate.metrics import all_mature, estimated, is_enough, with_maturity
from ranklake.estimate.series import (
    MIN_CLUSTERS,
    MIN_NONZERO,
    SUMS,
    SeriesSums,
    matrix,
    series_of,
)
from ranklake.estimate.windows import KEYS, added

__all__ = [
    "KEYS",
    "MIN_CLUSTERS",
    "MIN_NONZERO",
    "SUMS",
    "Array",
    "Buckets",
    "Estimates",
    "SeriesSums",
    "added",
    "all_mature",
    "estimated",
    "is_enough",
    "is_rounding",
    "jackknife",
    "matrix",
    "normal_quantile",
    "p_value",
    "ratios",
    "series_of",
    "spread",
    "spread_over",
    "student_t",
    "with_maturity",
]
