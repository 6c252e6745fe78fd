"""What a metric is: words, Spark expression and plain reference, in one frozen record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ranklake.metrics.ranking import Ranking

if TYPE_CHECKING:  # the words and the references are read on machines without Spark
    from pyspark.sql import Column

    from ranklake.metrics.atoms import Atoms

NO_CUTOFF = 0
"""The k of a metric over the whole ranking."""


class Denominator(StrEnum):
    """What the metric's second sum adds up, query by query."""

    QUERIES = "queries"  # 1 a query of the population: a mean of per-query values (macro)
    RELEVANT = "relevant items"  # |G|
    SLOTS = "slots"  # k
    SHOWN = "shown items in the top k"  # min(k, n); only a served ranking knows it


class Population(StrEnum):
    """Which queries the denominator holds. The numerator is the same: undefined adds 0."""

    ALL = "all"
    WITH_RELEVANT = "with_relevant"

    @property
    def in_words(self) -> str:
        """The queries as people name them."""
        return "all queries" if self is Population.ALL else "queries with a relevant item"


@dataclass(frozen=True)
class Metric:
    """One metric. Its value over many queries is the ratio of two sums: num / den.

    `column(atoms, k)` is an aggregate over the hits of one query (rank.ranked): the query's part
    of num. A metric without one is made of the column of `sums_of`.
    `reference(ranking, k)` is the same value, slow and obvious; None when it is undefined.
    """

    name: str
    title: str
    formula: str
    null_when: str
    reads_as: str
    source: str
    reference: Callable[[Ranking, int], float | None]
    column: Callable[[Atoms, int], Column] | None = None
    sums_of: str = ""
    denominator: Denominator = Denominator.QUERIES
    populations: tuple[Population, ...] = (Population.WITH_RELEVANT, Population.ALL)
    has_cutoff: bool = True
    upper: float = 1.0
    aliases: tuple[str, ...] = ()

    @property
    def summand(self) -> str:
        """The metric whose per-query column num adds up."""
        return self.sums_of or self.name

    @property
    def served_only(self) -> bool:
        """Whether it needs to know which candidates were shown."""
        return self.denominator is Denominator.SHOWN

    def cutoffs(self, ks: tuple[int, ...]) -> tuple[int, ...]:
        """The ks at which it is measured: all of them, or none when it has no cut-off."""
        return ks if self.has_cutoff else (NO_CUTOFF,)

    def reference_denominator(self, ranking: Ranking, k: int) -> float:
        """The query's part of den, in a population that holds it."""
        parts = {
            Denominator.QUERIES: 1.0,
            Denominator.RELEVANT: float(ranking.n_relevant),
            Denominator.SLOTS: float(k),
            Denominator.SHOWN: float(min(k, ranking.n_candidates)),
        }
        return parts[self.denominator]


def column_name(metric: str, k: int) -> str:
    """The metric's column in query_metrics.

    >>> column_name("recall", 10), column_name("r_precision", 0)
    ('recall_at_10', 'r_precision')
    """
    return metric if k == NO_CUTOFF else f"{metric}_at_{k}"
