"""Every metric is defined once: METRICS lists them, most important first."""

from ranklake.errors import near_miss
from ranklake.metrics.metric import Metric
from ranklake.metrics.per_query import (
    AP,
    AUC,
    DCG,
    F1,
    HIT_RATE,
    HITS,
    JUDGED,
    NDCG,
    PRECISION,
    R_PRECISION,
    RBP,
    RECALL,
    RR,
    TIED,
    VALUE,
)
from ranklake.metrics.ratios import CALIBRATION, CTR, CVR, LOG_LOSS, PRECISION_MICRO, RECALL_MICRO

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
    AUC,
    RBP,
    JUDGED,
    TIED,
    CVR,
    VALUE,
    CALIBRATION,
    LOG_LOSS,
)
DEFAULTS = ("recall", "precision", "f1", "ap", "rr", "ndcg", "hit_rate", "ctr")


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
