"""The configuration of an evaluation: TOML files merged left to right, then --set, then checked."""

from ranklake.config.definitions import (
    definition_hash,
    definitions,
    merged_definitions,
    redefinitions,
)
from ranklake.config.events import Attribution, Limits, Rejected, Traffic, Windows
from ranklake.config.gate import Gate
from ranklake.config.gate import Rule as GateRule
from ranklake.config.load import BASE, config_hash, load, of_values
from ranklake.config.maturity import is_mature, labels_as_of, matures_at
from ranklake.config.model import EvalConfig, Slices
from ranklake.config.places import Input, Inputs, Lake
from ranklake.config.presets import PRESETS, Preset, preset, with_preset
from ranklake.config.rules import Rules

__all__ = [
    "BASE",
    "PRESETS",
    "Attribution",
    "EvalConfig",
    "Gate",
    "GateRule",
    "Input",
    "Inputs",
    "Lake",
    "Limits",
    "Preset",
    "Rejected",
    "Rules",
    "Slices",
    "Traffic",
    "Windows",
    "config_hash",
    "definition_hash",
    "definitions",
    "is_mature",
    "labels_as_of",
    "load",
    "matures_at",
    "merged_definitions",
    "of_values",
    "preset",
    "redefinitions",
    "with_preset",
]
