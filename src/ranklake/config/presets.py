"""Presets: the rules and options with which other evaluators' numbers come out.

What each one does was read from its source and run: docs/parity.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ranklake.config.model import EvalConfig
from ranklake.errors import ConfigError, near_miss
from ranklake.metrics import (
    DEFAULTS,
    NO_CUTOFF,
    Population,
    measure,
    metric_with_options,
    with_defaults,
)

Options = Mapping[str, str]


@dataclass(frozen=True)
class Preset:
    """One evaluator.

    rules       the keys of [rules] that differ from the defaults
    options     by metric, the options of its measures that do
    at_k        the same for measures with a cut-off only, over `options`
    rank_by     what orders the candidates: score, or the position in which they are given
    population  the queries that its means are over
    """

    rules: Mapping[str, Any]
    options: Mapping[str, Options] = field(default_factory=dict)
    at_k: Mapping[str, Options] = field(default_factory=dict)
    rank_by: str = "score"
    population: Population = Population.ALL

    def of_measure(self, text: str) -> str:
        """The measure string with the preset's options where it says nothing of them."""
        named = measure(text)
        name = named.metric.name
        at_k = self.at_k.get(name, {}) if named.k != NO_CUTOFF else {}
        return with_defaults(text, {**self.options.get(name, {}), **at_k})


_TREC_EVAL = {
    "score_type": "float",
    "duplicates": "error",
    "no_relevant": "zero",
    "missing_in_run": "skip",
}
_BINARY = {"ndcg": {"gain": "binary"}, "dcg": {"gain": "binary"}}
_SPARK = {"duplicates": "keep", "no_relevant": "zero"}
_MIN_K = {"ap": {"denom": "min_k_rel"}}
_EXP2 = {"ndcg": {"gain": "exp2"}, "dcg": {"gain": "exp2"}}

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "trec_eval": Preset(_TREC_EVAL),
        "ir_measures": Preset(
            {**_TREC_EVAL, "missing_in_run": "zero"},
            options={"judged": {"tie_break": "item_id_asc"}},
            at_k={"rr": {"tie_break": "item_id_asc"}},
        ),
        "ranx": Preset(
            {**_TREC_EVAL, "score_type": "double", "missing_in_run": "zero"},
            options={
                "ndcg": {"gain_respects_rel": "true"},
                "dcg": {"gain_respects_rel": "true"},
            },
        ),
        "spark_mllib": Preset(_SPARK, options=_BINARY, at_k=_MIN_K, rank_by="position"),
        "spark_mllib_graded": Preset(_SPARK, options=_EXP2, at_k=_MIN_K, rank_by="position"),
        "replay": Preset(
            {"nan_scores": "first", "duplicates": "keep"},
            options=_BINARY,
            at_k=_MIN_K,
            population=Population.WITH_RELEVANT,
        ),
        "recommenders": Preset(
            {"missing_in_run": "skip"},
            options=_BINARY,
            at_k=_MIN_K,
            population=Population.WITH_RELEVANT,
        ),
    }
)


def preset(name: str) -> Preset:
    """The preset of that name. Raises ConfigError with the known ones."""
    if name not in PRESETS:
        hint = near_miss(name, PRESETS)
        raise ConfigError(f"preset: found {name!r}, known are {', '.join(PRESETS)}{hint}")
    return PRESETS[name]


def with_preset(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The configuration's keys with those of the preset under them; measures get its options.

    Raises ConfigError for an unknown preset, ValueError for a measure that is none.
    """
    chosen = preset(name)
    ks: Sequence[int] = values.get("ks", EvalConfig.model_fields["ks"].default)
    crossed = [
        f"{text}@{k}" if _can_be_cut(text) else text
        for text in values.get("metrics", () if "measures" in values else DEFAULTS)
        for k in ks
    ]
    asked = [*crossed, *values.get("measures", ())]
    return {
        "rank_by": chosen.rank_by,
        **values,
        "rules": {**chosen.rules, **values.get("rules", {})},
        "metrics": [],
        "measures": list(dict.fromkeys(chosen.of_measure(text) for text in asked)),
    }


def _can_be_cut(text: str) -> bool:
    return metric_with_options(text).metric.has_cutoff
