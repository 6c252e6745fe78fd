"""Bucket sums → metric_sums, in numpy: two arrays of buckets for every series. No Spark."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ranklake.aggregate.names import (
    FINGERPRINT,
    defined_column,
    shown_column,
    weighted_column,
)
from ranklake.metrics import CLICK, SHOWN, Denominator, Measure, Population

Array = npt.NDArray[Any]
Key = tuple[str, str | None, str, str]
_KEY = ("model_version", "label", "slice", "slice_value")
CLICKS = "{} of clicks"
"""How the sums of the label click are named among those of another label."""


class Series(NamedTuple):
    """One metric of one group of queries: its sums, bucket by bucket."""

    metric: str
    variant: str
    k: int
    population: Population
    num: Array
    den: Array
    fingerprint: Array | None = None


@dataclass(frozen=True)
class Sums:
    """All sums of one group of queries for one label, by name: an array of buckets each."""

    arrays: Mapping[str, Array]
    n_buckets: int

    def __getitem__(self, name: str) -> Array:
        """The array of that sum; zeros where no query had a part in it."""
        return self.arrays.get(name, np.zeros(self.n_buckets))

    def numerator(self, measure: Measure) -> Array:
        """Σ of the measure's values."""
        return self[weighted_column(measure.column, measure.weight)]

    def denominator(self, measure: Measure, population: Population) -> Array:
        """What the metric divides by."""
        if measure.metric.denominator is Denominator.SLOTS and measure.k != SHOWN:
            return measure.k * self["n_queries"]
        return self[_denominator_name(measure, population)]

    def of_measure(self, measure: Measure, *, undefined: float) -> Iterator[Series]:
        """The measure's series, one a population; an undefined value counts as `undefined`."""
        metric = measure.metric
        for population in metric.populations:
            num, den = self.numerator(measure), self.denominator(measure, population)
            if population is Population.ALL and metric.is_mean_over_relevant:
                num = num + undefined * (den - self.denominator(measure, Population.WITH_RELEVANT))
            yield Series(metric.name, measure.variant, measure.k, population, num, den)

    def of_counts(self) -> Iterator[Series]:
        """The queries themselves, and what a query holds on average."""
        n_queries, n_defined = self["n_queries"], self["n_with_relevant"]
        fingerprint = self.arrays.get(FINGERPRINT, np.zeros(self.n_buckets, dtype=np.int64))
        everyone, some = Population.ALL, Population.WITH_RELEVANT
        yield Series("n_queries", "", 0, everyone, n_queries, n_queries, fingerprint)
        yield Series("n_queries", "", 0, some, n_defined, n_defined)
        yield Series("n_candidates", "", 0, everyone, self["n_candidates"], n_queries)
        yield Series("n_relevant", "", 0, everyone, self["n_relevant"], n_queries)


def _denominator_name(measure: Measure, population: Population) -> str:
    """The sum that the measure divides by."""
    return {
        Denominator.QUERIES: _queries_name(measure, population),
        Denominator.DEFINED: defined_column(measure.column, measure.weight),
        Denominator.RELEVANT: "n_relevant",
        Denominator.SLOTS: "n_slots",
        Denominator.SHOWN: shown_column(measure.k),
        Denominator.CLICKS: CLICKS.format(measure.column),
        Denominator.LABELS: "n_scored_hits",
        Denominator.SCORED: "n_scored",
    }[measure.metric.denominator]


def _queries_name(measure: Measure, population: Population) -> str:
    """The queries of the population, each by its weight."""
    if population is Population.ALL:
        return measure.weight or "n_queries"
    if measure.counts_defined:
        return defined_column(measure.counting.column, measure.weight)
    return "n_with_relevant"


@dataclass(frozen=True)
class Scope:
    """What the series are of.

    labels     each has series of its own
    served     models that showed their candidates: only they have metrics that need to know it
    n_buckets  the length of every array
    undefined  what an undefined value counts as in the mean over all queries: 0, or 1
    """

    labels: Sequence[str]
    served: Sequence[str]
    n_buckets: int
    undefined: float = 0.0

    def measures_of(self, measures: Sequence[Measure], *, model: str, label: str) -> list[Measure]:
        """The measures that the model and label have series of; a derived one has none."""
        return [
            m
            for m in measures
            if not m.is_derived
            and (model in self.served or not m.metric.served_only)
            and m.metric.of_label in ("", label)
        ]


def metric_sums(
    sums: pa.Table,
    *,
    measures: Sequence[Measure],
    scope: Scope,
    definition_hash: Callable[[Mapping[str, Any]], str],
) -> pa.Table:
    """One row per series, without event_date and run_id, from the rows of sums.aggregated."""
    by_key = _arrays(sums, scope.n_buckets)
    groups = sorted({(model, slice_, value) for model, _, slice_, value in by_key})
    rows: list[dict[str, Any]] = []
    for model, slice_, value in groups:
        of_queries = by_key.get((model, None, slice_, value), {})
        of_clicks = by_key.get((model, CLICK, slice_, value), {})
        clicks = {CLICKS.format(name): array for name, array in of_clicks.items()}
        for label in scope.labels:
            of_label = by_key.get((model, label, slice_, value), {})
            group = Sums({**of_queries, **clicks, **of_label}, scope.n_buckets)
            key = {"model_version": model, "slice": slice_, "slice_value": value, "label": label}
            known = scope.measures_of(measures, model=model, label=label)
            values = (s for m in known for s in group.of_measure(m, undefined=scope.undefined))
            rows += [_row(key, series, definition_hash) for series in (*group.of_counts(), *values)]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _arrays(sums: pa.Table, n_buckets: int) -> dict[Key, dict[str, Array]]:
    """For each key the sums that have a part in it (others are null), as arrays of buckets."""
    keys = list(zip(*(sums[name].to_pylist() for name in _KEY), strict=True))
    rows_of: dict[Key, list[int]] = {}
    for row, key in enumerate(keys):
        rows_of.setdefault(key, []).append(row)
    bucket = sums["bucket"].to_numpy()
    names = [name for name in sums.column_names if name not in (*_KEY, "bucket")]
    filled = {name: pc.fill_null(sums[name], 0).to_numpy() for name in names}
    # The sums over all queries stand in rows without a label, the others in rows with one.
    has_part = {name: pc.is_valid(sums[name]).to_numpy() for name in names}
    arrays: dict[Key, dict[str, Array]] = {}
    for key, rows in rows_of.items():
        arrays[key] = {}
        for name in names:
            if has_part[name][rows].any():
                array = np.zeros(n_buckets, dtype=filled[name].dtype)
                array[bucket[rows]] = filled[name][rows]
                arrays[key][name] = array
    return arrays


def _row(
    key: Mapping[str, str], series: Series, definition_hash: Callable[[Mapping[str, Any]], str]
) -> dict[str, Any]:
    row = {
        **key,
        "population": series.population.value,
        "metric": series.metric,
        "variant": series.variant,
        "k": series.k,
    }
    return {
        **row,
        "num": series.num,
        "den": series.den,
        "fingerprint": series.fingerprint,
        "definition_hash": definition_hash(row),
    }


_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("model_version", "slice", "slice_value", "label")),
        *((name, pa.string()) for name in ("population", "metric", "variant")),
        ("k", pa.int32()),
        ("num", pa.list_(pa.float64())),
        ("den", pa.list_(pa.float64())),
        ("fingerprint", pa.list_(pa.int64())),
        ("definition_hash", pa.string()),
    ]
)
