"""Inputs → conformed frames. The only reads of the logs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake import schemas
from ranklake.complaints import first_line
from ranklake.config import Input
from ranklake.errors import ContractError
from ranklake.read import nested
from ranklake.read.stored import Files, sql_of, stored
from ranklake.schemas import IS_CANDIDATE, IS_WANTED
from ranklake.schemas.conform import cast_to, type_problem

_TIMES = {"impressions": "event_ts", "clicks": "click_ts", "conversions": "conversion_ts"}


@dataclass(frozen=True)
class Source:
    """One input, opened: its rows under our names and in our types, and where they come from.

    in_rows is what nested.in_rows makes of an input whose candidates are arrays; None: of another.
    files tells the files that the rows lie in; None: they are a DataFrame's.
    """

    table: schemas.Table
    rows: DataFrame
    place: str
    version: int | None = None
    in_rows: DataFrame | None = None
    files: Files | None = None

    @property
    def time(self) -> str | None:
        """The event time that dates a row where there is no event_date; None: undated."""
        name = _TIMES.get(self.table.name)
        return name if name in self.rows.columns else None

    @property
    def is_dated(self) -> bool:
        """Whether the rows say to which query's day they belong."""
        return "event_date" in self.rows.columns


def opened(
    spark: SparkSession, inputs: dict[str, Input], *, slices: Sequence[str] = ()
) -> dict[str, Source]:
    """The inputs by name, Delta tables pinned at their present version. Lazy.

    Raises ContractError with every problem of every input.
    """
    sources: dict[str, Source] = {}
    problems: list[str] = []
    for name, given in inputs.items():
        try:
            found = stored(spark, name, given)
            source = mapped(
                name,
                found.raw,
                columns=given.columns,
                where=given.where,
                candidates=given.candidates,
                place=given.place,
                slices=slices,
            )
            sources[name] = replace(source, version=found.version, files=found.files)
        except ContractError as error:
            problems += error.problems
    if problems:
        raise ContractError(problems)
    return sources


def mapped(
    name: str,
    raw: DataFrame,
    *,
    columns: Mapping[str, str],
    where: str | None = None,
    candidates: str | None = None,
    place: str = "a DataFrame",
    slices: Sequence[str] = (),
) -> Source:
    """The rows under our names and in our types, plus IS_WANTED: whether `where` keeps them. Lazy.

    A column comes from the mapping, else from the column of its own name, else is left out. Where
    `candidates` names an array of structs, a row is one of its elements, as nested.Array.rows.
    Raises ContractError with every column that is missing, cannot be resolved or has a wrong type.
    """
    table = _with_slices(name, slices)
    array = None if candidates is None else nested.Array(raw, candidates)
    problems = [array.problem] if array and array.problem else []
    rows = array.rows() if array and not problems else raw
    selected, missing = [], []
    for column in table.columns:
        if (sql := sql_of(raw, array, columns, column.name)) is None:
            missing += [column.name] if column.required else []
            continue
        value = F.expr(sql)
        problem = _expression_problem(rows, column, value, is_slice=column.name in slices)
        problems += _told(problem, array, sql)
        selected.append(cast_to(column, value))
    problems += _missing(missing, raw, array)
    wanted = _wanted(where, array)
    problems += _told(_where_problem(rows, where, wanted), array, where or "")
    if problems:
        raise ContractError([f"{name}: {place}: {problem}" for problem in problems])
    selected += [wanted.alias(IS_WANTED), *([F.col(IS_CANDIDATE)] if array else [])]
    found = _together(rows, selected, f"{name}: {place}")
    in_rows = nested.in_rows(array, table, columns=columns, where=where) if array else None
    return Source(table, found, place, in_rows=in_rows)


def _together(rows: DataFrame, selected: Sequence[Column], where: str) -> DataFrame:
    try:
        return rows.select(*selected)
    except AnalysisException as error:  # each may do alone what they may not do together
        raise ContractError(f"{where}: {first_line(error)}") from error


def _told(problem: str | None, array: nested.Array | None, sql: str) -> list[str]:
    """The problem of an expression, if it is its own: not only that there is no array."""
    is_own = array is None or array.problem is None or nested.CANDIDATE not in sql
    return [problem] if problem and is_own else []


def _missing(names: Sequence[str], raw: DataFrame, array: nested.Array | None) -> list[str]:
    """A sentence for each missing column; none where they may be in an array that is not there."""
    if array and array.problem:
        return []
    fields = [f"{nested.CANDIDATE}.{field}" for field in array.fields] if array else []
    has = ", ".join([*raw.columns, *fields])
    return [f"column {name!r} is missing and not mapped; there are {has}" for name in names]


def _wanted(where: str | None, array: nested.Array | None) -> Column:
    """Whether `where` keeps the row; what it cannot say of no candidate is not its doing."""
    if where is None:
        return F.lit(True)
    if array is None or array.problem:
        return F.coalesce(F.expr(where), F.lit(False))
    is_none = ~F.coalesce(F.col(IS_CANDIDATE), F.lit(False))
    return F.coalesce(F.expr(where), is_none)


def _with_slices(name: str, slices: Sequence[str]) -> schemas.Table:
    table = next(table for table in schemas.INPUTS if table.name == name)
    if name not in ("impressions", "judgments"):
        return table
    return table.plus(
        schemas.Column(column, "STRING", "a slice of the queries", required=True)
        for column in slices
    )


def _expression_problem(
    raw: DataFrame, column: schemas.Column, value: Column, *, is_slice: bool
) -> str | None:
    try:
        found = raw.select(value).schema[0].dataType
    except AnalysisException as error:
        return f"column {column.name!r}: {first_line(error)}"
    return None if is_slice else type_problem(column, found)


def _where_problem(raw: DataFrame, where: str | None, wanted: Column) -> str | None:
    try:
        raw.select(wanted).schema  # noqa: B018  Connect resolves a frame only when it is looked at
    except AnalysisException as error:
        return f"where {where!r}: {first_line(error)}"
    return None
