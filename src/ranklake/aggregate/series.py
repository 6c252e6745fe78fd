"""Bucket sums → metric_sums, in numpy: two arrays of buckets for every series. No Spark."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ranklake.metrics import Denominator, Measure, Population

Array = npt.NDArray[Any]
Key = tuple[str, str | None, str, str]
_KEY = ("model_version", "label", "slice", "slice_value")
FINGERPRINT = "fingerprint"


def shown_column(k: int) -> str:
    """The column of Σ min(k, n): the items shown in the first k.

    >>> shown_column(10)
    'n_shown_at_10'
    """
    return f"n_shown_at_{k}"


class Series(NamedTuple):
    """One metric of one group of queries: its sums, bucket by bucket."""

    metric: str
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

    def denominator(self, measure: Measure, population: Population) -> Array:
        """What the metric divides by."""
        metric, k = measure
        if metric.denominator is Denominator.RELEVANT:
            return self["n_relevant"]
        if metric.denominator is Denominator.SLOTS:
            return k * self["n_queries"]
        if metric.denominator is Denominator.SHOWN:
            return self[shown_column(k)]
        return self["n_queries" if population is Population.ALL else "n_with_relevant"]

    def of_measure(self, measure: Measure) -> Iterator[Series]:
        """The measure's series, one a population."""
        metric, k = measure
        for population in metric.populations:
            den = self.denominator(measure, population)
            yield Series(metric.name, k, population, self[measure.column], den)

    def of_counts(self) -> Iterator[Series]:
        """The queries themselves, and what a query holds on average."""
        n_queries, n_defined = self["n_queries"], self["n_with_relevant"]
        fingerprint = self.arrays.get(FINGERPRINT, np.zeros(self.n_buckets, dtype=np.int64))
        yield Series("n_queries", 0, Population.ALL, n_queries, n_queries, fingerprint)
        yield Series("n_queries", 0, Population.WITH_RELEVANT, n_defined, n_defined)
        yield Series("n_candidates", 0, Population.ALL, self["n_candidates"], n_queries)
        yield Series("n_relevant", 0, Population.ALL, self["n_relevant"], n_queries)


def metric_sums(
    sums: pa.Table,
    *,
    measures: Sequence[Measure],
    labels: Sequence[str],
    served: Sequence[str],
    n_buckets: int,
    definition_hash: Callable[[Mapping[str, Any]], str],
) -> pa.Table:
    """One row per series, without event_date and run_id, from the rows of sums.aggregated.

    Metrics that need to know what was shown have no series for models that are not `served`.
    """
    by_key = _arrays(sums, n_buckets)
    groups = sorted({(model, slice_, value) for model, _, slice_, value in by_key})
    rows: list[dict[str, Any]] = []
    for model, slice_, value in groups:
        of_queries = by_key.get((model, None, slice_, value), {})
        known = [m for m in measures if model in served or not m.metric.served_only]
        for label in labels:
            group = Sums({**of_queries, **by_key.get((model, label, slice_, value), {})}, n_buckets)
            key = {"model_version": model, "slice": slice_, "slice_value": value, "label": label}
            every = [*group.of_counts(), *(s for m in known for s in group.of_measure(m))]
            rows += [_row(key, series, definition_hash) for series in every]
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
        "variant": "",
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
