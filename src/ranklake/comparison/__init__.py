"""Two models' sums → paired differences, p-values, verdicts. numpy, no Spark."""

from ranklake.comparison.ask import compare, gate
from ranklake.comparison.compared import DEFAULT_CONFIDENCE, Comparison, Question, compared
from ranklake.comparison.differences import Differences, Interval, differences, sign_flips
from ranklake.comparison.families import benjamini_hochberg, holm
from ranklake.comparison.pairing import Kind, Pairing
from ranklake.comparison.sides import Series, Side
from ranklake.comparison.tables import Tables
from ranklake.comparison.trends import Trend, trend
from ranklake.comparison.verdicts import Verdict

__all__ = [
    "DEFAULT_CONFIDENCE",
    "Comparison",
    "Differences",
    "Interval",
    "Kind",
    "Pairing",
    "Question",
    "Series",
    "Side",
    "Tables",
    "Trend",
    "Verdict",
    "benjamini_hochberg",
    "compare",
    "compared",
    "differences",
    "gate",
    "holm",
    "sign_flips",
    "trend",
]
