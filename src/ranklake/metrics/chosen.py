"""Which measures a run computes: those that are asked for, and what they are made of."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ranklake.metrics.catalog import metric
from ranklake.metrics.measures import Measure
from ranklake.metrics.metric import Need
from ranklake.metrics.strings import measure, metric_with_options


def measures_of(
    names: Sequence[str], ks: Sequence[int], measures: Sequence[str] = ()
) -> tuple[Measure, ...]:
    """The metrics at their cut-offs and the measures, in order, and what they are counted by.

    The hit rate counts the queries above zero, which every interval needs to know.
    """
    crossed = [
        replace(named, k=k)
        for named in map(metric_with_options, names)
        for k in named.metric.cutoffs(tuple(ks))
    ]
    asked = [*crossed, *map(measure, measures)]
    parts = [part for m in asked for part in m.parts]
    counting = [c for m in asked for c in (m.counting, *([m.unweighted] if m.weight else []))]
    return _distinct([*asked, *parts, *counting])


def per_query_measures(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """The measures whose per-query columns the given ones add up, each once.

    >>> [m.column for m in per_query_measures(measures_of(["recall", "ctr"], [5]))]
    ['recall_at_5', 'hits_at_5', 'hit_rate_at_5']
    """
    own = [replace(m, metric=metric(m.metric.summand)) for m in measures if not m.is_derived]
    return tuple({m.column: m for m in own}.values())


def needs_of(measures: Iterable[Measure]) -> frozenset[Need]:
    """What the measures need together."""
    return frozenset(need for measure in measures for need in measure.needs)


def _distinct(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    return tuple({str(m): m for m in measures}.values())
