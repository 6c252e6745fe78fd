"""The two sides of a comparison: one model's sums over the days, and what else is known of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranklake import metrics, schemas
from ranklake.comparison.pairing import Pairing, pairing
from ranklake.errors import ConfigError
from ranklake.estimate import SeriesSums, matrix, series_of
from ranklake.metrics import Measure, Population


class Series(NamedTuple):
    """What a number is of, whoever ranked: the key of metric_sums and metrics within a model."""

    slice: str
    slice_value: str
    label: str
    population: str
    metric: str
    variant: str
    k: int

    def __str__(self) -> str:
        """In words: recall@10 of click, device mobile."""
        where = "" if self.slice == schemas.EVERY_QUERY else f", {self.slice} {self.slice_value}"
        return f"{metrics.spelled(self.metric, self.variant, self.k)} of {self.label}{where}"


_Group = tuple[str, str, str]
"""Slice, slice value and label."""


@dataclass(frozen=True)
class Side:
    """One model over the days: `sums` are its rows of metric_sums, added up.

    run_id, label_as_of   of the last day's run
    is_mature             whether all labels of all days could have happened; None: nobody can say
    shows_all             whether its candidates are what the users saw
    """

    model: str
    days: Sequence[date]
    sums: pa.Table
    run_id: str
    label_as_of: datetime | None
    is_mature: bool | None
    shows_all: bool

    @cached_property
    def hashes(self) -> Mapping[Series, str]:
        """What each series means."""
        names = (*Series._fields, "definition_hash")
        columns = zip(*[self.sums[name].to_pylist() for name in names], strict=True)
        return {Series(*key): definition for *key, definition in columns}

    def judged(self, series: Series) -> float | None:
        """The judged share of its top k; None: nobody knows, for no such measure was configured."""
        if self.shows_all:
            return 1.0
        key = series._replace(population=Population.ALL, metric="judged", variant="")
        return self._judged.get(key)

    @cached_property
    def _judged(self) -> Mapping[Series, float]:
        own = self.sums.filter((pc.field("metric") == "judged") & (pc.field("variant") == ""))
        num, den = (matrix(own[name]).sum(axis=1) for name in ("num", "den"))
        keys = own.select(Series._fields).to_pylist()
        return {Series(**key): n / d for key, n, d in zip(keys, num, den, strict=True) if d}

    @cached_property
    def queries(self) -> Mapping[_Group, tuple[Any, Any]]:
        """For each slice value and label, the number and the hash of the queries, by bucket."""
        counts = self.sums.filter(
            (pc.field("metric") == "n_queries") & (pc.field("population") == Population.ALL.value)
        )
        names = ("slice", "slice_value", "label")
        groups = zip(*[counts[name].to_pylist() for name in names], strict=True)
        pairs = zip(matrix(counts["num"]), matrix(counts["fingerprint"]), strict=True)
        return dict(zip(groups, pairs, strict=True))


@dataclass(frozen=True)
class Pair:
    """Both sides, the rows of each of the same series; `alone` are those that one side has."""

    candidate: SeriesSums
    baseline: SeriesSums
    series: Sequence[Series]
    alone: Sequence[Series] = ()

    def place_of(self, series: Series) -> int | None:
        """The row of the series; None where a side does not have it."""
        return self._places.get(series)

    @cached_property
    def _places(self) -> Mapping[Series, int]:
        return {series: place for place, series in enumerate(self.series)}


def paired(candidate: Side, baseline: Side, *, derived: Sequence[Measure] = ()) -> Pair:
    """The series that the sides have. Raises ConfigError for one that they define differently."""
    problems = [*_differently_defined(candidate, baseline)]
    if problems:
        raise ConfigError(problems)
    one, other = (series_of(side.sums, derived=derived) for side in (candidate, baseline))
    if one.num.shape[1] != other.num.shape[1]:
        raise ConfigError(
            f"metric_sums: found {one.num.shape[1]} buckets of {candidate.model} and"
            f" {other.num.shape[1]} of {baseline.model}, expected as many"
        )
    rows, others = _rows(one), _rows(other)
    shared = [series for series in rows if series in others]
    return Pair(
        one.take([rows[series] for series in shared]),
        other.take([others[series] for series in shared]),
        shared,
        [series for series in (*rows, *others) if (series in rows) != (series in others)],
    )


def pairing_of(candidate: Side, baseline: Side, group: _Group) -> Pairing:
    """Whether both saw the same queries, of a slice value and label."""
    one, other = (
        side.queries.get(group, (np.zeros(1), np.zeros(1))) for side in (candidate, baseline)
    )
    return pairing(*one, *other)


def _differently_defined(candidate: Side, baseline: Side) -> Iterator[str]:
    others = baseline.hashes
    for series, own in candidate.hashes.items():
        other = others.get(series, own)
        if own != other:
            yield (
                f"{series}: found definition {own} of {candidate.model} and {other} of"
                f" {baseline.model}, expected one: what means different things is not compared"
            )


def _rows(sums: SeriesSums) -> dict[Series, int]:
    keys = sums.keys.select(Series._fields).to_pylist()
    return {Series(**key): row for row, key in enumerate(keys)}
