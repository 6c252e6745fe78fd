"""Sums by the clusters of items: what ctr and cvr have beside those by the clusters of users."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.aggregate.names import hits_column, shown_column
from ranklake.aggregate.slices import bucket_of
from ranklake.metrics import CLICK, NO_CUTOFF, SHOWN, Denominator, Measure
from ranklake.schemas import BY_ITEMS

Array = npt.NDArray[Any]
BY_ITEM, BY_BOTH = "item", "both"
"""Clusters of items; and of the pairs of users and items, which both have in common."""
_KEYS = ("model_version", "slice", "slice_value", "clusters", "bucket")
_FINE_KEYS = ("model_version", "slice_id", "bucket", "item_bucket")


def item_sums(
    placed: DataFrame,
    *,
    gains: Mapping[str, str],
    measures: Sequence[Measure],
    n_buckets: int,
    dictionary: DataFrame,
) -> DataFrame:
    """One row per (model, slice, slice_value, clusters, bucket): items shown, and hits by label.

    `placed` holds one row per candidate, `gains` each label's column there, `dictionary` one row
    per slice_id and slice that it is in.
    """
    sums = _sums(gains, {measure.k for measure in measures})
    fine = placed.groupBy(*_FINE_KEYS).agg(*[sum_.alias(name) for name, sum_ in sums.items()])
    pair = bucket_of(F.col("bucket"), F.col("item_bucket"), n_buckets=n_buckets)
    each = {BY_ITEM: F.col("item_bucket"), BY_BOTH: pair}
    structs = [
        F.struct(F.lit(clusters).alias("clusters"), bucket.alias("bucket"))
        for clusters, bucket in each.items()
    ]
    totals = [F.sum(name).alias(name) for name in sums]
    return (
        fine.withColumn("each", F.explode(F.array(*structs)))
        .groupBy("model_version", "slice_id", "each.clusters", "each.bucket")
        .agg(*totals)
        .join(F.broadcast(dictionary), on=["slice_id"], how="inner")
        .groupBy(*_KEYS)
        .agg(*totals)
    )


def _sums(gains: Mapping[str, str], ks: set[int]) -> dict[str, Column]:
    sums = {}
    for k in sorted(ks):
        sums[shown_column(k)] = F.count_if(_within(k))
        for label, gain in gains.items():
            sums[hits_column(label, k)] = F.count_if(_within(k) & (F.col(gain) > 0))
    return {name: sum_.cast("double") for name, sum_ in sums.items()}


def _within(k: int) -> Column:
    if k == NO_CUTOFF:
        return F.lit(True)
    return F.col("rank") <= (F.coalesce("n_slots", "rank") if k == SHOWN else F.lit(k))


def beside(
    metric_sums: pa.Table, sums: pa.Table | None, *, measures: Sequence[Measure], n_buckets: int
) -> pa.Table:
    """The rows of metric_sums with the columns by items, from the rows of `item_sums`.

    They are null for other metrics than `measures`, and without such sums.
    """
    arrays = {} if sums is None else _arrays(sums, n_buckets)
    wanted = {} if sums is None else {(m.metric.name, m.variant, m.k): m for m in measures}
    names = [name for pair in BY_ITEMS for name in pair]
    lists: list[Sequence[Array | None]] = []
    for key in metric_sums.select(_SERIES).to_pylist():
        measure = wanted.get((key["metric"], key["variant"], key["k"]))
        place = (key["model_version"], key["slice"], key["slice_value"])
        lists.append(
            [
                arrays.get((*place, clusters), {}).get(name, np.zeros(n_buckets))
                for clusters in (BY_ITEM, BY_BOTH)
                for name in (hits_column(key["label"], measure.k), _denominator(measure))
            ]
            if measure
            else [None] * len(names)
        )
    for at, name in enumerate(names):
        column = pa.array([of_row[at] for of_row in lists], pa.list_(pa.float64()))
        metric_sums = metric_sums.append_column(name, column)
    return metric_sums


_SERIES = ["model_version", "slice", "slice_value", "label", "metric", "variant", "k"]


def _denominator(measure: Measure) -> str:
    is_shown = measure.metric.denominator is Denominator.SHOWN
    return shown_column(measure.k) if is_shown else hits_column(CLICK, measure.k)


def _arrays(sums: pa.Table, n_buckets: int) -> dict[tuple[str, ...], dict[str, Array]]:
    """For each model, slice, slice value and clustering its sums, as arrays of buckets."""
    names = [name for name in sums.column_names if name not in _KEYS]
    arrays: dict[tuple[str, ...], dict[str, Array]] = {}
    for row in sums.to_pylist():
        key = tuple(row[name] for name in _KEYS[:-1])
        of_key = arrays.setdefault(key, {name: np.zeros(n_buckets) for name in names})
        for name in names:
            of_key[name][row["bucket"]] = row[name]
    return arrays
