"""The configuration's single values: their types, and in plain words what is wrong with one."""

import re
from collections import Counter
from typing import Annotated, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from pydantic import AfterValidator, Field

from ranklake import metrics
from ranklake.errors import near_miss

T = TypeVar("T")

EVENTS = (metrics.CLICK, metrics.CONVERSION, metrics.CONVERSION_VALUE, metrics.JUDGMENT)
NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
NAME_IN_WORDS = "letters, digits and _, no digit first, 64 at most"


def spelled(pattern: str, in_words: str) -> AfterValidator:
    """The rule that the whole text matches the pattern."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"found {text!r}, expected {in_words}")
        return text

    return AfterValidator(check)


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        hint = near_miss(name, available_timezones())
        raise ValueError(f"found {name!r}, expected an IANA time zone{hint}") from error
    return name


def _metric(text: str) -> str:
    return str(metrics.metric_with_options(text))


def _measure(text: str) -> str:
    return str(metrics.measure(text))


def _event(kind: str) -> str:
    if kind not in EVENTS:
        hint = near_miss(kind, EVENTS)
        raise ValueError(f"found {kind!r}, expected one of {', '.join(EVENTS)}{hint}")
    return kind


def _distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    repeated = [str(value) for value, n in Counter(values).items() if n > 1]
    if repeated:
        raise ValueError(f"{', '.join(repeated)} is listed more than once")
    return values


EventKind = Annotated[str, AfterValidator(_event)]
Cutoff = Annotated[int, Field(ge=1, le=metrics.MAX_K)]
Gain = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Name = Annotated[str, spelled(NAME, NAME_IN_WORDS)]
Zone = Annotated[str, AfterValidator(_zone)]
MetricName = Annotated[str, AfterValidator(_metric)]
MeasureName = Annotated[str, AfterValidator(_measure)]
Distinct = Annotated[tuple[T, ...], AfterValidator(_distinct)]
DistinctSome = Annotated[tuple[T, ...], Field(min_length=1), AfterValidator(_distinct)]
