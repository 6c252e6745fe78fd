"""The only reads: the logs of one date, and what the lake's tables hold of earlier runs."""

from ranklake.read.days import missing_day, of_date, of_dates
from ranklake.read.inputs import Source, mapped, opened
from ranklake.read.published import (
    Published,
    committed,
    of_run,
    published,
    published_days,
    published_rows,
    recorded_definitions,
)

__all__ = [
    "Published",
    "Source",
    "committed",
    "mapped",
    "missing_day",
    "of_date",
    "of_dates",
    "of_run",
    "opened",
    "published",
    "published_days",
    "published_rows",
    "recorded_definitions",
]
