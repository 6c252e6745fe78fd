"""Where things lie: the inputs, and the tables of the evaluation."""

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from ranklake.config.strict import STRICT
from ranklake.config.values import spelled


class Input(BaseModel):
    """Where one input lies, and how its columns become ours."""

    model_config = STRICT

    format: Literal["delta", "parquet", "csv", "json"] = "delta"
    path: str | None = None
    table: Annotated[str, spelled(r"[\w-]+(\.[\w-]+){0,2}", "catalog.schema.table")] | None = None
    version: Annotated[int, Field(ge=0)] | None = None
    candidates: str | None = None
    columns: dict[str, str] = {}
    where: str | None = None
    declared_schema: str | None = Field(default=None, alias="schema")
    options: dict[str, str] = {}

    @property
    def place(self) -> str:
        """The path or table, for messages."""
        return self.path or self.table or "a DataFrame"

    @property
    def sql_name(self) -> str:
        """How SQL names the input; it is safe to put into a statement."""
        if self.table:
            return ".".join(_backticked(part) for part in self.table.split("."))
        return f"delta.{_backticked(located(self.path or ''))}"


class Inputs(BaseModel):
    """The inputs that the evaluation reads; each one is optional."""

    model_config = STRICT

    impressions: Input | None = None
    clicks: Input | None = None
    conversions: Input | None = None
    scores: Input | None = None
    judgments: Input | None = None
    invalid_traffic: Input | None = None

    def given(self) -> dict[str, Input]:
        """The inputs that are configured, by name."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name))}


class Lake(BaseModel):
    """Where the evaluation's tables lie: a directory, or a schema of a catalog."""

    model_config = STRICT

    path: str | None = None
    catalog_schema: Annotated[str, spelled(r"\w+(\.\w+)?", "schema or catalog.schema")] | None = (
        None
    )
    prefix: Annotated[str, spelled(r"\w*", "letters, digits and _")] = ""

    @property
    def is_given(self) -> bool:
        """Whether there is a place to publish to."""
        return bool(self.path or self.catalog_schema)

    def directory(self, table: str) -> Path | None:
        """Where the table lies on a file system; None in a catalog or an object store."""
        if self.path is None or _has_scheme(self.path):
            return None
        return Path(located(self.path)) / table

    def table_here(self, table: str) -> Path | None:
        """The table's directory where this machine has it; a path may lie in Spark's HDFS, too."""
        directory = self.directory(table)
        return directory if directory and (directory / "_delta_log").is_dir() else None

    def sql_name(self, table: str) -> str:
        """How SQL names the table; it is safe to put into a statement."""
        if self.catalog_schema:
            parts = (*self.catalog_schema.split("."), f"{self.prefix}{table}")
            return ".".join(_backticked(part) for part in parts)
        return f"delta.{_backticked(located(f'{self.path}/{table}'))}"


def located(path: str) -> str:
    """The path as every process understands it: absolute where it has no scheme."""
    return path if _has_scheme(path) else str(Path(path).absolute())


def _has_scheme(path: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", path) is not None


def _backticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
