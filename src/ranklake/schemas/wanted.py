"""What is asked of a published table, wherever it lies."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TypedDict, TypeVar

T = TypeVar("T", bound=date | str)
Day = date | str
"""A day, or its ISO form."""

Matching = Sequence[Mapping[str, Sequence[str | int]]]
"""Rows that meet one of these: each column has one of the values that are named for it."""


class Wanted(TypedDict, total=False):
    """What is asked of a table; without any of it, everything that is published."""

    dates: Day | Iterable[Day] | None
    """The days. Partitions of other days are not opened."""

    models: str | Iterable[str] | None
    """The model versions, likewise."""

    columns: Iterable[str] | None
    """The columns, in this order; else all that the table has today."""

    matching: Matching | None
    """Only such rows."""


def several(values: T | Iterable[T]) -> list[T]:
    """The values; a single one may come alone."""
    return [values] if isinstance(values, str | date) else list(values)


def days_of(dates: Day | Iterable[Day]) -> list[date]:
    """The days that are asked for. Raises ValueError for a text that is none."""
    return [date.fromisoformat(str(day)) for day in several(dates)]
