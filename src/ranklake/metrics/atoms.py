"""Atoms: what happened in one query, as aggregates over its hits. Metrics are quotients of these.

The hits are what rank.ranked leaves of one (model, query, label):
    rank         1..n among the candidates; null for a relevant item that was no candidate
    gain         0 for the query's last candidate where it is not relevant, else above 0
    hits_so_far  relevant candidates at this rank or above
    ideal_rank   1..m among the relevant items, best gain first
    n_relevant   relevant items of the query
"""

from pyspark.sql import Column
from pyspark.sql import functions as F


class Atoms:
    """The vocabulary of `Metric.column`. k = 0 means no cut-off."""

    def is_relevant(self) -> Column:
        """Whether the row is a relevant item."""
        return F.col("gain") > 0

    def is_hit(self, k: int) -> Column:
        """Whether the row is a relevant candidate within the first k."""
        within = F.col("rank") <= k if k else F.col("rank").isNotNull()
        return self.is_relevant() & within

    def relevant(self) -> Column:
        """|G|."""
        return _sum_where(self.is_relevant(), F.lit(1.0))

    def hits_at(self, k: int) -> Column:
        """Relevant candidates within the first k."""
        return _sum_where(self.is_hit(k), F.lit(1.0))

    def hits_within_relevant(self) -> Column:
        """Relevant candidates within the first |G|."""
        return _sum_where(self.is_hit(0) & (F.col("rank") <= F.col("n_relevant")), F.lit(1.0))

    def precisions_at_hits(self, k: int) -> Column:
        """Σ precision@rank over the hits within the first k."""
        return _sum_where(self.is_hit(k), F.col("hits_so_far") / F.col("rank"))

    def best_reciprocal_rank(self, k: int) -> Column:
        """1 / rank of the first hit within the first k; 0 when there is none."""
        return F.max(F.when(self.is_hit(k), F.lit(1.0) / F.col("rank")).otherwise(F.lit(0.0)))

    def dcg_at(self, k: int) -> Column:
        """Discounted cumulative gain of the first k."""
        return _sum_where(self.is_hit(k), F.col("gain") * _discount("rank"))

    def ideal_dcg_at(self, k: int) -> Column:
        """The largest DCG that any order of all relevant items could have."""
        within = F.col("ideal_rank") <= k if k else F.col("ideal_rank").isNotNull()
        return _sum_where(self.is_relevant() & within, F.col("gain") * _discount("ideal_rank"))

    def where_relevant(self, value: Column) -> Column:
        """The value of a query with a relevant item; null without one."""
        return F.when(self.relevant() > 0, value)

    def ratio(self, part: Column, whole: Column) -> Column:
        """part / whole, where the whole may be zero: then null, under ANSI too."""
        return part / F.nullif(whole, F.lit(0.0))


def _sum_where(condition: Column, value: Column) -> Column:
    return F.sum(F.when(condition, value).otherwise(F.lit(0.0)))


def _discount(rank: str) -> Column:
    return F.lit(1.0) / F.log2(F.col(rank) + F.lit(1.0))
