"""What all parts of the configuration have in common."""

from pydantic import ConfigDict

STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)
"""Frozen, without conversions, without unknown keys."""
