"""Slices and buckets: which subset and which cluster a query is in, as two numbers on its rows.

A query's slice values are folded (rare ones into __other__) and carried as one 64-bit slice_id;
a small dictionary turns it back into values. So no string enters a shuffle or an aggregate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.errors import ContractError
from ranklake.schemas import EVERY_QUERY, NO_VALUE, RARE_VALUE, SliceLists

MAX_COMBINATIONS = 100_000


@dataclass(frozen=True)
class Dictionary:
    """What a slice_id stands for.

    values       one row per slice_id: the value of each slice column
    memberships  one row per slice_id and slice: the slice's name and its value (`all` among them)
    """

    values: pa.Table
    memberships: pa.Table


def bucketed(rows: DataFrame, *, n_buckets: int) -> DataFrame:
    """The rows with bucket: the cluster of their user, or of the query alone without a user."""
    known = [F.col("user_id")] if "user_id" in rows.columns else []
    cluster = F.coalesce(*known, F.col("query_id"))
    return rows.withColumn("bucket", bucket_of(cluster, n_buckets=n_buckets))


def item_bucketed(rows: DataFrame, *, column: str, n_buckets: int) -> DataFrame:
    """The rows with item_bucket: the cluster of the item's `column`, or the item's own."""
    cluster = F.coalesce(F.col(column).cast("string"), F.col("item_id").cast("string"))
    return rows.withColumn("item_bucket", bucket_of(cluster, n_buckets=n_buckets))


def bucket_of(*cluster: Column, n_buckets: int) -> Column:
    """The bucket that a cluster is in, whatever names it."""
    return F.pmod(F.xxhash64(*cluster), F.lit(n_buckets)).cast("int")


def sliced(rows: DataFrame, *, slice_lists: SliceLists) -> DataFrame:
    """The rows with slice_id instead of their slice columns."""
    return (
        folded(rows, slice_lists=slice_lists)
        .transform(identified, slices=[*slice_lists])
        .drop(*slice_lists)
    )


def folded(rows: DataFrame, *, slice_lists: SliceLists) -> DataFrame:
    """The rows with each slice value as it is published: null and rare values under other names."""
    values = {column: _folded(column, kept) for column, kept in slice_lists.items()}
    return rows.withColumns(values) if values else rows


def identified(rows: DataFrame, *, slices: Sequence[str]) -> DataFrame:
    """The rows of folded slice values with their slice_id; it is 0 without slices."""
    slice_id = F.xxhash64(*slices) if slices else F.lit(0).cast("bigint")
    return rows.withColumn("slice_id", slice_id)


def combinations(rows: DataFrame, *, slice_lists: SliceLists) -> DataFrame:
    """One row per combination of folded slice values: the values, and their slice_id."""
    columns = [*slice_lists]
    return (
        rows.select(*columns)
        .transform(folded, slice_lists=slice_lists)
        .distinct()
        .transform(identified, slices=columns)
    )


def frequencies(rows: DataFrame, *, column: str, limit: int) -> DataFrame:
    """One row per value of the column, the most frequent first (then by value), `limit` at most."""
    value = F.col(column)
    return (
        rows.where(value.isNotNull())
        .groupBy(value.alias("value"))
        .agg(F.count(F.lit(1)).alias("n_rows"))
        .orderBy(F.col("n_rows").desc(), F.col("value"))
        .limit(limit)
    )


def dictionary(
    found: Sequence[Mapping[str, Any]], *, columns: Sequence[str], groups: Sequence[Sequence[str]]
) -> Dictionary:
    """The dictionary of the rows of `combinations`.

    Raises ContractError for a value that holds a comma and stands in a cross.
    """
    _refuse_ambiguous(found, groups)
    combined = found or [{"slice_id": 0}]
    memberships = [
        {"slice_id": row["slice_id"], "slice": name, "slice_value": value}
        for row in combined
        for name, value in [
            (EVERY_QUERY, EVERY_QUERY),
            *((",".join(group), ",".join(row[column] for column in group)) for group in groups),
        ]
    ]
    strings = [(column, pa.string()) for column in columns]
    return Dictionary(
        values=pa.Table.from_pylist(
            list(combined), schema=pa.schema([("slice_id", pa.int64()), *strings])
        ),
        memberships=pa.Table.from_pylist(memberships, schema=_MEMBERSHIPS),
    )


_MEMBERSHIPS = pa.schema(
    [("slice_id", pa.int64()), ("slice", pa.string()), ("slice_value", pa.string())]
)


def _folded(column: str, kept: tuple[str, ...] | None) -> Column:
    value = F.coalesce(F.col(column), F.lit(NO_VALUE))
    if kept is None:
        return value
    return F.when(value.isin([*kept, NO_VALUE]), value).otherwise(F.lit(RARE_VALUE))


def _refuse_ambiguous(found: Sequence[Mapping[str, Any]], groups: Sequence[Sequence[str]]) -> None:
    crossed = {column for group in groups if len(group) > 1 for column in group}
    problems = {
        f"slice {column!r}: value {row[column]!r} holds a comma, which separates the values of a"
        " cross; map the column to something else"
        for column in crossed
        for row in found
        if "," in row[column]
    }
    if problems:
        raise ContractError(sorted(problems))
