"""Random numbers that are functions of their keys, not of the order in which rows are computed.

Every number is a hash of (seed, purpose, keys). So a log is the same however it is partitioned, any
of its days can be generated alone, and two tables agree about an event without a join.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise

from pyspark.sql import Column
from pyspark.sql import functions as F

_BITS = 53  # of a double's mantissa: every value is as likely as the others


@dataclass(frozen=True)
class Draws:
    """The random numbers of one seed. Equal purpose and keys are the same number."""

    seed: int

    def uniform(self, purpose: str, *keys: str | Column) -> Column:
        """A number in [0, 1)."""
        hashed = F.xxhash64(F.lit(self._salt(purpose)), *keys)
        return hashed.bitwiseAND(F.lit(2**_BITS - 1)) * F.lit(2.0**-_BITS)

    def between(self, low: float, high: float, purpose: str, *keys: str | Column) -> Column:
        """A number in [low, high)."""
        return F.lit(low) + self.uniform(purpose, *keys) * (high - low)

    def chance(self, share: float, purpose: str, *keys: str | Column) -> Column:
        """Whether an event of this probability happens."""
        # a literal, so that the optimizer removes what a clean log does not need
        return self.uniform(purpose, *keys) < share if share else F.lit(False)

    def exponential(self, purpose: str, *keys: str | Column) -> Column:
        """A number of the exponential distribution of mean 1 (and variance 1)."""
        return -F.log1p(-self.uniform(purpose, *keys))

    def normal(self, purpose: str, *keys: str | Column) -> Column:
        """A number of the standard normal distribution (Box and Muller 1958)."""
        radius = F.sqrt(2 * self.exponential(f"{purpose}, radius", *keys))
        angle = 2 * math.pi * self.uniform(f"{purpose}, angle", *keys)
        return radius * F.cos(angle)

    def _salt(self, purpose: str) -> int:
        digest = blake2b(f"{self.seed}:{purpose}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little", signed=True)


def chosen(choices: Sequence[tuple[float, Column]], uniform: Column) -> Column:
    """One of the (weight, value) choices, each as often as its weight says."""
    *_, total = sums = list(accumulate(weight for weight, _ in choices))
    values = [value for _, value in choices]
    return _first_above(uniform, [(s / total, v) for s, v in zip(sums, values, strict=True)])


def quantile(quantiles: Sequence[tuple[float, float]], uniform: Column) -> Column:
    """A value of the distribution with these (share, value) quantiles, from share 0 to share 1.

    Between two quantiles the logarithm of the value rises evenly.
    """
    segments = [
        (upper_share, _log_line(lower_share, lower, upper_share, upper, at=uniform))
        for (lower_share, lower), (upper_share, upper) in pairwise(quantiles)
    ]
    return _first_above(uniform, segments)


def _first_above(uniform: Column, bounded: Sequence[tuple[float, Column]]) -> Column:
    """The value of the first bound that `uniform` is below."""
    *earlier, (_, value) = bounded
    for bound, earlier_value in reversed(earlier):
        value = F.when(uniform < bound, earlier_value).otherwise(value)
    return value


def _log_line(x0: float, y0: float, x1: float, y1: float, *, at: Column) -> Column:
    """The value at `at` of the curve through two points whose logarithm is a straight line."""
    slope = (math.log(y1) - math.log(y0)) / (x1 - x0)
    return F.exp(F.lit(math.log(y0)) + (at - x0) * slope)
