"""The typed configuration: every key, its type and its default.

What a key means is said in conf/base.toml, and from there in docs/reference.md.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from ranklake.config.impossible import Problem, problems_of
from ranklake.config.rules import Rules
from ranklake.config.strict import STRICT
from ranklake.config.values import (
    EVENTS,
    Cutoff,
    Distinct,
    DistinctSome,
    EventKind,
    Gain,
    MeasureName,
    MetricName,
    Name,
    Zone,
    spelled,
)
from ranklake.metrics import (
    DEFAULTS,
    JUDGMENT,
    SHOWN,
    Measure,
    Need,
    measures_of,
    needs_of,
    per_query_measures,
)

Gains = Mapping[str, float]
"""What one event of each kind is worth."""

_TIE_DIAGNOSTICS = (
    "tied",
    *(
        f"{name}(tie_break={bound})"
        for name in ("precision", "recall")
        for bound in ("best", "worst")
    ),
)
"""What tie_diagnostics looks at."""

_GAINS: dict[str, Gains] = {kind: {kind: 1.0} for kind in EVENTS}


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


class Slices(BaseModel):
    """Subsets of the queries that get numbers of their own."""

    model_config = STRICT

    columns: Distinct[str] = ()
    crosses: Distinct[tuple[str, ...]] = ()
    max_values: Annotated[int, Field(ge=1, le=1000)] = 50
    values: dict[str, Distinct[str]] = {}

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Every slice as a tuple of its columns: the columns alone, then the crosses."""
        return (*((column,) for column in self.columns), *self.crosses)


class EvalConfig(BaseModel):
    """One evaluation: what is read, what is measured, and where it is published.

    The date and the models are arguments of a run, never configuration.
    """

    model_config = STRICT

    evaluation: Name = "default"
    engine: Literal["jvm", "comet"] = "jvm"
    zone: Zone = "UTC"
    candidates: DistinctSome[Literal["served", "scored"]] = ("served",)
    rank_by: Literal["score", "position"] = "score"
    labels: DistinctSome[Name] = ("click",)
    gains: dict[Name, dict[EventKind, Gain]] = {}
    unshown_clicks: Literal["relevant", "reject"] = "relevant"
    metrics: Distinct[MetricName] = DEFAULTS
    ks: DistinctSome[Cutoff] = (1, 3, 5, 10)
    measures: Distinct[MeasureName] = ()
    score_is_probability: bool = False
    tie_diagnostics: bool = False
    rules: Rules = Rules()
    n_buckets: Annotated[int, Field(ge=50, le=10_000)] = 400
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    detail: Literal["all", "relevant", "none"] = "all"
    unique_key: bool = False
    allow_empty_labels: bool = False
    unknown_users: tuple[str, ...] = ()
    max_query_span_minutes: Annotated[int, Field(ge=0, le=720)] = 30
    max_candidates_per_query: Annotated[int, Field(ge=100)] = 100_000
    lake: Lake = Lake()
    slices: Slices = Slices()
    models: dict[str, str] = {}
    inputs: Inputs = Inputs()

    @property
    def asked(self) -> tuple[Measure, ...]:
        """Every measure that is published, and those that they are made of or counted by."""
        return measures_of(self.metrics, self.ks, self.measures)

    @property
    def derived(self) -> tuple[Measure, ...]:
        """The measures among them that are made of the sums of others."""
        return tuple(measure for measure in self.asked if measure.is_derived)

    @property
    def diagnosed(self) -> tuple[Measure, ...]:
        """The measures that only the table quality shows: hits, and what equal scores decide."""
        return measures_of(("hits", *(_TIE_DIAGNOSTICS if self.tie_diagnostics else ())), self.ks)

    @property
    def per_query(self) -> tuple[Measure, ...]:
        """The measures that are columns of query_metrics."""
        return per_query_measures((*self.asked, *self.diagnosed))

    @property
    def needs(self) -> frozenset[Need]:
        """What the measures need beyond hits and their ranks."""
        return needs_of(self.per_query)

    @property
    def ranks_every_query(self) -> bool:
        """Whether something depends on the order of queries without a relevant item too."""
        return Need.JUDGED in self.needs or self.rules.unjudged == "drop"

    @property
    def is_graded(self) -> bool:
        """Whether relevant items of some label can have different gains."""
        worths = [[k for k, w in self.gains_of(label).items() if w] for label in self.labels]
        return any(JUDGMENT in kinds or len(kinds) > 1 for kinds in worths)

    @property
    def values_every_query(self) -> bool:
        """Whether a query without a relevant item can have any value but 0 or null."""
        return self.ranks_every_query or Need.SCORES in self.needs

    @property
    def query_extras(self) -> tuple[str, ...]:
        """The values of a query that some measure needs."""
        measures = (*self.asked, *self.diagnosed)
        used = {
            "n_slots": any(m.k == SHOWN for m in measures),
            "weight": any(m.weight == "weight" for m in measures),
            "n_scored": Need.SCORES in self.needs,
            "n_scored_hits": Need.SCORES in self.needs,
        }
        return tuple(name for name, is_used in used.items() if is_used)

    @property
    def known_gains(self) -> dict[str, Gains]:
        """The gains of every label that may be named: the configured ones over the built-in."""
        return {**_GAINS, **self.gains}

    def gains_of(self, label: str) -> Gains:
        """What one event of each kind is worth for the label; the item's gain is their maximum."""
        return self.known_gains[label]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        problems = [_details(problem) for problem in problems_of(self)]
        if problems:
            raise ValidationError.from_exception_data(type(self).__name__, problems)
        return self


def _details(problem: Problem) -> InitErrorDetails:
    at, what = problem
    error = PydanticCustomError("impossible", "{what}", {"what": what})
    return InitErrorDetails(type=error, loc=at, input=None)
