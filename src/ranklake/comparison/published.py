"""Sides of a comparison from published tables: the days that both have, added up."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import NamedTuple, Protocol, Unpack, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from ranklake import metrics, schemas
from ranklake.choose import Choice
from ranklake.comparison.judge import unpublished
from ranklake.comparison.sides import Series, Side
from ranklake.config import GateRule
from ranklake.errors import ConfigError, NoInputError
from ranklake.estimate import KEYS, added
from ranklake.metrics import Measure, Population
from ranklake.together import ahead

_ROWS_AT_ONCE = 6_000
"""Rows of metric_sums that are read together: 400 buckets of two doubles are 6.4 kB a row."""
_UNSHOWN = "queries.unlabelled"
"""The check that a model has whose candidates were scored, not shown."""


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


class Span(NamedTuple):
    """Days from first to last; None: there is no bound."""

    first: date | None = None
    last: date | None = None

    def __contains__(self, day: object) -> bool:
        if not isinstance(day, date):
            return False
        return (self.first or day) <= day <= (self.last or day)

    def __str__(self) -> str:
        return f"{self.first or 'the first day'} to {self.last or 'today'}"


class Sides(NamedTuple):
    """Both models over the days that both have; `left_out` are days of one alone."""

    candidate: Side
    baseline: Side
    wanted: Sequence[Series]
    derived: Sequence[Measure]
    left_out: Sequence[date]


def sides(
    tables: Tables,
    candidate: str,
    baseline: str,
    *,
    span: Span | None = None,
    choice: Choice | None = None,
    rules: Sequence[GateRule] = (),
) -> Sides:
    """What was published of two models: of the days of `span`, or the newest that both have.

    `choice` are the series that are wanted, and `rules` need theirs (choice None: nothing else).
    Raises NoInputError where they have no day in common; ConfigError where what is needed was
    defined differently, on two days or for the two models, or has labels of different ages.
    """
    models = (candidate, baseline)
    days, left_out = _days(tables, models, span)
    runs, series = _published(tables, days, models)
    wanted = _none(series) if choice is None else choice.of(series)
    needed = pa.concat_tables([wanted, *[series.filter(_of_rule(rule)) for rule in rules]])
    problems = [
        *unpublished(rules, _common(series, models) if rules else []),
        *_redefined(needed),
        *_of_other_age(runs, models),
    ]
    if problems:
        raise ConfigError(problems)
    unshown = _unshown(tables, days, models)
    sums = _sums(tables, days, models, needed)
    one, other = (_side(m, days, runs, sums, shows_all=m not in unshown) for m in models)
    return Sides(one, other, _series(wanted), _derived(needed), left_out)


def _published(
    tables: Tables, days: Sequence[date], models: Sequence[str]
) -> tuple[pa.Table, pa.Table]:
    """What metrics say of both models: one row a day and model, and one a model and series.

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


def _days(
    tables: Tables, models: Sequence[str], span: Span | None
) -> tuple[list[date], list[date]]:
    """The days that all models have, and those that only some have, both ascending."""
    of_model = {name: {*tables.latest_dates(_ALL, models=name)} for name in models}
    common = set.intersection(*of_model.values())
    if span is None:
        return _some([max(common)] if common else [], of_model, span), []
    days = sorted(day for day in common if day in span)
    some = sorted(day for day in set.union(*of_model.values()) if day in span and day not in days)
    return _some(days, of_model, span), some


_ALL = 1_000_000


def _some(days: list[date], of_model: Mapping[str, set[date]], span: Span | None) -> list[date]:
    """The days, if there are any."""
    if days:
        return days
    has = [
        f"{name} has {f'{min(found)} to {max(found)}' if found else 'none'}"
        for name, found in of_model.items()
    ]
    when = f" from {span}" if span else ""
    raise NoInputError(f"no day{when} has metrics of {' and '.join(of_model)}: {', '.join(has)}")


def _none(rows: pa.Table) -> pa.Table:
    return rows.slice(0, 0)


def _common(rows: pa.Table, models: Sequence[str]) -> list[Series]:
    """The series that every model has."""
    of_model = [_series(rows.filter(pc.field("model_version") == name)) for name in models]
    others = [{*found} for found in of_model[1:]]
    return [series for series in of_model[0] if all(series in other for other in others)]


def _of_rule(rule: GateRule) -> pc.Expression:
    """Whether a row of metrics is of the rule's measure."""
    measure = rule.measured
    population = rule.population or measure.metric.populations[0]
    is_own = (pc.field("slice") == rule.slice) & (pc.field("population") == population.value)
    is_own &= (pc.field("metric") == measure.metric.name) & (pc.field("k") == measure.k)
    return is_own & (pc.field("variant") == measure.variant)


def _redefined(rows: pa.Table) -> Iterator[str]:
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


def _of_other_age(runs: pa.Table, models: Sequence[str]) -> Iterator[str]:
    """A sentence for each day on which one model's labels were known later than the other's."""
    by_day: dict[date, dict[str, datetime | None]] = {}
    for row in runs.sort_by("event_date").to_pylist():
        by_day.setdefault(row["event_date"], {})[row["model_version"]] = row["label_as_of"]
    for day, known in by_day.items():
        if len({*known.values()}) > 1:
            said = " and ".join(f"{known[name] or 'of any time'} ({name})" for name in models)
            yield f"{day}: found labels known by {said}, expected the same for both models"


def _sums(
    tables: Tables, days: Sequence[date], models: Sequence[str], needed: pa.Table
) -> pa.Table:
    """Both models' rows of metric_sums that are needed, added over the days."""
    n_rows = len(needed) * _ROWS_BESIDE + 1
    n_at_once = max(1, _ROWS_AT_ONCE // n_rows)
    ask = partial(
        tables.metric_sums,
        models=models,
        columns=(*KEYS, "event_date", "num", "den", "fingerprint", "definition_hash"),
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
    for series in _series(needed):
        measures = (_measure(series), *_measure(series).parts)
        own.setdefault(series.population, set()).update(one.metric.name for one in measures)
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


def _side(
    model: str, days: Sequence[date], runs: pa.Table, sums: pa.Table, *, shows_all: bool
) -> Side:
    own = runs.filter(pc.field("model_version") == model).sort_by("event_date").to_pylist()
    last, mature = own[-1], {run["is_mature"] for run in own}
    return Side(
        model=model,
        days=days,
        sums=sums.filter(pc.field("model_version") == model),
        run_id=last["run_id"],
        label_as_of=last["label_as_of"],
        is_mature=False if False in mature else (None if None in mature else True),
        shows_all=shows_all,
    )


def _unshown(tables: Tables, days: Sequence[date], models: Sequence[str]) -> set[str]:
    """The models whose candidates were not all shown."""
    named = {"name": [_UNSHOWN]}
    columns = ("model_version",)
    found = tables.quality(dates=days, models=models, columns=columns, matching=[named])
    return {*found["model_version"].to_pylist()}


def _derived(rows: pa.Table) -> list[Measure]:
    measures = [_measure(series) for series in _series(rows)]
    return [*dict.fromkeys(measure for measure in measures if measure.is_derived)]


def _series(rows: pa.Table) -> list[Series]:
    distinct = rows.group_by([*Series._fields]).aggregate([])
    return [Series(**key) for key in distinct.to_pylist()]


def _measure(series: Series) -> Measure:
    return metrics.of_series(series.metric, series.variant, series.k)
