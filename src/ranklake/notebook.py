"""`from ranklake import evaluate`: the job on DataFrames that are at hand."""

from collections.abc import Mapping
from datetime import date, datetime
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake import pipeline, read
from ranklake.config import EvalConfig, Inputs, of_values, with_preset
from ranklake.engine import warn_unless_running
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
    invalid_traffic: DataFrame | None = None,
    day: date | None = None,
    label_as_of: datetime | None = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    nested: Mapping[str, str] | None = None,
    model_version: str = "model",
    preset: str | None = None,
    **options: Any,
) -> Evaluation:
    """Ranks and measures the frames' rows, as the job does; publishes nothing.

    One row of each frame is what docs/reference.md says of the input of that name; `columns` maps
    names, by input: {"impressions": {"query_id": "request_id", "score": "bid * pctr"}}. `nested`
    names the array of candidates where a row is a query: {"impressions": "ads"}. Without `day` all
    rows are of one. Labels that the log had after `label_as_of` do not count. Impressions without a
    model_version are `model_version`'s. `options` are keys of the configuration: ks=[5, 10],
    labels=["click"]; with `measures` alone, such as ["AP"], no other metric is measured. `preset`
    names the evaluator to agree with (docs/parity.md).

    The result has metrics, metric_sums and quality as Arrow tables (docs/reference.md says what one
    row is), and per_query(), a lazy DataFrame.

    Raises ConfigError for an option, ContractError for a frame that does not fit.
    """
    given = (impressions, clicks, conversions, scores, judgments, invalid_traffic)
    frames = _given_frames(dict(zip(Inputs.model_fields, given, strict=True)))
    config = of_values(_values({"candidates": _candidates(frames), **options}, preset))
    told = partial(evaluate_with, config, frames, day=day, label_as_of=label_as_of)
    return told(columns=columns, nested=nested, model_version=model_version)


def _given_frames(given: Mapping[str, Any]) -> dict[str, DataFrame]:
    """Those that are given. Raises ConfigError for none, and for frames that are not Spark's."""
    frames = {name: rows for name, rows in given.items() if rows is not None}
    if not frames:
        raise ConfigError("evaluate: give impressions, or scores and judgments")
    problems = [
        f"{name}: found a {type(rows).__module__}.{type(rows).__name__}, expected a DataFrame of"
        " Spark, such as spark.createDataFrame(...)"
        for name, rows in frames.items()
        if not hasattr(rows, "sparkSession")
    ]
    if problems:
        raise ConfigError(problems)
    return frames


def evaluate_with(
    config: EvalConfig,
    frames: Mapping[str, DataFrame],
    *,
    day: date | None = None,
    label_as_of: datetime | None = None,
    columns: Mapping[str, Mapping[str, str]] | None = None,
    nested: Mapping[str, str] | None = None,
    model_version: str = "model",
) -> Evaluation:
    """As `evaluate`, with a configuration that is ready; `frames` by the name of their input."""
    for name in {*(nested or {})} - {"impressions", "scores"}:
        raise ConfigError(f"nested: found {name!r}, expected impressions or scores")
    completed = _completed(frames, day, model_version)
    mapping = {name: _mapped(of_input, day) for name, of_input in (columns or {}).items()}
    sources = _sources(completed, mapping, nested or {}, config)
    spark = next(iter(frames.values())).sparkSession
    warn_unless_running(spark, config.engine)
    return pipeline.evaluate(
        spark, config, day or _ANY_DAY, label_as_of=label_as_of, sources=sources
    )


def _values(given: Mapping[str, Any], preset: str | None) -> dict[str, Any]:
    values = {"metrics": [], **given} if "measures" in given else dict(given)
    if preset is None:
        return values
    of_values(values)  # says what is wrong with the options as they were given
    return with_preset(values, preset)


def _sources(
    frames: Mapping[str, DataFrame],
    columns: Mapping[str, Mapping[str, str]],
    nested: Mapping[str, str],
    config: EvalConfig,
) -> dict[str, read.Source]:
    return {
        name: read.mapped(
            name,
            rows,
            columns=columns.get(name, {}),
            candidates=nested.get(name),
            slices=config.slices.columns,
        )
        for name, rows in frames.items()
    }


def _mapped(columns: Mapping[str, str], day: date | None) -> dict[str, str]:
    """The mapping; without a day it says nothing of dates, since all rows are of one."""
    return {name: of for name, of in columns.items() if day is not None or name != "event_date"}


def _candidates(frames: Mapping[str, DataFrame]) -> list[str]:
    kinds = {"impressions": "served", "scores": "scored"}
    return [kind for name, kind in kinds.items() if name in frames]


def _completed(
    frames: Mapping[str, DataFrame], day: date | None, model_version: str
) -> dict[str, DataFrame]:
    """The frames with what they need not say: the one day that they are of, and the one model."""
    completed = dict(frames)
    if day is None:
        for name, rows in frames.items():
            completed[name] = rows.withColumn("event_date", F.lit(_ANY_DAY))
    shown = completed.get("impressions")
    if shown is not None and "model_version" not in shown.columns:
        completed["impressions"] = shown.withColumn("model_version", F.lit(model_version))
    return completed


def spark_lake(spark: SparkSession, catalog_schema: str, *, prefix: str = "") -> read.SparkTables:
    """The published tables in a catalog, for `compare` and `gate`: read by Spark into Arrow.

    Raises ConfigError for a name that is none.
    """
    place = {"catalog_schema": catalog_schema, "prefix": prefix}
    return read.SparkTables(spark, of_values({"lake": place}).lake)
