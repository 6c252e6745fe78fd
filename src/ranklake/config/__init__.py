"""The configuration of an evaluation: TOML files merged left to right, then --set, then checked."""

from ranklake.config.definitions import (
    definition_hash,
    definitions,
    merged_definitions,
    redefinitions,
)
from ranklake.config.load import BASE, config_hash, load, of_values
from ranklake.config.model import EvalConfig, Input, Inputs, Lake, Slices
from ranklake.config.presets import PRESETS, Preset, preset, with_preset
from ranklake.config.rules import Rules

__all__ = [
    "BASE",
    "PRESETS",
    "EvalConfig",
    "Input",
    "Inputs",
    "Lake",
    "Preset",
    "Rules",
    "Slices",
    "config_hash",
    "definition_hash",
    "definitions",
    "load",
    "merged_definitions",
    "of_values",
    "preset",
    "redefinitions",
    "with_preset",
]
