"""A DataFrame held against its table: the declared columns and types, or every problem at once."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ranklake.errors import ContractError
from ranklake.schemas import table as declared

_INTEGRAL = ("tinyint", "smallint", "int", "bigint")
_NUMERIC = (*_INTEGRAL, "float", "double", "decimal", "boolean")
_CASTS = {
    "STRING": ("string", "char", "varchar", *_INTEGRAL),
    "DOUBLE": _NUMERIC,
    "INT": _INTEGRAL,
    "DATE": ("date",),
    "TIMESTAMP": ("timestamp",),
}
_SUGGESTIONS = {
    "STRING": "cast({name} as string)",
    "DOUBLE": "cast({name} as double)",
    "INT": "cast({name} as int)",
    "DATE": "to_date({name})",
    "TIMESTAMP": "to_utc_timestamp({name}, 'the zone it was written in')",
}


def type_problem(column: declared.Column, found: T.DataType) -> str | None:
    """One sentence when no lossless cast leads from the found type to the declared one."""
    name = found.simpleString()
    if name.split("(")[0] in _CASTS[column.type]:
        return None
    suggestion = _SUGGESTIONS[column.type].format(name=column.name)
    return (
        f"column {column.name!r} is {name}, expected {column.type.lower()};"
        f' map it if you can, for example {column.name} = "{suggestion}"'
    )


def cast_to(column: declared.Column, value: Column) -> Column:
    """The value in its declared type, under its declared name."""
    return value.cast(column.type.lower()).alias(column.name)


def conformed(frame: DataFrame, table: declared.Table) -> DataFrame:
    """The table's columns, in order and in their types; rows unchanged.

    Raises ContractError when a column is missing.
    """
    missing = [name for name in table.names if name not in frame.columns]
    if missing:
        raise ContractError([f"{table.name}: column {name!r} is missing" for name in missing])
    return frame.select([cast_to(c, F.col(c.name)) for c in table.columns])
