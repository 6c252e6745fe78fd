"""Items that stand more than once for a query, where the configuration says that none does."""

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake.aggregate.names import REPEATED
from ranklake.complaints import data_errors
from ranklake.errors import ContractError
from ranklake.pipeline.frames import Frames

MAX_EXAMPLES = 10


def refuse_duplicates(frames: Frames) -> None:
    """Raises ContractError with examples where a model lists an item twice for a query."""
    _refuse(frames, "rules.duplicates = 'error'")


def refuse_broken_promise(bucket_sums: pa.Table, frames: Frames) -> None:
    """Raises ContractError with examples where the sums have queries that break unique_key.

    Where rows went through the detail table, its write has failed for them already.
    """
    if REPEATED in bucket_sums.column_names and pc.sum(bucket_sums[REPEATED]).as_py():
        _refuse(frames, "unique_key = true")


def _refuse(frames: Frames, promise: str) -> None:
    keys = ["model_version", "query_id", "item_id"]
    candidates = [rows.select(*keys) for rows in (frames.served, frames.listed) if rows is not None]
    counts = reduce(DataFrame.unionByName, candidates).groupBy(*keys).count()
    with data_errors("inputs"):
        found = counts.where(F.col("count") > 1).orderBy(*keys).limit(MAX_EXAMPLES).collect()
    if found:
        raise ContractError(
            [
                f"{row['model_version']}: item {row['item_id']!r} stands {row['count']} times for"
                f" query {row['query_id']!r}, expected once ({promise})"
                for row in found
            ]
        )
