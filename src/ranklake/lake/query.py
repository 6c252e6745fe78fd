"""What is asked of a Delta table, as SQL that delta-rs runs."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import date
from typing import NamedTuple

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from ranklake import schemas


class Asked(schemas.Wanted, total=False):
    """What is asked of a table: days, models, columns, rows that match; or anything in SQL."""

    where: str | None
    """A condition in SQL over the table's columns: "slice = 'device' AND k = 10"."""


@dataclass(frozen=True)
class Query:
    """What is asked of a table, whatever the partition: columns (None: all) and a condition."""

    columns: tuple[str, ...] | None = None
    where: str | None = None

    @classmethod
    def of(cls, asked: Asked) -> "Query":
        """What is asked; days and models are those of `parts_asked`."""
        columns = asked.get("columns")
        conditions = [asked.get("where"), _matches(asked.get("matching"))]
        given = [f"({condition})" for condition in conditions if condition]
        return cls(None if columns is None else tuple(columns), " AND ".join(given) or None)

    def plus(self, columns: Iterable[str]) -> "Query":
        """The same, with these columns too."""
        if self.columns is None:
            return self
        return replace(self, columns=tuple(dict.fromkeys((*self.columns, *columns))))

    def rows(
        self, delta: DeltaTable, conditions: Iterable[str], *, schema: pa.Schema | None = None
    ) -> pa.Table:
        """The rows that meet all conditions; a column of the schema that is not there is null."""
        there = schema_of(delta)
        schema = schema or there
        names = self.columns or schema.names
        absent = [f", NULL AS {_quoted(name)}" for name in schema.names if name not in there.names]
        wheres = [f"({condition})" for condition in (*conditions, self.where or "TRUE")]
        statement = (
            f"SELECT {', '.join(map(_quoted, names))}"
            f" FROM (SELECT *{''.join(absent)} FROM stored) WHERE {' AND '.join(wheres)}"
        )
        session = QueryBuilder().register("stored", delta)
        if _LISTS & {*names}:
            pa.table(session.execute(f"SET datafusion.execution.batch_size = {_LISTS_AT_ONCE}"))
        rows = pa.table(session.execute(statement))
        return rows.cast(pa.schema([schema.field(name) for name in names]))


_LISTS = {one.name for one in schemas.METRIC_SUMS.columns if one.type.startswith("ARRAY")}
_LISTS_AT_ONCE = 128
"""Rows that are decoded together where each holds hundreds of numbers: memory for 8 192 (what is
usual) would be 50 MB a file and thread."""


def schema_of(delta: DeltaTable) -> pa.Schema:
    """The columns of the table at its version."""
    return pa.schema(delta.schema().to_arrow())


class PartsAsked(NamedTuple):
    """The days and models that are asked for; None: all."""

    days: Collection[date] | None
    models: Collection[str] | None

    @property
    def conditions(self) -> list[str]:
        """In SQL."""
        wanted = {"event_date": self.days, "model_version": self.models}
        return [is_in(name, values) for name, values in wanted.items() if values is not None]

    def is_of(self, day: date, model: str) -> bool:
        """Whether the partition is one of them."""
        is_day = self.days is None or day in self.days
        return is_day and (self.models is None or model in self.models)

    def covers(self, other: "PartsAsked") -> bool:
        """Whether all that the other one asks for is asked for here."""
        pairs = zip(self, other, strict=True)
        return all(
            own is None or (others is not None and {*others} <= {*own}) for own, others in pairs
        )


def parts_asked(asked: Asked) -> PartsAsked:
    """The days and models of what is asked. Raises ValueError for a text that is no day."""
    dates, models = asked.get("dates"), asked.get("models")
    return PartsAsked(
        None if dates is None else schemas.days_of(dates),
        None if models is None else schemas.several(models),
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
