"""What a candidate may not lose against a baseline."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from ranklake import metrics
from ranklake.config.strict import STRICT
from ranklake.config.values import MeasureName, Name
from ranklake.metrics import Measure, Population

Role = Literal["primary", "guardrail", "info"]


class Rule(BaseModel):
    """One measure that may not drop, on one slice or on each value of it."""

    model_config = STRICT

    measure: MeasureName
    label: Name | None = None
    population: Population | None = None
    slice: str = "all"
    slice_value: str | None = None
    max_drop: Annotated[float, Field(ge=0)] | None = None
    max_relative_drop: Annotated[float, Field(ge=0, lt=1)] | None = None
    floor: float | None = None
    ceiling: float | None = None
    min_queries: Annotated[int, Field(ge=0)] = 0
    role: Role = "guardrail"
    name: str = ""

    @property
    def measured(self) -> Measure:
        """The measure that it looks at."""
        return metrics.measure(self.measure)

    @property
    def title(self) -> str:
        """Its name, or what it looks at."""
        if self.name or self.slice == "all":
            return self.name or self.measure
        value = "" if self.slice_value is None else f"={self.slice_value}"
        return f"{self.measure}, {self.slice}{value}"

    @model_validator(mode="after")
    def _asks_something(self) -> Self:
        drops = [self.max_drop, self.max_relative_drop]
        if all(bound is None for bound in (*drops, self.floor, self.ceiling)):
            raise ValueError("expected max_drop, max_relative_drop, floor or ceiling, found none")
        if None not in drops:
            raise ValueError("found max_drop and max_relative_drop, expected one of them")
        if self.role == "primary" and self.slice != "all" and self.slice_value is None:
            raise ValueError("the primary rule is one test: expected slice_value, found none")
        if self.measured.metric.better == "neither" and any(d is not None for d in drops):
            raise ValueError(
                f"{self.measure}: neither more nor less of it is better: use floor or ceiling"
            )
        return self


class Gate(BaseModel):
    """When a candidate passes.

    A rule fails where the difference is surely below what is allowed, passes where it is surely
    not, and is inconclusive between.
    """

    model_config = STRICT

    rules: tuple[Rule, ...] = ()
    on_inconclusive: Literal["fail", "warn"] = "fail"
    max_judged_gap: Annotated[float, Field(ge=0, le=1)] = 0.01

    @model_validator(mode="after")
    def _is_clear(self) -> Self:
        titles = [rule.title for rule in self.rules]
        twice = sorted({title for title in titles if titles.count(title) > 1})
        if twice:
            raise ValueError(f"rules: found {', '.join(twice)} twice; give each a name")
        if sum(rule.role == "primary" for rule in self.rules) > 1:
            raise ValueError("rules: found several primary ones, expected one at most")
        return self
