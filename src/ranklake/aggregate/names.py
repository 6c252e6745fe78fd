"""How the sums of aggregate.sums are named, for aggregate.series to find them. No Spark."""

from ranklake.metrics import SHOWN

FINGERPRINT = "fingerprint"
REPEATED = "n_repeated"
"""Queries with an item that stands more than once, where that is looked at."""
LARGEST = "largest_query"
"""The most candidates that a query has: no sum, but a maximum."""


def shown_column(k: int) -> str:
    """Σ min(k, n): the items shown in the first k.

    >>> shown_column(10)
    'n_shown_at_10'
    """
    return f"n_shown_at_{_cutoff(k)}"


def hits_column(label: str, k: int) -> str:
    """Σ of the relevant items of the label in the first k; NO_CUTOFF: in all of the list.

    >>> hits_column("click", 10)
    'hits_at_10_of_click'
    """
    return f"hits_at_{_cutoff(k)}_of_{label}"


def short_column(k: int) -> str:
    """Queries with k candidates or fewer."""
    return f"n_short_at_{_cutoff(k)}"


def weighted_column(column: str, weight: str) -> str:
    """Σ of a per-query column times the queries' weight; without a weight, the column's own sum."""
    return f"{column}_by_{weight}" if weight else column


def defined_column(column: str, weight: str) -> str:
    """The queries where the per-query column is defined, each by its weight."""
    return weighted_column(f"defined_{column}", weight)


def _cutoff(k: int) -> str:
    return "shown" if k == SHOWN else str(k)
