"""`from ranklake import evaluate`: the job on DataFrames that are at hand."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake import pipeline, read
from ranklake.config import of_values
from ranklake.errors import ConfigError
from ranklake.pipeline import Evaluation

_ANY_DAY = date(1970, 1, 1)


def evaluate(
    impressions: DataFrame | None = None,
    clicks: DataFrame | None = None,
    *,
    conversions: DataFrame | None = None,
    scores: DataFrame | None = None,
    judgments: DataFrame | None = None,
    day: date | None = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    model_version: str = "model",
    **options: Any,
) -> Evaluation:
    """Ranks and measures the frames' rows, as the job does; publishes nothing.

    One row of each frame is what docs/reference.md says of the input of that name; `columns` maps
    names, by input: {"impressions": {"query_id": "request_id", "score": "bid * pctr"}}. Without
    `day` all rows are taken for one day. Impressions without a model_version are `model_version`'s.
    `options` are keys of the configuration: ks=[5, 10], metrics=["recall"], labels=["click"].

    Raises ConfigError for an option, ContractError for a frame that does not fit.
    """
    given = {
        "impressions": impressions,
        "clicks": clicks,
        "conversions": conversions,
        "scores": scores,
        "judgments": judgments,
    }
    frames = {name: frame for name, frame in given.items() if frame is not None}
    if not frames:
        raise ConfigError("evaluate: give impressions, or scores and judgments")
    if "candidates" not in options:
        options["candidates"] = [
            kind
            for kind, name in (("served", "impressions"), ("scored", "scores"))
            if name in frames
        ]
    config = of_values(options)
    sources = {
        name: read.mapped(
            name,
            _dated(frame, name, day, model_version),
            columns=(columns or {}).get(name, {}),
            slices=config.slices.columns,
        )
        for name, frame in frames.items()
    }
    spark = next(iter(frames.values())).sparkSession
    return pipeline.evaluate(spark, config, day or _ANY_DAY, sources=sources)


def _dated(frame: DataFrame, name: str, day: date | None, model_version: str) -> DataFrame:
    if day is None:
        frame = frame.withColumn("event_date", F.lit(_ANY_DAY))
    if name == "impressions" and "model_version" not in frame.columns:
        frame = frame.withColumn("model_version", F.lit(model_version))
    return frame
