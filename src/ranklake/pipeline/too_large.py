"""Queries with more candidates than a run ranks: looked for where rows are missing, and told."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import functions as F

from ranklake.config import EvalConfig
from ranklake.errors import RanklakeWarning
from ranklake.pipeline.frames import Frames

MAX_EXAMPLES = 10


@dataclass(frozen=True)
class TooLarge:
    """The queries that a model has and the run leaves out: how many, and their candidates."""

    n_queries: int = 0
    n_candidates: int = 0


def too_large_of(
    frames: Frames, unaccounted: Mapping[str, int | None], config: EvalConfig
) -> dict[str, TooLarge]:
    """For each model, the queries that are left out because they have too many candidates.

    `unaccounted` are the model's usable rows that no counted candidate accounts for (None: not
    known): a query that is left out leaves more of them than the limit, so as a rule no job is run.
    Names the largest in a RanklakeWarning.
    """
    limit = config.max_candidates_per_query
    if not any(n is None or n > limit for n in unaccounted.values()):
        return {}
    hot = frames.hot.select("model_version", "query_id", "n_candidates")
    found = hot.groupBy("model_version").agg(
        F.count(F.lit(1)).alias("n_queries"), F.sum("n_candidates").alias("n_candidates")
    )
    models = {
        row["model_version"]: TooLarge(row["n_queries"], row["n_candidates"])
        for row in found.collect()
    }
    if models:
        largest = hot.orderBy(F.col("n_candidates").desc(), "query_id", "model_version")
        examples = ", ".join(
            f"{row['query_id']!r} of {row['model_version']} ({row['n_candidates']:,})"
            for row in largest.limit(MAX_EXAMPLES).collect()
        )
        n_queries = sum(model.n_queries for model in models.values())
        message = (
            f"candidates: {n_queries:,} queries have more than {limit:,} and are left out"
            f" (max_candidates_per_query); the largest: {examples}"
        )
        warnings.warn(RanklakeWarning(message), stacklevel=2)
    return models
