"""The only reads: the logs of one date, and what the lake's tables hold of earlier runs."""

from ranklake.read.inputs import Source, mapped, missing_day, of_date, opened
from ranklake.read.published import (
    Published,
    committed,
    of_run,
    published,
    published_days,
    recorded_definitions,
)

__all__ = [
    "Published",
    "Source",
    "committed",
    "mapped",
    "missing_day",
    "of_date",
    "of_run",
    "opened",
    "published",
    "published_days",
    "recorded_definitions",
]
