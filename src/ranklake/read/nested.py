"""One row a query with an array of its candidates → one row a candidate, or the row as it is.

Both are lazy and shuffle nothing. In the first shape nested input is like any other from the door
on; in the second a query's candidates can be ranked inside their row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ranklake import schemas
from ranklake.complaints import first_line
from ranklake.schemas import IS_CANDIDATE, IS_WANTED
from ranklake.schemas.conform import cast_to

CANDIDATE = "candidate"
"""What expressions call the array's element: `candidate.bid`."""

IN_ROW = ("item_id", "score", "position")
"""What orders candidates: of each element, in the array `candidates` of a row."""

_PLACE = "_ranklake_place"
_EXPECTED = "expected array<struct<...>>, one struct a candidate"


@dataclass(frozen=True)
class Array:
    """The array of candidates of an input: `sql` names it, or yields it."""

    raw: DataFrame
    sql: str

    @cached_property
    def problem(self) -> str | None:
        """One sentence when there is no array of structs."""
        try:
            found = self.raw.select(F.expr(self.sql)).schema[0].dataType
        except PySparkException as error:
            return f"candidates {self.sql!r}: {first_line(error)}"
        if isinstance(found, T.ArrayType) and isinstance(found.elementType, T.StructType):
            return None
        return f"candidates {self.sql!r} is {found.simpleString()}, {_EXPECTED}"

    @cached_property
    def fields(self) -> Sequence[str]:
        """The names of an element's fields; none where the array has a problem."""
        if self.problem:
            return ()
        array = self.raw.select(F.expr(self.sql)).schema[0].dataType
        return tuple(array.elementType.names)  # type: ignore[attr-defined]

    def rows(self) -> DataFrame:
        """One row per element, `candidate` beside the row's own columns; its place, 1 is the first.

        IS_CANDIDATE is false for an element that is null, and null on the one row that stands for
        an array that is null or empty: both are there to be counted.
        """
        elements = F.posexplode_outer(F.expr(self.sql)).alias("_ranklake_pos", CANDIDATE)
        is_there = F.when(F.col("_ranklake_pos").isNotNull(), F.col(CANDIDATE).isNotNull())
        return self.raw.select(*_quoted(_others(self.raw)), elements).withColumns(
            {_PLACE: F.col("_ranklake_pos") + 1, IS_CANDIDATE: is_there}
        )

    def sql_of(self, columns: Mapping[str, str], name: str) -> str | None:
        """Where our column comes from: the mapping, a field of the element, the row; else None."""
        if name in columns:
            return columns[name]
        if name in self.fields:
            return f"{CANDIDATE}.`{name}`"
        if name == "position":
            return _PLACE
        return f"`{name}`" if name in self.raw.columns else None


def in_rows(
    array: Array,
    table: schemas.Table,
    *,
    columns: Mapping[str, str],
    where: str | None,
) -> DataFrame | None:
    """One row per row of the input: our columns of the query, and its candidates as an array.

    candidates  array of structs: IN_ROW as far as there is one, and IS_WANTED: whether there is an
                element, and `where` keeps it
    n_elements  int  the array's length; 0 where it is null
    None where a column of the query is said by the candidates, so that they could disagree, or
    where an expression cannot be evaluated inside an array.
    """
    sqls = {name: sql for name in table.names if (sql := array.sql_of(columns, name))}
    of_row = [name for name in sqls if name not in (*IN_ROW, *schemas.ROW_LABELS, *_OF_ITEM)]
    outer = array.raw.select(*_quoted(_others(array.raw)))
    try:
        keeps_rows = where is not None and _resolves(outer, where)
        wanted = F.coalesce(F.expr(where), F.lit(False)) if where and keeps_rows else F.lit(True)
        if not all(_resolves(outer, sqls[name]) for name in of_row):
            return None
        elements = _elements(array, table, sqls, None if keeps_rows else where)
        return array.raw.select(
            *[cast_to(table.column(name), F.expr(sqls[name])) for name in of_row],
            wanted.alias(IS_WANTED),
            F.expr(elements).alias("candidates"),
            F.greatest(F.coalesce(F.size(F.expr(array.sql)), F.lit(0)), F.lit(0)).alias(
                "n_elements"
            ),
        )
    except AnalysisException:
        return None


_OF_ITEM = ("impression_id", "tie_key", "event_ts", "ingest_ts")
"""Columns of a candidate that order and count nothing where candidates are ranked in their row."""


def _elements(
    array: Array, table: schemas.Table, sqls: Mapping[str, str], where: str | None
) -> str:
    """The SQL of the array `candidates`; a lambda's variables are what expressions refer to."""
    fields = [
        f"'{name}', cast(({sqls[name]}\n) as {table.column(name).type})"
        for name in IN_ROW
        if name in sqls
    ]
    keeps = "true" if where is None else f"coalesce(({where}\n), false)"
    fields.append(f"'{IS_WANTED}', {CANDIDATE} is not null and {keeps}")
    each = f"named_struct({', '.join(fields)})"
    numbered = each.replace(_PLACE, f"({_PLACE} + 1)")
    return f"transform({array.sql}\n, ({CANDIDATE}, {_PLACE}) -> {numbered})"


def _resolves(rows: DataFrame, sql: str) -> bool:
    """Whether the expression can be evaluated on the row alone, without an element."""
    try:
        rows.select(F.expr(sql)).schema  # noqa: B018  Connect resolves a frame when it is looked at
    except AnalysisException:
        return False
    return True


def _others(raw: DataFrame) -> list[str]:
    """The row's columns; one that is called as the element is hidden by it."""
    return [name for name in raw.columns if name.lower() != CANDIDATE]


def _quoted(names: Sequence[str]) -> list[str]:
    return [f"`{name.replace('`', '``')}`" for name in names]
