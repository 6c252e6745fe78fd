"""What the run found on its way → the rows of the table quality."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ranklake import quality
from ranklake.config import EvalConfig
from ranklake.errors import ContractError
from ranklake.pipeline.frames import Frames
from ranklake.pipeline.inputs import Day
from ranklake.pipeline.too_large import TooLarge, too_large_of
from ranklake.schemas import QUERY


class Unmatched(NamedTuple):
    """What stands in one input and not in another.

    orphans     checks of events whose query (or delivery) is not in the log
    unlabelled  for each listed model, candidates of queries that nobody asked or judged
    """

    orphans: Sequence[Mapping[str, Any]]
    unlabelled: Mapping[str, Row]


def unmatched_of(day: Day, frames: Frames, queries: DataFrame | None) -> Unmatched:
    """What the day's inputs have that matches nothing: a small job or two.

    `queries` are those of the log where a table has them; None: the log itself is looked at.
    """
    return Unmatched(_orphans(day, frames, queries), _unlabelled(frames))


def checks_of(
    day: Day, frames: Frames, unmatched: Unmatched, bucket_sums: pa.Table, config: EvalConfig
) -> pa.Table:
    """One row per (model, check), without event_date and run_id.

    Findings of an input without models stand with every model of the run.
    """
    sums = {model: quality.Sums.of(bucket_sums, model=model) for model in day.models}
    usable = {
        model: _usable(_counts(model, day), unmatched.unlabelled.get(model), config)
        for model in day.models
    }
    unaccounted = {
        model: None if n is None else n - int(sums[model].total("n_candidates"))
        for model, n in usable.items()
    }
    left_out = too_large_of(frames, unaccounted, config)
    rows: list[dict[str, Any]] = []
    for model in day.models:
        of_model = left_out.get(model, TooLarge())
        candidates = quality.Candidates(usable[model], of_model.n_candidates, of_model.n_queries)
        found = _checks_of_model(model, day, frames, unmatched, sums[model], candidates, config)
        rows += [{"model_version": model, **row} for row in found]
    _refuse(rows, config)
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _checks_of_model(
    model: str,
    day: Day,
    frames: Frames,
    unmatched: Unmatched,
    sums: quality.Sums,
    candidates: quality.Candidates,
    config: EvalConfig,
) -> Iterator[Mapping[str, Any]]:
    name = "impressions" if model in day.served else "scores"
    counts = _counts(model, day)
    yield from quality.of_input(name, counts)
    yield from quality.of_queries(sums, labels=config.labels, ks=config.ks, candidates=candidates)
    if frames.served is None or model not in day.served:
        yield _of_unlabelled(unmatched.unlabelled.get(model), counts["usable"])
    if config.tie_diagnostics:
        yield from quality.of_ties(sums, labels=config.labels, ks=config.ks)
    for other in _without_models(day):
        yield from quality.of_input(other, day.audits[other][None])
    yield from unmatched.orphans


def _counts(model: str, day: Day) -> Mapping[str, int]:
    return day.audits["impressions" if model in day.served else "scores"][day.models[model]]


def _usable(counts: Mapping[str, int], unlabelled: Row | None, config: EvalConfig) -> int | None:
    """Candidate rows of evaluated queries; None where the candidates are not all counted."""
    rules = config.rules
    if rules.depth or rules.unjudged == "drop" or rules.duplicates == "keep":
        return None
    dropped = sum(
        counts[name]
        for name, place in (("null_score", rules.null_scores), ("nan_score", rules.nan_scores))
        if place == "drop"
    )
    return counts["usable"] - dropped - (unlabelled["n_rows"] if unlabelled else 0)


def _of_unlabelled(found: Row | None, n_rows: int) -> dict[str, Any]:
    return quality.check("queries.unlabelled", found["n_queries"] if found else 0, n_rows)


def _unlabelled(frames: Frames) -> dict[str, Row]:
    """For each listed model, its candidates of queries that nobody asked or judged, if any."""
    if frames.listed is None:
        return {}
    queries = (
        frames.listed.groupBy("model_version", *QUERY)
        .agg(F.count(F.lit(1)).alias("n_rows"))
        .join(frames.base.select(*QUERY).distinct(), on=[*QUERY], how="left_anti")
    )
    found = queries.groupBy("model_version").agg(
        F.count(F.lit(1)).alias("n_queries"), F.sum("n_rows").alias("n_rows")
    )
    return {row["model_version"]: row for row in found.collect()}


def _refuse(rows: Sequence[Mapping[str, Any]], config: EvalConfig) -> None:
    """Raises ContractError with everything that a rule takes for an error."""
    rules = config.rules
    refused: dict[str, tuple[str, str]] = {
        "queries.without_candidates": ("missing_in_run", rules.missing_in_run),
        "queries.unlabelled": ("missing_in_truth", rules.missing_in_truth),
        **{
            f"queries.without_relevant.{label}": ("no_relevant", rules.no_relevant)
            for label in config.labels
        },
    }
    problems = [
        f"{row['model_version']}: {row['name']}: found {row['value']:,.0f} of {row['n_rows']:,},"
        f" expected none (rules.{refused[row['name']][0]} = 'error')"
        for row in rows
        if row["value"] and refused.get(row["name"], ("", ""))[1] == "error"
    ]
    if problems:
        raise ContractError(problems)


def refuse_duplicates(frames: Frames) -> None:
    """Raises ContractError with examples where a model lists an item twice for a query."""
    keys = ["model_version", "query_id", "item_id"]
    candidates = [rows.select(*keys) for rows in (frames.served, frames.listed) if rows is not None]
    counts = reduce(DataFrame.unionByName, candidates).groupBy(*keys).count()
    found = counts.where(F.col("count") > 1).orderBy(*keys).limit(MAX_EXAMPLES).collect()
    if found:
        raise ContractError(
            [
                f"{row['model_version']}: item {row['item_id']!r} stands {row['count']} times for"
                f" query {row['query_id']!r}, expected once (rules.duplicates = 'error')"
                for row in found
            ]
        )


MAX_EXAMPLES = 10

_SCHEMA = pa.schema(
    [
        ("model_version", pa.string()),
        ("name", pa.string()),
        ("value", pa.float64()),
        ("n_rows", pa.int64()),
        ("limit", pa.float64()),
        ("status", pa.string()),
    ]
)


def _without_models(day: Day) -> list[str]:
    return [
        name
        for name, audit in day.audits.items()
        if None in audit and name not in ("impressions", "scores")
    ]


def _orphans(day: Day, frames: Frames, queries: DataFrame | None) -> list[dict[str, Any]]:
    """Events of queries (or deliveries) that are not in the day's log.

    Known only where the run has every model of the log, and the events say which day is theirs.
    """
    if not day.every_model or frames.served is None:
        return []
    dated = {name: rows for name, rows in frames.events.items() if "event_date" in rows.columns}
    unmatched = [_unmatched(name, rows, frames, queries) for name, rows in dated.items()]
    if not unmatched:
        return []
    counts = reduce(DataFrame.unionByName, unmatched).groupBy("name").count().collect()
    found = {row["name"]: row["count"] for row in counts}
    return [
        quality.check(f"{name}.orphans", found.get(name, 0), day.count(name, "usable"))
        for name in dated
    ]


def _unmatched(
    name: str, events: DataFrame, frames: Frames, queries: DataFrame | None
) -> DataFrame:
    """One row per event without a query (or delivery) in the log: the input's name."""
    key = "query_id" if "query_id" in events.columns else "impression_id"
    if key == "impression_id" and frames.impressions is not None:
        log = frames.impressions
    else:
        log = frames.asked_among(events) if queries is None else queries
    orphans = events.join(log.select(key), on=[key], how="left_anti")
    return orphans.select(F.lit(name).alias("name"))
