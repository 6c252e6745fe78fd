"""The configuration of an evaluation: TOML files merged left to right, then --set, then checked."""

from ranklake.config.definitions import (
    definition_hash,
    definitions,
    merged_definitions,
    redefinitions,
)
from ranklake.config.load import BASE, config_hash, load, of_values
from ranklake.config.model import EvalConfig, Input, Inputs, Lake, Slices

__all__ = [
    "BASE",
    "EvalConfig",
    "Input",
    "Inputs",
    "Lake",
    "Slices",
    "config_hash",
    "definition_hash",
    "definitions",
    "load",
    "merged_definitions",
    "of_values",
    "redefinitions",
]
