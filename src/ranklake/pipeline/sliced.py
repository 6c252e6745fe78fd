"""Which values the slices of a day have, and which of them get numbers of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from ranklake import schemas
from ranklake.aggregate import slices
from ranklake.config import EvalConfig
from ranklake.errors import ContractError


def slices_of(
    rows: DataFrame, config: EvalConfig, recorded: Mapping[str, Sequence[str] | None]
) -> tuple[schemas.SliceLists, slices.Dictionary]:
    """The fixed values of each slice column, and the dictionary of the day's slice ids.

    The configuration's list comes first, then the list that earlier runs recorded; a column without
    either that has more than max_values values gets its most frequent ones, from now on.
    Raises ContractError when the values combine in too many ways.
    """
    lists = {
        column: _tuple(config.slices.values.get(column) or recorded.get(column))
        for column in config.slices.columns
    }
    found = _combined(rows, lists)
    crowded = _crowded(found, lists, limit=config.slices.max_values)
    if crowded:
        lists |= {column: _most_frequent(rows, column, config) for column in crowded}
        found = _combined(rows, lists)
    if len(found) > slices.MAX_COMBINATIONS:
        raise ContractError(
            f"slices: their values combine in more than {slices.MAX_COMBINATIONS} ways;"
            f" lower slices.max_values ({config.slices.max_values}) or leave columns out"
        )
    columns, groups = config.slices.columns, config.slices.groups
    return lists, slices.dictionary(found, columns=columns, groups=groups)


def _tuple(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return tuple(values) if values else None


def _combined(rows: DataFrame, lists: schemas.SliceLists) -> list[dict[str, Any]]:
    if not lists:
        return []
    combined = slices.combinations(rows, slice_lists=lists).limit(slices.MAX_COMBINATIONS + 1)
    return [row.asDict() for row in combined.collect()]


def _crowded(
    found: Sequence[Mapping[str, Any]], lists: schemas.SliceLists, *, limit: int
) -> list[str]:
    """The open columns with more values than the limit, as far as the combinations tell."""
    values = {column: {row[column] for row in found} - {schemas.NO_VALUE} for column in lists}
    return [
        column
        for column, kept in lists.items()
        if kept is None and (len(values[column]) > limit or len(found) > slices.MAX_COMBINATIONS)
    ]


def _most_frequent(rows: DataFrame, column: str, config: EvalConfig) -> tuple[str, ...] | None:
    """The column's most frequent values; None when it has no more than max_values."""
    limit = config.slices.max_values
    found = slices.frequencies(rows, column=column, limit=limit + 1).collect()
    return tuple(row["value"] for row in found[:limit]) if len(found) > limit else None
