"""What the data may be like: looked at before anything is written; beyond a limit nothing is."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ranklake import count, quality, read
from ranklake.complaints import data_errors
from ranklake.config import EvalConfig
from ranklake.errors import DataLimitExceeded
from ranklake.pipeline.checks import checks_of_inputs, counts_of, events_of, input_of, table_of
from ranklake.pipeline.frames import Frames, union
from ranklake.pipeline.inputs import Day
from ranklake.pipeline.publish import Publisher
from ranklake.pipeline.rejected import rejected_of
from ranklake.quality import Limited
from ranklake.run import Run
from ranklake.schemas import QUERY_KEYS
from ranklake.together import together

DAYS = 7
"""How many days a day's rows are compared with: the newest that are published before it."""

Checks = Sequence[Mapping[str, Any]]


class Known(NamedTuple):
    """What is known of a run whose data are within their limits.

    checks  the limits as rows of quality
    events  the checks of events_of; None: they were not looked at
    """

    checks: pa.Table
    events: Checks | None = None


class _Counted(NamedTuple):
    """What small jobs found: n_found of n_rows by limit and model, and the checks of events."""

    by_model: Mapping[tuple[str, str], tuple[int, int]]
    events: Checks | None


def within_limits(
    spark: SparkSession, config: EvalConfig, run: Run, day: Day, frames: Frames, *, has_every: bool
) -> Known:
    """What the limits' checks found. Only limits that are set cost anything.

    Raises DataLimitExceeded with everything that is beyond a limit. Then quality says so, and a
    REJECTED row; what is published stays. `has_every` says whether the run is one of all models:
    a run of named ones expects no others.
    """
    if not config.limits.has_any:
        return Known(table_of([]))
    with run.stage("limits", day.n_rows), data_errors("inputs"):
        counted = _counted(day, frames, config)
        limited = [
            *_of_models(day, counted.by_model, config),
            *_of_inputs(spark, config, run, day),
            *_of_day(run, day, counted.events, config, has_every=has_every),
        ]
    checks = [{"model_version": model, **found.row} for model, found in limited]
    problems = dict.fromkeys(found.problem for _, found in limited if found.problem)
    if problems:
        told = [f"{problem}; nothing was published" for problem in problems]
        if config.lake.is_given:
            known = [*checks_of_inputs(day), *_with_models(counted.events or (), day), *checks]
            _reject(Publisher(spark, config, run), known, told, day, frames, config)
        raise DataLimitExceeded(told)
    return Known(table_of(checks), counted.events)


def _counted(day: Day, frames: Frames, config: EvalConfig) -> _Counted:
    """What has to be counted for the limits: one job of candidates, one of events at most."""
    counts = partial(_counts, frames, config)
    if config.limits.orphan_clicks is None or "clicks" not in frames.events:
        return _Counted(counts(), None)
    return _Counted(*together(counts, partial(events_of, day, frames)))


def _counts(frames: Frames, config: EvalConfig) -> dict[tuple[str, str], tuple[int, int]]:
    found = {}
    if config.limits.duplicates is not None and not _stop_duplicates(config):
        candidates = [rows for rows in (frames.served, frames.listed) if rows is not None]
        keys = [*QUERY_KEYS, "item_id"]
        found["duplicates"] = count.repeated(union([rows.select(*keys) for rows in candidates]))
    if config.limits.without_candidates is not None and frames.listed is not None:
        own = F.col("model_version").isin([*frames.listed_models])
        found["without_candidates"] = count.without_candidates(frames.counts.where(own))
    if not found:
        return {}
    rows = union([counted.withColumn("key", F.lit(key)) for key, counted in found.items()])
    return {
        (row["key"], row["model_version"]): (row["n_found"], row["n_rows"])
        for row in rows.collect()
    }


def _stop_duplicates(config: EvalConfig) -> bool:
    """Whether a duplicate stops the run whatever their share."""
    return config.unique_key or config.rules.duplicates == "error"


def _of_models(
    day: Day, counted: Mapping[tuple[str, str], tuple[int, int]], config: EvalConfig
) -> Iterator[tuple[str, Limited]]:
    limits = config.limits
    for model in day.models:
        counts = counts_of(model, day)
        known = {key: counted[key, model] for key, of in counted if of == model}
        if "null_score" in counts:
            n_unscored = counts["null_score"] + counts["nan_score"]
            known["null_scores"] = (n_unscored, quality.looked_at(counts))
        for key in ("null_scores", "duplicates", "without_candidates"):
            limit = getattr(limits, key)
            if limit is not None and key in known:
                yield model, quality.limited_share(key, *known[key], limit=limit, where=model)


def _of_inputs(
    spark: SparkSession, config: EvalConfig, run: Run, day: Day
) -> Iterator[tuple[str, Limited]]:
    """The rows of each input that has candidates; for each model, that of its own."""
    least, most = config.limits.least_rows, config.limits.most_rows
    if least is None and most is None:
        return
    days = (
        read.published_rows(spark, config.lake, before=run.day, n_days=DAYS)
        if config.lake.is_given
        else []
    )
    for model in day.models:
        name = input_of(model, day)
        earlier = [n_rows[name] for n_rows in days if n_rows.get(name)]
        n_rows = day.count(name, "n_rows")
        for found in quality.limited_rows(name, n_rows, earlier, least=least, most=most):
            yield model, found


def _of_day(
    run: Run, day: Day, events: Checks | None, config: EvalConfig, *, has_every: bool
) -> Iterator[tuple[str, Limited]]:
    """What is no model's own: orphans, where clicks say of which day they are; and who is there."""
    limits = config.limits
    found = []
    orphans = [row["value"] for row in events or () if row["name"] == "clicks.dropped.orphan"]
    if limits.orphan_clicks is not None and orphans:
        found.append(of_orphans(int(orphans[0]), day, limit=limits.orphan_clicks))
    if limits.expected_models and has_every:
        found.append(
            quality.limited_models(
                day.models, expected=limits.expected_models, where=f"models of {run.day}"
            )
        )
    for model in day.models:
        yield from ((model, one) for one in found)


def of_orphans(n_orphans: int, day: Day, *, limit: float) -> Limited:
    """The share of the day's clicks whose query, or delivery, is not in the log."""
    n_clicks = quality.looked_at(day.audits["clicks"][None])
    return quality.limited_share("orphan_clicks", n_orphans, n_clicks, limit=limit, where="clicks")


def _with_models(checks: Checks, day: Day) -> list[dict[str, Any]]:
    return [{"model_version": model, **check} for model in day.models for check in checks]


def _reject(
    publisher: Publisher,
    checks: Checks,
    problems: Sequence[str],
    day: Day,
    frames: Frames,
    config: EvalConfig,
) -> None:
    """Writes what a person looks at: why, and a sample of the rows that do not count."""
    if config.rejected.samples:
        with data_errors("inputs"):
            publisher.rejected(rejected_of(day, frames, config))
    publisher.reject(table_of(checks), problems)
