"""Users with tastes of their own, what they click, and how two rankers would have ordered it.

In numpy: a world with a known truth for everything that is estimated and compared. Users differ in
how much they ask, in how often they click and in how well a ranker orders for them, so the queries
of a user are alike; a second ranker is better, or worse, by as much as is said, on each device. The
truth is what a draw of very many users shows: nobody can write down the mean nDCG of such a world.

`simulate` writes logs of billions of rows on Spark; a draw here is a few thousand queries in
milliseconds, which is what a thousand replications of an interval need.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SERVING, BASELINE, CANDIDATE = "serving", "baseline", "candidate"
MODELS = (SERVING, BASELINE, CANDIDATE)

DEVICES: Mapping[str, float] = {"desktop": 0.3, "mobile": 0.6, "tablet": 0.1}
"""Each device's share of the users."""


@dataclass(frozen=True, kw_only=True)
class Population:
    """What the users of a world have in common, and how much they differ.

    queries_per_user   on average; a few users ask far more (a Gamma distribution of shape
                       `activity` behind a Poisson one)
    n_items            candidates of each query
    click_level        probability that the average user clicks the average item at position 1
    click_sigma        standard deviation of the log of a user's own click rate
    quality            correlation of the rankers' scores with the log of the relevance
    taste_sigma        standard deviation of a user's own quality, the same for all rankers
    lift               quality of the candidate above that of the baseline, by device
    lift_sigma         standard deviation of a user's own lift; without it and without a lift both
                       rankers are alike
    """

    queries_per_user: float = 4.0
    activity: float = 0.5
    n_items: int = 20
    click_level: float = 0.25
    click_sigma: float = 0.8
    relevance_tail: float = 0.5
    quality: float = 0.5
    taste_sigma: float = 0.25
    lift: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(DEVICES, 0.0))
    lift_sigma: float = 0.5

    def drawn(self, n_users: int, random: np.random.Generator) -> "Drawn":
        """The queries of so many users, in no order. Users who ask nothing have no row."""
        rates = random.gamma(self.activity, self.queries_per_user / self.activity, n_users)
        user = np.repeat(np.arange(n_users), random.poisson(rates))
        device = random.choice(len(DEVICES), n_users, p=[*DEVICES.values()])[user]
        shape = (len(user), self.n_items)
        truth = random.exponential(size=shape)
        scores = {
            model: self._scores(truth, quality[user], random)
            for model, quality in self._qualities(n_users, device, user, random).items()
        }
        appeal = np.exp(random.normal(-(self.click_sigma**2) / 2, self.click_sigma, n_users))
        relevance = np.exp(self.relevance_tail * truth) * (1 - self.relevance_tail)
        attraction = self.click_level * relevance * appeal[user][:, None]
        is_clicked = random.random(shape) < attraction / ranks(scores[SERVING])
        return Drawn(user, device, scores, is_clicked)

    def _qualities(
        self, n_users: int, device: Ints, user: Ints, random: np.random.Generator
    ) -> dict[str, Array]:
        """Each ranker's quality for each user."""
        own = self.quality + random.normal(0, self.taste_sigma, n_users)
        of_device = np.zeros(n_users)
        of_device[user] = np.array([self.lift[name] for name in DEVICES])[device]
        better = own + of_device + random.normal(0, self.lift_sigma, n_users)
        return {SERVING: own, BASELINE: own, CANDIDATE: better}

    def _scores(self, truth: Array, quality: Array, random: np.random.Generator) -> Array:
        known = np.clip(quality, -1, 1)[:, None]
        noise = random.standard_normal(truth.shape)
        scores: Array = known * (truth - 1) + np.sqrt(1 - known * known) * noise
        return scores


class Values(NamedTuple):
    """A metric of every query: its value is num / den of all of them. Both (queries,)."""

    num: Array
    den: Array

    @property
    def mean(self) -> float:
        """The value."""
        return float(self.num.sum() / self.den.sum())


@dataclass(frozen=True)
class Drawn:
    """Some queries, one a row: who asked, on which device, and (queries, items) of each candidate.

    `device` numbers DEVICES; the items were shown in the order of the serving ranker's scores.
    """

    user: Ints
    device: Ints
    scores: Mapping[str, Array]
    is_clicked: npt.NDArray[np.bool_]

    def recall(self, model: str, k: int) -> Values:
        """Of queries with a click: the share of their clicked items in the ranker's top k."""
        n_clicked = self.is_clicked.sum(axis=1)
        hits = (self.is_clicked & (ranks(self.scores[model]) <= k)).sum(axis=1)
        return _of(hits / np.maximum(n_clicked, 1), n_clicked > 0)

    def ndcg(self, model: str, k: int) -> Values:
        """Of queries with a click: gain 1 a clicked item, discount log2(rank + 1), up to rank k."""
        n_clicked = self.is_clicked.sum(axis=1)
        rank = ranks(self.scores[model])
        gains = np.where(self.is_clicked & (rank <= k), 1 / np.log2(rank + 1), 0.0).sum(axis=1)
        best = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(1, k + 1) + 1))])
        ideal = best[np.minimum(n_clicked, k)]
        return _of(gains / np.where(n_clicked > 0, ideal, 1), n_clicked > 0)

    def ctr(self, k: int) -> Values:
        """Clicks on the first k places, of all that were shown there."""
        on_top = ranks(self.scores[SERVING]) <= k
        clicks = (self.is_clicked & on_top).sum(axis=1)
        return Values(clicks.astype(float), on_top.sum(axis=1).astype(float))

    def where(self, kept: npt.NDArray[np.bool_]) -> "Drawn":
        """These queries alone."""
        scores = {model: of_model[kept] for model, of_model in self.scores.items()}
        return Drawn(self.user[kept], self.device[kept], scores, self.is_clicked[kept])

    def parts(self) -> Iterator[tuple[str, "Drawn"]]:
        """The queries of each device, by its name."""
        for number, name in enumerate(DEVICES):
            yield name, self.where(self.device == number)


def ranks(scores: Array) -> Ints:
    """Each item's rank in its query, 1 for the highest score."""
    order = np.argsort(-scores, axis=1)
    found = np.empty_like(order)
    places = np.broadcast_to(np.arange(1, scores.shape[1] + 1), order.shape)
    np.put_along_axis(found, order, places, axis=1)
    return found


def _of(values: Array, is_defined: npt.NDArray[np.bool_]) -> Values:
    return Values(np.where(is_defined, values, 0.0), is_defined.astype(float))
