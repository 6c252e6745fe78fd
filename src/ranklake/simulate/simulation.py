"""The knobs of a simulated log, and the truth that follows from them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, Self

from ranklake.errors import ConfigError

_WORST_QUALITY, _QUALITY_RANGE = 0.5, 0.3


@dataclass(frozen=True)
class ModelQuality:
    """One model: how well it orders, and how much of the traffic it gets."""

    name: str
    quality: float
    """Correlation of its score with the log of the relevance. 0: a random order, 1: the best."""
    share: float = 1.0
    """Its weight in the split of the users over the models."""


def rising_models(names: Sequence[str]) -> tuple[ModelQuality, ...]:
    """Models that share the users evenly; each later one orders better.

    >>> [model.quality for model in rising_models(["v1", "v2"])]
    [0.5, 0.65]
    """
    step = _QUALITY_RANGE / max(1, len(names))
    return tuple(
        ModelQuality(name, round(_WORST_QUALITY + step * i, 6)) for i, name in enumerate(names)
    )


@dataclass(frozen=True, kw_only=True)
class Dirt:
    """What is wrong with the log. Every field is a share in [0, 1]; 0 is a clean log."""

    duplicate_share: float = 0.0
    """Impressions that are delivered twice: the same row, except that it arrives later."""
    repeated_click_share: float = 0.0
    """Clicks that are followed by another one of the same user on the same item."""
    unshown_click_share: float = 0.0
    """Clicks that are followed by one on an item that the query did not show."""
    orphan_click_share: float = 0.0
    """Clicks that are followed by one whose query has no impression."""
    late_share: float = 0.0
    """Impressions, clicks and conversions that arrive hours late instead of within a minute."""
    null_score_share: float = 0.0
    """Impressions, and scores of the offline model, without a score."""
    nan_score_share: float = 0.0
    """Impressions, and scores of the offline model, whose score is not a number."""
    null_key_share: float = 0.0
    """Impressions, clicks and conversions without query_id or (as often) without item_id."""
    unknown_user_share: float = 0.05
    """Queries whose user_id is null, '' or '0' (as often): real logs are never free of them."""

    def problems(self) -> Iterator[str]:
        """What is wrong with the values, a sentence each."""
        for field in fields(self):
            share = getattr(self, field.name)
            if not 0 <= share <= 1:
                yield f"{field.name}: found {share}, expected a share in [0, 1]"
        if self.null_score_share + self.nan_score_share > 1:
            yield "null_score_share and nan_score_share: together above 1"


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """All that a simulated log depends on: equal simulations are equal logs, row by row.

    An item at `position` is examined with probability `position ** -examination_decay`. An examined
    item is clicked with probability `click_level` times factors, each 1 on average: its
    relevance in this query, how often this user clicks, and what device, placement and country do.
    """

    seed: int = 1
    first_date: date = date(2026, 1, 1)
    n_dates: int = 3
    n_queries: int = 10_000
    """Queries of one date; a user is always served by the same model."""
    n_items_per_query: int = 20
    n_catalogue_items: int = 1_000_000
    hot_query_items: int = 0
    """Candidates of the first query of each date; 0: as many as every other query has."""
    models: tuple[ModelQuality, ...] = rising_models(["v1", "v2"])
    """The models that serve."""
    offline_model: ModelQuality = ModelQuality("v3_offline", quality=0.8)
    """The model that scores all the queries again in the `scores` table."""
    n_unshown_scored: int = 5
    """Items of each query that the offline model scores although they were not shown."""
    queries_per_user: float = 3.0
    """Queries a date and user, on average. A few ask much: 1 % of them ask 5 %."""
    click_level: float = 0.06
    """Clicks a shown item at position 1, were the order random. The default: 26 % of the queries
    of the default models have a click."""
    examination_decay: float = 1.0
    relevance_tail: float = 0.5
    """Relevance is Pareto distributed with exponent 1 / relevance_tail; 0: all items are equal."""
    user_sigma: float = 0.8
    """Standard deviation of the log of a user's own click rate: what makes rows correlated."""
    conversion_share: float = 0.05
    """Clicked items that convert."""
    dirt: Dirt = Dirt()

    def __post_init__(self) -> None:
        problems = [*_problems(self), *self.dirt.problems()]
        if problems:
            raise ConfigError([f"simulation: {problem}" for problem in problems])

    @classmethod
    def of_rows(
        cls, n_rows: int, *, n_dates: int = 3, n_items_per_query: int = 20, **knobs: Any
    ) -> Self:
        """The simulation of about `n_rows` impressions (duplicates and a hot query come on top).

        >>> Simulation.of_rows(1_000_000, n_dates=5).n_queries
        10000
        """
        n_queries = max(1, round(n_rows / (n_dates * n_items_per_query)))
        return cls(
            n_queries=n_queries, n_dates=n_dates, n_items_per_query=n_items_per_query, **knobs
        )

    @property
    def n_rows_per_date(self) -> int:
        """Impressions of one date, duplicates not counted."""
        regular_rows = self.n_queries * self.n_items_per_query
        return regular_rows + max(0, self.hot_query_items - self.n_items_per_query)

    @property
    def n_users(self) -> int:
        """Users there are; the same ones ask on every date."""
        return max(1, round(self.n_queries / self.queries_per_user))

    @property
    def models_best_first(self) -> tuple[str, ...]:
        """Known truth: the names of the serving models in the order of every ranking metric."""
        best_first = sorted(self.models, key=lambda model: -model.quality)
        return tuple(model.name for model in best_first)

    def examination(self, position: int) -> float:
        """Known truth: the probability that a user looks at this position."""
        return math.pow(position, -self.examination_decay)

    def random_click_rate(self, position: int) -> float:
        """Known truth: the click rate at this position under a model of quality 0.

        A little less where factors multiply beyond a probability of 1. A better model has more
        clicks at the top and fewer at the bottom.
        """
        return self.click_level * self.examination(position)


def _problems(simulation: Simulation) -> Iterator[str]:
    """What is wrong with the knobs beside the dirt, a sentence each."""
    yield from _size_problems(simulation)
    yield from _model_problems((*simulation.models, simulation.offline_model))
    if not simulation.models:
        yield "models: found none, expected at least one"
    for name in ("click_level", "conversion_share"):
        share = getattr(simulation, name)
        if not 0 <= share <= 1:
            yield f"{name}: found {share}, expected a share in [0, 1]"
    for name in ("examination_decay", "user_sigma"):
        if getattr(simulation, name) < 0:
            yield f"{name}: found {getattr(simulation, name)}, expected at least 0"
    if not 0 <= simulation.relevance_tail < 1:
        yield f"relevance_tail: found {simulation.relevance_tail}, expected a number in [0, 1)"


def _size_problems(simulation: Simulation) -> Iterator[str]:
    for name in ("n_dates", "n_queries", "n_items_per_query"):
        if getattr(simulation, name) < 1:
            yield f"{name}: found {getattr(simulation, name)}, expected at least 1"
    if simulation.queries_per_user <= 0:
        yield f"queries_per_user: found {simulation.queries_per_user}, expected more than 0"
    if simulation.hot_query_items < 0:
        yield f"hot_query_items: found {simulation.hot_query_items}, expected at least 0"
    n_candidates = max(simulation.n_items_per_query, simulation.hot_query_items)
    if simulation.n_catalogue_items < 2 * n_candidates:
        # as many again, so that each shown item has one that was not shown
        yield (
            f"n_catalogue_items: found {simulation.n_catalogue_items}, "
            f"expected at least twice the {n_candidates} candidates of a query"
        )
    if not 0 <= simulation.n_unshown_scored <= simulation.n_items_per_query:
        yield (
            f"n_unshown_scored: found {simulation.n_unshown_scored}, "
            f"expected 0 to n_items_per_query ({simulation.n_items_per_query})"
        )


def _model_problems(models: Sequence[ModelQuality]) -> Iterator[str]:
    names = [model.name for model in models]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"models: the name '{name}' is used {names.count(name)} times, expected once"
    for model in models:
        if not 0 <= model.quality <= 1:
            yield f"model '{model.name}': found quality {model.quality}, expected [0, 1]"
        if model.share <= 0:
            yield f"model '{model.name}': found share {model.share}, expected more than 0"
