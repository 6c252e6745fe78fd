"""metric_sums → value, standard error, interval: the delete-a-bucket jackknife. numpy, no Spark.

Buckets are made of users, so that the queries and days of one user stay together; the interval is
Student's t with G - 1 degrees of freedom over the G buckets that hold any query (Cameron, Gelbach,
Miller 2011, on clusters; Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 11).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from ranklake import metrics
from ranklake.metrics import HIT_RATE, Population

Array = npt.NDArray[np.float64]

MIN_CLUSTERS = 30
"""Fewer buckets than that give no interval."""
MIN_NONZERO = 10
"""Fewer queries with a value above zero give no interval."""
_ROUNDING = 1e-12
"""A standard error below that share of the value is rounding: the buckets do not differ."""
_UNPUBLISHED = "n_queries"
"""A count of queries stands beside every metric; it is no ratio of its own."""
_COUNTED = {"n_candidates": Population.ALL, "n_relevant": Population.WITH_RELEVANT}
"""Counts that are published as means, and the queries where they are above zero."""
_SUMS = ["num", "den", "fingerprint"]


@dataclass(frozen=True)
class Estimates:
    """One value and standard error a row of sums; nan where there is none."""

    value: Array
    std_err: Array
    n_clusters: npt.NDArray[np.int64]


def jackknife(num: Array, den: Array) -> Estimates:
    """The ratio Σ num / Σ den of each row, and its delete-a-bucket jackknife standard error.

    num, den: (rows, buckets). value is nan when Σ den = 0; std_err is nan then, with fewer than two
    buckets in use, or where one bucket holds the whole denominator.
    """
    used = den > 0
    n_clusters = used.sum(axis=1)
    total_num, total_den = num.sum(axis=1, keepdims=True), den.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (total_num / total_den)[:, 0]
        without = np.where(used, (total_num - num) / (total_den - den), 0.0)
        mean = without.sum(axis=1, keepdims=True) / n_clusters[:, None]
        squares = np.where(used, (without - mean) ** 2, 0.0).sum(axis=1)
        std_err = np.sqrt((n_clusters - 1) / n_clusters * squares)
    std_err[(n_clusters < 2) | ~np.isfinite(std_err)] = np.nan
    return Estimates(value, std_err, n_clusters)


def estimated(metric_sums: pa.Table, *, confidence: float) -> pa.Table:
    """One row per series of metric_sums, as in the table metrics (window_days is 1).

    std_err and the interval are null, and status is insufficient, with fewer than 30 buckets, with
    fewer than 10 queries above zero, without any variance, or where one bucket is all there is.
    """
    published = metric_sums.filter(pc.not_equal(metric_sums["metric"], _UNPUBLISHED))
    table = published.drop_columns(_SUMS)
    num, den = _matrix(published["num"]), _matrix(published["den"])
    columns = _columns(table.to_pylist(), num, den, _query_counts(metric_sums), confidence)
    for name, values in columns.items():
        table = table.append_column(
            name, values if isinstance(values, pa.Array) else pa.array(values)
        )
    return table


def _columns(
    rows: Sequence[Mapping[str, Any]], num: Array, den: Array, counts: "_Counts", confidence: float
) -> dict[str, Any]:
    """The columns that metrics has beyond the keys of its series, a value a row."""
    found = jackknife(num, den)
    enough = (
        (found.n_clusters >= MIN_CLUSTERS)
        & (np.array([counts.nonzero(row) for row in rows]) >= MIN_NONZERO)
        & np.isfinite(found.std_err)
        & (found.std_err > _ROUNDING * found.value)
    )
    half = stats.t.ppf((1 + confidence) / 2, np.maximum(found.n_clusters - 1, 1)) * found.std_err
    upper = np.array([_upper(row["metric"]) for row in rows])
    return {
        "window_days": np.ones(len(rows), dtype=np.int32),
        "value": _nullable(found.value, np.isfinite(found.value)),
        "std_err": _nullable(found.std_err, enough),
        "ci_low": _nullable(np.maximum(found.value - half, 0.0), enough),
        "ci_high": _nullable(np.minimum(found.value + half, upper), enough),
        "num": num.sum(axis=1),
        "den": den.sum(axis=1),
        "n_queries": np.array([counts.queries(row, Population.ALL) for row in rows]),
        "n_defined": np.array([counts.queries(row, row["population"]) for row in rows]),
        "n_clusters": found.n_clusters.astype(np.int32),
        "status": np.where(enough, "ok", "insufficient"),
        "is_mature": pa.nulls(len(rows), pa.bool_()),
        "label_as_of": pa.nulls(len(rows), pa.timestamp("us", tz="UTC")),
    }


@dataclass(frozen=True)
class _Counts:
    """How many queries stand behind a series."""

    by_series: Mapping[tuple[Any, ...], float]

    def queries(self, row: Mapping[str, Any], population: str) -> int:
        """Queries of the population."""
        return int(self.by_series[(*_group(row), _UNPUBLISHED, population, 0)])

    def nonzero(self, row: Mapping[str, Any]) -> int:
        """Queries with a hit within k: those whose ranking metrics are above zero."""
        if row["metric"] in _COUNTED:
            return self.queries(row, _COUNTED[row["metric"]])
        hit = (*_group(row), HIT_RATE.name, Population.WITH_RELEVANT, row["k"])
        return int(self.by_series[hit])


def _group(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(
        row.get(name) for name in ("event_date", "model_version", "slice", "slice_value", "label")
    )


def _query_counts(metric_sums: pa.Table) -> _Counts:
    counting = metric_sums.filter(
        pc.is_in(metric_sums["metric"], pa.array([_UNPUBLISHED, HIT_RATE.name]))
    )
    totals = _matrix(counting["num"]).sum(axis=1)
    rows = counting.drop_columns(_SUMS).to_pylist()
    return _Counts(
        {
            (*_group(row), row["metric"], row["population"], row["k"]): total
            for row, total in zip(rows, totals, strict=True)
        }
    )


def _matrix(lists: pa.ChunkedArray) -> Array:
    """(rows, buckets) of a column of equally long lists."""
    n_rows = len(lists)
    flat = pc.list_flatten(lists).to_numpy()
    return flat.reshape(n_rows, -1) if n_rows else np.zeros((0, 0))


def _upper(name: str) -> float:
    return np.inf if name in _COUNTED else metrics.metric(name).upper


def _nullable(values: Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=~valid, type=pa.float64())
