"""Windows of several days that end on a run's day, as rows of metrics: where all are published."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from ranklake import quality, read
from ranklake.comparison import Tables
from ranklake.config import EvalConfig
from ranklake.estimate import KEYS, SUMS, added, all_mature, estimated, with_maturity
from ranklake.metrics import Measure
from ranklake.pipeline.checks import table_of
from ranklake.run import Run

_MEANING = ("label", "slice", "population", "metric", "variant", "k")
"""What a series is of, whatever the value of its slice: a value may be missing on some days."""
_COLUMNS = (*KEYS, *SUMS, "definition_hash")
_ALL = 1_000_000


@dataclass(frozen=True)
class Windows:
    """Rows of metrics of the windows that are complete, and rows of quality about all of them."""

    metrics: pa.Table
    checks: pa.Table

    def after(self, metrics: pa.Table) -> pa.Table:
        """The day's own rows of metrics, and these."""
        return pa.concat_tables([metrics, self.metrics.select(metrics.column_names)])


def windows_of(spark: SparkSession, config: EvalConfig, run: Run, metric_sums: pa.Table) -> Windows:
    """The windows of each of the run's models: `metric_sums` are today's, the lake has the others.

    A series whose definition changed within a window, or that a day of it does not have, has no
    row; nor has a model with a day that is not published. quality says how many days there are.
    """
    rows, checks = [estimated(added(()), confidence=config.confidence)], []
    if config.window_days and config.lake.is_given:
        tables = read.tables_of(spark, config.lake).snapshot()
        for model in run.models:
            today = metric_sums.filter(pc.field("model_version") == model)
            published = {*tables.latest_dates(_ALL, models=model)}
            for n in config.window_days:
                before = [run.day - timedelta(days=ago) for ago in range(1, n)]
                n_there = 1 + sum(day in published for day in before)
                found = quality.check(f"windows.{n}.days", n_there, n, is_finding=n_there < n)
                checks.append({"model_version": model, **found})
                if n_there == n:
                    rows.append(_Window(tables, model, before).rows(today, config, run))
    return Windows(pa.concat_tables(rows), table_of(checks))


@dataclass(frozen=True)
class _Window:
    """A model's days before today, all of them published."""

    tables: Tables
    model: str
    before: Sequence[date]

    def rows(self, today: pa.Table, config: EvalConfig, run: Run) -> pa.Table:
        """As metrics; label_as_of is today's, is_mature whether all days are."""
        steady = self._steady(today)
        sums = added(part.filter(_is_of(part, steady)) for part in (today, *self._parts()))
        found = estimated(
            sums,
            confidence=config.confidence,
            derived=[measure for measure in config.derived if _has_parts(measure, steady)],
            window_days=len(self.before) + 1,
        )
        is_mature = all_mature([run.is_mature, *self._maturities()])
        return with_maturity(found, label_as_of=run.label_as_of, is_mature=is_mature)

    def _parts(self) -> Iterator[pa.Table]:
        for day in self.before:
            yield self.tables.metric_sums(dates=day, models=self.model, columns=_COLUMNS)

    def _maturities(self) -> list[bool | None]:
        rows = self.tables.metrics(
            dates=self.before,
            models=self.model,
            columns=("is_mature",),
            matching=[{"window_days": [1]}],
        )
        found: list[bool | None] = pc.unique(rows["is_mature"]).to_pylist()
        return found

    def _steady(self, today: pa.Table) -> set[tuple[Any, ...]]:
        """What all days have, and mean the same by."""
        columns = (*_MEANING, "definition_hash", "event_date")
        past = self.tables.metric_sums(dates=self.before, models=self.model, columns=columns)
        per_day = past.group_by([*columns]).aggregate([]).select([*_MEANING, "definition_hash"])
        own = today.select([*_MEANING, "definition_hash"]).group_by(per_day.column_names)
        every = pa.concat_tables([per_day, own.aggregate([])], promote_options="permissive")
        n_days = every.group_by(per_day.column_names).aggregate([([], "count_all")])
        is_on_all = pc.field("count_all") == len(self.before) + 1
        return {*_keys(n_days.filter(is_on_all))}


def _keys(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*[rows[name].to_pylist() for name in _MEANING], strict=True)


def _is_of(rows: pa.Table, steady: set[tuple[Any, ...]]) -> pa.Array:
    return pa.array(np.array([key in steady for key in _keys(rows)], dtype=bool))


def _has_parts(measure: Measure, steady: set[tuple[Any, ...]]) -> bool:
    """Whether the sums that it is made of are there, of the same labels, slices and populations."""
    of_parts = [
        {key[:3] for key in steady if key[3:] == (part.metric.name, part.variant, part.k)}
        for part in measure.parts
    ]
    return all(of_part and of_part == of_parts[0] for of_part in of_parts)
