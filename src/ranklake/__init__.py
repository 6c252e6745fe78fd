"""Offline evaluation of rankers on click logs.

    from ranklake import evaluate     # two Spark DataFrames in, numbers with intervals out
    from ranklake import Lake         # the published tables, without Spark
    from ranklake import compare, gate  # two models of a lake, without Spark

Stability: Comparison, Evaluation, Lake, compare, evaluate, gate and spark_lake keep their meaning
within a major version.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranklake.comparison import Comparison, Trend, compare, gate, trend
    from ranklake.lake import Lake
    from ranklake.notebook import evaluate, spark_lake
    from ranklake.pipeline import Evaluation

__all__ = [
    "Comparison",
    "Evaluation",
    "Lake",
    "Trend",
    "compare",
    "evaluate",
    "gate",
    "spark_lake",
    "trend",
]

_HOMES = {
    "Comparison": "ranklake.comparison",
    "Evaluation": "ranklake.pipeline",
    "Lake": "ranklake.lake",
    "Trend": "ranklake.comparison",
    "compare": "ranklake.comparison",
    "evaluate": "ranklake.notebook",
    "gate": "ranklake.comparison",
    "spark_lake": "ranklake.notebook",
    "trend": "ranklake.comparison",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: reading the tables must work where Spark is not installed."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
