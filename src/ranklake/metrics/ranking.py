"""One query's ranking in plain Python: what the metrics' references read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ranking:
    """`gains` of the candidates, best rank first; `missed`: gains of relevant items not ranked."""

    gains: tuple[float, ...]
    missed: tuple[float, ...] = ()

    @property
    def n_candidates(self) -> int:
        """Candidates ranked."""
        return len(self.gains)

    @property
    def n_relevant(self) -> int:
        """|G|: relevant items, ranked or not."""
        return sum(gain > 0 for gain in (*self.gains, *self.missed))

    @property
    def ideal(self) -> list[float]:
        """All positive gains, best first."""
        return sorted((gain for gain in (*self.gains, *self.missed) if gain > 0), reverse=True)

    def hit_ranks(self, k: int) -> list[int]:
        """Ranks of the relevant candidates up to k; k = 0: all of them."""
        depth = k or self.n_candidates
        return [rank for rank, gain in enumerate(self.gains[:depth], start=1) if gain > 0]

    def hits(self, k: int) -> int:
        """Relevant candidates up to rank k."""
        return len(self.hit_ranks(k))


def dcg(gains: Sequence[float]) -> float:
    """Discounted cumulative gain of gains in rank order (Järvelin and Kekäläinen 2002, base 2)."""
    return sum(max(gain, 0.0) / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def first(gains: Sequence[float], k: int) -> Sequence[float]:
    """The first k gains; k = 0: all of them."""
    return gains[:k] if k else gains
