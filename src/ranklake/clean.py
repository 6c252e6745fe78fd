"""Dirt out, every row counted by reason: what enters is conformed, what leaves can be ranked."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.schemas import IS_CANDIDATE, IS_WANTED, ITEM, ROW_LABELS

Keys = Sequence[Sequence[str]]
"""The sets of columns of which a row needs one: with all of its columns it can be used."""


def audited(
    rows: DataFrame,
    *,
    keys: Keys = (ITEM,),
    unknown_users: Sequence[str] = (),
    rank_by: str = "score",
    is_probability: bool = False,
) -> DataFrame:
    """One row per model_version (null where the input has none): counts of rows, by finding.

    n_rows counts every row; left_out those that `where` leaves out; every other count is of the
    rest. usable are those that cleaned keeps, which have all of one of the `keys`; the dirt
    overlaps where a row has two kinds of it.
    Of nested input, empty are the queries without any candidate, null_candidate the nulls among
    candidates: each counts as a row, and has no other dirt.
    """
    has = set(rows.columns)
    wanted, findings = _wanted(has)
    findings |= {
        **{f"no_{key}": wanted & _is_empty(key) for key in ITEM if key in has},
        "usable": wanted & _is_usable(keys, has, unknown_users),
    }
    if "score" in has:
        usable = findings["usable"]
        findings["usable_null_score"] = usable & F.col("score").isNull()
        findings["usable_nan_score"] = usable & F.isnan("score")
        findings["null_score"] = wanted & F.col("score").isNull()
        findings["nan_score"] = wanted & F.isnan("score")
        if is_probability:
            findings["no_probability"] = wanted & ~F.col("score").between(0.0, 1.0)
    if "position" in has and rank_by == "position":
        findings["null_position"] = wanted & F.col("position").isNull()
    if "user_id" in has:
        findings["unknown_user"] = wanted & _is_unknown_user(unknown_users)
    findings |= _of_values(has, wanted)
    counts = [F.count_if(condition).alias(name) for name, condition in findings.items()]
    model = F.col("model_version") if "model_version" in has else F.lit(None).cast("string")
    return rows.groupBy(model.alias("model_version")).agg(
        F.count(F.lit(1)).alias("n_rows"), *counts
    )


def with_invalid_keys(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of `audited`, with those of the rows that have none of the keys: invalid_keys."""
    others = ("left_out", "empty", "null_candidate", "usable")
    return {**counts, "invalid_keys": counts["n_rows"] - sum(counts.get(n, 0) for n in others)}


def _wanted(has: Collection[str]) -> tuple[Column, dict[str, Column]]:
    """Which rows are looked at, and why others are not."""
    wanted = F.col(IS_WANTED)
    if IS_CANDIDATE not in has:
        return wanted, {"left_out": ~wanted}
    is_candidate = F.col(IS_CANDIDATE)
    return wanted & F.coalesce(is_candidate, F.lit(False)), {
        "left_out": ~wanted,
        "empty": wanted & is_candidate.isNull(),
        "null_candidate": wanted & ~is_candidate,
    }


def _of_values(has: Collection[str], wanted: Column) -> dict[str, Column]:
    """The findings in values of the query and labels on the row."""
    findings: dict[str, Column] = {}
    for column in set(has).intersection(_OF_QUERY):
        findings[f"bad_{column}"] = wanted & F.col(column).isNotNull() & ~_OF_QUERY[column]()
    for column in set(has).intersection(ROW_LABELS):
        if column == "gain":
            findings["negative_gain"] = wanted & _is_finite(column) & (F.col(column) < 0)
        findings[f"bad_{column}"] = wanted & F.col(column).isNotNull() & ~_is_finite(column)
        findings[f"labelled_{column}"] = wanted & _is_finite(column) & (F.col(column) > 0)
    return findings


def told(rows: DataFrame, *, keys: Keys, unknown_users: Sequence[str] = ()) -> DataFrame:
    """The rows with `reason`: why one is not kept by `cleaned`, as it is counted, or null."""
    wanted, reasons = _wanted(set(rows.columns))
    reasons["invalid_keys"] = wanted & ~_is_usable(keys, rows.columns, unknown_users)
    reason = F.lit(None).cast("string")
    for name, condition in reasons.items():
        reason = F.when(condition, F.lit(name)).otherwise(reason)
    return rows.withColumn("reason", reason)


@dataclass(frozen=True)
class Scores:
    """Where candidates without a score go: last, first, or drop. `is_float`: scores are floats."""

    nan: str = "last"
    null: str = "last"
    is_float: bool = False


def cleaned(
    rows: DataFrame,
    *,
    keys: Keys = (ITEM,),
    unknown_users: Sequence[str] = (),
    scores: Scores | None = None,
    is_found: Callable[[str], bool] = lambda finding: True,
) -> DataFrame:
    """The rows that `where` keeps and that have all of one of the `keys`.

    A score that is none is null where it goes last, NaN where it goes first: Spark orders NaN above
    every number. A label that is no number or infinite is null, and so are a weight below 0 and an
    n_slots below 1; user_id is null for unknown users. `is_found` says which findings of `audited`
    the rows have: looking for dirt that is not there would cost, at every row.
    """
    if is_found("left_out") or is_found("invalid_keys"):
        rows = rows.where(F.col(IS_WANTED) & _is_usable(keys, rows.columns, unknown_users))
    if IS_CANDIDATE in rows.columns and (is_found("empty") or is_found("null_candidate")):
        rows = rows.where(IS_CANDIDATE)
    kept = rows.drop(IS_WANTED, IS_CANDIDATE)
    changes = {}
    if "score" in kept.columns:
        rule = scores or Scores()
        kept = kept.transform(_without_dropped, scores=rule)
        if is_found("nan_score") or is_found("null_score") or rule.is_float:
            changes["score"] = _placed(rule)
    for column in set(kept.columns).intersection(ROW_LABELS):
        if is_found(f"bad_{column}"):
            changes[column] = F.when(_is_finite(column), F.col(column))
    for column in set(kept.columns).intersection(_OF_QUERY):
        if is_found(f"bad_{column}"):
            changes[column] = F.when(_OF_QUERY[column](), F.col(column))
    if "user_id" in kept.columns and is_found("unknown_user"):
        changes["user_id"] = F.when(~_is_unknown_user(unknown_users), F.col("user_id"))
    return kept.withColumns(changes) if changes else kept


def _is_weight() -> Column:
    return _is_finite("weight") & (F.col("weight") >= 0)


_OF_QUERY: Mapping[str, Callable[[], Column]] = MappingProxyType(
    {"weight": _is_weight, "n_slots": lambda: F.col("n_slots") >= 1}
)
"""Whether a value of the query is one that can be."""


def _without_dropped(rows: DataFrame, *, scores: Scores) -> DataFrame:
    if scores.nan == "drop":
        rows = rows.where(~F.coalesce(F.isnan("score"), F.lit(False)))
    return rows.where(F.col("score").isNotNull()) if scores.null == "drop" else rows


def _placed(scores: Scores) -> Column:
    places = {"first": F.lit(math.nan), "last": F.lit(None).cast("double")}
    value = F.col("score").cast("float").cast("double") if scores.is_float else F.col("score")
    return (
        F.when(F.isnan("score"), places.get(scores.nan, places["last"]))
        .when(F.col("score").isNull(), places.get(scores.null, places["last"]))
        .otherwise(value)
    )


def _is_empty(key: str) -> Column:
    """Whether the key is null or an empty string: it names nothing."""
    return F.coalesce(F.col(key) == "", F.lit(True))


def _is_finite(column: str) -> Column:
    """Whether the value is a number that can be added up, below 1e100; null for null."""
    return ~F.isnan(column) & (F.abs(column) < F.lit(1e100))


def _is_unknown_user(unknown_users: Sequence[str]) -> Column:
    """Whether user_id is null or one of the configured names of nobody."""
    return F.col("user_id").isNull() | F.col("user_id").isin(list(unknown_users))


def _is_usable(keys: Keys, columns: Collection[str], unknown_users: Sequence[str]) -> Column:
    """Whether the row has all of one of the keys, as far as its input has them."""
    there = [[name for name in key if name in columns] for key in keys]
    usable = F.lit(not any(there))
    for key in filter(None, there):
        has_all = F.lit(True)
        for name in key:
            has_all = has_all & _is_there(name, unknown_users)
        usable = usable | has_all
    return usable


def _is_there(name: str, unknown_users: Sequence[str]) -> Column:
    if name == "conversion_ts":
        return F.col(name).isNotNull()
    is_known = ~_is_unknown_user(unknown_users) if name == "user_id" else F.lit(True)
    return ~_is_empty(name) & is_known
