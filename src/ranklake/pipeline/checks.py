"""What the run found on its way → the rows of the table quality."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from ranklake import quality, traffic
from ranklake.config import EvalConfig
from ranklake.errors import ContractError
from ranklake.pipeline.frames import Frames
from ranklake.pipeline.inputs import Day
from ranklake.pipeline.too_large import TooLarge, too_large_of
from ranklake.schemas import QUERY
from ranklake.together import together


class Unmatched(NamedTuple):
    """What stands in one input and not in another.

    events      checks of clicks and conversions: how many count, and why others do not
    unlabelled  for each listed model, candidates of queries that nobody asked or judged
    removed     invalid traffic: for each model its queries and distinct candidates, and the
                queries that each rule removes
    """

    events: Sequence[Mapping[str, Any]]
    unlabelled: Mapping[str, Row]
    removed: "Removed"


def unmatched_of(
    day: Day, frames: Frames, *, events: Sequence[Mapping[str, Any]] | None = None
) -> Unmatched:
    """What the day's inputs have that matches nothing: a small job or two.

    `events` are the checks of events_of, where they are known.
    """
    of_events = events_of(day, frames) if events is None else events
    return Unmatched(of_events, _unlabelled(frames), _removed(frames))


class Removed(NamedTuple):
    """Counts of invalid traffic: rows of (n_queries, n_candidates) by model; queries by rule."""

    of_model: Mapping[str, Row]
    by_rule: Mapping[str, int]
    is_looked_for: bool = True


def _removed(frames: Frames) -> Removed:
    if frames.removed is None:
        return Removed({}, {}, is_looked_for=False)
    candidates = frames.removed.candidates.distinct().groupBy("model_version", "query_id").count()
    of_model = candidates.groupBy("model_version").agg(
        F.count(F.lit(1)).alias("n_queries"), F.sum("count").alias("n_candidates")
    )
    by_rule = frames.removed.broken.groupBy("rule").count()
    models, rules = together(of_model.collect, by_rule.collect)
    return Removed(
        {row["model_version"]: row for row in models}, {row["rule"]: row["count"] for row in rules}
    )


def checks_of(
    day: Day, frames: Frames, unmatched: Unmatched, bucket_sums: pa.Table, config: EvalConfig
) -> pa.Table:
    """One row per (model, check), without event_date and run_id.

    Findings of an input without models stand with every model of the run.
    """
    sums = {model: quality.Sums.of(bucket_sums, model=model) for model in day.models}
    candidates = {model: _candidates(model, day, unmatched, config) for model in day.models}
    unaccounted = {
        model: None
        if found.n_rows is None
        else found.n_rows - found.n_removed - int(sums[model].total("n_candidates"))
        for model, found in candidates.items()
    }
    left_out = too_large_of(frames, unaccounted, config)
    rows: list[dict[str, Any]] = []
    for model in day.models:
        of_model = left_out.get(model, TooLarge())
        known = replace(
            candidates[model], n_too_many=of_model.n_candidates, n_queries=of_model.n_queries
        )
        found = _checks_of_model(model, day, frames, unmatched, sums[model], known, config)
        rows += [{"model_version": model, **row} for row in found]
    _refuse(rows, config)
    return table_of(rows)


def checks_of_inputs(day: Day) -> list[dict[str, Any]]:
    """The checks that the audit alone tells: the rows of each model, and of the other inputs."""
    rows: list[dict[str, Any]] = []
    for model in day.models:
        counts = counts_of(model, day)
        found = [*quality.of_input(input_of(model, day), counts)]
        found += quality.at_the_door(input_of(model, day), counts)
        for other in _without_models(day):
            found += quality.of_input(other, day.audits[other][None])
        rows += [{"model_version": model, **row} for row in found]
    return rows


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The checks, each with its model_version, as a table."""
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
    name, counts = input_of(model, day), counts_of(model, day)
    kept = int(sums.total("n_candidates"))
    yield from quality.of_input(name, counts)
    yield from quality.of_candidates(name, counts, candidates, kept=kept)
    yield from quality.of_queries(sums, labels=config.labels, ks=config.ks, candidates=candidates)
    if frames.served is None or model not in day.served:
        yield _of_unlabelled(unmatched.unlabelled.get(model), counts["usable"])
    if config.tie_diagnostics:
        yield from quality.of_ties(sums, labels=config.labels, ks=config.ks)
    for other in _without_models(day):
        yield from quality.of_input(other, day.audits[other][None])
    yield from unmatched.events
    if unmatched.removed.is_looked_for:
        yield from _of_removed(unmatched.removed, model, sums.n_queries)


def _of_removed(removed: Removed, model: str, n_kept: int) -> Iterator[dict[str, Any]]:
    found = removed.of_model.get(model)
    n_queries = found["n_queries"] if found else 0
    yield quality.check("queries.invalid_traffic", n_queries, n_kept + n_queries)
    n_removed = sum(row["n_queries"] for row in removed.of_model.values())
    for rule in traffic.RULES:
        yield quality.check(f"traffic.{rule}", removed.by_rule.get(rule, 0), n_removed)


def input_of(model: str, day: Day) -> str:
    """The input that has the model's candidates."""
    return "impressions" if model in day.served else "scores"


def counts_of(model: str, day: Day) -> Mapping[str, int]:
    """What the audit counted of the model's candidates."""
    return day.audits[input_of(model, day)][day.models[model]]


def _candidates(
    model: str, day: Day, unmatched: Unmatched, config: EvalConfig
) -> quality.Candidates:
    """The model's candidate rows, as far as they are told without its queries."""
    rules = config.rules
    if rules.depth or rules.unjudged == "drop" or rules.duplicates == "keep":
        return quality.Candidates(None)
    counts = counts_of(model, day)
    places = {"usable_null_score": rules.null_scores, "usable_nan_score": rules.nan_scores}
    n_unscored = sum(counts.get(name, 0) for name, place in places.items() if place == "drop")
    unlabelled, removed = unmatched.unlabelled.get(model), unmatched.removed.of_model.get(model)
    n_unlabelled = unlabelled["n_rows"] if unlabelled else 0
    return quality.Candidates(
        n_rows=counts["usable"] - n_unscored - n_unlabelled,
        n_unscored=n_unscored,
        n_unlabelled=n_unlabelled,
        n_removed=removed["n_candidates"] if removed else 0,
    )


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


def events_of(day: Day, frames: Frames) -> list[dict[str, Any]]:
    """One check per reason for which clicks and conversions do not count: one job for all."""
    reasons = [
        told.rows.select(F.lit(name).alias("name"), "reason")
        for name, told in frames.events.items()
    ]
    if not reasons:
        return []
    counts = reduce(DataFrame.unionByName, reasons).groupBy("name", "reason").count().collect()
    checks = []
    for name, told in frames.events.items():
        found = {row["reason"]: row["count"] for row in counts if row["name"] == name}
        by_reason = {reason: found.get(reason, 0) for reason in (None, *told.reasons)}
        checks += quality.of_events(name, day.audits[name][None], by_reason)
    return checks
