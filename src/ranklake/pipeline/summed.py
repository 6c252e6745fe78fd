"""Per-query rows → bucket sums on the driver → the rows of metric_sums."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from ranklake import config as configuration
from ranklake import label
from ranklake.aggregate import items, series, sums
from ranklake.aggregate.slices import Dictionary
from ranklake.config import EvalConfig
from ranklake.estimate import estimated, with_maturity
from ranklake.metrics import NO_CUTOFF
from ranklake.pipeline.frames import Frames
from ranklake.run import Run


def bucket_sums_of(
    queries: DataFrame, measured: DataFrame, config: EvalConfig, dictionary: Dictionary
) -> pa.Table:
    """The rows of sums.aggregated, collected: as many as there are buckets and slice values."""
    measures = (*config.asked, *config.diagnosed)
    ks = tuple(dict.fromkeys((*config.ks, *(m.k for m in measures if m.k != NO_CUTOFF))))
    return sums.aggregated(
        sums.query_sums(queries, ks=ks),
        sums.value_sums(measured, measures=[m for m in measures if not m.is_derived]),
        dictionary=queries.sparkSession.createDataFrame(dictionary.memberships),
    ).toArrow()


def item_sums_of(frames: Frames, config: EvalConfig, dictionary: Dictionary) -> pa.Table | None:
    """The rows of items.item_sums, collected; None where nothing is clustered by items."""
    if not config.of_items:
        return None
    placed = frames.placed()
    return items.item_sums(
        placed,
        gains={name: label.gain_column(name) for name in config.labels},
        measures=config.of_items,
        n_buckets=config.n_buckets,
        dictionary=placed.sparkSession.createDataFrame(dictionary.memberships),
    ).toArrow()


def metric_sums_of(
    bucket_sums: pa.Table,
    item_sums: pa.Table | None,
    config: EvalConfig,
    run: Run,
    *,
    served: Sequence[str],
) -> pa.Table:
    """The series of every model; `served` are those whose log this is."""
    by_users = series.metric_sums(
        bucket_sums,
        measures=config.asked,
        scope=series.Scope(
            labels=config.labels,
            served=served,
            n_buckets=config.n_buckets,
            undefined=float(config.rules.no_relevant == "one"),
        ),
        definition_hash=lambda row: configuration.definition_hash(run.definitions, row),
    )
    return items.beside(by_users, item_sums, measures=config.of_items, n_buckets=config.n_buckets)


def metrics_of(metric_sums: pa.Table, config: EvalConfig, run: Run) -> pa.Table:
    """One row per published series, without event_date and run_id: what people read."""
    metrics = estimated(metric_sums, confidence=config.confidence, derived=config.derived)
    return with_maturity(metrics, label_as_of=run.label_as_of, is_mature=run.is_mature)
