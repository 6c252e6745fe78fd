"""Dates of the command line."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime

from ranklake.errors import ConfigError


def dates(texts: Sequence[str] | None) -> list[date]:
    """The days. Raises ConfigError for a text that is no date, and for none: a run needs a day."""
    if not texts:
        raise ConfigError("--date: say which day, as YYYY-MM-DD")
    problems, days = [], []
    for text in texts:
        try:
            days.append(_day("--date", text, "YYYY-MM-DD"))
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError(problems)
    return days


def span(first: str | None, last: str | None) -> tuple[date, date]:
    """The days of --from and --to. Raises ConfigError where one is missing, or after the other."""
    begin, end = bounds(first, last)
    if begin is None or end is None:
        raise ConfigError("--from and --to: say which days, as YYYY-MM-DD")
    return begin, end


def bounds(first: str | None, last: str | None) -> tuple[date | None, date | None]:
    """As span; None where there is no bound."""
    begin, end = (dates([text])[0] if text else None for text in (first, last))
    if begin and end and begin > end:
        raise ConfigError(f"--from {first}: is after --to {last}")
    return begin, end


def from_to(text: str | None) -> tuple[date, date] | None:
    """The first and the last day of "A..B", or of "A" alone; None for no text."""
    if text is None:
        return None
    first, _, last = text.partition("..")
    begin, end = (
        _day("--dates", day, "YYYY-MM-DD or YYYY-MM-DD..YYYY-MM-DD")
        for day in (first, last or first)
    )
    if begin > end:
        raise ConfigError(f"--dates {text}: the first day is after the last")
    return begin, end


def _day(option: str, text: str, expected: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{option} {text}: {error}; expected {expected}") from error


def instant(option: str, text: str | None) -> datetime | None:
    """The instant, in UTC. Raises ConfigError for a text that is none, or does not say its zone."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"{option} {text}: {error}; expected 2026-01-02T00:00:00Z") from error
    if found.tzinfo is None:
        raise ConfigError(f"{option} {text}: has no zone; expected one, as in {text}Z")
    return found.astimezone(UTC)


def n_days(text: str) -> int:
    """The days of "28d", "4w" or "28". Raises ConfigError for another text, and for none.

    >>> n_days("28d"), n_days("4w"), n_days("1")
    (28, 28, 1)
    """
    found = re.fullmatch(r"([1-9]\d{0,3})([dw]?)", text)
    if not found:
        raise ConfigError(f"--last {text}: expected a number of days, as in 28d or 4w")
    return int(found[1]) * (7 if found[2] == "w" else 1)
