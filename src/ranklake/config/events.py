"""Which events count as labels, which traffic counts at all, and what stops a run."""

import re
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from ranklake.config.strict import STRICT
from ranklake.config.values import Distinct

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"(?P<n>\d{1,6})(?P<unit>[smhd])")
ANY_TIME = "any"
"""The window of an event that counts whenever it happened."""


def duration(text: str) -> timedelta:
    """The length of time that the text says.

    >>> duration("90m")
    datetime.timedelta(seconds=5400)
    """
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(f"found {text!r}, expected a number and s, m, h or d, such as '24h'")
    return timedelta(**{_UNITS[found["unit"]]: int(found["n"])})


def _duration(text: str) -> str:
    duration(text)
    return text


def _window(text: str) -> str:
    return text if text == ANY_TIME else _duration(text)


Duration = Annotated[str, AfterValidator(_duration)]
Window = Annotated[str, AfterValidator(_window)]
Share = Annotated[float, Field(ge=0, le=1)]
Ratio = Annotated[float, Field(ge=0)]


class Windows(BaseModel):
    """How long after the impression, or the click, an event still counts."""

    model_config = STRICT

    click_tolerance: Duration = "5s"
    click: Window = "30m"
    conversion: Window = "30d"

    @property
    def tolerance(self) -> timedelta:
        """By how much a click may precede its impression: two servers' clocks differ."""
        return duration(self.click_tolerance)

    @property
    def of_clicks(self) -> timedelta | None:
        """From impression to click at most; None: any time."""
        return None if self.click == ANY_TIME else duration(self.click)

    @property
    def of_conversions(self) -> timedelta | None:
        """From touch to conversion at most; None: any time."""
        return None if self.conversion == ANY_TIME else duration(self.conversion)


class Attribution(BaseModel):
    """To which impression a conversion belongs."""

    model_config = STRICT

    touch: Literal["last_click", "first_click", "last_impression"] = "last_click"
    key: Literal["impression", "user_item", "user_advertiser"] = "impression"

    @property
    def is_by_user(self) -> bool:
        """Whether conversions name a user, and not a delivery."""
        return self.key != "impression"

    @property
    def columns(self) -> tuple[str, ...]:
        """What conversions and touches both name, where conversions name a user."""
        return ("user_id", "advertiser_id" if self.key == "user_advertiser" else "item_id")


class Traffic(BaseModel):
    """What no person does: all of a user's queries are removed where one rule is broken."""

    model_config = STRICT

    max_queries_per_hour: Annotated[int, Field(ge=1)] | None = None
    max_clicks_per_minute: Annotated[int, Field(ge=1)] | None = None
    max_click_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    min_impressions: Annotated[int, Field(ge=1)] = 100

    @property
    def has_rules(self) -> bool:
        """Whether any rule is set."""
        rules = (self.max_queries_per_hour, self.max_clicks_per_minute, self.max_click_rate)
        return any(rule is not None for rule in rules)


class Limits(BaseModel):
    """What the data may be like: beyond a limit nothing is published."""

    model_config = STRICT

    null_scores: Share | None = None
    duplicates: Share | None = None
    orphan_clicks: Share | None = None
    without_candidates: Share | None = None
    least_rows: Ratio | None = None
    most_rows: Ratio | None = None
    expected_models: Distinct[str] = ()

    @property
    def has_any(self) -> bool:
        """Whether any limit is set."""
        return self != Limits()


class Rejected(BaseModel):
    """Which of the rows that do not count are kept, to be looked at."""

    model_config = STRICT

    samples: Annotated[int, Field(ge=0, le=100_000)] = 0
    keys: Literal["plain", "hashed"] = "plain"
