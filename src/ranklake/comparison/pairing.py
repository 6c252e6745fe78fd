"""Whether two models saw the same queries: told by what each bucket's query ids hash to."""

from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranklake.estimate import Array


class Kind(StrEnum):
    """How much two models' queries have in common, as far as buckets can tell."""

    SAME_QUERIES = "same_queries"  # every bucket has the same ones
    PARTIAL = "partial"  # some buckets do
    DISJOINT = "disjoint"  # none does: large buckets that share most of their queries, too


class Pairing(NamedTuple):
    """`n_paired` are the candidate's queries in buckets that hold the same ones on both sides."""

    kind: Kind
    n_paired: int
    n_queries: int
    n_baseline: int

    def __str__(self) -> str:
        if self.kind is Kind.SAME_QUERIES:
            return f"the same {self.n_queries:,} queries"
        return (
            f"{self.n_queries:,} queries against {self.n_baseline:,}; surely the same:"
            f" {self.n_paired:,}"
        )


def pairing(
    n_queries: Array, hashes: npt.NDArray[Any], n_baseline: Array, baseline_hashes: npt.NDArray[Any]
) -> Pairing:
    """From the queries in each bucket and the bit_xor of the hashes of their ids, of both."""
    is_same = (n_queries == n_baseline) & (hashes == baseline_hashes)
    n_paired = int(n_queries[is_same].sum())
    kind = Kind.PARTIAL if n_paired else Kind.DISJOINT
    if np.all(is_same):
        kind = Kind.SAME_QUERIES
    return Pairing(kind, n_paired, int(n_queries.sum()), int(n_baseline.sum()))
