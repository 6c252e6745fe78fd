"""One query's ranking in plain Python: what the metrics' references read."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

TINY = 1e-15
"""The least probability in the log loss."""


MAX_EXPONENT = 1000.0
"""Grades beyond gain 2^1000 - 1 under gain=exp2: 2^1024 is no number any more."""


@dataclass(frozen=True)
class Ranking:
    """`gains` of the candidates, best rank first; `missed`: gains of relevant items not ranked.

    scores    of the candidates; None: never scored. Empty: no two are equal
    judged    whether each candidate is judged. Empty: all are
    clicked   whether each candidate was clicked, where the gains are of conversions
    n_slots   how many items the query's page shows
    rel       the smallest gain that is relevant; None: every gain above 0
    """

    gains: tuple[float, ...]
    missed: tuple[float, ...] = ()
    scores: tuple[float | None, ...] = ()
    judged: tuple[bool, ...] = ()
    clicked: tuple[bool, ...] = ()
    n_slots: int | None = None
    rel: float | None = None

    def at(self, rel: float | None) -> "Ranking":
        """The same ranking, where gains from `rel` on are relevant."""
        return replace(self, rel=rel)

    def is_relevant(self, gain: float) -> bool:
        """Whether an item of that gain is relevant."""
        return gain > 0 and (self.rel is None or gain >= self.rel)

    @property
    def n_candidates(self) -> int:
        """Candidates ranked."""
        return len(self.gains)

    @property
    def n_relevant(self) -> int:
        """|G|: relevant items, ranked or not."""
        return sum(map(self.is_relevant, (*self.gains, *self.missed)))

    @property
    def ideal(self) -> list[float]:
        """All positive gains, best first."""
        return sorted((gain for gain in (*self.gains, *self.missed) if gain > 0), reverse=True)

    def depth(self, k: int) -> int:
        """The cut-off as a number of places: k, n_slots (k = -1), or every candidate (k = 0)."""
        shown = self.n_candidates if self.n_slots is None else self.n_slots
        return shown if k < 0 else k or self.n_candidates

    def hit_ranks(self, k: int) -> list[int]:
        """Ranks of the relevant candidates up to k; k = 0: all of them."""
        top = self.gains[: self.depth(k)]
        return [rank for rank, gain in enumerate(top, start=1) if self.is_relevant(gain)]

    def hits(self, k: int) -> int:
        """Relevant candidates up to rank k."""
        return len(self.hit_ranks(k))

    def clicks(self, k: int) -> int:
        """Clicked candidates up to rank k."""
        return sum(self.clicked[: self.depth(k)])

    def n_judged(self, k: int) -> int:
        """Judged candidates up to rank k."""
        judged = self.judged or (True,) * self.n_candidates
        return sum(judged[: self.depth(k)])

    def blocks(self) -> Iterator[list[int]]:
        """The places, from 0, of candidates with equal scores; each alone without scores."""
        if not self.scores:
            yield from ([place] for place in range(self.n_candidates))
            return
        for _, places in groupby(range(self.n_candidates), key=lambda place: self.scores[place]):
            yield list(places)

    def over_ties(self, k: int, choose: Callable[[int, int, int], float]) -> float:
        """Σ over blocks of equal scores of choose(relevant items, size, places within k)."""
        depth, found = self.depth(k), 0.0
        for block in self.blocks():
            relevant = sum(self.is_relevant(self.gains[place]) for place in block)
            found += choose(relevant, len(block), sum(place < depth for place in block))
        return found

    def averaged(self) -> "Ranking":
        """Each gain is the mean of those with an equal score: what a place holds on average."""
        gains: list[float] = []
        for block in self.blocks():
            gains += [sum(self.gains[place] for place in block) / len(block)] * len(block)
        return replace(self, gains=tuple(gains))

    def probabilities(self) -> list[tuple[float, bool]]:
        """Each scored candidate's score, and whether it is relevant."""
        pairs = zip(self.scores, self.gains, strict=bool(self.scores))
        return [
            (score, self.is_relevant(gain))
            for score, gain in pairs
            if score is not None and 0 <= score <= 1
        ]


def dcg(gains: Sequence[float]) -> float:
    """Discounted cumulative gain of gains in rank order (Järvelin and Kekäläinen 2002, base 2)."""
    return sum(max(gain, 0.0) / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def log_loss(probability: float, happened: bool) -> float:
    """-ln of the probability given to what happened, which is kept above 1e-15."""
    return -math.log(max(probability if happened else 1 - probability, TINY))
