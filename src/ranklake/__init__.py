"""Offline evaluation of rankers on click logs.

    from ranklake import evaluate     # two Spark DataFrames in, numbers with intervals out
    from ranklake import Lake         # the published tables, without Spark

Stability: evaluate, Evaluation and Lake keep their meaning within a major version.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranklake.lake import Lake
    from ranklake.notebook import evaluate
    from ranklake.pipeline import Evaluation

__all__ = ["Evaluation", "Lake", "evaluate"]

_HOMES = {
    "Evaluation": "ranklake.pipeline",
    "Lake": "ranklake.lake",
    "evaluate": "ranklake.notebook",
}


def __getattr__(name: str) -> Any:
    """Imported when first used: reading the tables must work where Spark is not installed."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
