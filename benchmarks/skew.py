"""How evenly the ranked rows fall into partitions, and how well they fill the cores: simulated.

    .venv/bin/python -m benchmarks.skew

For sizes that no machine at hand can run. Queries have Pareto sizes (few are very large), each goes
whole to one partition at random, as a hash sends it, and tasks start in order on whichever core is
free. Queries too many to draw one by one are summed by the central limit theorem; the large
ones, which make the skew, are drawn each.
"""

import heapq
from dataclasses import dataclass

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

DRAWN = 2_000_000
"""So many of the largest queries are drawn one by one."""

Loads = NDArray[np.float64]


@dataclass(frozen=True)
class Sizes:
    """Candidates a query: Pareto from `least` on, none above `limit` (they are left out).

    alpha  the tail: the share of queries larger than x falls as x to the power of -alpha
    """

    alpha: float = 1.5
    mean: float = 20.0
    limit: float = 100_000.0

    @property
    def least(self) -> float:
        """The smallest query, so that the mean is as wanted (without the limit)."""
        return self.mean * (self.alpha - 1) / self.alpha

    def moment(self, power: int, end: float) -> float:
        """The expectation of size^power over the queries up to `end`, the others as 0."""
        exponent = power - self.alpha
        scale = self.alpha * self.least**self.alpha / exponent
        return scale * (end**exponent - self.least**exponent)

    def drawn_above(self, start: float, n: int, rng: np.random.Generator) -> Loads:
        """The sizes of n queries that are larger than `start`, without those above the limit."""
        sizes = start * (1.0 - rng.random(n)) ** (-1.0 / self.alpha)
        return sizes[sizes <= self.limit]


SCENARIOS = {
    "limit 100 000": Sizes(),
    "limit 5 M": Sizes(limit=5e6),
    "heavier tail": Sizes(alpha=1.2),
}


def loads(n_queries: float, n_partitions: int, sizes: Sizes, rng: np.random.Generator) -> Loads:
    """The rows of each partition."""
    one_in = max(1.0, n_queries / DRAWN)  # so many queries is larger than `split`
    split = min(sizes.least * one_in ** (1 / sizes.alpha), sizes.limit)
    n_large = rng.poisson(n_queries * (sizes.least / split) ** sizes.alpha)
    large = sizes.drawn_above(split, n_large, rng)
    where = rng.integers(n_partitions, size=len(large))
    mean, square = (n_queries / n_partitions * sizes.moment(power, split) for power in (1, 2))
    others = rng.normal(mean, np.sqrt(square), n_partitions)
    return others + np.bincount(where, weights=large, minlength=n_partitions)


def makespan(tasks: Loads, cores: int) -> float:
    """When the last task ends, if each starts in order on the first free core, one row a unit."""
    free = [0.0] * cores
    for task in tasks:
        heapq.heapreplace(free, free[0] + task)
    return max(free)


def main(seed: int = 1, ranked: float = 0.26, rows_per_partition: float = 2e6) -> None:
    """Print a row for each size of day and number of cores."""
    table = Table("impressions", "cores", "partitions", "largest / mean", "time / ideal")
    rng = np.random.default_rng(seed)
    for impressions, cores in ((1e9, 16), (1e10, 160), (1e11, 1_600), (1e12, 16_000)):
        rows = impressions * ranked
        n_partitions = max(4 * cores, int(rows / rows_per_partition))
        for name, sizes in SCENARIOS.items():
            found = loads(rows / sizes.mean, n_partitions, sizes, rng)
            uneven = found.max() / found.mean()
            wait = makespan(found, cores) / (found.sum() / cores)
            texts = (f"{impressions / 1e9:,.0f} B, {name}", f"{cores:,}", f"{n_partitions:,}")
            table.add_row(*texts, f"{uneven:.2f}", f"{wait:.3f}")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
