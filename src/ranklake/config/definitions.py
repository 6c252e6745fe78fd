"""What a published number means, as data: stored with the run, hashed into every row."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ranklake import metrics, schemas
from ranklake.config.model import EvalConfig


def definitions(config: EvalConfig, slice_lists: schemas.SliceLists) -> dict[str, Any]:
    """Everything that a number of this evaluation depends on, save the data and who ranked it.

    Not in it: the candidates' source, paths, engine. A ranking by position and one by score
    may be compared.
    """
    asked = {m.metric.name: m.metric for m in config.asked}.values()
    return {
        "evaluation": config.evaluation,
        "zone": config.zone,
        "n_buckets": config.n_buckets,
        "unshown_clicks": config.unshown_clicks,
        "rules": config.rules.model_dump(),
        "events": {
            "windows": config.windows.model_dump(),
            "attribution": config.attribution.model_dump(),
            "label_age": config.label_age,
            "traffic": config.traffic.model_dump(),
        },
        "labels": {label: dict(sorted(config.gains_of(label).items())) for label in config.labels},
        "metrics": {m.name: {**_words(m), **_clusters(m, config)} for m in asked},
        "slices": {name: slice_lists.get(name) for name in config.slices.columns},
    }


_OF_EVERY_NUMBER = ("zone", "n_buckets", "unshown_clicks", "rules", "events")


def definition_hash(defined: Mapping[str, Any], series: Mapping[str, Any]) -> str:
    """16 hex digits for one series: equal exactly where two numbers mean the same."""
    columns = [] if series["slice"] == schemas.EVERY_QUERY else series["slice"].split(",")
    part = {
        **{key: defined[key] for key in _OF_EVERY_NUMBER},
        "label": defined["labels"][series["label"]],
        "metric": defined["metrics"].get(series["metric"]) or _words_of_count(series["metric"]),
        "population": series["population"],
        "variant": series["variant"],
        "slices": {column: defined["slices"][column] for column in columns},
    }
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:16]


def redefinitions(published: Mapping[str, Any], defined: Mapping[str, Any]) -> list[str]:
    """One sentence for each thing that both define, and define differently.

    A metric, label or slice that only one side has changes no published number.
    """
    sentences = []
    for key, value in defined.items():
        before = published.get(key, value)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            shared = [name for name in value if name in before]
            # A slice whose values were open (null) keeps its rows when it gets a list.
            known = [n for n in shared if key != "slices" or before[n] is not None]
            pairs = [(f"{key}.{name}", before[name], value[name]) for name in known]
        else:
            pairs = [(key, before, value)]
        sentences += [
            f"{name}: the tables hold {json.dumps(old)}, this run defines {json.dumps(new)}"
            for name, old, new in pairs
            if json.dumps(old, sort_keys=True) != json.dumps(new, sort_keys=True)
        ]
    return sentences


def merged_definitions(oldest_first: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The newest definition of each thing that any of them defines.

    A run without a slice or a label must not make the lake forget what it meant.
    """
    merged: dict[str, Any] = {}
    for defined in oldest_first:
        for key, value in defined.items():
            if not isinstance(value, Mapping):
                merged[key] = value
                continue
            known = merged.setdefault(key, {})
            known |= {name: of for name, of in value.items() if of is not None or name not in known}
    return merged


def _words(metric: metrics.Metric) -> dict[str, Any]:
    options = {option.name: option.default for option in metric.options}
    return {"formula": metric.formula, "null_when": metric.null_when, "options": options}


def _clusters(metric: metrics.Metric, config: EvalConfig) -> dict[str, str]:
    """By what its items are clustered: then its intervals are others."""
    clusters = config.item_clusters if metric.is_of_items else None
    return {"item_clusters": clusters} if clusters else {}


def _words_of_count(name: str) -> dict[str, str]:
    return {"formula": name, "null_when": "never"}
