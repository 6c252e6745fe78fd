"""The typed configuration: every key, its type and its default.

What a key means is said in conf/base.toml, and from there in docs/reference.md.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from ranklake.config.events import (
    Attribution,
    Duration,
    Limits,
    Rejected,
    Traffic,
    Windows,
    duration,
)
from ranklake.config.gate import Gate
from ranklake.config.impossible import Problem, problems_of
from ranklake.config.places import Inputs, Lake
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
)
from ranklake.metrics import (
    CONVERSION_VALUE,
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
    item_clusters: Literal["advertiser_id", "item_id"] | None = None
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    window_days: Distinct[Annotated[int, Field(ge=2, le=366)]] = ()
    detail: Literal["all", "relevant", "none"] = "all"
    unique_key: bool = False
    allow_empty_labels: bool = False
    unknown_users: tuple[str, ...] = ()
    max_query_span_minutes: Annotated[int, Field(ge=0, le=720)] = 30
    max_candidates_per_query: Annotated[int, Field(ge=100)] = 100_000
    label_delay: Duration | None = None
    label_age: Duration | None = None
    windows: Windows = Windows()
    attribution: Attribution = Attribution()
    traffic: Traffic = Traffic()
    limits: Limits = Limits()
    rejected: Rejected = Rejected()
    gate: Gate = Gate()
    aliases: dict[Name, str] = {}
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
    def of_items(self) -> tuple[Measure, ...]:
        """The measures among them that have sums by the clusters of items too."""
        asked = self.asked if self.item_clusters else ()
        return tuple(measure for measure in asked if measure.metric.is_of_items)

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
        worths = [{k for k, w in self.gains_of(label).items() if w} for label in self.labels]
        return any(len(kinds) > 1 or kinds & {JUDGMENT, CONVERSION_VALUE} for kinds in worths)

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
    def oldest_label(self) -> timedelta | None:
        """How long after its impression an event may happen and count; None: any time."""
        return duration(self.label_age) if self.label_age else None

    @property
    def event_kinds(self) -> frozenset[EventKind]:
        """The kinds of events that are worth something to some label."""
        worths = [self.gains_of(label) for label in self.labels]
        return frozenset(kind for worth in worths for kind, gain in worth.items() if gain)

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
