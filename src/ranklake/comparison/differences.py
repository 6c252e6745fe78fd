"""Two models' sums → the paired differences of their values. numpy, no Spark.

A bucket holds the same users on both sides, so what they have in common leaves the difference with
them: without bucket b it is the candidate's value without b less the baseline's, for every bucket
that either side has. Where each user saw one model only, the covariance is about 0, and the same
formula is right.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranklake.estimate import (
    MIN_CLUSTERS,
    MIN_NONZERO,
    Array,
    Estimates,
    SeriesSums,
    is_rounding,
    normal_quantile,
    p_value,
    spread_over,
    student_t,
)

Flags = npt.NDArray[np.bool_]

POWER = 0.8
"""The share of the cases in which a difference as large as `mde` is found."""
N_FLIPS = 10_000
_FLIPS_AT_ONCE = 500
_SEED = 20_260_101


class Interval(NamedTuple):
    """Both ends, one a row; nan where there is none."""

    low: Array
    high: Array


@dataclass(frozen=True)
class Differences:
    """candidate - baseline, one a row, and candidate / baseline - 1 (`relative`).

    There is an interval where `is_enough`: 30 buckets, 10 queries above zero on one side at least,
    and a spread. Where both sides are the same in every bucket (`is_same`) the difference is
    surely 0. `bound` is the largest difference that can be.
    """

    delta: Estimates
    relative: Estimates
    is_enough: Flags
    is_same: Flags
    bound: Array

    def interval(self, alpha: float | Array) -> Interval:
        """Of the difference, at 1 - alpha, within ± bound."""
        return self._interval(self.delta, alpha, -self.bound, self.bound)

    def relative_interval(self, alpha: float | Array) -> Interval:
        """Of the relative difference, at 1 - alpha; nothing is less than 100 % below."""
        return self._interval(self.relative, alpha, -np.ones_like(self.bound), np.inf)

    @property
    def p_values(self) -> Array:
        """Two-sided, of no difference: Student's t. nan where nothing is tested."""
        found = np.where(self.is_enough, p_value(self.delta), np.nan)
        tested: Array = np.where(self.is_same, 1.0, found)
        return tested

    def smallest_found(self, alpha: float) -> Array:
        """The difference that a test at alpha finds in 80 % of the cases: 2.8 standard errors."""
        reach = normal_quantile(1 - alpha / 2) + normal_quantile(POWER)
        found: Array = np.where(self.is_enough, reach * self.delta.std_err, np.nan)
        return found

    def _interval(
        self, found: Estimates, alpha: float | Array, least: Array, most: Array | float
    ) -> Interval:
        half = student_t(found.n_clusters, alpha) * found.std_err
        has_one = self.is_enough & np.isfinite(found.std_err)
        ends = (np.maximum(found.value - half, least), np.minimum(found.value + half, most))
        low, high = (np.where(self.is_same, 0.0, np.where(has_one, end, np.nan)) for end in ends)
        return Interval(low, high)


def differences(candidate: SeriesSums, baseline: SeriesSums) -> Differences:
    """The differences of two models' values; row by row the series are the same on both sides."""
    one, other = candidate, baseline
    # Both sides have the same clusterings: by items belongs to what a series means.
    pairs = list(zip(one.clusterings, other.clusterings, strict=False))
    delta = spread_over(one.value - other.value, [mine.minus(theirs) for mine, theirs in pairs])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = one.value / other.value - 1
    relative = spread_over(ratio, [mine.relative_to(theirs) for mine, theirs in pairs])
    nonzero = np.maximum(one.counts.nonzero, other.counts.nonzero)
    is_enough = (
        (delta.n_clusters >= MIN_CLUSTERS)
        & (nonzero >= MIN_NONZERO)
        & np.isfinite(delta.std_err)
        & ~is_rounding(delta.std_err, np.maximum(np.abs(one.value), np.abs(other.value)))
    )
    # Spark adds in any order: what is the same may differ in its last digits.
    is_same = is_rounding(np.abs(one.num - other.num), np.abs(other.num)).all(axis=1)
    is_same &= (one.den == other.den).all(axis=1)
    is_same &= np.isfinite(one.value)
    return Differences(
        delta, relative, is_enough & ~is_same, is_same, np.maximum(one.uppers, other.uppers)
    )


def sign_flips(candidate: SeriesSums, baseline: SeriesSums, *, n_flips: int = N_FLIPS) -> Array:
    """Randomised p-values of no difference, from flips of the buckets' signs; never 0.

    nan where the sides differ in a denominator: only what the same queries give can be exchanged;
    and where a value is not its sums over the clusters of users alone.
    The flips are the same in every call (Fisher's randomisation; Smucker, Allan, Carterette,
    CIKM 2007, on its use in retrieval; (1 + count) / (1 + draws): Phipson and Smyth, 2010).
    """
    exchangeable = (candidate.den == baseline.den).all(axis=1) & candidate.are_sums_by_user
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = (candidate.num - baseline.num) / candidate.den.sum(axis=1, keepdims=True)
    exchangeable &= np.isfinite(parts).all(axis=1)
    parts = np.where(exchangeable[:, None], parts, 0.0)
    seen = np.abs(parts.sum(axis=1))
    reached = seen - 1e-12 * np.abs(parts).sum(axis=1)  # an equal sum, added in another order
    count = np.zeros(len(parts))
    random = np.random.default_rng(_SEED)
    for begin in range(0, n_flips, _FLIPS_AT_ONCE):
        n_now = min(_FLIPS_AT_ONCE, n_flips - begin)
        signs = random.integers(0, 2, size=(n_now, parts.shape[1])) * 2.0 - 1.0
        count += (np.abs(signs @ parts.T) >= reached).sum(axis=0)
    return np.where(exchangeable, (1 + count) / (1 + n_flips), np.nan)
