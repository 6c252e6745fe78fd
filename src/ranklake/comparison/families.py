"""Many tests at once: p-values adjusted over their family. NaN is no test, and stays."""

from collections.abc import Callable

import numpy as np

from ranklake.estimate import Array


def holm(p_values: Array) -> Array:
    """Holm's step-down: the family-wise error rate (Holm, Scand. J. Statistics 6, 1979).

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    return _adjusted(p_values, _step_down)


def benjamini_hochberg(p_values: Array) -> Array:
    """The false discovery rate (Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995).

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    return _adjusted(p_values, _step_up)


def _step_down(ascending: Array) -> Array:
    left = np.arange(len(ascending), 0, -1)
    return np.maximum.accumulate(left * ascending)


def _step_up(ascending: Array) -> Array:
    of_all = len(ascending) / np.arange(1, len(ascending) + 1)
    return np.minimum.accumulate((of_all * ascending)[::-1])[::-1]


def _adjusted(p_values: Array, step: Callable[[Array], Array]) -> Array:
    """Each test's adjusted p-value in its own place."""
    tests = np.flatnonzero(~np.isnan(p_values))
    ascending = tests[np.argsort(p_values[tests], kind="stable")]
    adjusted = np.full(len(p_values), np.nan)
    adjusted[ascending] = np.minimum(step(p_values[ascending]), 1.0)
    return adjusted
