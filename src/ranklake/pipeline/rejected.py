"""Samples of the rows that do not count, for the table rejected: lazy, and only where asked for."""

from collections.abc import Collection, Iterator, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ranklake import clean
from ranklake.config import EvalConfig
from ranklake.pipeline.frames import Frames
from ranklake.pipeline.inputs import Day
from ranklake.pipeline.reading import keys_of

_KEYS = ("query_id", "item_id", "impression_id", "user_id")
_TIMES = {"impressions": "event_ts", "clicks": "click_ts", "conversions": "conversion_ts"}


def rejected_of(day: Day, frames: Frames, config: EvalConfig) -> DataFrame:
    """Rows of the table rejected without event_date and run_id, at most `samples` of each reason.

    Which ones depends on their keys alone. Rows of an input without models stand with every model.
    """
    found: list[DataFrame] = [
        *_at_the_door(day, config),
        *_of_events(frames),
        *_of_candidates(frames, day.models),
    ]
    rows = reduce(lambda one, other: one.unionByName(other), found)
    keys = [_key(name, config) for name in _KEYS]
    by_chance = F.xxhash64(*_KEYS, "happened_at")
    of_reason = Window.partitionBy("input", "reason", "model_version").orderBy(by_chance, *_KEYS)
    sampled = rows.withColumn("place", F.row_number().over(of_reason)).where(
        F.col("place") <= config.rejected.samples
    )
    every_model = F.array(*[F.lit(model) for model in day.models])
    models = F.when(F.col("model_version").isNull(), every_model).otherwise(
        F.array("model_version")
    )
    told = sampled.select(
        F.explode(models).alias("model_version"),
        *("input", "reason"),
        *keys,
        *("happened_at", "ingest_ts"),
    )
    return told.where(F.col("model_version").isin([*day.models]))


def _key(name: str, config: EvalConfig) -> Column:
    value = F.sha2(F.col(name), 256) if config.rejected.keys == "hashed" else F.col(name)
    return value.alias(name)


def _rows(name: str, rows: DataFrame, models: Mapping[str, str]) -> DataFrame:
    """The rows as rejected has them; `models` are published names by those of the input."""
    none = {key: F.lit(None).cast("string") for key in _KEYS}
    columns = {key: F.col(key) if key in rows.columns else none[key] for key in _KEYS}
    model = F.lit(None).cast("string")
    if "model_version" in rows.columns:
        for raw, published in models.items():
            model = F.when(F.col("model_version") == raw, F.lit(published)).otherwise(model)
    return rows.select(
        model.alias("model_version"),
        F.lit(name).alias("input"),
        "reason",
        *[value.alias(key) for key, value in columns.items()],
        _time(rows, _TIMES.get(name, "")).alias("happened_at"),
        _time(rows, "ingest_ts").alias("ingest_ts"),
    )


def _time(rows: DataFrame, name: str) -> Column:
    return F.col(name) if name in rows.columns else F.lit(None).cast("timestamp")


def _at_the_door(day: Day, config: EvalConfig) -> Iterator[DataFrame]:
    """The rows that no input passes on: those left out, and those without their keys."""
    shown = day.rows["impressions"].columns if "impressions" in day.rows else ()
    models = {raw: published for published, raw in day.models.items()}
    for name, rows in day.rows.items():
        keys = keys_of(name, config, impressions=shown)
        told = clean.told(rows, keys=keys, unknown_users=config.unknown_users)
        yield _rows(name, told.where("reason IS NOT NULL"), models)


def _of_events(frames: Frames) -> Iterator[DataFrame]:
    for name, told in frames.events.items():
        yield _rows(name, told.rows.where("reason IS NOT NULL"), {})


def _of_candidates(frames: Frames, models: Collection[str]) -> Iterator[DataFrame]:
    """The candidates that do not count: one row an item, of all models."""
    same = {model: model for model in models}
    for name, rows in (("impressions", frames.served), ("scores", frames.listed)):
        if rows is None:
            continue
        items = rows.select("model_version", "query_id", "item_id")
        if not frames.config.unique_key:
            copies = items.groupBy(*items.columns).count().where("count > 1").drop("count")
            yield _rows(name, copies.withColumn("reason", F.lit("redelivered")), same)
    if frames.removed is not None:
        removed = frames.removed.candidates.withColumn("reason", F.lit("invalid_traffic"))
        yield _rows("impressions", removed, same)
