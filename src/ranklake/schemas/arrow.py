"""The tables as Arrow knows them, for rows that are made on the driver."""

from typing import Any

import pyarrow as pa

from ranklake.schemas.table import Table

_ARROW = {
    "STRING": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "ARRAY<INT>": pa.list_(pa.int32()),
    "ARRAY<BIGINT>": pa.list_(pa.int64()),
    "ARRAY<DOUBLE>": pa.list_(pa.float64()),
    "MAP<STRING,BIGINT>": pa.map_(pa.string(), pa.int64()),
    "MAP<STRING,DOUBLE>": pa.map_(pa.string(), pa.float64()),
}


def arrow_schema(table: Table) -> pa.Schema:
    """The table's columns in order; the required ones are not nullable."""
    return pa.schema(
        [pa.field(c.name, _ARROW[c.type], nullable=not c.required) for c in table.columns]
    )


def arrow_rows(rows: pa.Table, table: Table, **constants: Any) -> pa.Table:
    """The table's columns, in order and in their types; `constants` are columns of one value.

    Raises KeyError when a column is missing.
    """
    schema = arrow_schema(table)
    columns = [
        pa.repeat(pa.scalar(constants[field.name], field.type), len(rows))
        if field.name in constants
        else rows.column(field.name).cast(field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
