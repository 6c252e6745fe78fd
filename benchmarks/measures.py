"""What every contestant computes. Plain Python: the environments of all peers import it."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

KS = (1, 3, 5, 10, 20)
METRICS = ("recall", "precision", "f1", "ap", "ndcg", "hit_rate")
COUNTS = ("n_queries", "n_candidates", "n_with_relevant")
SUMS = (*COUNTS, *(f"{metric}_at_{k}" for k in KS for metric in METRICS), "rr")
"""The names of the sums: 3 counts and 31 measures."""

N_BUCKETS = 400

IDEAL_DCG = tuple(
    math.fsum(1 / math.log2(rank + 1) for rank in range(1, n + 1)) for n in range(max(KS) + 1)
)
"""The largest DCG of 0, 1, 2, ... relevant items."""

Found = dict[str, dict[str, float]]
"""Slice value (`all` among them) → name → sum."""


def summed(rows: Iterable[Mapping[str, Any]]) -> Found:
    """The sums a slice value and over all, from one row per (bucket, device)."""
    found: Found = {"all": dict.fromkeys(SUMS, 0.0)}
    for row in rows:
        for value in ("all", row["device"]):
            sums = found.setdefault(value, dict.fromkeys(SUMS, 0.0))
            for name in SUMS:
                sums[name] += float(row[name] or 0)
    return found


def means(found: Found) -> Found:
    """The means over the queries with a relevant item."""
    return {
        value: {
            name: total / sums["n_with_relevant"]
            for name, total in sums.items()
            if name not in COUNTS
        }
        for value, sums in found.items()
    }


def differences(one: Found, other: Found, tolerance: float = 1e-9) -> list[str]:
    """Where two results disagree by more than the tolerance (relative); names of both count."""
    return [
        f"{value}: {name}: {one[value][name]!r} and {other[value][name]!r}"
        for value in sorted(one.keys() & other.keys())
        for name in sorted(one[value].keys() & other[value].keys())
        if not math.isclose(
            one[value][name], other[value][name], rel_tol=tolerance, abs_tol=tolerance
        )
    ]
