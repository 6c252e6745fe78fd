"""One attempt: its id, its stages with their seconds, and its rows in the table runs."""

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa

from ranklake import schemas

Listener = Callable[[str, int], None]
"""Told the name of each stage as it begins, and the rows it works on (0: not known)."""


def silent(stage: str, n_rows: int) -> None:
    """The listener that tells nobody."""


@dataclass
class Run:
    """What is known of the attempt so far. The pipeline fills it in as it goes."""

    day: date
    evaluation: str
    config: str
    config_hash: str
    spark_version: str
    engine: str
    listener: Listener = silent
    label_as_of: datetime | None = None
    is_mature: bool | None = None
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    models: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    definitions: Mapping[str, Any] = field(default_factory=dict)
    plan: str = ""
    plan_reason: str = ""
    table_versions: dict[str, int] = field(default_factory=dict)
    stage_seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, n_rows: int = 0) -> Iterator[None]:
        """Tells the listener, and takes the time."""
        self.listener(name, n_rows)
        begin = time.monotonic()
        yield
        self.stage_seconds[name] = round(time.monotonic() - begin, 3)

    def rows(self, status: str, *, message: str | None = None) -> pa.Table:
        """One row per model, as in runs; a single one without a model while none is known."""
        models: Sequence[tuple[str | None, str | None]] = [*self.models.items()] or [(None, None)]
        common = {
            "event_date": self.day,
            "run_id": self.run_id,
            "evaluation": self.evaluation,
            "status": status,
            "started_at": self.started_at,
            "finished_at": None if status == "STARTED" else datetime.now(UTC),
            "message": message,
            "inputs": json.dumps(self.inputs, sort_keys=True),
            "config": self.config,
            "config_hash": self.config_hash,
            "definitions": json.dumps(self.definitions, sort_keys=True),
            "label_as_of": self.label_as_of,
            "package_version": package_version(),
            "git_sha": git_sha(),
            "spark_version": self.spark_version,
            "engine": self.engine,
            "plan": self.plan,
            "plan_reason": self.plan_reason,
            "table_versions": list(self.table_versions.items()),
            "stage_seconds": list(self.stage_seconds.items()),
        }
        rows = [
            {
                **common,
                "model_version": model,
                "model_name": original if original != model else None,
            }
            for model, original in models
        ]
        return pa.Table.from_pylist(rows, schema=schemas.arrow_schema(schemas.RUNS))


def package_version() -> str:
    """The installed version; "unknown" where the package is on the path only."""
    try:
        return version("ranklake")
    except PackageNotFoundError:
        return "unknown"


@cache
def git_sha() -> str | None:
    """The commit: from RANKLAKE_GIT_SHA, else of the checkout that the package runs from."""
    if given := os.environ.get("RANKLAKE_GIT_SHA"):
        return given
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
