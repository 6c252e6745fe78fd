"""The delete-a-bucket jackknife of ratios of sums."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

Array = npt.NDArray[np.float64]

_ROUNDING = 1e-12
"""A standard error below that share of the value is rounding: the buckets do not differ."""


@dataclass(frozen=True)
class Estimates:
    """One value and standard error a row of sums; nan where there is none."""

    value: Array
    std_err: Array
    n_clusters: npt.NDArray[np.int64]


def jackknife(num: Array, den: Array) -> Estimates:
    """The ratio Σ num / Σ den of each row, and its delete-a-bucket jackknife standard error.

    num, den: (rows, buckets). value is nan when Σ den = 0; std_err is nan then, with fewer than two
    buckets in use, or where one bucket holds the whole denominator.
    """
    return spread(den > 0, *ratios(num, den))


def ratios(num: Array, den: Array) -> tuple[Array, Array]:
    """Each row's Σ num / Σ den, and the same without each of its buckets; nan or inf over 0."""
    total_num, total_den = num.sum(axis=1, keepdims=True), den.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return (total_num / total_den)[:, 0], (total_num - num) / (total_den - den)


def spread(used: npt.NDArray[np.bool_], value: Array, without: Array) -> Estimates:
    """The standard error of values that are known without each of the buckets in use."""
    n_clusters = used.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = np.where(used, without, 0.0)
        mean = kept.sum(axis=1, keepdims=True) / n_clusters[:, None]
        squares = np.where(used, (kept - mean) ** 2, 0.0).sum(axis=1)
        std_err = np.sqrt((n_clusters - 1) / n_clusters * squares)
    std_err[(n_clusters < 2) | ~np.isfinite(std_err)] = np.nan
    return Estimates(value, std_err, n_clusters)


def is_rounding(std_err: Array, value: Array) -> npt.NDArray[np.bool_]:
    """Whether the buckets do not differ, but for the last digits of `value`, of which they are."""
    return std_err <= _ROUNDING * np.abs(value)


def student_t(n_clusters: npt.NDArray[np.int64], alpha: float | Array) -> Array:
    """How many standard errors a two-sided interval at 1 - alpha reaches to either side."""
    quantiles: Array = special.stdtrit(np.maximum(n_clusters - 1, 1), 1 - np.asarray(alpha) / 2)
    return quantiles


def p_value(estimates: Estimates) -> Array:
    """Two-sided, of a value of 0: Student's t with one degree of freedom a bucket, less one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(estimates.value) / estimates.std_err
    p: Array = 2 * special.stdtr(np.maximum(estimates.n_clusters - 1, 1), -t)
    return p


def normal_quantile(share: float) -> float:
    """How many standard errors above the mean that share of a normal distribution ends."""
    return float(special.ndtri(share))
