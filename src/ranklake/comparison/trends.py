"""One measure over the days of a window, and against the window before: from published sums."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ranklake.choose import Choice
from ranklake.comparison.differences import differences
from ranklake.comparison.published import day_of
from ranklake.comparison.sides import Series
from ranklake.comparison.tables import Tables, derived_in, published, redefined, series_in, sums_of
from ranklake.errors import ConfigError, NoInputError
from ranklake.estimate import Array, SeriesSums, estimated, series_of
from ranklake.schemas import Day, several

_KEY = ("model_version", *Series._fields)


@dataclass(frozen=True)
class Window:
    """n days up to the last one, which counts."""

    last: date
    n: int

    @property
    def first(self) -> date:
        """The first of its days."""
        return self.last - timedelta(days=self.n - 1)

    @property
    def before(self) -> "Window":
        """As many days just before it."""
        return Window(self.first - timedelta(days=1), self.n)

    @property
    def days(self) -> list[date]:
        """All of its days."""
        return [self.first + timedelta(days=number) for number in range(self.n)]

    def of(self, days: Sequence[date]) -> list[date]:
        """Those of the days that are in it, ascending."""
        return sorted(day for day in days if self.first <= day <= self.last)


@dataclass(frozen=True)
class Trend:
    """A measure over a window of days.

    days     one row a day, model and series, as in the table metrics
    changes  one row a model and series: value with its interval over the whole window; the same of
             the window before, and the difference (delta) with its interval and p-value, which are
             null where a window lacks the series or status is insufficient
    notes    what a reader has to know beside the numbers, a sentence each
    """

    window: Window
    days: pa.Table
    changes: pa.Table
    notes: tuple[str, ...]


def trend(
    tables: Tables,
    measure: str,
    *,
    last: int = 28,
    until: Day | None = None,
    models: str | Sequence[str] | None = None,
    slices: Sequence[str] = (),
    labels: Sequence[str] = (),
    confidence: float = 0.95,
) -> Trend:
    """How a measure went over the last days, and against as many days before.

        trend(Lake("lake"), "recall@10", last=7, slices=["device"]).changes.to_pandas()

    until is the last day (None: the newest that is published); models None: all that have metrics
    on it, or where it has none on any of the days. A user's days stay in one bucket, so a change's
    interval knows what both windows share.
    Raises NoInputError where nothing is published of these days, and ConfigError for a measure that
    is not, or whose definition changed within the days.
    """
    tables = tables.snapshot()
    window = Window(_last_day(tables, until, models), last)
    names = several(models) if models else _models_of(tables, window)
    of_model = {name: tables.latest_dates(_ALL, models=name) for name in names}
    now, before = (_of_any(of_model, one) for one in (window, window.before))
    if not now:
        of = ", ".join(names) or "any model"
        raise NoInputError(f"no day from {window.first} to {window.last} has metrics of {of}")
    runs, series = published(tables, [*before, *now], names)
    needed = Choice([measure], (), slices, labels).of(series)
    problems = [*redefined(needed)]
    if problems:
        raise ConfigError(problems)
    windows = [sums_of(tables, days, names, needed) for days in (now, before)]
    days, changes = (
        _daily(tables, now, names, needed),
        _changes(windows, needed, window, confidence),
    )
    return Trend(window, days, changes, tuple(_notes(window, of_model, runs)))


def _of_any(of_model: Mapping[str, Sequence[date]], window: Window) -> list[date]:
    """The days of the window that any model has, ascending."""
    return window.of(sorted({day for days in of_model.values() for day in days}))


_ALL = 1_000_000


def _last_day(tables: Tables, until: Day | None, models: str | Sequence[str] | None) -> date:
    if until is not None:
        return day_of(until)
    newest = tables.latest_dates(1, models=models)
    if not newest:
        of = f" of {', '.join(several(models))}" if models else ""
        raise NoInputError(f"no metrics are published{of}")
    return newest[0]


def _models_of(tables: Tables, window: Window) -> list[str]:
    """Those that have metrics on its last day; where that is not published, on any of its days."""
    for days in ([window.last], window.days):
        rows = tables.metrics(dates=days, columns=("model_version",))
        if len(rows):
            return sorted({*rows["model_version"].to_pylist()})
    return []


def _daily(
    tables: Tables, days: Sequence[date], models: Sequence[str], needed: pa.Table
) -> pa.Table:
    """The rows of metrics of these series."""
    wanted = {name: pc.unique(needed[name]).to_pylist() for name in Series._fields}
    rows = tables.metrics(dates=days, models=models, matching=[{"window_days": [1], **wanted}])
    kept = {*series_in(needed)}
    keys = rows.select(Series._fields).to_pylist()
    is_kept = np.array([Series(**key) in kept for key in keys], dtype=bool)
    return rows.filter(pa.array(is_kept)).sort_by(
        [(name, "ascending") for name in (*_KEY, "event_date")]
    )


def _changes(
    windows: Sequence[pa.Table], needed: pa.Table, window: Window, confidence: float
) -> pa.Table:
    """One row a model and series that the window has."""
    derived = derived_in(needed)
    kept = {*series_in(needed)}
    found = {
        _key(row): row
        for row in estimated(windows[0], confidence=confidence, derived=derived).to_pylist()
        if Series(*_key(row)[1:]) in kept
    }
    one, other = (series_of(sums, derived=derived) for sums in windows)
    deltas = _deltas(one, other, 1 - confidence)
    days = {"date_from": window.first, "date_to": window.last}
    earlier = {"previous_from": window.before.first, "previous_to": window.before.last}
    rows = [
        {
            **{name: row[name] for name in _KEY},
            **days,
            **{name: row[name] for name in ("value", "ci_low", "ci_high", "n_queries", "status")},
            **earlier,
            **deltas.get(key, {}),
            "confidence": confidence,
        }
        for key, row in sorted(found.items())
    ]
    return pa.Table.from_pylist(rows, schema=_CHANGES)


_NUMBERS = ("value", "ci_low", "ci_high")
_OF_CHANGE = ("previous_value", "delta", "delta_ci_low", "delta_ci_high", "p_value")
_CHANGES = pa.schema(
    {
        **{name: pa.int32() if name == "k" else pa.string() for name in _KEY},
        **dict.fromkeys(("date_from", "date_to"), pa.date32()),
        **dict.fromkeys(_NUMBERS, pa.float64()),
        **{"n_queries": pa.int64(), "status": pa.string()},
        **dict.fromkeys(("previous_from", "previous_to"), pa.date32()),
        **dict.fromkeys(_OF_CHANGE, pa.float64()),
        "confidence": pa.float64(),
    }
)


def _deltas(one: SeriesSums, other: SeriesSums, alpha: float) -> dict[Any, dict[str, Any]]:
    """What is known of the change of each series that both windows have, by its key."""
    rows, others = (_rows(sums) for sums in (one, other))
    shared = [key for key in rows if key in others]
    if not shared:
        return {}
    now, before = one.take([rows[k] for k in shared]), other.take([others[k] for k in shared])
    found = differences(now, before)
    low, high = found.interval(alpha)
    columns = (before.value, found.delta.value, low, high, found.p_values)
    return {
        key: dict(zip(_OF_CHANGE, _numbers(columns, row), strict=True))
        for row, key in enumerate(shared)
    }


def _numbers(columns: Sequence[Array], row: int) -> Iterator[float | None]:
    for column in columns:
        yield float(column[row]) if np.isfinite(column[row]) else None


def _rows(sums: SeriesSums) -> dict[tuple[Any, ...], int]:
    return {_key(row): at for at, row in enumerate(sums.keys.select(_KEY).to_pylist())}


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _KEY)


def _notes(window: Window, of_model: Mapping[str, Sequence[date]], runs: pa.Table) -> Iterator[str]:
    """Days without metrics, and days whose labels are not complete."""
    for model, days in of_model.items():
        n_now, n_before = len(window.of(days)), len(window.before.of(days))
        if n_now < window.n:
            yield f"{model}: {n_now} of {window.n} days of the window have metrics"
        if n_before < window.n:
            yield f"{model}: {n_before} of {window.n} days of the window before have metrics"
    immature = runs.filter(~pc.field("is_mature")).sort_by("event_date")
    for model in of_model:
        young = immature.filter(pc.field("model_version") == model)["event_date"].to_pylist()
        if young:
            more = f" and {len(young) - 1} later days" if len(young) > 1 else ""
            yield f"{model}: labels of {young[0]}{more} are not complete yet"
