"""What a table is, in words that need no Spark: analysts' machines read these too."""

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Column:
    """One column: its name, its Spark SQL type, and what a value means."""

    name: str
    type: str
    meaning: str
    required: bool = False


@dataclass(frozen=True)
class Check:
    """A condition of every row, in words that Spark's SQL and DataFusion's (delta-rs) both know.

    Delta treats NULL as false: say `x IS NULL OR`.
    """

    name: str
    condition: str


@dataclass(frozen=True)
class Table:
    """One table: what one row is, its columns in order, its partitions and its checks.

    with_bounds  the columns whose least and largest value each file is known by; empty: Delta's
                 choice, its first 32, which costs at every row
    """

    name: str
    one_row: str
    columns: tuple[Column, ...]
    partitioned_by: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    with_bounds: tuple[str, ...] = ()

    def column(self, name: str) -> Column:
        """The column of that name. Raises KeyError when there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def required(self) -> tuple[str, ...]:
        """The names of the columns that must be there and never null."""
        return tuple(column.name for column in self.columns if column.required)

    def plus(self, columns: Iterable[Column]) -> "Table":
        """The same table with further columns at its end."""
        return replace(self, columns=(*self.columns, *columns))
