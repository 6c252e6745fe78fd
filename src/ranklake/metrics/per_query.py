"""Metrics of a query, most important first: their value over many is a mean of the queries' values.

Conventions are trec_eval's: precision divides by k, recall and AP by all relevant items, gain is
linear, the discount is log2(rank + 1). A metric that is undefined for a query is null, never 0.
In the formulas: h = relevant candidates within the first k, n = candidates, G = the relevant items
of the query.
"""

import math

from ranklake.metrics import references
from ranklake.metrics.metric import (
    CONVERSION_VALUE,
    Cutoff,
    Denominator,
    Metric,
    Need,
    Population,
)
from ranklake.metrics.options import (
    ALL_TIES,
    AP_DENOM,
    AUC_AVERAGE,
    AVERAGE,
    BETA,
    F1_MEAN,
    GAIN,
    GAIN_RESPECTS_REL,
    IDEAL,
    IDEAL_CUT,
    MAX_GAIN,
    PERSISTENCE,
    PRECISION_DENOM,
    RECALL_DENOM,
    REL,
    TIES,
    TIES_AVERAGED,
)

_IIR = "Manning, Raghavan, Schütze, Introduction to Information Retrieval (2008), ch. 8"
_NO_RELEVANT = "the query has no relevant item"
_ALL_FIRST = (Population.ALL, Population.WITH_RELEVANT)
_ALL_ONLY = (Population.ALL,)

_ORDERED = (REL, TIES, AVERAGE)
_TIED = (REL, ALL_TIES, AVERAGE)
_GAINED = (REL, GAIN, GAIN_RESPECTS_REL, TIES_AVERAGED, AVERAGE)

RECALL = Metric(
    name="recall",
    aliases=("R",),
    title="Recall at k",
    formula="h / |G|",
    null_when=_NO_RELEVANT,
    reads_as="of a query's relevant items, on average {value} are in the top {k}",
    source=_IIR,
    cutoff=Cutoff.OPTIONAL,
    options=(RECALL_DENOM, *_TIED),
    column=lambda a, k: a.where_relevant(a.or_zero(a.chosen_ratio(a.hits_at(k), k))),
    of_ranking=references.recall,
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
    options=(PRECISION_DENOM, *_TIED),
    column=lambda a, k: a.or_zero(a.chosen_ratio(a.hits_at(k), k)),
    of_ranking=references.precision,
)
F1 = Metric(
    name="f1",
    aliases=("F1", "f_beta"),
    title="F1 at k",
    formula="2PR / (P + R) of the query = 2h / (k + |G|); 0 without a hit",
    null_when=_NO_RELEVANT,
    reads_as="the harmonic mean of precision and recall in the top {k} is on average {value}",
    source=f"{_IIR}; van Rijsbergen, Information Retrieval (1979), ch. 7, on beta",
    options=(BETA, F1_MEAN, *_ORDERED),
    column=lambda a, k: a.where_relevant(a.f_at(k)),
    of_ranking=references.f_beta,
)
AP = Metric(
    name="ap",
    aliases=("AP", "map", "MAP"),
    title="Average precision at k",
    formula="Σ precision@rank over the hits with rank ≤ k, / |G|",
    null_when=_NO_RELEVANT,
    reads_as="precision at each relevant item of the top {k}, missed ones as 0, averages {value}",
    source=_IIR,
    cutoff=Cutoff.OPTIONAL,
    options=(AP_DENOM, *_ORDERED),
    column=lambda a, k: a.where_relevant(a.or_zero(a.chosen_ratio(a.precisions_at_hits(k), k))),
    of_ranking=references.average_precision,
)
RR = Metric(
    name="rr",
    aliases=("RR", "mrr", "MRR"),
    title="Reciprocal rank at k",
    formula="1 / rank of the first hit with rank ≤ k, else 0",
    null_when=_NO_RELEVANT,
    reads_as="1 / rank of the first relevant item, 0 outside the top {k}, is on average {value}",
    source="Voorhees, The TREC-8 Question Answering Track Report (1999)",
    cutoff=Cutoff.OPTIONAL,
    options=_ORDERED,
    column=lambda a, k: a.where_relevant(a.best_reciprocal_rank(k)),
    of_ranking=references.reciprocal_rank,
)
NDCG = Metric(
    name="ndcg",
    aliases=("nDCG", "NDCG"),
    title="Normalized discounted cumulative gain at k",
    formula="Σ gain / log2(rank + 1), rank ≤ k, over the same sum in the ideal order of G",
    null_when=_NO_RELEVANT,
    reads_as="the order of the top {k} reaches on average {value} of the ideal order's gain",
    source="Järvelin and Kekäläinen, ACM TOIS 20(4), 2002",
    cutoff=Cutoff.OPTIONAL,
    options=(IDEAL, IDEAL_CUT, *_GAINED),
    column=lambda a, k: a.where_relevant(a.or_zero(a.ratio(a.dcg_at(k), a.ideal_dcg_at(k)))),
    of_ranking=references.ndcg,
)
HIT_RATE = Metric(
    name="hit_rate",
    aliases=("Success", "HR"),
    title="Hit rate at k",
    formula="1 if h > 0, else 0",
    null_when=_NO_RELEVANT,
    reads_as="{value} of the queries have a relevant item in the top {k}",
    source="success_k of trec_eval (NIST)",
    cutoff=Cutoff.OPTIONAL,
    options=_TIED,
    column=lambda a, k: a.where_relevant(a.any_hit_at(k)),
    of_ranking=references.hit_rate,
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
    cutoff=Cutoff.OPTIONAL,
    options=_TIED,
    column=lambda a, k: a.hits_at(k),
    of_ranking=references.hits,
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
    cutoff=Cutoff.OPTIONAL,
    options=_GAINED,
    column=lambda a, k: a.dcg_at(k),
    of_ranking=references.dcg_of,
)
VALUE = Metric(
    name=CONVERSION_VALUE,
    title="Value of the conversions in the top k",
    formula="Σ value of the conversions of an item, rank ≤ k",
    null_when="never",
    reads_as="the conversions of the top {k} are on average worth {value} a query",
    source="cumulated gain; Järvelin and Kekäläinen, ACM TOIS 20(4), 2002",
    populations=_ALL_FIRST,
    upper=math.inf,
    cutoff=Cutoff.OPTIONAL,
    of_label=CONVERSION_VALUE,
    column=lambda a, k: a.gain_at(k),
    of_ranking=references.gain,
)
R_PRECISION = Metric(
    name="r_precision",
    aliases=("Rprec",),
    title="R-precision",
    formula="precision at k = |G|",
    null_when=_NO_RELEVANT,
    reads_as="of the first |G| places, on average {value} hold a relevant item",
    source=_IIR,
    cutoff=Cutoff.NONE,
    options=_ORDERED,
    column=lambda a, k: a.ratio(a.hits_within_relevant(), a.relevant()),
    of_ranking=references.r_precision,
)
AUC = Metric(
    name="auc",
    aliases=("AUC", "ROC_AUC"),
    title="Area under the ROC curve of the query",
    formula="P(a relevant candidate's score is above another candidate's), equal scores as a half",
    null_when="no candidate is relevant, or every one is",
    reads_as="a relevant candidate outranks another one in on average {value} of the pairs",
    source="Fawcett, Pattern Recognition Letters 27, 2006; Mann and Whitney 1947",
    denominator=Denominator.DEFINED,
    populations=(Population.WITH_RELEVANT,),
    cutoff=Cutoff.NONE,
    options=(REL, AUC_AVERAGE),
    needs=frozenset({Need.TIES}),
    column=lambda a, k: a.auc(),
    of_ranking=references.auc,
)
RBP = Metric(
    name="rbp",
    aliases=("RBP",),
    title="Rank-biased precision",
    formula="(1 - p) Σ g p^(rank - 1), g = 1 where relevant, or grade / max_gain",
    null_when="never",
    reads_as="a user who goes on with chance p gains on average {value} an item looked at",
    source="Moffat and Zobel, ACM TOIS 27(1), 2008",
    populations=_ALL_FIRST,
    cutoff=Cutoff.OPTIONAL,
    options=(PERSISTENCE, MAX_GAIN, *_ORDERED),
    column=lambda a, k: a.rank_biased_gain(k),
    of_ranking=references.rbp,
)
JUDGED = Metric(
    name="judged",
    aliases=("Judged",),
    title="Share of the top k that is judged",
    formula="judged candidates with rank ≤ k, / min(k, n)",
    null_when="the query has no candidate",
    reads_as="of the candidates in the top {k}, on average {value} have a judgment (or were shown)",
    source="Judged of ir_measures (MacAvaney, Macdonald, Ounis, ECIR 2022)",
    populations=_ALL_ONLY,
    options=(TIES, AVERAGE),
    needs=frozenset({Need.JUDGED}),
    column=lambda a, k: a.ratio(a.judged_at(k), a.shown_at(k)),
    of_ranking=references.judged,
    better="neither",
)
TIED = Metric(
    name="tied",
    title="Whether the order of equal scores decides how many hits are within k",
    formula="1 if the most and the fewest hits over all orders of equal scores differ, else 0",
    null_when="never",
    reads_as="in {value} of the queries equal scores decide what is in the top {k}",
    source="McSherry and Najork, ECIR 2008",
    populations=_ALL_FIRST,
    needs=frozenset({Need.TIES}),
    column=lambda a, k: a.depends_on_ties(k),
    of_ranking=lambda q, k, o: float(
        references.hits(q, k, {"tie_break": "best"}) > references.hits(q, k, {"tie_break": "worst"})
    ),
    better="neither",
)
