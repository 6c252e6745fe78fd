"""Sides of a comparison from published tables: the days that both have, added up."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ranklake.choose import Choice
from ranklake.comparison.judge import unpublished
from ranklake.comparison.sides import Series, Side
from ranklake.comparison.tables import (
    Tables,
    derived_in,
    published,
    redefined,
    series_in,
    sums_of,
)
from ranklake.config import GateRule
from ranklake.errors import ConfigError, NoInputError
from ranklake.estimate import all_mature
from ranklake.metrics import Measure
from ranklake.schemas import Day

_UNSHOWN = "queries.unlabelled"
"""The check that a model has whose candidates were scored, not shown."""


def day_of(day: Day) -> date:
    """The day. Raises ConfigError for a text that is none."""
    try:
        return date.fromisoformat(str(day))
    except ValueError:
        raise ConfigError(f"dates: found {day!r}, expected a day as YYYY-MM-DD") from None


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
    runs, series = published(tables, days, models)
    wanted = _none(series) if choice is None else choice.of(series)
    needed = pa.concat_tables([wanted, *[series.filter(_of_rule(rule)) for rule in rules]])
    problems = [
        *unpublished(rules, _common(series, models) if rules else []),
        *redefined(needed),
        *_of_other_age(runs, models),
    ]
    if problems:
        raise ConfigError(problems)
    unshown = _unshown(tables, days, models)
    sums = sums_of(tables, days, models, needed)
    one, other = (_side(m, days, runs, sums, shows_all=m not in unshown) for m in models)
    return Sides(one, other, series_in(wanted), derived_in(needed), left_out)


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
    of_model = [series_in(rows.filter(pc.field("model_version") == name)) for name in models]
    others = [{*found} for found in of_model[1:]]
    return [series for series in of_model[0] if all(series in other for other in others)]


def _of_rule(rule: GateRule) -> pc.Expression:
    """Whether a row of metrics is of the rule's measure, label and slice."""
    measure = rule.measured
    population = rule.population or measure.metric.populations[0]
    is_own = (pc.field("slice") == rule.slice) & (pc.field("population") == population.value)
    is_own &= (pc.field("metric") == measure.metric.name) & (pc.field("k") == measure.k)
    is_own &= pc.field("variant") == measure.variant
    return is_own if rule.label is None else is_own & (pc.field("label") == rule.label)


def _of_other_age(runs: pa.Table, models: Sequence[str]) -> Iterator[str]:
    """A sentence for each day on which one model's labels were known later than the other's."""
    by_day: dict[date, dict[str, datetime | None]] = {}
    for row in runs.sort_by("event_date").to_pylist():
        by_day.setdefault(row["event_date"], {})[row["model_version"]] = row["label_as_of"]
    for day, known in by_day.items():
        if len({*known.values()}) > 1:
            said = " and ".join(f"{known[name] or 'of any time'} ({name})" for name in models)
            yield f"{day}: found labels known by {said}, expected the same for both models"


def _side(
    model: str, days: Sequence[date], runs: pa.Table, sums: pa.Table, *, shows_all: bool
) -> Side:
    own = runs.filter(pc.field("model_version") == model).sort_by("event_date").to_pylist()
    last = own[-1]
    return Side(
        model=model,
        days=days,
        sums=sums.filter(pc.field("model_version") == model),
        run_id=last["run_id"],
        label_as_of=last["label_as_of"],
        is_mature=all_mature([run["is_mature"] for run in own]),
        shows_all=shows_all,
    )


def _unshown(tables: Tables, days: Sequence[date], models: Sequence[str]) -> set[str]:
    """The models whose candidates were not all shown."""
    named = {"name": [_UNSHOWN]}
    columns = ("model_version",)
    found = tables.quality(dates=days, models=models, columns=columns, matching=[named])
    return {*found["model_version"].to_pylist()}
