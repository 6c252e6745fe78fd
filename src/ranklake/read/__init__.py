"""The only reads: the logs of one date, and what the lake's tables hold of earlier runs."""

from ranklake.read.days import around_date, missing_day, of_date, of_dates
from ranklake.read.files import NO_FILES, Chosen, fingerprint
from ranklake.read.inputs import Source, mapped, opened
from ranklake.read.published import (
    Published,
    PublishedRun,
    committed,
    of_run,
    published,
    published_days,
    published_rows,
    published_runs,
    recorded_definitions,
)
from ranklake.read.tables import SparkTables, tables_of

__all__ = [
    "NO_FILES",
    "Chosen",
    "Published",
    "PublishedRun",
    "Source",
    "SparkTables",
    "around_date",
    "committed",
    "fingerprint",
    "mapped",
    "missing_day",
    "of_date",
    "of_dates",
    "of_run",
    "opened",
    "published",
    "published_days",
    "published_rows",
    "published_runs",
    "recorded_definitions",
    "tables_of",
]
