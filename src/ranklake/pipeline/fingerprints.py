"""What a run of a date reads, as fingerprints of its files: stored with it, compared later."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake import read
from ranklake.config import EvalConfig
from ranklake.pipeline.reading import nearby_rows, rows_of_day
from ranklake.together import together

LABELS = ("clicks", "conversions")
"""The inputs that go on growing after the day: their rows are told late."""

Fingerprints = Mapping[str, str | None]
"""By part: `fingerprint` of the day's rows; `nearby` of rows of other days, where they compete."""


def fingerprints_of(
    sources: Mapping[str, read.Source],
    config: EvalConfig,
    day: date,
    *,
    known_by: datetime | None,
) -> dict[str, Fingerprints]:
    """By input: the fingerprints of the files that hold the rows which a run of the day reads.

    Not of files that hold labels alone which the log had after `known_by`: they do not count.
    """
    of_day = partial(_of_day, config=config, day=day, known_by=known_by)
    near = partial(_near, sources=sources, config=config, day=day, known_by=known_by)
    parts = [(name, "fingerprint", of_day) for name in sources]
    parts += [(name, "nearby", near) for name in nearby_rows(sources, config, day)]
    looks = [partial(read.fingerprint, sources[name], chosen) for name, _, chosen in parts]
    found: dict[str, dict[str, str | None]] = {}
    for (name, part, _), value in zip(parts, together(*looks), strict=True):
        found.setdefault(name, {})[part] = value
    return {**found}


def _of_day(
    source: read.Source, *, config: EvalConfig, day: date, known_by: datetime | None
) -> DataFrame:
    name = source.table.name
    if name == "impressions" and source.time and not source.is_dated:
        span = timedelta(minutes=config.max_query_span_minutes)
        return read.around_date(source, day, zone=config.zone, max_query_span=span)
    return _known(rows_of_day({name: source}, config, day)[name], name, known_by)


def _near(
    source: read.Source,
    *,
    sources: Mapping[str, read.Source],
    config: EvalConfig,
    day: date,
    known_by: datetime | None,
) -> DataFrame:
    name = source.table.name
    return _known(nearby_rows({**sources, name: source}, config, day)[name], name, known_by)


def _known(rows: DataFrame, name: str, known_by: datetime | None) -> DataFrame:
    """The rows but for labels that the log had later: their statistics tell Delta's files apart."""
    if known_by is None or name not in LABELS or "ingest_ts" not in rows.columns:
        return rows
    told = F.col("ingest_ts")
    return rows.where(told.isNull() | (told <= F.lit(known_by)))
