"""Intervals, p-values and gates against a known truth: thousands of draws of the same world.

    .venv/bin/python -m benchmarks.replications

Each replication draws the queries of so many users, and asks ranklake what it asks of published
sums. The truth is one draw of very many users. Beside ranklake's intervals stand those of rows that
are taken for independent, which is what most evaluators print.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table
from scipy import stats

from ranklake import population
from ranklake.comparison import Comparison, Question, Series, Side, Verdict, compared
from ranklake.config import Gate, of_values
from ranklake.estimate import estimated
from ranklake.population import BASELINE, CANDIDATE, Drawn, Population, Values

K = 10
N_BUCKETS = 400
ALPHA = 0.05
WORLD = Population(lift=dict.fromkeys(population.DEVICES, -0.08))
"""The candidate is worse, for some users more than for others."""
DIFFERENCE = f"recall@{K}, candidate - baseline"
_RECALL = Series("all", "all", "click", "with_relevant", "recall", "", K)
Each = Callable[[Callable[[int], Any], Iterable[int]], Iterator[Any]]
_AT_ONCE = 25_000
"""Users that are drawn together for the truth."""


class Interval(NamedTuple):
    """Of one replication."""

    low: float
    high: float

    def has(self, truth: float) -> bool:
        """Whether it covers the truth."""
        return self.low <= truth <= self.high


@dataclass(frozen=True)
class Replication:
    """What one draw says: intervals by name, ranklake's and those of independent rows."""

    intervals: Mapping[str, Interval]
    naive: Mapping[str, Interval]
    delta: float
    p_value: float


def replicated(seed: int, n_users: int) -> Replication:
    """One draw of the world."""
    drawn = WORLD.drawn(n_users, np.random.default_rng([1, seed]))
    one, other = side(CANDIDATE, drawn), side(BASELINE, drawn)
    (row,) = compared(one, other, Question([_RECALL], confidence=1 - ALPHA)).rows.to_pylist()
    found = {
        row["metric"]: Interval(row["ci_low"], row["ci_high"])
        for row in estimated(other.sums, confidence=1 - ALPHA).to_pylist()
        if row["status"] == "ok"
    }
    return Replication(
        intervals={
            **{f"{metric}@{K}": found[metric] for metric in ("recall", "ndcg", "ctr")},
            DIFFERENCE: Interval(row["ci_low"], row["ci_high"]),
        },
        naive={name: _independent(values) for name, values in _measured(drawn).items()},
        delta=row["delta"],
        p_value=row["p_value"],
    )


def split(seed: int, n_users: int) -> Comparison:
    """The same ranker for two halves of the users, and a gate that allows no drop at all."""
    random = np.random.default_rng([2, seed])
    drawn = WORLD.drawn(n_users, random)
    in_one = random.random(n_users)[drawn.user] < 1 / 2
    one, other = side(BASELINE, drawn.where(in_one)), side(BASELINE, drawn.where(~in_one))
    return compared(one, other, Question([_RECALL], gate(0.0), 1 - ALPHA))


def dropped(seed: int, n_users: int, max_drop: float) -> Comparison:
    """The worse candidate, and a gate that allows some of it."""
    drawn = WORLD.drawn(n_users, np.random.default_rng([3, seed]))
    question = Question((), gate(max_drop), 1 - ALPHA)
    return compared(side(CANDIDATE, drawn), side(BASELINE, drawn), question)


def gate(max_drop: float) -> Gate:
    """One rule on recall."""
    rule = {"measure": f"recall@{K}", "max_drop": max_drop, "role": "primary", "min_queries": 0}
    return of_values({"gate": {"rules": [rule]}}).gate


def truth(n_users: int, each: Each = map) -> dict[str, float]:
    """The world's values by name. `each` is map, or that of a pool of processes."""
    parts = list(each(partial(_totals, n_users=_AT_ONCE), range(-(-n_users // _AT_ONCE))))
    return {
        name: sum(part[name][0] for part in parts) / sum(part[name][1] for part in parts)
        for name in parts[0]
    }


def _totals(seed: int, n_users: int) -> dict[str, tuple[float, float]]:
    drawn = WORLD.drawn(n_users, np.random.default_rng([4, seed]))
    return {
        name: (float(values.num.sum()), float(values.den.sum()))
        for name, values in _measured(drawn).items()
    }


def _measured(drawn: Drawn) -> dict[str, Values]:
    one, other = drawn.recall(CANDIDATE, K), drawn.recall(BASELINE, K)
    return {
        f"recall@{K}": other,
        f"ndcg@{K}": drawn.ndcg(BASELINE, K),
        f"ctr@{K}": drawn.ctr(K),
        DIFFERENCE: Values(one.num - other.num, one.den),
    }


def _independent(values: Values) -> Interval:
    """As if the queries, or the items that were shown, had nothing to do with each other."""
    n, mean = values.den.sum(), values.mean
    if values.den.max() > 1:  # a rate of rows
        half = np.sqrt(mean * (1 - mean) / n)
    else:
        of = values.num[values.den > 0]
        half = of.std(ddof=1) / np.sqrt(n)
    half *= stats.norm.ppf(1 - ALPHA / 2)
    return Interval(mean - half, mean + half)


def side(model: str, drawn: Drawn) -> Side:
    """The sums of the model's recall and nDCG, and of the click rate of what was shown."""
    labelled = drawn.is_clicked.any(axis=1).astype(float)
    every = np.ones(len(labelled))
    rows = {
        ("n_queries", 0, "all"): Values(every, every),
        ("n_queries", 0, "with_relevant"): Values(labelled, labelled),
        ("hit_rate", K, "with_relevant"): Values(
            (drawn.recall(model, K).num > 0).astype(float), labelled
        ),
        ("recall", K, "with_relevant"): drawn.recall(model, K),
        ("ndcg", K, "with_relevant"): drawn.ndcg(model, K),
        ("ctr", K, "all"): drawn.ctr(K),
    }
    buckets = drawn.user % N_BUCKETS
    ids = np.random.default_rng(0).integers(1, 2**62, len(labelled))
    hashes = np.zeros(N_BUCKETS, dtype=np.int64)
    np.bitwise_xor.at(hashes, buckets, ids)
    sums = pa.Table.from_pylist(list(_rows(model, rows, buckets, hashes)))
    return Side(model, [date(2026, 1, 1)], sums, "run", None, None, shows_all=True)


def _rows(
    model: str,
    rows: Mapping[tuple[str, int, str], Values],
    buckets: population.Ints,
    hashes: population.Ints,
) -> Iterator[dict[str, object]]:
    for (metric, k, of), values in rows.items():
        num, den = (np.bincount(buckets, part, N_BUCKETS) for part in values)
        key = {"slice": "all", "slice_value": "all", "label": "click", "population": of}
        yield {"model_version": model, **key, "metric": metric, "variant": "", "k": k} | {
            "num": num,
            "den": den,
            "fingerprint": hashes if (metric, of) == ("n_queries", "all") else None,
            "definition_hash": metric,
        }


class Share(NamedTuple):
    """How often something was seen, and between which shares it must lie."""

    what: str
    share: float
    least: float | None = None
    most: float | None = None

    @property
    def is_right(self) -> bool:
        """Whether it lies there."""
        return (self.least or 0.0) <= self.share <= (1.0 if self.most is None else self.most)


def shares(n: int, n_users: int, n_truth: int, each: Each) -> Iterator[Share]:
    """All that is claimed. Bounds of coverage are 93 and 97 %; others, 3 standard errors wide."""
    values = truth(n_truth, each)
    found = list(each(partial(replicated, n_users=n_users), range(n)))
    for name, value in values.items():
        covered = [one.intervals[name].has(value) for one in found]
        yield Share(f"{name}: the interval covers the truth", _mean(covered), 0.93, 0.97)
    for name, value in values.items():
        covered = [one.naive[name].has(value) for one in found]
        yield Share(f"{name}: that of independent rows does", _mean(covered), most=0.93)
    halves = list(each(partial(split, n_users=n_users), range(n)))
    p_values = [row["p_value"] for half in halves for row in half.rows.to_pylist()[:1]]
    yield _about(f"A/A: p < {ALPHA}", _mean([p < ALPHA for p in p_values]), ALPHA, n)
    failed = [half.verdict is Verdict.FAIL for half in halves]
    yield _about("A/A: FAIL where no drop is allowed", _mean(failed), ALPHA / 2, n)
    std_err = float(np.std([one.delta for one in found], ddof=1))
    max_drop = -values[DIFFERENCE] - 2.8 * std_err
    ask = partial(dropped, n_users=n_users, max_drop=max_drop)
    failed = [one.verdict is Verdict.FAIL for one in each(ask, range(n))]
    drop = f"{max_drop:.4f} + 2.8 x {std_err:.4f}"
    yield _about(f"a drop of {drop} where {max_drop:.4f} is allowed: FAIL", _mean(failed), 0.8, n)


def _mean(seen: Sequence[bool]) -> float:
    return sum(seen) / len(seen)


def _about(what: str, share: float, expected: float, n: int) -> Share:
    """Three standard errors around the expected share, and 0.02 for what a normal distribution
    leaves out.
    """
    reach = 3 * (expected * (1 - expected) / n) ** 0.5 + (0.02 if expected > 1 / 2 else 0.0)
    return Share(what, share, max(0.0, expected - reach), expected + reach)


def main(
    replications: Annotated[int, typer.Option(help="Draws for each share.")] = 2_000,
    users: Annotated[int, typer.Option(help="Of each draw.")] = 2_000,
    truth_users: Annotated[int, typer.Option(help="Of the draw that is the truth.")] = 10_000_000,
) -> None:
    """Print how often each claim holds; fail where it is less, or more, often than promised."""
    table = Table("what", "share", "expected")
    with ProcessPoolExecutor() as pool:
        each = partial(pool.map, chunksize=10)
        found = list(shares(replications, users, truth_users, each))
    for what, share, least, most in found:
        ends = ["" if end is None else f"{end:.1%}" for end in (least, most)]
        expected = f"{ends[0]} to {ends[1]}" if least is not None else f"below {ends[1]}"
        table.add_row(what, f"{share:.1%}", expected)
    Console().print(table)
    wrong = [one.what for one in found if not one.is_right]
    if wrong:
        raise SystemExit(f"not as expected: {'; '.join(wrong)}")


if __name__ == "__main__":
    sys.exit(typer.run(main))
