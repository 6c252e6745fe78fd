"""The lake's tables, as they were published.

`metrics` is the publication: a day and a model are published by one commit of it, and by nothing
else. The other tables are written before it, so they may be ahead of it: after a crash, or while
a run publishes. Such a partition is read at the version that the published run committed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import reduce
from operator import and_
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from ranklake import schemas
from ranklake.errors import ConfigError, ContractError
from ranklake.lake.query import Asked, PartsAsked, Query, is_in, parts_asked, schema_of


class _Part(NamedTuple):
    """What one run wrote of one partition."""

    event_date: date
    model_version: str
    run_id: str


_MAY_BE_EMPTY = (schemas.QUERY_METRICS, schemas.COMPARISONS)
"""Tables that a run without detail, or without a baseline, writes no row of."""


class Lake:
    """The tables of one evaluation, in a directory or an object store.

    Each table is a method: it takes what `Asked` lists, by keyword, and returns rows of published
    runs as an Arrow table, in no order (`.to_pandas()`, `polars.from_arrow`, DuckDB go on there).
    It raises ConfigError where there is no such table, and ContractError where published rows
    are gone: another run replaced them without publishing, then a vacuum came.

        Lake("lake").metrics(dates="2026-01-01", where="metric = 'recall' AND k = 10")
    """

    def __init__(
        self, path: str | PathLike[str], *, storage_options: Mapping[str, str] | None = None
    ) -> None:
        self.path = fspath(path)
        self._storage_options = dict(storage_options) if storage_options else None

    def metrics(self, **asked: Unpack[Asked]) -> pa.Table:
        """One row is one series of one day (or window of days) and model: what people read.

        `value` is num / den, null where den is 0; std_err, ci_low and ci_high are null where
        status is insufficient.
        """
        return Query.of(asked).rows(self._open(schemas.METRICS), parts_asked(asked).conditions)

    def metric_sums(self, **asked: Unpack[Asked]) -> pa.Table:
        """One row is one series of one day and model: num and den, bucket by bucket.

        Days and slices add up, bucket by bucket: a user keeps its bucket on every day and for
        every model. `fingerprint` is null except for the metric n_queries.
        """
        return self._published(schemas.METRIC_SUMS, asked)

    def query_metrics(self, **asked: Unpack[Asked]) -> pa.Table:
        """One row is one query of one model, for one label. A metric is null where undefined.

        A run with detail = "none" has no rows here. The table is large: name the columns.
        """
        return self._published(schemas.QUERY_METRICS, asked)

    def comparisons(self, **asked: Unpack[Asked]) -> pa.Table:
        """One row is one series of a candidate (model_version) against one baseline, for one rule.

        `delta` is value - baseline_value, in the metric's unit; verdict is null without a gate.
        """
        return self._published(schemas.COMPARISONS, asked)

    def quality(self, **asked: Unpack[Asked]) -> pa.Table:
        """One row is one check of one run: value is a count of rows, or a share of n_rows."""
        return self._published(schemas.QUALITY, asked)

    def runs(self, **asked: Unpack[Asked]) -> pa.Table:
        """One row is one step of one attempt for one model, published or not.

        `model_version` is null where the attempt ended before its models were known: such rows
        are of no model that can be asked for.
        """
        return Query.of(asked).rows(self._open(schemas.RUNS), parts_asked(asked).conditions)

    def latest_dates(self, n: int = 1, *, models: str | Iterable[str] | None = None) -> list[date]:
        """The newest n days that have published metrics, newest first. Opens no data file."""
        names = None if models is None else schemas.several(models)
        days = {
            date.fromisoformat(values["event_date"])
            for values in self._open(schemas.METRICS).partitions()
            if names is None or values["model_version"] in names
        }
        return sorted(days, reverse=True)[:n]

    def snapshot(self) -> "Lake":
        """The lake as it is now, whatever is published later: several answers fit together."""
        return _Snapshot(self.path, storage_options=self._storage_options)

    def _published(self, table: schemas.Table, asked: Asked) -> pa.Table:
        """The table's rows of the runs that published.

        Whatever is opened after `metrics` is of the same run or of a later one, never of an
        earlier one: the answer is the lake as it was when `metrics` was opened.
        """
        published = self._parts(parts_asked(asked))
        newest, asked_for = self._open(table), Query.of(asked)
        query = asked_for.plus(_Part._fields)
        schema = _schema(newest, table, query)
        rows = query.rows(newest, _conditions(published), schema=schema)
        lacking = published - _parts_of(rows)
        if lacking and asked_for.where:  # perhaps they are there, and no row of theirs meets it
            lacking -= _parts_of(_PARTS.rows(newest, _conditions(lacking)))
        earlier = self._earlier(table, newest, lacking, query, schema) if lacking else ()
        found = pa.concat_tables([_only(published, rows), *earlier])
        return found if asked_for.columns is None else found.select(asked_for.columns)

    def _parts(self, asked: PartsAsked) -> set[_Part]:
        """What is published of these days and models."""
        return _parts_of(_PARTS.rows(self._open(schemas.METRICS), asked.conditions))

    def _earlier(
        self,
        table: schemas.Table,
        newest: DeltaTable,
        lacking: set[_Part],
        query: "Query",
        schema: pa.Schema,
    ) -> Iterator[pa.Table]:
        """The rows of these partitions, a table a run, at the version that the run committed."""
        asked = ("run_id", "status", "table_versions", "config")
        days, runs = {part.event_date for part in lacking}, {part.run_id for part in lacking}
        manifest = self.runs(dates=days, columns=asked, where=is_in("run_id", runs)).to_pylist()
        for run_id in sorted(runs):
            parts = {part for part in lacking if part.run_id == run_id}
            steps = [step for step in manifest if step["run_id"] == run_id]
            version = _version(table, newest, parts, steps)
            if version is None:
                continue
            try:
                committed = DeltaTable(newest.table_uri, version, self._storage_options)
                rows = query.rows(committed, _conditions(parts), schema=schema)
            except (DeltaError, pa.ArrowException, OSError) as error:
                raise _gone(table, parts, f"version {version} cannot be read any more") from error
            yield _only(parts, rows)

    def _open(self, table: schemas.Table) -> DeltaTable:
        uri = f"{self.path.rstrip('/')}/{table.name}"
        try:
            return DeltaTable(uri, storage_options=self._storage_options)
        except TableNotFoundError as error:
            if "://" in self.path or Path(self.path).is_dir():
                problem = f"{uri}: there is no Delta table; run: ranklake init"
            else:
                problem = f"{self.path}: there is no such directory; is this the lake's path?"
            raise ConfigError(problem) from error


def _schema(newest: DeltaTable, table: schemas.Table, query: Query) -> pa.Schema:
    """The columns that there are, and those asked for that an older lake does not have: null."""
    there = schema_of(newest)
    new = {*(query.columns or ())} - {*there.names}
    return pa.schema([*there, *(f for f in schemas.arrow_schema(table) if f.name in new)])


class _Snapshot(Lake):
    """A lake whose tables stay at the version at which they were first opened; metrics: now."""

    def __init__(self, path: str, *, storage_options: Mapping[str, str] | None) -> None:
        super().__init__(path, storage_options=storage_options)
        self._opened: dict[str, DeltaTable] = {}
        self._asked, self._found = PartsAsked((), ()), set[_Part]()
        self._open(schemas.METRICS)

    def snapshot(self) -> Lake:
        """This one."""
        return self

    def _open(self, table: schemas.Table) -> DeltaTable:
        if table.name not in self._opened:
            self._opened[table.name] = super()._open(table)
        return self._opened[table.name]

    def _parts(self, asked: PartsAsked) -> set[_Part]:
        if not self._asked.covers(asked):
            self._asked, self._found = asked, super()._parts(asked)
        return {part for part in self._found if asked.is_of(part.event_date, part.model_version)}


def _version(
    table: schemas.Table, newest: DeltaTable, parts: set[_Part], steps: Sequence[Mapping[str, Any]]
) -> int | None:
    """The table's version that holds what the run wrote; None where it wrote nothing.

    As its steps in the manifest say; as the commits say where it died before its last step.
    """
    run_id = min(parts).run_id
    if table is schemas.QUERY_METRICS and any(_has_no_detail(step) for step in steps):
        return None
    recorded = {name: version for step in steps for name, version in step["table_versions"] or ()}
    if table.name in recorded:
        return int(recorded[table.name])
    if any(step["status"] == "SUCCESS" for step in steps):
        return None
    own = [commit["version"] for commit in newest.history() if commit.get("userMetadata") == run_id]
    if not own and table not in _MAY_BE_EMPTY:
        raise _gone(table, parts, "no version is known to hold it")
    return max(own, default=None)


_PARTS = Query(columns=_Part._fields)


def _parts_of(rows: pa.Table) -> set[_Part]:
    distinct = rows.group_by(list(_Part._fields)).aggregate([])
    return {_Part(**row) for row in distinct.to_pylist()}


def _only(parts: set[_Part], rows: pa.Table) -> pa.Table:
    """The rows of these parts: as a rule all of them, and nothing is copied."""
    others = [
        ~reduce(and_, (pc.field(name) == value for name, value in other._asdict().items()))
        for other in _parts_of(rows) - parts
    ]
    return rows.filter(reduce(and_, others)) if others else rows


def _conditions(parts: set[_Part]) -> list[str]:
    """Conditions that open no file of another day, or of another model."""
    days = {part.event_date for part in parts}
    models = {part.model_version for part in parts}
    return [is_in("event_date", sorted(days)), is_in("model_version", sorted(models))]


def _has_no_detail(step: Mapping[str, Any]) -> bool:
    return bool(json.loads(step["config"] or "{}").get("detail") == "none")


def _gone(table: schemas.Table, parts: set[_Part], reason: str) -> ContractError:
    day, _, run_id = min(parts)
    models = ", ".join(sorted(part.model_version for part in parts))
    return ContractError(
        f"{table.name} ({day}, {models}): published by run {run_id}, replaced by another, and"
        f" {reason}; run again: ranklake evaluate --date {day}"
    )
