"""The rows of the table metrics, from those of metric_sums."""

from collections.abc import Collection, Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklake.estimate.jackknife import Array, is_rounding, student_t
from ranklake.estimate.series import MIN_CLUSTERS, MIN_NONZERO, SeriesSums, series_of
from ranklake.metrics import Measure


def estimated(
    metric_sums: pa.Table,
    *,
    confidence: float,
    derived: Sequence[Measure] = (),
    window_days: int = 1,
) -> pa.Table:
    """One row per series of metric_sums, as in the table metrics, over so many days.

    Measures that are made of the sums of others (`derived`) follow; their den is that of recall.
    std_err and the interval are null, and status is insufficient, with fewer than 30 buckets, with
    fewer than 10 queries above zero, without any variance, or where one bucket is all there is.
    """
    series = series_of(metric_sums, derived=derived)
    found, enough = series.estimates, is_enough(series)
    half = student_t(found.n_clusters, 1 - confidence) * found.std_err
    n_rows = len(series.keys)
    columns = {
        "window_days": np.full(n_rows, window_days, dtype=np.int32),
        "value": nullable(found.value, np.isfinite(found.value)),
        "std_err": nullable(found.std_err, enough),
        "ci_low": nullable(np.maximum(found.value - half, 0.0), enough),
        "ci_high": nullable(np.minimum(found.value + half, series.uppers), enough),
        "num": series.num.sum(axis=1),
        "den": series.den.sum(axis=1),
        "n_queries": series.counts.queries,
        "n_defined": series.counts.defined,
        "n_clusters": found.n_clusters.astype(np.int32),
        "status": pa.array(np.where(enough, "ok", "insufficient"), pa.string()),
        "is_mature": pa.nulls(n_rows, pa.bool_()),
        "label_as_of": pa.nulls(n_rows, pa.timestamp("us", tz="UTC")),
    }
    table = series.keys
    for name, values in columns.items():
        table = table.append_column(
            name, values if isinstance(values, pa.Array) else pa.array(values)
        )
    return table


def is_enough(series: SeriesSums) -> npt.NDArray[np.bool_]:
    """Whether there is enough of a series for an interval."""
    found = series.estimates
    return (
        (found.n_clusters >= MIN_CLUSTERS)
        & (series.counts.nonzero >= MIN_NONZERO)
        & np.isfinite(found.std_err)
        & ~is_rounding(found.std_err, found.value)
    )


def all_mature(ages: Collection[bool | None]) -> bool | None:
    """True where all labels of all parts could have happened, False where not; None: unknown."""
    if False in ages:
        return False
    return None if None in ages else True


def with_maturity(
    metrics: pa.Table, *, label_as_of: datetime | None, is_mature: bool | None
) -> pa.Table:
    """The rows of `estimated`, which say by when their labels were known, and if all could be."""
    for name, value in (("is_mature", is_mature), ("label_as_of", label_as_of)):
        place = metrics.schema.get_field_index(name)
        field = metrics.schema.field(place)
        metrics = metrics.set_column(place, field, pa.array([value] * len(metrics), field.type))
    return metrics


def nullable(values: Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """The values where they are valid, else null."""
    return pa.array(values, mask=~valid, type=pa.float64())
