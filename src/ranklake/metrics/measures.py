"""Measures: a metric with its options at a cut-off, and the string that says so.

recall@10 · P(rel=2)@5 · nDCG(gain=exp2,ideal=candidates)@10 · AP · ctr@shown
"""

import math
import re
from dataclasses import dataclass, replace

from ranklake.metrics.catalog import metric
from ranklake.metrics.metric import NO_CUTOFF, SHOWN, Denominator, Metric, Need
from ranklake.metrics.options import AUC_AVERAGE, OVER_TIES, Options
from ranklake.metrics.per_query import HIT_RATE


@dataclass(frozen=True)
class Measure:
    """A metric at one cut-off (0: none, -1: the query's n_slots).

    `options` are those that differ from the metric's defaults, in canonical spelling, by name.
    """

    metric: Metric
    k: int = NO_CUTOFF
    options: tuple[tuple[str, str], ...] = ()

    @property
    def values(self) -> Options:
        """The value of every option."""
        known = {option.name: option for option in self.metric.options}
        given = {name: known[name].parsed(text) for name, text in self.options}
        return {**self.metric.defaults, **given}

    @property
    def variant(self) -> str:
        """The options as in the brackets of a measure string; empty as a rule."""
        return ",".join(f"{name}={text}" for name, text in self.options)

    def __str__(self) -> str:
        """The canonical measure string."""
        return spelled(self.metric.name, self.variant, self.k)

    @property
    def column(self) -> str:
        """The column of query_metrics that it adds up."""
        cutoff = {NO_CUTOFF: "", SHOWN: "_at_shown"}.get(self.k, f"_at_{self.k}")
        options = "".join(
            f"_{name}_{_as_name(text)}" for name, text in self.options if name not in _OF_THE_MEAN
        )
        return f"{self.metric.summand}{options}{cutoff}"

    @property
    def is_derived(self) -> bool:
        """Whether its value is made of the sums of other measures, not of its own."""
        return self.options_of("mean") == "of_means"

    @property
    def is_of_query(self) -> bool:
        """Whether each query has a value of it, in its column."""
        means = (Denominator.QUERIES, Denominator.DEFINED)
        return not self.is_derived and self.metric.denominator in means

    @property
    def weight(self) -> str:
        """The column that weighs the queries; empty: each counts alike."""
        return {"weighted": "weight", "n": "n_candidates"}.get(self.options_of("average"), "")

    @property
    def counts_defined(self) -> bool:
        """Whether its population is not simply every query with a relevant item."""
        return self.is_of_defined or bool(self.weight or self.options_of("rel"))

    @property
    def is_of_defined(self) -> bool:
        """Whether its population is the queries where its own value is defined."""
        return self.metric.denominator is Denominator.DEFINED

    @property
    def rank_column(self) -> str:
        """The column of the hits that has the rank it goes by."""
        return f"rank{_suffix(tie_break=self.tie_break)}"

    @property
    def hits_so_far_column(self) -> str:
        """The column of the hits that counts the relevant candidates up to a row."""
        return f"hits_so_far{_suffix(tie_break=self.tie_break, rel=self.options_of('rel'))}"

    @property
    def n_relevant_column(self) -> str:
        """The column of the hits that has |G|."""
        return f"n_relevant{_suffix(rel=self.options_of('rel'))}"

    @property
    def ideal_rank_column(self) -> str:
        """The column of the hits that has the rank in the ideal order."""
        of = "candidates" if self.options_of("ideal") == "candidates" else ""
        table = self.options_of("gain") if self.options_of("gain").startswith("{") else ""
        rel = self.options_of("rel") if table and self.options_of("gain_respects_rel") else ""
        tie_break = self.tie_break if of else ""  # a depth cuts each order elsewhere
        return f"ideal_rank{_suffix(of=of, tie_break=tie_break, gain=table, rel=rel)}"

    def options_of(self, name: str) -> str:
        """The text of an option that differs from its default; else empty."""
        return dict(self.options).get(name, "")

    @property
    def counting(self) -> "Measure":
        """The hit rate that counts the queries where it is above 0, and where it is defined."""
        shared = {"rel": self.options_of("rel"), "tie_break": self.options_of("tie_break")}
        if shared["tie_break"] == "expected":  # above 0 where any order would have a hit
            shared["tie_break"] = "best"
        return Measure(HIT_RATE, self.k, tuple((n, v) for n, v in sorted(shared.items()) if v))

    @property
    def upper(self) -> float:
        """The largest value it can have."""
        return math.inf if self.options_of("ideal") == "k_ones" else self.metric.upper

    @property
    def unweighted(self) -> "Measure":
        """The same measure where each query counts alike."""
        return replace(self, options=tuple(p for p in self.options if p[0] != "average"))

    @property
    def parts(self) -> tuple["Measure", ...]:
        """The measures that a derived one is made of: precision and recall."""
        if not self.is_derived:
            return ()
        shared = tuple(pair for pair in self.options if pair[0] in ("average", "rel", "tie_break"))
        return Measure(metric("precision"), self.k, shared), Measure(
            metric("recall"), self.k, shared
        )

    @property
    def tie_break(self) -> str:
        """The order of equal scores that it names itself; empty: that of the run."""
        text = self.options_of("tie_break")
        return "" if text in OVER_TIES else text

    @property
    def needs(self) -> frozenset[Need]:
        """What it needs beyond the hits and their ranks."""
        is_over_ties = self.options_of("tie_break") in OVER_TIES
        return self.metric.needs | ({Need.TIES} if is_over_ties else frozenset())


_OF_THE_MEAN = (AUC_AVERAGE.name, "mean")
"""Options that say how queries are averaged: the queries' own values do not know them."""


def spelled(name: str, variant: str, k: int) -> str:
    """The measure string of a row of metric_sums or metrics, be it a metric or a count.

    >>> spelled("ap", "denom=k", 10), spelled("n_candidates", "", 0)
    ('ap(denom=k)@10', 'n_candidates')
    """
    brackets = f"({variant})" if variant else ""
    cutoff = {NO_CUTOFF: "", SHOWN: "@shown"}.get(k, f"@{k}")
    return f"{name}{brackets}{cutoff}"


def _as_name(text: str) -> str:
    """The text as a part of a column's name, other for every other text."""
    return re.sub(r"\W+", "_", text.replace(".", "p").replace("-", "m")).strip("_")


def _suffix(**parts: str) -> str:
    return "".join(f"_{name}_{_as_name(text)}" for name, text in parts.items() if text)
