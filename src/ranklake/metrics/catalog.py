"""Ranking metrics. Each is defined once, here; METRICS lists them, most important first.

Conventions are trec_eval's: precision divides by k, recall and AP by all relevant items, gain is
linear, the discount is log2(rank + 1). A metric that is undefined for a query is null, never 0.
In the formulas: h = relevant candidates within the first k, G = the relevant items of the query.
"""

import math

from ranklake.errors import near_miss
from ranklake.metrics.metric import Denominator, Metric, Population
from ranklake.metrics.ranking import Ranking, dcg, first

_IIR = "Manning, Raghavan, Schütze, Introduction to Information Retrieval (2008), ch. 8"
_NO_RELEVANT = "the query has no relevant item"
_ALL_FIRST = (Population.ALL, Population.WITH_RELEVANT)
_ALL_ONLY = (Population.ALL,)


def _average_precision(q: Ranking, k: int) -> float | None:
    precisions = [found / rank for found, rank in enumerate(q.hit_ranks(k), start=1)]
    return sum(precisions) / q.n_relevant if q.n_relevant else None


def _reciprocal_rank(q: Ranking, k: int) -> float | None:
    if not q.n_relevant:
        return None
    return max((1 / rank for rank in q.hit_ranks(k)), default=0.0)


RECALL = Metric(
    name="recall",
    aliases=("R",),
    title="Recall at k",
    formula="h / |G|",
    null_when=_NO_RELEVANT,
    reads_as="of a query's relevant items, on average {value} are in the top {k}",
    source=_IIR,
    column=lambda a, k: a.ratio(a.hits_at(k), a.relevant()),
    reference=lambda q, k: q.hits(k) / q.n_relevant if q.n_relevant else None,
)
PRECISION = Metric(
    name="precision",
    aliases=("P",),
    title="Precision at k",
    formula="h / k, also where the query has fewer than k candidates",
    null_when="never",
    reads_as="of the places in the top {k}, on average {value} hold a relevant item",
    source=_IIR,
    populations=_ALL_FIRST,
    column=lambda a, k: a.hits_at(k) / float(k),
    reference=lambda q, k: q.hits(k) / k,
)
F1 = Metric(
    name="f1",
    aliases=("F1",),
    title="F1 at k",
    formula="2PR / (P + R) of the query = 2h / (k + |G|); 0 without a hit",
    null_when=_NO_RELEVANT,
    reads_as="the harmonic mean of precision and recall in the top {k} is on average {value}",
    source=_IIR,
    column=lambda a, k: a.where_relevant(2.0 * a.hits_at(k) / (a.relevant() + float(k))),
    reference=lambda q, k: _f1(q.hits(k) / k, q.hits(k) / q.n_relevant) if q.n_relevant else None,
)
AP = Metric(
    name="ap",
    aliases=("AP", "map", "MAP"),
    title="Average precision at k",
    formula="Σ precision@rank over the hits with rank ≤ k, / |G|",
    null_when=_NO_RELEVANT,
    reads_as="precision at each relevant item of the top {k}, missed ones as 0, averages {value}",
    source=_IIR,
    column=lambda a, k: a.ratio(a.precisions_at_hits(k), a.relevant()),
    reference=_average_precision,
)
RR = Metric(
    name="rr",
    aliases=("RR", "mrr", "MRR"),
    title="Reciprocal rank at k",
    formula="1 / rank of the first hit with rank ≤ k, else 0",
    null_when=_NO_RELEVANT,
    reads_as="1 / rank of the first relevant item, 0 outside the top {k}, is on average {value}",
    source="Voorhees, The TREC-8 Question Answering Track Report (1999)",
    column=lambda a, k: a.where_relevant(a.best_reciprocal_rank(k)),
    reference=_reciprocal_rank,
)
NDCG = Metric(
    name="ndcg",
    aliases=("nDCG", "NDCG"),
    title="Normalized discounted cumulative gain at k",
    formula="Σ gain / log2(rank + 1), rank ≤ k, over the same sum in the ideal order of G",
    null_when=_NO_RELEVANT,
    reads_as="the order of the top {k} reaches on average {value} of the ideal order's gain",
    source="Järvelin and Kekäläinen, ACM TOIS 20(4), 2002",
    column=lambda a, k: a.ratio(a.dcg_at(k), a.ideal_dcg_at(k)),
    reference=lambda q, k: (
        dcg(first(q.gains, k)) / dcg(first(q.ideal, k)) if q.n_relevant else None
    ),
)
HIT_RATE = Metric(
    name="hit_rate",
    aliases=("Success", "HR"),
    title="Hit rate at k",
    formula="1 if h > 0, else 0",
    null_when=_NO_RELEVANT,
    reads_as="{value} of the queries have a relevant item in the top {k}",
    source="success_k of trec_eval (NIST)",
    column=lambda a, k: a.where_relevant((a.hits_at(k) > 0).cast("double")),
    reference=lambda q, k: float(q.hits(k) > 0) if q.n_relevant else None,
)
CTR = Metric(
    name="ctr",
    aliases=("CTR",),
    title="Share of the shown items in the top k that are relevant (click-through rate)",
    formula="Σ h / Σ min(k, n) over all queries",
    null_when="nothing was shown",
    reads_as="{value} of the items shown in the top {k} are relevant",
    source="ratio of sums; Deng, Knoblich, Lu, KDD 2018, on its variance",
    sums_of="hits",
    denominator=Denominator.SHOWN,
    populations=_ALL_ONLY,
    reference=lambda q, k: float(q.hits(k)),
)
HITS = Metric(
    name="hits",
    title="Hits at k",
    formula="h",
    null_when="never",
    reads_as="on average {value} relevant items are in the top {k}",
    source=_IIR,
    populations=_ALL_FIRST,
    upper=math.inf,
    column=lambda a, k: a.hits_at(k),
    reference=lambda q, k: float(q.hits(k)),
)
DCG = Metric(
    name="dcg",
    aliases=("DCG",),
    title="Discounted cumulative gain at k",
    formula="Σ gain / log2(rank + 1), rank ≤ k",
    null_when="never",
    reads_as="the gain of the top {k}, discounted by rank, is on average {value}",
    source="Järvelin and Kekäläinen, ACM TOIS 20(4), 2002",
    populations=_ALL_FIRST,
    upper=math.inf,
    column=lambda a, k: a.dcg_at(k),
    reference=lambda q, k: dcg(first(q.gains, k)),
)
R_PRECISION = Metric(
    name="r_precision",
    aliases=("Rprec",),
    title="R-precision",
    formula="precision at k = |G|",
    null_when=_NO_RELEVANT,
    reads_as="of the first |G| places, on average {value} hold a relevant item",
    source=_IIR,
    has_cutoff=False,
    column=lambda a, k: a.ratio(a.hits_within_relevant(), a.relevant()),
    reference=lambda q, k: q.hits(q.n_relevant) / q.n_relevant if q.n_relevant else None,
)
RECALL_MICRO = Metric(
    name="recall_micro",
    title="Recall at k over all relevant items",
    formula="Σ h / Σ |G| over all queries",
    null_when="no query has a relevant item",
    reads_as="{value} of all relevant items are in the top {k} of their query",
    source=_IIR,
    sums_of="hits",
    denominator=Denominator.RELEVANT,
    populations=_ALL_ONLY,
    reference=lambda q, k: float(q.hits(k)),
)
PRECISION_MICRO = Metric(
    name="precision_micro",
    title="Precision at k over all places",
    formula="Σ h / Σ k over all queries",
    null_when="there is no query",
    reads_as="{value} of all places in the top {k} hold a relevant item",
    source=_IIR,
    sums_of="hits",
    denominator=Denominator.SLOTS,
    populations=_ALL_ONLY,
    reference=lambda q, k: float(q.hits(k)),
)

METRICS = (
    RECALL,
    PRECISION,
    F1,
    AP,
    RR,
    NDCG,
    HIT_RATE,
    CTR,
    HITS,
    DCG,
    R_PRECISION,
    RECALL_MICRO,
    PRECISION_MICRO,
)
DEFAULTS = ("recall", "precision", "f1", "ap", "rr", "ndcg", "hit_rate", "ctr")


def _f1(precision: float, recall: float) -> float:
    both = precision + recall
    return 2 * precision * recall / both if both else 0.0


def metric(name: str) -> Metric:
    """The metric of that name or alias.

    Raises KeyError with the valid names and a near miss: its first argument is the sentence.
    """
    found = [m for m in METRICS if name == m.name or name in m.aliases]
    if found:
        return found[0]
    names = [m.name for m in METRICS]
    hint = near_miss(name.lower(), names)
    raise KeyError(f"unknown metric {name!r}, known are {', '.join(names)}{hint}")
