"""Metrics over queries: a sum over all of them, over another sum."""

import math

from ranklake.metrics import references
from ranklake.metrics.metric import CONVERSION, Cutoff, Denominator, Metric, Need, Population
from ranklake.metrics.ranking import log_loss

_DENG = "ratio of sums; Deng, Knoblich, Lu, KDD 2018, on its variance"
_IIR = "Manning, Raghavan, Schütze, Introduction to Information Retrieval (2008), ch. 8"
_ALL_ONLY = (Population.ALL,)

CTR = Metric(
    name="ctr",
    aliases=("CTR",),
    title="Share of the shown items in the top k that are relevant (click-through rate)",
    formula="Σ h / Σ min(k, n) over all queries",
    null_when="nothing was shown",
    reads_as="{value} of the items shown in the top {k} are relevant",
    source=_DENG,
    sums_of="hits",
    denominator=Denominator.SHOWN,
    populations=_ALL_ONLY,
    of_ranking=references.hits,
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
    cutoff=Cutoff.OPTIONAL,
    of_ranking=references.hits,
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
    of_ranking=references.hits,
)
CVR = Metric(
    name="cvr",
    aliases=("CVR",),
    title="Conversions per click in the top k",
    formula="Σ h of the label conversion / Σ h of the label click, over all queries",
    null_when="there is no click in the top k",
    reads_as="{value} of the clicks in the top {k} led to a conversion",
    source=_DENG,
    sums_of="hits",
    denominator=Denominator.CLICKS,
    of_label=CONVERSION,
    populations=_ALL_ONLY,
    upper=math.inf,
    cutoff=Cutoff.OPTIONAL,
    of_ranking=references.hits,
)
CALIBRATION = Metric(
    name="calibration",
    title="Predicted over observed",
    formula="Σ score / Σ 1 where relevant, over all candidates with a score",
    null_when="no candidate with a score is relevant",
    reads_as="the scores predict {value} times as many relevant candidates as there are",
    source="He et al., ADKDD 2014, section 3 (calibration)",
    denominator=Denominator.LABELS,
    populations=_ALL_ONLY,
    upper=math.inf,
    cutoff=Cutoff.NONE,
    needs=frozenset({Need.SCORES}),
    of_counts="score_sum",
    column=lambda a, k: a.sum_of_scores(),
    of_ranking=lambda q, k, o: sum(p for p, _ in q.probabilities()),
    better="neither",
)
LOG_LOSS = Metric(
    name="log_loss",
    aliases=("logloss",),
    title="Mean log loss of the scores as probabilities",
    formula="-Σ ln(score where relevant, 1 - score elsewhere) / candidates with a score",
    null_when="no candidate has a score",
    reads_as="the scores' log loss is on average {value}",
    source="Bishop, Pattern Recognition and Machine Learning (2006), section 4.3.2",
    denominator=Denominator.SCORED,
    populations=_ALL_ONLY,
    upper=math.inf,
    cutoff=Cutoff.NONE,
    needs=frozenset({Need.SCORES}),
    of_counts="miss_loss",
    column=lambda a, k: a.sum_of_losses(),
    of_ranking=lambda q, k, o: sum(log_loss(p, happened) for p, happened in q.probabilities()),
    better="lower",
)
