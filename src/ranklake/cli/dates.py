"""Dates of the command line."""

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
            days.append(date.fromisoformat(text))
        except ValueError as error:
            problems.append(f"--date {text}: {error}; expected YYYY-MM-DD")
    if problems:
        raise ConfigError(problems)
    return days


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
