"""Rows of metric_sums as numbers: each series' value, with and without each of its buckets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ranklake import metrics
from ranklake.estimate.clusterings import Buckets, spread_over
from ranklake.estimate.jackknife import Array, Estimates, ratios
from ranklake.metrics import Measure, Need, Population
from ranklake.schemas import BY_ITEMS

Ints = npt.NDArray[np.int64]

MIN_CLUSTERS = 30
"""Fewer buckets than that give no interval."""
MIN_NONZERO = 10
"""Fewer queries with a value above zero give no interval."""

_UNPUBLISHED = "n_queries"
"""A count of queries stands beside every metric; it is no ratio of its own."""
_COUNTED = {"n_candidates": Population.ALL, "n_relevant": Population.WITH_RELEVANT}
"""Counts that are published as means, and the queries where they are above zero."""
SUMS = ("num", "den", *(name for pair in BY_ITEMS for name in pair), "fingerprint")
"""The columns of metric_sums that hold a number a bucket."""
_GROUP = ("event_date", "model_version", "slice", "slice_value", "label")


class Counts(NamedTuple):
    """How many queries stand behind each series: of its group, with a value, with one above 0."""

    queries: Ints
    defined: Ints
    nonzero: Ints


@dataclass(frozen=True)
class SeriesSums:
    """Some series, one a row: their keys, sums of (rows, buckets), and values.

    by_items  the same in the buckets of items, and of both; empty where no row has any
    """

    keys: pa.Table
    num: Array
    den: Array
    value: Array
    without: Array
    counts: Counts
    by_items: Sequence[Buckets] = ()

    @property
    def clusterings(self) -> Sequence[Buckets]:
        """The buckets of users, and those of items and both where there are any."""
        return (Buckets(self.den > 0, self.without), *self.by_items)

    @property
    def estimates(self) -> Estimates:
        """The value and standard error of each."""
        return spread_over(self.value, self.clusterings)

    @property
    def are_sums_by_user(self) -> npt.NDArray[np.bool_]:
        """Whether the rows are ratios of their sums, and users alone are their clusters."""
        of_items = [buckets.used.any(axis=1) for buckets in self.by_items]
        made = [_is_derived(row) for row in self.keys.to_pylist()]
        are_others: npt.NDArray[np.bool_] = np.logical_or.reduce([np.array(made), *of_items])
        return ~are_others

    @property
    def uppers(self) -> Array:
        """The largest value that each can have, or has."""
        bounds = np.array([_upper(row) for row in self.keys.to_pylist()], dtype=float)
        reached: Array = np.maximum(bounds, np.nan_to_num(self.value))
        return reached

    def take(self, rows: Sequence[int]) -> "SeriesSums":
        """These rows, in this order."""
        at = np.asarray(rows, dtype=np.int64)
        if np.array_equal(at, np.arange(len(self.keys))):
            return self
        return SeriesSums(
            keys=self.keys.take(pa.array(at)),
            num=self.num[at],
            den=self.den[at],
            value=self.value[at],
            without=self.without[at],
            counts=Counts(*[counts[at] for counts in self.counts]),
            by_items=[buckets.take(at) for buckets in self.by_items],
        )


def series_of(metric_sums: pa.Table, *, derived: Sequence[Measure] = ()) -> SeriesSums:
    """Every row but counts of queries; those of `derived`, made of the sums of others, follow.

    metric_sums holds, for each row, those of n_queries and of the hit rate at its k as well. The
    den of a derived series is that of recall.
    """
    totals = _Totals.of(metric_sums)
    own = metric_sums.filter(pc.field("metric") != _UNPUBLISHED)
    num, den = matrix(own["num"]), matrix(own["den"])
    parts = [
        _Values(_keys(own), num, den, *ratios(num, den)),
        *[_derived(metric_sums, measure) for measure in derived],
    ]
    keys = pa.concat_tables([part.keys for part in parts])
    return SeriesSums(
        keys=keys,
        num=_stacked([part.num for part in parts]),
        den=_stacked([part.den for part in parts]),
        value=_stacked([part.value for part in parts]),
        without=_stacked([part.without for part in parts]),
        counts=totals.counts(keys),
        by_items=_by_items(own, n_rows=len(keys)),
    )


def _keys(metric_sums: pa.Table) -> pa.Table:
    return metric_sums.drop_columns([name for name in SUMS if name in metric_sums.column_names])


def _by_items(metric_sums: pa.Table, *, n_rows: int) -> list[Buckets]:
    """The buckets of items and of both; in rows without any, none is in use."""
    found = []
    for names in BY_ITEMS:
        if names[0] not in metric_sums.column_names:
            continue
        at = np.flatnonzero(metric_sums[names[0]].is_valid().to_numpy())
        if len(at):
            num, den = (matrix(metric_sums[name].take(at)) for name in names)
            found.append(Buckets.of(num, den).placed(at, n_rows))
    return found


class _Values(NamedTuple):
    keys: pa.Table
    num: Array
    den: Array
    value: Array
    without: Array


def _derived(metric_sums: pa.Table, measure: Measure) -> _Values:
    """F of the means of precision and recall: not the mean of the queries' F."""
    of_precision, of_recall = (_rows_of(metric_sums, part) for part in measure.parts)
    weight = measure.values["beta"] ** 2
    pairs = [ratios(matrix(rows["num"]), matrix(rows["den"])) for rows in (of_precision, of_recall)]
    value, without = (_f(p, r, weight) for p, r in zip(*pairs, strict=True))
    keys, den = _keys(of_recall), matrix(of_recall["den"])
    for name, text in (("metric", measure.metric.name), ("variant", measure.variant)):
        column = pa.array([text] * len(keys), pa.string())
        keys = keys.set_column(keys.schema.get_field_index(name), name, column)
    return _Values(keys, np.nan_to_num(value)[:, None] * den, den, value, without)


def _f(precision: Array, recall: Array, weight: float) -> Array:
    """(1 + β²) PR / (β² P + R), 0 where both are; `weight` is β²."""
    both = weight * precision + recall
    with np.errstate(divide="ignore", invalid="ignore"):
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


@dataclass(frozen=True)
class _Totals:
    """Σ num and Σ den of every series: how many queries stand behind another one."""

    by_series: Mapping[tuple[Any, ...], tuple[float, float]]

    @classmethod
    def of(cls, metric_sums: pa.Table) -> Self:
        """The totals of every row."""
        series = [
            (*_group(row), row["metric"], row["variant"], row["k"], row["population"])
            for row in _keys(metric_sums).to_pylist()
        ]
        sums = (matrix(metric_sums[name]).sum(axis=1) for name in ("num", "den"))
        return cls(dict(zip(series, zip(*sums, strict=True), strict=True)))

    def counts(self, keys: pa.Table) -> Counts:
        """The counts behind the series with these keys."""
        rows = keys.to_pylist()
        found = [
            [self.queries(row, Population.ALL) for row in rows],
            [self.defined(row) for row in rows],
            [self.nonzero(row) for row in rows],
        ]
        return Counts(*[np.array(counts, dtype=np.int64) for counts in found])

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


def _is_derived(row: Mapping[str, Any]) -> bool:
    return row["metric"] not in _COUNTED and _measure_of(row).is_derived


def _measure_of(row: Mapping[str, Any]) -> Measure:
    return metrics.of_series(row["metric"], row["variant"], row["k"])


def _group(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in _GROUP)


def matrix(lists: pa.ChunkedArray) -> Array:
    """(rows, buckets) of a column of equally long lists."""
    n_rows = len(lists)
    flat = pc.list_flatten(lists).to_numpy()
    return flat.reshape(n_rows, -1) if n_rows else np.zeros((0, 0))


def _stacked(arrays: Sequence[Array]) -> Array:
    """The arrays below each other; one alone is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _upper(row: Mapping[str, Any]) -> float:
    return np.inf if row["metric"] in _COUNTED else _measure_of(row).upper
