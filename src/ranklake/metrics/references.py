"""The per-query values in plain Python, slow and obvious: what Spark's expressions must equal.

Each takes a ranking, k (0: every candidate, -1: n_slots) and the metric's options.
"""

import math
from dataclasses import replace

from ranklake.metrics.options import Options
from ranklake.metrics.ranking import MAX_EXPONENT, Ranking, dcg


def average_precision(q: Ranking, k: int, o: Options) -> float | None:
    """Σ precision at the hits, over what the option `denom` says."""
    q = q.at(o["rel"])
    ranks = q.hit_ranks(k)
    if not q.n_relevant:
        return None
    denominators = {
        "rel": q.n_relevant,
        "min_k_rel": min(q.depth(k) if k else q.n_relevant, q.n_relevant),
        "k": q.depth(k),
        "hits": len(ranks),
        "min_rel_n": min(q.n_relevant, q.n_candidates),
    }
    total = sum(found / rank for found, rank in enumerate(ranks, start=1))
    return total / denominators[o["denom"]] if total else 0.0


def reciprocal_rank(q: Ranking, k: int, o: Options) -> float | None:
    """1 / rank of the first hit."""
    q = q.at(o["rel"])
    if not q.n_relevant:
        return None
    return max((1 / rank for rank in q.hit_ranks(k)), default=0.0)


def hits(q: Ranking, k: int, o: Options) -> float:
    """Hits within k: of the order as it is, or over all orders of equal scores."""
    over_ties = {
        "expected": lambda relevant, size, within: relevant * within / size,
        "best": lambda relevant, size, within: min(relevant, within),
        "worst": lambda relevant, size, within: max(0, relevant - (size - within)),
    }
    choose = over_ties.get(o.get("tie_break", "run"))
    q = q.at(o.get("rel"))
    return float(q.hits(k)) if choose is None else q.over_ties(k, choose)


def recall(q: Ranking, k: int, o: Options) -> float | None:
    """h / |G|, or / min(k, |G|)."""
    n_relevant = q.at(o["rel"]).n_relevant
    if not n_relevant:
        return None
    denom = min(q.depth(k), n_relevant) if o["denom"] == "min_k_rel" and k else n_relevant
    return hits(q, k, o) / denom if denom else 0.0


def precision(q: Ranking, k: int, o: Options) -> float | None:
    """h / k, or / min(k, n)."""
    denom = min(q.depth(k), q.n_candidates) if o["denom"] == "min_k_n" else q.depth(k)
    return hits(q, k, o) / denom if denom else 0.0


def f_beta(q: Ranking, k: int, o: Options) -> float | None:
    """(1 + β²) PR / (β² P + R); 0 without a hit."""
    n_relevant = q.at(o["rel"]).n_relevant
    if not n_relevant or not q.depth(k):
        return 0.0 if n_relevant else None
    precision, recall = hits(q, k, o) / q.depth(k), hits(q, k, o) / n_relevant
    weight = float(o["beta"]) ** 2
    both = weight * precision + recall
    return (1 + weight) * precision * recall / both if both else 0.0


def hit_rate(q: Ranking, k: int, o: Options) -> float | None:
    """1 with a hit; `expected`: 1 - the chance of none, block by block."""
    if not q.at(o["rel"]).n_relevant:
        return None
    if o["tie_break"] != "expected":
        return float(hits(q, k, o) > 0)
    missing = 1.0

    def missed(relevant: int, size: int, within: int) -> float:
        nonlocal missing
        missing *= math.comb(size - relevant, within) / math.comb(size, within)
        return 0.0

    q.at(o["rel"]).over_ties(k, missed)
    return 1 - missing


def _gain_of(grade: float, o: Options, q: Ranking) -> float:
    """What an item of that grade gains."""
    if grade <= 0 or (o["gain_respects_rel"] == "true" and not q.is_relevant(grade)):
        return 0.0
    if not isinstance(o["gain"], str):
        return float(dict(o["gain"]).get(grade, grade))
    named = {
        "linear": grade,
        "exp2": 2 ** min(grade, MAX_EXPONENT) - 1,
        "binary": float(q.is_relevant(grade)),
    }
    return float(named[o["gain"]])


def _gained(q: Ranking, o: Options) -> Ranking:
    """The ranking with gains instead of grades."""
    q = q.at(o["rel"])
    gained, missed = (
        tuple(_gain_of(grade, o, q) for grade in grades) for grades in (q.gains, q.missed)
    )
    return replace(q, gains=gained, missed=missed, rel=None)


def gain(q: Ranking, k: int, o: Options) -> float:
    """Σ gain of the first k."""
    return sum(q.gains[: q.depth(k)])


def dcg_of(q: Ranking, k: int, o: Options) -> float:
    """Σ gain / log2(rank + 1); `expected`: of the mean gain at each place."""
    gained = _gained(q, o)
    if o["tie_break"] == "expected":
        gained = gained.averaged()
    return dcg(gained.gains[: q.depth(k)])


def ndcg(q: Ranking, k: int, o: Options) -> float | None:
    """DCG over that of the ideal order."""
    if not q.at(o["rel"]).n_relevant:
        return None
    gained = _gained(q, o)
    ideals = {
        "judged": gained.ideal,
        "candidates": replace(gained, missed=()).ideal,
        "k_ones": [1.0] * q.depth(k),
    }
    ideal = ideals[o["ideal"]]
    cut = len(ideal) if o["ideal_cut"] == "none" or not k else q.depth(k)
    best = dcg(ideal[:cut])
    return dcg_of(q, k, o) / best if best else 0.0


def r_precision(q: Ranking, k: int, o: Options) -> float | None:
    """Precision at |G|."""
    q = q.at(o["rel"])
    return (
        len([r for r in q.hit_ranks(0) if r <= q.n_relevant]) / q.n_relevant
        if q.n_relevant
        else None
    )


def auc(q: Ranking, k: int, o: Options) -> float | None:
    """The share of pairs of a relevant and another candidate in the right order, ties as a half."""
    q = q.at(o["rel"])
    scores = q.scores or tuple(-float(place) for place in range(q.n_candidates))
    keys = [(score is not None, score or 0.0) for score in scores]
    relevant = [key for key, gain in zip(keys, q.gains, strict=True) if q.is_relevant(gain)]
    others = [key for key, gain in zip(keys, q.gains, strict=True) if not q.is_relevant(gain)]
    if not relevant or not others:
        return None
    won = sum((one > other) + 0.5 * (one == other) for one in relevant for other in others)
    return won / (len(relevant) * len(others))


def rbp(q: Ranking, k: int, o: Options) -> float:
    """(1 - p) Σ g p^(rank - 1)."""
    q = q.at(o["rel"])
    p, graded = float(o["p"]), o["max_gain"]
    weights = [
        min(max(gain, 0.0) / graded, 1.0) if graded else float(q.is_relevant(gain))
        for gain in q.gains[: q.depth(k)]
    ]
    return (1 - p) * sum(g * p**place for place, g in enumerate(weights))


def judged(q: Ranking, k: int, o: Options) -> float | None:
    """Judged candidates within k, over min(k, n)."""
    places = min(q.depth(k), q.n_candidates)
    return q.n_judged(k) / places if places else None
