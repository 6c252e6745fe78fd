"""Dates of the command line."""

from collections.abc import Sequence
from datetime import date

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
