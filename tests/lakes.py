"""A lake of a few rows, written by delta-rs in the order of a run: for tests of what reads it."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from ranklake import schemas
from ranklake.schemas import Column, Table

DAY = date(2026, 1, 1)
QUERY_METRICS = schemas.QUERY_METRICS.plus([Column("recall_at_10", "DOUBLE", "recall")])

_DEFAULTS: dict[str, Any] = {
    "STRING": "",
    "INT": 0,
    "BIGINT": 0,
    "DOUBLE": 0.0,
    "BOOLEAN": False,
    "ARRAY<INT>": [],
    "ARRAY<DOUBLE>": [],
    "TIMESTAMP": datetime(2026, 1, 2, tzinfo=UTC),
}


def created(path: Path, query_metrics: Table = QUERY_METRICS) -> Path:
    """The path, now with every table of a lake in it, and no row."""
    for table in (query_metrics, *schemas.LAKE[1:]):
        empty = schemas.arrow_schema(table).empty_table()
        write_deltalake(path / table.name, empty, partition_by=[*table.partitioned_by])
    return path


def rows_of(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows in the table's schema; what a row does not name is null, or a default."""
    assert not {name for row in rows for name in row} - {*table.names}
    defaults = {c.name: _DEFAULTS.get(c.type) if c.required else None for c in table.columns}
    return pa.Table.from_pylist(
        [{**defaults, **row} for row in rows], schema=schemas.arrow_schema(table)
    )


def replaced(
    path: Path,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    run_id: str,
    day: date = DAY,
    models: Sequence[str] = ("v1",),
    new_columns: Mapping[str, str] | None = None,
) -> int:
    """Replaces the partitions of the day and the models by the rows; returns the Delta version."""
    keys = {"event_date": day, "run_id": run_id}
    names = ", ".join(f"'{model}'" for model in models)
    new = new_columns or {}
    wider = table.plus([Column(name, "STRING", "") for name in new])
    write_deltalake(
        path / table.name,
        rows_of(wider, [{**keys, **new, **row} for row in rows]),
        mode="overwrite",
        schema_mode="merge" if new else None,
        predicate=f"event_date = '{day}' AND model_version IN ({names})",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": run_id}),
    )
    return DeltaTable(path / table.name).version()


def ran(
    path: Path,
    run_id: str,
    *,
    value: float = 0.0,
    day: date = DAY,
    models: Sequence[str] = ("v1",),
    detail: str = "all",
    dies_before: str = "",
) -> None:
    """One row a table and model, all of this value, in a run's order; `dies_before` a table."""
    written: dict[str, Mapping[str, Any]] = {
        "query_metrics": {"query_id": "q", "recall_at_10": value},
        "metric_sums": {"metric": "recall", "k": 10, "num": [value], "den": [1.0]},
        "quality": {"name": "clicks.orphans", "value": value},
        "metrics": {"metric": "recall", "k": 10, "value": value},
    }
    versions = {}
    for name, row in written.items():
        if name == dies_before:
            return
        table = QUERY_METRICS if name == "query_metrics" else getattr(schemas, name.upper())
        is_written = name != "query_metrics" or detail != "none"
        rows = [{**row, "model_version": model} for model in models if is_written]
        versions[name] = replaced(path, table, rows, run_id=run_id, day=day, models=models)
    if dies_before != "runs":
        recorded(path, run_id, day=day, models=models, versions=versions, detail=detail)


def recorded(
    path: Path,
    run_id: str,
    *,
    day: date = DAY,
    models: Sequence[str] = ("v1",),
    versions: Mapping[str, int],
    detail: str = "all",
) -> None:
    """Appends the SUCCESS rows of a run to the manifest."""
    row = {
        "event_date": day,
        "run_id": run_id,
        "status": "SUCCESS",
        "config": json.dumps({"detail": detail}),
        "table_versions": [*versions.items()],
    }
    rows = rows_of(schemas.RUNS, [{**row, "model_version": model} for model in models])
    write_deltalake(path / "runs", rows, mode="append")
