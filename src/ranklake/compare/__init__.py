"""Two models' sums → paired differences, p-values, verdicts. numpy, no Spark."""

from ranklake.compare.comparison import DEFAULT_CONFIDENCE, Comparison, Question, compared
from ranklake.compare.differences import Differences, Interval, differences, sign_flips
from ranklake.compare.families import benjamini_hochberg, holm
from ranklake.compare.pairing import Kind, Pairing
from ranklake.compare.sides import Series, Side
from ranklake.compare.verdicts import Verdict

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
    "Verdict",
    "benjamini_hochberg",
    "compared",
    "differences",
    "holm",
    "sign_flips",
]
