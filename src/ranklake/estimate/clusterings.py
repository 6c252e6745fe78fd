"""One clustering or two: by users alone, or by users and by items.

Two impressions of one user share that user's mood, two of one advertiser that advertiser's appeal.
With both: Var = V(users) + V(items) - V(pairs of both), and never below either of the first two
(Cameron, Gelbach, Miller, Robust Inference with Multiway Clustering, 2011).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranklake.estimate.jackknife import Array, Estimates, ratios, spread


class Buckets(NamedTuple):
    """One clustering of some series: (rows, buckets) in use, and the values without each."""

    used: npt.NDArray[np.bool_]
    without: Array

    @classmethod
    def of(cls, num: Array, den: Array) -> "Buckets":
        """Those of sums."""
        return cls(den > 0, ratios(num, den)[1])

    def take(self, rows: npt.NDArray[np.int64]) -> "Buckets":
        """Those of some rows."""
        return Buckets(self.used[rows], self.without[rows])

    def placed(self, rows: npt.NDArray[np.int64], n_rows: int) -> "Buckets":
        """The same at other rows of a longer table; the rest have no bucket in use."""
        shape = (n_rows, self.used.shape[1])
        used, without = np.zeros(shape, dtype=bool), np.full(shape, np.nan)
        used[rows], without[rows] = self.used, self.without
        return Buckets(used, without)

    def minus(self, other: "Buckets") -> "Buckets":
        """Those of the differences of two sides."""
        return Buckets(self.used | other.used, self.without - other.without)

    def relative_to(self, other: "Buckets") -> "Buckets":
        """Those of the relative differences of two sides."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return Buckets(self.used | other.used, self.without / other.without - 1)


def spread_over(value: Array, clusterings: Sequence[Buckets]) -> Estimates:
    """The standard errors of values under a clustering, or under three: users, items, both.

    A row without buckets of items has users alone. n_clusters is that of the clustering which has
    fewer: it says how much there is to learn the spread from.
    """
    by_user, *others = [spread(found.used, value, found.without) for found in clusterings]
    if not others:
        return by_user
    by_item, by_both = others
    users, items, both = (found.std_err**2 for found in (by_user, by_item, by_both))
    variance = np.maximum(np.maximum(users, items), users + items - both)
    has_items = by_item.n_clusters > 0
    return Estimates(
        value,
        np.where(has_items, np.sqrt(variance), by_user.std_err),
        np.where(has_items, np.minimum(by_user.n_clusters, by_item.n_clusters), by_user.n_clusters),
    )
