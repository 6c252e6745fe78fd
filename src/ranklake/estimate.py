"""metric_sums → value, standard error, interval: the delete-a-bucket jackknife. numpy, no Spark.

Buckets are made of users, so that the queries and days of one user stay together; the interval is
Student's t with G - 1 degrees of freedom over the G buckets that hold any query (Cameron, Gelbach,
Miller 2011, on clusters; Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 11).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy import stats

from ranklake import metrics
from ranklake.metrics import Measure, Need, Population

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
    with np.errstate(divide="ignore", invalid="ignore"):
        return _spread(den > 0, *_ratios(num, den))


def _ratios(num: Array, den: Array) -> tuple[Array, Array]:
    """Each row's Σ num / Σ den, and the same without each of its buckets."""
    total_num, total_den = num.sum(axis=1, keepdims=True), den.sum(axis=1, keepdims=True)
    return (total_num / total_den)[:, 0], (total_num - num) / (total_den - den)


def _spread(used: npt.NDArray[np.bool_], value: Array, without: Array) -> Estimates:
    """The standard error of values that are known without each of the buckets in use."""
    n_clusters = used.sum(axis=1)
    kept = np.where(used, without, 0.0)
    mean = kept.sum(axis=1, keepdims=True) / n_clusters[:, None]
    squares = np.where(used, (kept - mean) ** 2, 0.0).sum(axis=1)
    std_err = np.sqrt((n_clusters - 1) / n_clusters * squares)
    std_err[(n_clusters < 2) | ~np.isfinite(std_err)] = np.nan
    return Estimates(value, std_err, n_clusters)


def estimated(
    metric_sums: pa.Table, *, confidence: float, derived: Sequence[Measure] = ()
) -> pa.Table:
    """One row per series of metric_sums, as in the table metrics (window_days is 1).

    Measures that are made of the sums of others (`derived`) follow; their den is that of recall.
    std_err and the interval are null, and status is insufficient, with fewer than 30 buckets, with
    fewer than 10 queries above zero, without any variance, or where one bucket is all there is.
    """
    keys = metric_sums.drop_columns(_SUMS)
    num, den = _matrix(metric_sums["num"]), _matrix(metric_sums["den"])
    totals = _Totals.of(keys, num, den)
    is_published = pc.not_equal(keys["metric"], _UNPUBLISHED)
    own = is_published.to_numpy()
    found = jackknife(num[own], den[own])
    plain = _estimates(keys.filter(is_published), found, num[own], den[own], totals, confidence)
    made = [_derived(metric_sums, measure, totals, confidence) for measure in derived]
    return pa.concat_tables([plain, *made])


def with_maturity(
    metrics: pa.Table, *, label_as_of: datetime | None, is_mature: bool | None
) -> pa.Table:
    """The rows of `estimated`, which say by when their labels were known, and if all could be."""
    for name, value in (("is_mature", is_mature), ("label_as_of", label_as_of)):
        place = metrics.schema.get_field_index(name)
        field = metrics.schema.field(place)
        metrics = metrics.set_column(place, field, pa.array([value] * len(metrics), field.type))
    return metrics


def _derived(
    metric_sums: pa.Table, measure: Measure, totals: "_Totals", confidence: float
) -> pa.Table:
    """The rows of F of the means of precision and recall: not the mean of the queries' F."""
    of_precision, of_recall = (_rows_of(metric_sums, part) for part in measure.parts)
    weight = measure.values["beta"] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        pairs = [
            _ratios(_matrix(rows["num"]), _matrix(rows["den"]))
            for rows in (of_precision, of_recall)
        ]
        value, without = (_f(p, r, weight) for p, r in zip(*pairs, strict=True))
        den = _matrix(of_recall["den"])
        found = _spread(den > 0, value, without)
    keys = of_recall.drop_columns(_SUMS)
    for name, text in (("metric", measure.metric.name), ("variant", measure.variant)):
        keys = keys.set_column(
            keys.schema.get_field_index(name), name, pa.array([text] * len(keys), pa.string())
        )
    num = np.nan_to_num(value)[:, None] * den
    return _estimates(keys, found, num, den, totals, confidence)


def _f(precision: Array, recall: Array, weight: float) -> Array:
    """(1 + β²) PR / (β² P + R), 0 where both are; `weight` is β²."""
    both = weight * precision + recall
    return np.where(both == 0, 0.0, (1 + weight) * precision * recall / both)


def _rows_of(metric_sums: pa.Table, measure: Measure) -> pa.Table:
    """The measure's rows in the order of their groups and populations."""
    is_own = (
        (pc.field("metric") == measure.metric.name)
        & (pc.field("variant") == measure.variant)
        & (pc.field("k") == measure.k)
    )
    order = [name for name in (*_GROUP, "population") if name in metric_sums.column_names]
    return metric_sums.filter(is_own).sort_by([(name, "ascending") for name in order])


def _estimates(
    table: pa.Table,
    found: Estimates,
    num: Array,
    den: Array,
    totals: "_Totals",
    confidence: float,
) -> pa.Table:
    """The table's series with the columns that metrics has beyond their keys."""
    rows = table.to_pylist()
    enough = (
        (found.n_clusters >= MIN_CLUSTERS)
        & (np.array([totals.nonzero(row) for row in rows]) >= MIN_NONZERO)
        & np.isfinite(found.std_err)
        & (found.std_err > _ROUNDING * found.value)
    )
    half = stats.t.ppf((1 + confidence) / 2, np.maximum(found.n_clusters - 1, 1)) * found.std_err
    upper = np.maximum([_upper(row) for row in rows], np.nan_to_num(found.value))
    columns = {
        "window_days": np.ones(len(rows), dtype=np.int32),
        "value": _nullable(found.value, np.isfinite(found.value)),
        "std_err": _nullable(found.std_err, enough),
        "ci_low": _nullable(np.maximum(found.value - half, 0.0), enough),
        "ci_high": _nullable(np.minimum(found.value + half, upper), enough),
        "num": num.sum(axis=1),
        "den": den.sum(axis=1),
        "n_queries": np.array([totals.queries(row, Population.ALL) for row in rows], dtype=int),
        "n_defined": np.array([totals.defined(row) for row in rows], dtype=int),
        "n_clusters": found.n_clusters.astype(np.int32),
        "status": pa.array(np.where(enough, "ok", "insufficient"), pa.string()),
        "is_mature": pa.nulls(len(rows), pa.bool_()),
        "label_as_of": pa.nulls(len(rows), pa.timestamp("us", tz="UTC")),
    }
    for name, values in columns.items():
        table = table.append_column(
            name, values if isinstance(values, pa.Array) else pa.array(values)
        )
    return table


_GROUP = ("event_date", "model_version", "slice", "slice_value", "label")


@dataclass(frozen=True)
class _Totals:
    """Σ num and Σ den of every series: how many queries stand behind another one."""

    by_series: Mapping[tuple[Any, ...], tuple[float, float]]

    @classmethod
    def of(cls, keys: pa.Table, num: Array, den: Array) -> "_Totals":
        """The totals of the series with these keys."""
        series = [
            (*_group(row), row["metric"], row["variant"], row["k"], row["population"])
            for row in keys.to_pylist()
        ]
        sums = zip(num.sum(axis=1), den.sum(axis=1), strict=True)
        return cls(dict(zip(series, sums, strict=True)))

    def queries(self, row: Mapping[str, Any], population: str) -> int:
        """Queries of the population."""
        return int(self.by_series[(*_group(row), _UNPUBLISHED, "", 0, population)][0])

    def defined(self, row: Mapping[str, Any]) -> int:
        """Queries whose value is defined: the mean's population."""
        measure = None if row["metric"] in _COUNTED else _measure_of(row)
        if measure is None or (row["population"] == Population.ALL and not measure.is_of_defined):
            return self.queries(row, row["population"])
        if measure.is_of_defined:
            return int(self._of(row, measure.unweighted, row["population"])[1])
        return int(self._of(row, measure.counting, Population.WITH_RELEVANT)[1])

    def nonzero(self, row: Mapping[str, Any]) -> int:
        """Queries with a hit within k: those whose ranking metrics are above zero."""
        if row["metric"] in _COUNTED:
            return self.queries(row, _COUNTED[row["metric"]])
        measure = _measure_of(row)
        if Need.JUDGED in measure.needs:  # judged items need not be relevant
            return self.queries(row, Population.ALL)
        if measure.metric.name == "tied":
            return int(self._of(row, measure, row["population"])[0])
        return int(self._of(row, measure.counting, Population.WITH_RELEVANT)[0])

    def _of(self, row: Mapping[str, Any], measure: Measure, population: str) -> tuple[float, float]:
        key = (measure.metric.name, measure.variant, measure.k, population)
        return self.by_series[(*_group(row), *key)]


def _measure_of(row: Mapping[str, Any]) -> Measure:
    return metrics.of_series(row["metric"], row["variant"], row["k"])


def _group(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in _GROUP)


def _matrix(lists: pa.ChunkedArray) -> Array:
    """(rows, buckets) of a column of equally long lists."""
    n_rows = len(lists)
    flat = pc.list_flatten(lists).to_numpy()
    return flat.reshape(n_rows, -1) if n_rows else np.zeros((0, 0))


def _upper(row: Mapping[str, Any]) -> float:
    return np.inf if row["metric"] in _COUNTED else _measure_of(row).upper


def _nullable(values: Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=~valid, type=pa.float64())
