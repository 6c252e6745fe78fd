"""The typed configuration: every key, its type, its default and what is impossible."""

import difflib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from ranklake import metrics, schemas

T = TypeVar("T")
EventKind = Literal["click", "conversion", "judgment"]
Cutoff = Annotated[int, Field(ge=1)]
Gain = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]

_GAINS: dict[str, dict[EventKind, float]] = {
    "click": {"click": 1.0},
    "conversion": {"conversion": 1.0},
    "judgment": {"judgment": 1.0},
}


def near_miss(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name, or nothing.

    >>> near_miss("impresions", ["impressions", "clicks"])
    ", did you mean 'impressions'?"
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (OSError, ValueError) as error:
        raise ValueError(f"unknown time zone {name!r}, expected an IANA name") from error
    return name


def _metric(name: str) -> str:
    try:
        return metrics.metric(name).name
    except KeyError as error:
        raise ValueError(error.args[0]) from error


def _distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    repeated = sorted(str(value) for value, n in Counter(values).items() if n > 1)
    if repeated:
        raise ValueError(f"{', '.join(repeated)} is listed more than once")
    return values


class _Strict(BaseModel):
    """Frozen, without conversions, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class Input(_Strict):
    """Where one input lies, and how its columns become ours."""

    format: Literal["delta", "parquet", "csv", "json"] = "delta"
    path: str | None = None
    table: str | None = None
    version: Annotated[int, Field(ge=0)] | None = None
    columns: dict[str, str] = {}
    where: str | None = None
    declared_schema: str | None = Field(default=None, alias="schema")
    options: dict[str, str] = {}

    @property
    def place(self) -> str:
        """The path or table, for messages."""
        return self.path or self.table or "a DataFrame"

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if (self.path is None) == (self.table is None):
            raise ValueError("give either path or table")
        if self.format in ("csv", "json") and self.path and not self.declared_schema:
            raise ValueError(f"{self.format} needs a schema, such as 'query_id STRING, score DOUBLE'")
        if self.version is not None and self.format != "delta":
            raise ValueError(f"only delta has versions, format is {self.format}")
        return self


class Inputs(_Strict):
    """The inputs that the evaluation reads; each one is optional."""

    impressions: Input | None = None
    clicks: Input | None = None
    conversions: Input | None = None
    scores: Input | None = None
    judgments: Input | None = None

    def given(self) -> dict[str, Input]:
        """The inputs that are configured, by name."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name))}


class Lake(_Strict):
    """Where the evaluation's tables lie: a directory, or a schema of a catalog."""

    path: str | None = None
    catalog_schema: Annotated[str, Field(pattern=r"^\w+(\.\w+)?$")] | None = None
    prefix: Annotated[str, Field(pattern=r"^\w*$")] = ""

    @property
    def is_given(self) -> bool:
        """Whether there is a place to publish to."""
        return bool(self.path or self.catalog_schema)

    def directory(self, table: str) -> Path | None:
        """Where the table lies on a file system; None in a catalog."""
        return Path(self.path).absolute() / table if self.path and "://" not in self.path else None

    def sql_name(self, table: str) -> str:
        """How SQL names the table; it is safe to put into a statement."""
        if self.catalog_schema:
            return f"{self.catalog_schema}.{self.prefix}{table}"
        place = self.directory(table) or f"{(self.path or '').rstrip('/')}/{table}"
        return f"delta.`{str(place).replace('`', '``')}`"

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.path and self.catalog_schema:
            raise ValueError("give either path or catalog_schema")
        return self


class Slices(_Strict):
    """Subsets of the queries that get numbers of their own."""

    columns: Annotated[tuple[Name, ...], AfterValidator(_distinct)] = ()
    crosses: Annotated[tuple[tuple[str, ...], ...], AfterValidator(_distinct)] = ()
    max_values: Annotated[int, Field(ge=1, le=1000)] = 50
    values: dict[str, Annotated[tuple[str, ...], AfterValidator(_distinct)]] = {}

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Every slice as a tuple of its columns: the columns alone, then the crosses."""
        return (*((column,) for column in self.columns), *self.crosses)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        taken = {c.name for t in (*schemas.INPUTS, *schemas.LAKE) for c in t.columns}
        problems = [f"{name!r} is the name of a column of ranklake" for name in self.columns if name in taken]
        known = set(self.columns)
        for where, names in (("values", self.values), *((f"crosses {c}", c) for c in self.crosses)):
            problems += [
                f"{where}: {name!r} is not one of columns{near_miss(name, known)}"
                for name in names
                if name not in known
            ]
        problems += [f"crosses {c}: name at least two columns" for c in self.crosses if len(c) < 2]
        for name, values in self.values.items():
            reserved = sorted({"__other__", "__null__"} & set(values))
            problems += [f"values.{name}: {value!r} is reserved" for value in reserved]
        if problems:
            raise ValueError("; ".join(problems))
        return self


class EvalConfig(_Strict):
    """One evaluation: what is read, what is measured, and where it is published.

    The date and the models are arguments of a run, never configuration.
    """

    evaluation: Name = "default"
    zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    candidates: Annotated[tuple[Literal["served", "scored"], ...], AfterValidator(_distinct)] = ("served",)
    rank_by: Literal["score", "position"] = "score"
    labels: Annotated[tuple[Name, ...], Field(min_length=1), AfterValidator(_distinct)] = ("click",)
    gains: dict[str, dict[EventKind, Gain]] = {}
    unshown_clicks: Literal["relevant", "reject"] = "relevant"
    metrics: Annotated[
        tuple[Annotated[str, AfterValidator(_metric)], ...],
        Field(min_length=1),
        AfterValidator(_distinct),
    ] = metrics.DEFAULTS
    ks: Annotated[tuple[Cutoff, ...], Field(min_length=1), AfterValidator(_distinct)] = (1, 3, 5, 10)
    n_buckets: Annotated[int, Field(ge=50, le=10_000)] = 400
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    detail: Literal["all", "relevant", "none"] = "all"
    unique_key: bool = False
    allow_empty_labels: bool = False
    unknown_users: tuple[str, ...] = ()
    max_query_span_minutes: Annotated[int, Field(ge=0, le=720)] = 30
    lake: Lake = Lake()
    slices: Slices = Slices()
    models: dict[str, str] = {}
    inputs: Inputs = Inputs()

    def gains_of(self, label: str) -> dict[EventKind, float]:
        """What one event of each kind is worth for the label; the item's gain is their maximum."""
        return self.gains.get(label) or _GAINS[label]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        problems = [*self._label_problems(), *self._column_problems(), *self._model_problems()]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _label_problems(self) -> list[str]:
        known = {**_GAINS, **self.gains}
        unknown = [name for name in self.labels if name not in known]
        problems = [
            f"labels: {name!r} has no gains{near_miss(name, known)}; say what an event is worth,"
            f" such as gains.{name} = {{click = 1.0, conversion = 5.0}}"
            for name in unknown
        ]
        empty = [name for name, gains in self.gains.items() if not any(gains.values())]
        problems += [f"gains.{name}: no event is worth anything" for name in empty]
        if not unknown and len({"judgment" in self.gains_of(name) for name in self.labels}) > 1:
            problems.append("labels: judgments and log events cannot be labels of one evaluation")
        return problems

    def _column_problems(self) -> list[str]:
        tables = {table.name: table for table in schemas.INPUTS}
        problems = []
        for name, source in self.inputs.given().items():
            known = {*tables[name].names, *self.slices.columns}
            problems += [
                f"inputs.{name}.columns: unknown column {column!r}{near_miss(column, known)}"
                f" known are {', '.join(tables[name].names)} and the slices"
                for column in source.columns
                if column not in known
            ]
        return problems

    def _model_problems(self) -> list[str]:
        bad = [name for name in self.models.values() if not schemas.is_model_version(name)]
        twice = [name for name, n in Counter(self.models.values()).items() if n > 1]
        return [
            *(f"models: alias {name!r} does not match {schemas.MODEL_VERSION}" for name in bad),
            *(f"models: {name!r} is the alias of two models" for name in twice),
        ]
