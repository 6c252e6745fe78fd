"""ranklake: its lazy plan alone (`sums`), or the whole job with all its tables (`evaluate`)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.log import DAY, MODELS
from benchmarks.measures import KS, METRICS, N_BUCKETS, SUMS, Found
from benchmarks.sparks import started
from ranklake import read, write
from ranklake.config import EvalConfig, of_values
from ranklake.pipeline import Evaluation, evaluate, frames
from ranklake.pipeline.assembled import cleaned, frames_of
from ranklake.pipeline.frames import Frames
from ranklake.pipeline.inputs import day_of
from ranklake.pipeline.publish import lake_tables
from ranklake.pipeline.sliced import slices_of
from ranklake.pipeline.summed import bucket_sums_of

CANDIDATES = {"one": "scores-of-one", "three": "scores"}
"""The input of the scored models, by how many they are."""


def prepared(options: Mapping[str, Any]) -> Callable[[], Found]:
    """Options: log, engine, unique, task (sums or evaluate), lake for evaluate, scored, settings,

    and max_broadcast_labels, to have the plan of a day with more labels than that.
    `scored` is "one" or "three": then these models' scores are the candidates. `changes` are values
    of the configuration.
    """
    spark = started(options["engine"], options.get("settings"))
    frames.MAX_BROADCAST_LABELS = options.get("max_broadcast_labels", frames.MAX_BROADCAST_LABELS)
    if options.get("task") == "evaluate":
        config = config_of(options, format="delta", lake=options["lake"])
        write.create_tables(spark, config.lake, lake_tables(config))
        return lambda: means_found(evaluate(spark, config, date.fromisoformat(DAY)))
    plan = Plan(spark, config_of(options))
    model = MODELS[0] if options.get("scored") else "m1"
    return lambda: sums_found(plan.sums(), model=model)


def config_of(
    options: Mapping[str, Any], *, format: str = "parquet", lake: str | None = None
) -> EvalConfig:
    """The evaluation of the log: 31 measures, one slice column."""
    home = Path(options["log"]) / ("delta" if format == "delta" else ".")
    inputs = {name: home / name for name in ("impressions", "clicks")}
    scored = options.get("scored")
    if scored:
        inputs["scores"] = home / CANDIDATES[scored]
    return of_values(
        {
            "ks": list(KS),
            "metrics": list(METRICS),
            "measures": ["RR"],
            "n_buckets": N_BUCKETS,
            "engine": options.get("engine", "jvm"),
            "unique_key": options.get("unique", True),
            "candidates": ["scored" if scored else "served"],
            "slices": {"columns": ["device"]},
            "inputs": {n: {"path": str(p), "format": format} for n, p in inputs.items()},
            **({"lake": {"path": lake}} if lake else {}),
            **options.get("changes", {}),
        }
    )


@dataclass(frozen=True)
class Plan:
    """The plan of an evaluation. What comes before it (audit, slices) is done once, and kept."""

    spark: SparkSession
    config: EvalConfig

    @cached_property
    def _before(self) -> tuple[Any, ...]:
        config = self.config
        sources = read.opened(self.spark, config.inputs.given(), slices=config.slices.columns)
        day = day_of(sources, config, date.fromisoformat(DAY))
        return day, *slices_of(cleaned(day.base, day, config), config, {})

    @property
    def frames(self) -> Frames:
        """The day's frames, anew."""
        day, slice_lists, _ = self._before
        return frames_of(day, self.config, slice_lists)

    def measured(self, frames: Frames) -> DataFrame:
        """One row per (model, query, label) with a relevant item."""
        return frames.measured(self.config.per_query).where(F.col("n_relevant") > 0)

    def sums(self) -> pa.Table:
        """The bucket sums, on the driver."""
        frames, dictionary = self.frames, self._before[-1]
        return bucket_sums_of(frames.queries(), self.measured(frames), self.config, dictionary)


def sums_found(sums: pa.Table, *, model: str) -> Found:
    """The sums of one model, over its buckets."""
    rows = sums.filter(pc.field("model_version") == model)
    columns = [(name, "sum") for name in SUMS]
    return {
        row["slice_value"]: {name: row[f"{name}_sum"] for name in SUMS}
        for row in rows.group_by("slice_value").aggregate(columns).to_pylist()
    }


def means_found(evaluation: Evaluation) -> Found:
    """The means over the queries with a relevant item, of the metrics that are means."""
    names = {(m, k): f"{m}_at_{k}" for m in METRICS for k in KS} | {("rr", 0): "rr"}
    names[("rr", None)] = "rr"
    found: Found = {}
    for row in evaluation.metrics.to_pylist():
        name = names.get((row["metric"], row["k"]))
        if name and row["population"] == "with_relevant":
            found.setdefault(row["slice_value"], {})[name] = row["value"]
    return found
