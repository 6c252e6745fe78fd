"""Which numbers a run computes: metrics at cut-offs."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ranklake.metrics.catalog import HIT_RATE, metric
from ranklake.metrics.metric import Metric, column_name


class Measure(NamedTuple):
    """A metric at one cut-off (0: none)."""

    metric: Metric
    k: int

    @property
    def column(self) -> str:
        """The column of query_metrics that it adds up."""
        return column_name(self.metric.summand, self.k)


def measures_of(names: Sequence[str], ks: Sequence[int]) -> tuple[Measure, ...]:
    """The metrics at their cut-offs, in order, and the hit rate at each of them.

    The hit rate counts the queries above zero, which every interval needs to know.
    """
    asked = [Measure(m, k) for m in map(metric, names) for k in m.cutoffs(tuple(ks))]
    return _distinct([*asked, *(Measure(HIT_RATE, measure.k) for measure in asked)])


def per_query_measures(names: Sequence[str], ks: Sequence[int]) -> tuple[Measure, ...]:
    """The measures whose per-query columns those of `measures_of` add up.

    >>> [measure.column for measure in per_query_measures(["recall", "ctr"], [5])]
    ['recall_at_5', 'hits_at_5', 'hit_rate_at_5']
    """
    return _distinct(Measure(metric(m.summand), k) for m, k in measures_of(names, ks))


def _distinct(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    return tuple({(m.name, k): Measure(m, k) for m, k in measures}.values())
