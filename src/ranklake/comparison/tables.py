"""What published tables say of some models and days: which series there are, and their sums."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from typing import Protocol, Unpack, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from ranklake import metrics, schemas
from ranklake.comparison.sides import Series
from ranklake.estimate import KEYS, SUMS, added
from ranklake.metrics import Measure, Population
from ranklake.together import ahead

_ROWS_AT_ONCE = 6_000
"""Rows of metric_sums that are read together: 400 buckets of two doubles are 6.4 kB a row."""


@runtime_checkable
class Tables(Protocol):
    """Published tables, as `Lake` has them."""

    def metrics(self, **asked: Unpack[schemas.Wanted]) -> pa.Table: ...

    def metric_sums(self, **asked: Unpack[schemas.Wanted]) -> pa.Table: ...

    def quality(self, **asked: Unpack[schemas.Wanted]) -> pa.Table: ...

    def latest_dates(
        self, n: int = 1, *, models: str | Iterable[str] | None = None
    ) -> list[date]: ...

    def snapshot(self) -> "Tables": ...


def published(
    tables: Tables, days: Sequence[date], models: Sequence[str]
) -> tuple[pa.Table, pa.Table]:
    """What metrics say of the models: one row a day and model, and one a model and series.

    A series that was defined twice has two rows; event_date is the first day of each.
    """
    keys = (*Series._fields, "window_days", "model_version", "definition_hash")
    rows = tables.metrics(
        dates=days,
        models=models,
        columns=(*_OF_A_RUN, *(key for key in keys if key not in _OF_A_RUN)),
        matching=[{"window_days": [1]}],
    )
    series = rows.group_by([*keys]).aggregate([("event_date", "min")])
    runs = rows.group_by([*_OF_A_RUN]).aggregate([])
    return runs, series.rename_columns({"event_date_min": "event_date"})


_OF_A_RUN = ("event_date", "model_version", "run_id", "label_as_of", "is_mature")


def redefined(rows: pa.Table) -> Iterator[str]:
    """A sentence for each series that means two things, on two days or for two models."""
    keys = [*Series._fields, "definition_hash"]
    found = rows.group_by(keys).aggregate([("event_date", "min"), ("model_version", "min")])
    by_series: dict[Series, list[str]] = {}
    for row in found.sort_by([("event_date_min", "ascending")]).to_pylist():
        series = Series(*[row[name] for name in Series._fields])
        words = f"{row['definition_hash']} ({row['model_version_min']}, {row['event_date_min']})"
        by_series.setdefault(series, []).append(words)
    for series, meanings in by_series.items():
        if len(meanings) > 1:
            yield (
                f"{series}: found definitions {' and '.join(meanings)}, expected one: what means"
                " different things is neither added nor compared; runs.definitions says what"
            )


def sums_of(
    tables: Tables, days: Sequence[date], models: Sequence[str], needed: pa.Table
) -> pa.Table:
    """The models' rows of metric_sums that are needed, added over the days."""
    n_rows = len(needed) * _ROWS_BESIDE + 1
    n_at_once = max(1, _ROWS_AT_ONCE // n_rows)
    ask = partial(
        tables.metric_sums,
        models=models,
        columns=(*KEYS, "event_date", *SUMS, "definition_hash"),
        matching=_matching(needed),
    )
    some = [partial(ask, dates=days[at : at + n_at_once]) for at in range(0, len(days), n_at_once)]
    return added(part for rows in ahead(some) for part in _by_day(rows))


def _by_day(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows of each day; of one day alone they are not copied."""
    days = pc.unique(rows["event_date"]).to_pylist()
    for day in days:
        yield rows if len(days) == 1 else rows.filter(pc.field("event_date") == day)


def _matching(needed: pa.Table) -> schemas.Matching:
    """The rows of metric_sums that the series need: their own, and those that count queries."""
    places = ("slice", "slice_value", "label")
    shared = {name: pc.unique(needed[name]).to_pylist() for name in places}
    shared["k"] = sorted({0, *pc.unique(needed["k"]).to_pylist()})
    own: dict[str, set[str]] = {}
    for series in series_in(needed):
        own.setdefault(series.population, set()).update(_names(series))
    return [
        {**shared, "metric": sorted(names), "population": [population]}
        for population, names in (*_COUNTING.items(), *sorted(own.items()))
    ]


_COUNTING = {
    Population.ALL: ("judged", "n_queries"),
    Population.WITH_RELEVANT: ("hit_rate", "n_queries"),
}
"""Metrics that say how many queries stand behind another one, and how many of its items."""
_ROWS_BESIDE = 2
"""Rows of metric_sums, at most, for one of the series that are needed."""


def derived_in(rows: pa.Table) -> list[Measure]:
    """The measures among the rows that are made of the sums of others."""
    measures = [_measure(series) for series in series_in(rows) if not _is_count(series)]
    return [*dict.fromkeys(measure for measure in measures if measure.is_derived)]


def series_in(rows: pa.Table) -> list[Series]:
    """The rows' series, each once."""
    distinct = rows.group_by([*Series._fields]).aggregate([])
    return [Series(**key) for key in distinct.to_pylist()]


def _names(series: Series) -> list[str]:
    """The metrics whose sums it is made of."""
    if _is_count(series):
        return [series.metric]
    measure = _measure(series)
    return [one.metric.name for one in (measure, *measure.parts)]


def _is_count(series: Series) -> bool:
    return series.metric not in {metric.name for metric in metrics.METRICS}


def _measure(series: Series) -> Measure:
    return metrics.of_series(series.metric, series.variant, series.k)
