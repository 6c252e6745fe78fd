"""What a metric is: words, Spark expression and plain reference, in one frozen record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from ranklake.metrics.options import Option, Options
from ranklake.metrics.ranking import Ranking

if TYPE_CHECKING:  # the words and the references are read on machines without Spark
    from pyspark.sql import Column

    from ranklake.metrics.atoms import Atoms

CLICK, CONVERSION, JUDGMENT = "click", "conversion", "judgment"
CONVERSION_VALUE = "conversion_value"
"""The kinds of events, and the labels that are made of one of them alone."""

NO_CUTOFF = 0
"""The k of a metric over the whole ranking."""
SHOWN = -1
"""The k that is each query's own n_slots, written @shown."""


class Cutoff(StrEnum):
    """Whether a metric is cut at a k."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    NONE = "none"


class Denominator(StrEnum):
    """What the metric's second sum adds up, query by query."""

    QUERIES = "queries"  # 1 a query of the population: a mean of per-query values (macro)
    DEFINED = "queries with a value"  # 1 where the per-query value is defined
    RELEVANT = "relevant items"  # |G|
    SLOTS = "slots"  # k
    SHOWN = "shown items in the top k"  # min(k, n); only a served ranking knows it
    CLICKS = "clicks in the top k"  # hits of the label `click`
    LABELS = "relevant candidates with a score"
    SCORED = "scored candidates"


class Need(StrEnum):
    """What a metric needs beyond the hits and their ranks: it costs something, so it is opt-in."""

    TIES = "ties"  # tie_first and tie_last of every hit
    JUDGED = "judged"  # the judged items, and every query's order
    SCORES = "scores"  # every candidate's score, as a probability


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
    of num. A metric without one is made of the column of `sums_of`, or derived from the sums of
    others (`derived_from`).
    `of_label` is the one label that has it (empty: every label).
    `of_counts` names the sum over a query's candidates that is its part where none is relevant.
    `better` says which of two values is; neither, where none is by itself.
    `of_ranking(ranking, k, options)` is the same value, slow and obvious; None when undefined.
    """

    name: str
    title: str
    formula: str
    null_when: str
    reads_as: str
    source: str
    of_ranking: Callable[[Ranking, int, Options], float | None]
    column: Callable[[Atoms, int], Column] | None = None
    sums_of: str = ""
    denominator: Denominator = Denominator.QUERIES
    populations: tuple[Population, ...] = (Population.WITH_RELEVANT, Population.ALL)
    cutoff: Cutoff = Cutoff.REQUIRED
    options: tuple[Option, ...] = ()
    needs: frozenset[Need] = frozenset()
    of_label: str = ""
    of_counts: str = ""
    upper: float = 1.0
    better: Literal["higher", "lower", "neither"] = "higher"
    aliases: tuple[str, ...] = ()

    @property
    def summand(self) -> str:
        """The metric whose per-query column num adds up."""
        return self.sums_of or self.name

    @property
    def has_cutoff(self) -> bool:
        """Whether it may be cut at a k."""
        return self.cutoff is not Cutoff.NONE

    @property
    def is_mean_over_relevant(self) -> bool:
        """Whether queries without a relevant item have no value, and are left out of the mean."""
        is_mean = self.denominator is Denominator.QUERIES
        return is_mean and self.populations[0] is Population.WITH_RELEVANT

    @property
    def served_only(self) -> bool:
        """Whether it needs to know which candidates were shown."""
        return self.denominator is Denominator.SHOWN

    @property
    def is_of_items(self) -> bool:
        """Whether both its sums are counts of items, so that these can be clustered too."""
        return self.denominator in (Denominator.SHOWN, Denominator.CLICKS)

    @property
    def defaults(self) -> Options:
        """Every option at its default."""
        return {option.name: option.parsed(option.default) for option in self.options}

    def reading(self, value: str, k: int | str) -> str:
        """What the value says; k = 0 is the whole list."""
        words = self.reads_as if k else self.reads_as.replace("the top {k}", "the whole list")
        return words.format(value=value, k=k)

    def cutoffs(self, ks: tuple[int, ...]) -> tuple[int, ...]:
        """The ks at which it is measured: all of them, or none when it has no cut-off."""
        return ks if self.has_cutoff else (NO_CUTOFF,)

    def reference(self, ranking: Ranking, k: int, options: Options | None = None) -> float | None:
        """The query's value in plain Python; None when it is undefined."""
        return self.of_ranking(ranking, k, {**self.defaults, **(options or {})})

    def reference_denominator(self, ranking: Ranking, k: int) -> float:
        """The query's part of den, in a population that holds it."""
        depth = ranking.depth(k)
        parts = {
            Denominator.QUERIES: 1.0,
            Denominator.DEFINED: float(self.reference(ranking, k) is not None),
            Denominator.RELEVANT: float(ranking.n_relevant),
            Denominator.SLOTS: float(depth),
            Denominator.SHOWN: float(min(depth, ranking.n_candidates)),
            Denominator.LABELS: float(sum(happened for _, happened in ranking.probabilities())),
            Denominator.SCORED: float(len(ranking.probabilities())),
            Denominator.CLICKS: float(ranking.clicks(k)),
        }
        return parts[self.denominator]
