"""Clicks, conversions and judgments → gains: what counts as relevant, and how much."""

from ranklake.label.attribution import REASONS as ATTRIBUTION_REASONS
from ranklake.label.attribution import attributed
from ranklake.label.clicks import REASONS as CLICK_REASONS
from ranklake.label.clicks import ClickRules, is_late, once
from ranklake.label.clicks import told as told_clicks
from ranklake.label.conversions import REASONS as CONVERSION_REASONS
from ranklake.label.conversions import ConversionRules, without_copies
from ranklake.label.conversions import told as told_conversions
from ranklake.label.gains import (
    LabelGains,
    for_models,
    gain_column,
    judged,
    judged_items,
    judged_on_rows,
    labelled_hashes,
    shown_only,
    valued,
)
from ranklake.label.matching import asked_among, matched

__all__ = [
    "ATTRIBUTION_REASONS",
    "CLICK_REASONS",
    "CONVERSION_REASONS",
    "ClickRules",
    "ConversionRules",
    "LabelGains",
    "asked_among",
    "attributed",
    "for_models",
    "gain_column",
    "is_late",
    "judged",
    "judged_items",
    "judged_on_rows",
    "labelled_hashes",
    "matched",
    "once",
    "shown_only",
    "told_clicks",
    "told_conversions",
    "valued",
    "without_copies",
]
