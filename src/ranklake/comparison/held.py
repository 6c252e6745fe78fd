"""Tables of one day that are in memory: what a run found, before it is published or without."""

from collections.abc import Iterable, Mapping
from datetime import date
from functools import reduce
from operator import and_, or_
from typing import Protocol, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from ranklake.schemas import Wanted, several


class Found(Protocol):
    """What a run found of a day, as `evaluate` returns it."""

    @property
    def day(self) -> date: ...

    @property
    def run_id(self) -> str: ...

    @property
    def metrics(self) -> pa.Table: ...

    @property
    def metric_sums(self) -> pa.Table: ...

    @property
    def quality(self) -> pa.Table: ...


class Held:
    """The tables of a run as those of a lake, and beside them what a lake has of other models."""

    def __init__(self, found: Found, others: Mapping[str, pa.Table] | None = None) -> None:
        self._day = found.day
        self._tables = {}
        for name in ("metrics", "metric_sums", "quality"):
            own = getattr(found, name)
            constants = {"event_date": pa.scalar(found.day), "run_id": pa.scalar(found.run_id)}
            for column, value in constants.items():
                own = own.append_column(column, pa.repeat(value, len(own)))
            of_others = [others[name].select(own.column_names)] if others else []
            self._tables[name] = pa.concat_tables([own, *of_others], promote_options="permissive")

    def metrics(self, **asked: Unpack[Wanted]) -> pa.Table:
        """As of a lake."""
        return self._of("metrics", asked)

    def metric_sums(self, **asked: Unpack[Wanted]) -> pa.Table:
        """As of a lake."""
        return self._of("metric_sums", asked)

    def quality(self, **asked: Unpack[Wanted]) -> pa.Table:
        """As of a lake."""
        return self._of("quality", asked)

    def latest_dates(self, n: int = 1, *, models: str | Iterable[str] | None = None) -> list[date]:
        """The day, where these models have metrics."""
        return [self._day][:n] if len(self.metrics(models=models)) else []

    def snapshot(self) -> "Held":
        """These tables do not change."""
        return self

    def _of(self, name: str, asked: Wanted) -> pa.Table:
        rows, columns = self._tables[name], asked.get("columns")
        parts = {"event_date": asked.get("dates"), "model_version": asked.get("models")}
        for column, values in parts.items():
            if values is not None:
                rows = rows.filter(pc.field(column).isin(several(values)))
        matching = asked.get("matching")
        if matching is not None:
            each = [
                reduce(and_, (pc.field(column).isin([*values]) for column, values in one.items()))
                for one in matching
            ]
            rows = rows.filter(reduce(or_, each, pc.scalar(False)))
        return rows if columns is None else rows.select([*columns])
