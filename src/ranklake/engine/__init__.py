"""Which engine executes Spark's plans: the JVM, or Apache DataFusion Comet's native operators."""

from ranklake.engine.native import Coverage, coverage_of
from ranklake.engine.running import (
    COMET,
    SETTINGS,
    Engine,
    comet_package,
    engine_of,
    warn_of_fallback,
    warn_unless_running,
)

__all__ = [
    "COMET",
    "SETTINGS",
    "Coverage",
    "Engine",
    "comet_package",
    "coverage_of",
    "engine_of",
    "warn_of_fallback",
    "warn_unless_running",
]
