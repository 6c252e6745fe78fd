"""Reading the lake's tables without a JVM: deltalake → Arrow.

`metrics` is the publication: a day and a model are published by one commit of it, and by nothing
else. The other tables are written before it, so they may be ahead of it: after a crash, or while
a run publishes. Such a partition is read at the version that the published run committed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from operator import and_
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError, TableNotFoundError

from ranklake import schemas
from ranklake.errors import ConfigError, ContractError


class _Part(NamedTuple):
    """What one run wrote of one partition."""

    event_date: date
    model_version: str
    run_id: str


_MAY_BE_EMPTY = (schemas.QUERY_METRICS, schemas.COMPARISONS)
"""Tables that a run without detail, or without a baseline, writes no row of."""


class Asked(schemas.Wanted, total=False):
    """What is asked of a table: days, models, columns, rows that match; or anything in SQL."""

    where: str | None
    """A condition in SQL over the table's columns: "slice = 'device' AND k = 10"."""


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
        return _Query.of(asked).rows(self._open(schemas.METRICS), _asked_parts(asked))

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
        return _Query.of(asked).rows(self._open(schemas.RUNS), _asked_parts(asked))

    def latest_dates(self, n: int = 1, *, models: str | Iterable[str] | None = None) -> list[date]:
        """The newest n days that have published metrics, newest first. Opens no data file."""
        names = None if models is None else schemas.several(models)
        days = {
            date.fromisoformat(values["event_date"])
            for values in self._open(schemas.METRICS).partitions()
            if names is None or values["model_version"] in names
        }
        return sorted(days, reverse=True)[:n]

    def _published(self, table: schemas.Table, asked: Asked) -> pa.Table:
        """The table's rows of the runs that published.

        Whatever is opened after `metrics` is of the same run or of a later one, never of an
        earlier one: the answer is the lake as it was when `metrics` was opened.
        """
        published = _parts_of(_PARTS.rows(self._open(schemas.METRICS), _asked_parts(asked)))
        newest, query = self._open(table), _Query.of(asked)
        rows = query.with_parts().rows(newest, _conditions(published))
        lacking = published - _parts_of(rows)
        if lacking and query.where:  # perhaps they are there, and no row of theirs meets it
            lacking -= _parts_of(_PARTS.rows(newest, _conditions(lacking)))
        earlier = self._earlier(table, newest, lacking, query.with_parts()) if lacking else ()
        found = pa.concat_tables([_only(published, rows), *earlier])
        return found if query.columns is None else found.select(query.columns)

    def _earlier(
        self, table: schemas.Table, newest: DeltaTable, lacking: set[_Part], query: "_Query"
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
                rows = query.rows(committed, _conditions(parts), schema=_schema(newest))
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


@dataclass(frozen=True)
class _Query:
    """What is asked of a table, whatever the partition: columns (None: all) and a condition."""

    columns: tuple[str, ...] | None = None
    where: str | None = None

    @classmethod
    def of(cls, asked: Asked) -> "_Query":
        columns = asked.get("columns")
        conditions = [asked.get("where"), _matches(asked.get("matching"))]
        given = [f"({condition})" for condition in conditions if condition]
        return cls(None if columns is None else tuple(columns), " AND ".join(given) or None)

    def with_parts(self) -> "_Query":
        """The same, also asking which run and partition each row is of."""
        if self.columns is None:
            return self
        return replace(self, columns=tuple(dict.fromkeys((*self.columns, *_Part._fields))))

    def rows(
        self, delta: DeltaTable, conditions: Iterable[str], *, schema: pa.Schema | None = None
    ) -> pa.Table:
        """The rows that meet all conditions; a column of the schema that is not there is null."""
        there = _schema(delta)
        schema = schema or there
        names = self.columns or schema.names
        absent = [f", NULL AS {_quoted(name)}" for name in schema.names if name not in there.names]
        wheres = [f"({condition})" for condition in (*conditions, self.where or "TRUE")]
        statement = (
            f"SELECT {', '.join(map(_quoted, names))}"
            f" FROM (SELECT *{''.join(absent)} FROM stored) WHERE {' AND '.join(wheres)}"
        )
        rows = pa.table(QueryBuilder().register("stored", delta).execute(statement))
        return rows.cast(pa.schema([schema.field(name) for name in names]))


_PARTS = _Query(columns=_Part._fields)


def _schema(delta: DeltaTable) -> pa.Schema:
    return pa.schema(delta.schema().to_arrow())


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


def _asked_parts(asked: Asked) -> list[str]:
    dates, models = asked.get("dates"), asked.get("models")
    days = None if dates is None else schemas.days_of(dates)
    conditions = [] if days is None else [is_in("event_date", days)]
    return conditions + (
        [] if models is None else [is_in("model_version", schemas.several(models))]
    )


def _matches(matching: schemas.Matching | None) -> str | None:
    """The condition in SQL; None where all rows are asked for."""
    if matching is None:
        return None
    each = [
        " AND ".join([is_in(_quoted(column), values) for column, values in values_of.items()])
        for values_of in matching
    ]
    return " OR ".join(f"({condition or 'TRUE'})" for condition in each) or "FALSE"


def is_in(column: str, values: Iterable[date | str | int]) -> str:
    """The condition in SQL. Nothing is in an empty list.

    >>> is_in("model_version", ["v42", "v43"])
    "model_version IN ('v42', 'v43')"
    """
    literals = [_literal(value) for value in values]
    return f"{column} IN ({', '.join(literals)})" if literals else "FALSE"


def _literal(value: date | str | int) -> str:
    if isinstance(value, date):
        return f"DATE '{value}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _has_no_detail(step: Mapping[str, Any]) -> bool:
    return bool(json.loads(step["config"] or "{}").get("detail") == "none")


def _gone(table: schemas.Table, parts: set[_Part], reason: str) -> ContractError:
    day, _, run_id = min(parts)
    models = ", ".join(sorted(part.model_version for part in parts))
    return ContractError(
        f"{table.name} ({day}, {models}): published by run {run_id}, replaced by another, and"
        f" {reason}; run again: ranklake evaluate --date {day}"
    )
