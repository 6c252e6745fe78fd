"""What no evaluation can be: problems that span several keys, each with its place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ranklake import metrics, schemas
from ranklake.config.values import NAME, NAME_IN_WORDS
from ranklake.errors import near_miss

if TYPE_CHECKING:
    from ranklake.config.model import EvalConfig, Slices
    from ranklake.config.places import Input, Lake

Problem = tuple[tuple[str, ...], str]
"""The keys that lead there, and what is wrong."""

_CREDENTIAL = re.compile(r"passw|secret|token|credential|key", re.IGNORECASE)
_CREDENTIAL_IN_URL = re.compile(r"://[^/@]*:[^/@]*@")
_NO_CREDENTIAL = (
    "expected in the environment or in Spark's own configuration, as runs stores this one"
)
_RESERVED_SLICES = (
    *(schemas.EVERY_QUERY, schemas.IS_CANDIDATE, schemas.IS_WANTED, "min_slice_id", "slice_id"),
    *(*schemas.QUERY_EXTRAS, "n_retrieved", "n_rows", "n_scored_hits"),
    *schemas.QUERY_KEYS,
)
_NESTED = ("impressions", "scores")
_RESERVED_VALUES = (schemas.NO_VALUE, schemas.RARE_VALUE)


def problems_of(config: EvalConfig) -> Iterator[Problem]:
    """Everything that is impossible about the configuration, though each key alone is right."""
    yield from _of_labels(config)
    yield from _of_measures(config)
    yield from _of_models(config)
    yield from _of_aliases(config)
    yield from _of_lake(config.lake)
    yield from _of_slices(config)
    yield from _of_limits(config)
    tables = {table.name: table.names for table in schemas.INPUTS}
    for name, given in config.inputs.given().items():
        known = [*tables[name], *config.slices.columns]
        yield from ((("inputs", name, *at), what) for at, what in _of_input(given, known))
        if given.candidates is not None and name not in _NESTED:
            expected = f"expected one only in {' and '.join(_NESTED)}: other rows hold none"
            yield ("inputs", name, "candidates"), f"found {given.candidates!r}, {expected}"


def _of_labels(config: EvalConfig) -> Iterator[Problem]:
    known = config.known_gains
    for name in config.labels:
        if name not in known:
            example = f"gains.{name} = {{ click = 1.0, conversion = 5.0 }}"
            hint = near_miss(name, known)
            yield ("labels",), f"{name!r} has no gains, expected some such as {example}{hint}"
    for name, gains in config.gains.items():
        if not any(gains.values()):
            yield ("gains", name), "no event is worth anything, expected a gain above 0"
    judged = {bool(known[name].get(metrics.JUDGMENT)) for name in config.labels if name in known}
    if len(judged) > 1:
        yield ("labels",), "judgments and log events cannot be labels of one evaluation"


def _of_measures(config: EvalConfig) -> Iterator[Problem]:
    if not config.metrics and not config.measures:
        yield ("metrics",), "found nothing to measure, expected metrics or measures"
    asked = {m.metric.name: m for m in config.asked}
    if metrics.Need.SCORES in config.needs and not config.score_is_probability:
        names = ", ".join(n for n, m in asked.items() if metrics.Need.SCORES in m.needs)
        yield ("score_is_probability",), f"found false, expected true for {names}"
    for name, measure in asked.items():
        if measure.metric.of_label == metrics.CONVERSION_VALUE not in config.labels:
            yield ("labels",), f"{name} is of a label of its own, expected {name!r} among them"
    if "cvr" in asked and not {metrics.CLICK, metrics.CONVERSION} <= {*config.labels}:
        yield ("labels",), "cvr is of conversions and clicks, expected both labels"
    if config.rules.duplicates != "best" and config.unique_key:
        yield (
            ("unique_key",),
            f"found true, expected false with rules.duplicates = {config.rules.duplicates!r}",
        )
    yield from _of_scores(config)
    yield from _of_items(config)
    if config.rules.missing_in_truth == "zero" and config.slices.columns:
        yield (
            ("rules", "missing_in_truth"),
            "found 'zero', expected another with slices: such queries have none",
        )
    if config.rules.duplicates == "keep" and metrics.Need.TIES in config.needs:
        yield ("rules", "duplicates"), "found 'keep', expected another where ties are looked at"


def _of_items(config: EvalConfig) -> Iterator[Problem]:
    if not config.item_clusters:
        return
    at, found = ("item_clusters",), f"found {config.item_clusters!r}, expected"
    if not config.of_items:
        yield at, f"{found} none without ctr or cvr: no other metric belongs to items"
    known = [config.known_gains.get(name, {}) for name in config.labels]
    if any(gains.get(metrics.JUDGMENT) for gains in known):
        yield at, f"{found} none where judgments are labels"
    if config.item_clusters == "advertiser_id" and "scored" in config.candidates:
        yield at, f"{found} 'item_id' with scored candidates: scores do not say who advertises"


def _of_scores(config: EvalConfig) -> Iterator[Problem]:
    """Rules under which scores are not what they have to be for what is asked of them."""
    rules = config.rules
    if metrics.Need.SCORES in config.needs:
        if config.rank_by == "position":
            yield ("rank_by",), "found 'position', expected 'score' where scores are probabilities"
        if rules.depth is not None:
            yield ("rules", "depth"), "found a depth, expected none: every score is a prediction"
        for name in ("nan_scores", "null_scores"):
            if getattr(rules, name) == "first":
                yield ("rules", name), "found 'first', expected another: it is no probability"
    if config.rank_by == "position":
        for name in ("nan_scores", "null_scores"):
            if getattr(rules, name) != "last":
                found = getattr(rules, name)
                yield ("rules", name), f"found {found!r}, expected 'last' where positions rank"
    if rules.tie_column == "position" and "scored" in config.candidates:
        yield ("rules", "tie_break"), "found column:position, which scored candidates do not have"
    if rules.tie_column and rules.duplicates == "keep":
        yield ("rules", "tie_break"), "found a column, expected none where copies count"


def _of_models(config: EvalConfig) -> Iterator[Problem]:
    n_models = Counter(config.models.values())
    for model, alias in config.models.items():
        if not schemas.is_model_version(alias):
            expected = f"an alias that matches {schemas.MODEL_VERSION}"
            yield ("models", model), f"found {alias!r}, expected {expected}"
        if n_models[alias] > 1:
            yield ("models", model), f"{alias!r} is the alias of another model too"


def _of_aliases(config: EvalConfig) -> Iterator[Problem]:
    for alias, model in config.aliases.items():
        if not schemas.is_model_version(model):
            expected = f"a published name, which matches {schemas.MODEL_VERSION}"
            yield ("aliases", alias), f"found {model!r}, expected {expected}"


def _of_lake(lake: Lake) -> Iterator[Problem]:
    if lake.path and lake.catalog_schema:
        yield ("lake",), "found path and catalog_schema, expected one of them"
    if lake.path and _CREDENTIAL_IN_URL.search(lake.path):
        yield ("lake", "path"), f"holds a credential, {_NO_CREDENTIAL}"


def _of_slices(config: EvalConfig) -> Iterator[Problem]:
    columns = config.slices.columns
    tables = {*schemas.INPUTS, *schemas.LAKE} - {schemas.COMPARISONS}  # it has no query
    ours = {column.name for table in tables for column in table.columns}
    values = {m.column for m in config.per_query}
    n_columns = Counter(name.lower() for name in columns)  # Spark does not tell A from a
    for name in columns:
        if not re.fullmatch(NAME, name):
            yield ("slices", "columns"), f"found {name!r}, expected {NAME_IN_WORDS}"
        if name.lower() in {*ours, *values, *_RESERVED_SLICES}:
            yield ("slices", "columns"), f"{name!r} is a name of ranklake's own, expected another"
        if n_columns[name.lower()] > 1:
            yield ("slices", "columns"), f"{name!r} differs from another one in case only"
    yield from _of_crosses(config.slices)
    yield from _of_slice_values(config.slices)


def _of_limits(config: EvalConfig) -> Iterator[Problem]:
    least, most = config.limits.least_rows, config.limits.most_rows
    if least is not None and most is not None and least > most:
        yield ("limits", "least_rows"), f"found {least}, expected at most most_rows ({most})"
    for name in config.limits.expected_models:
        if not schemas.is_model_version(name):
            expected = f"a published name, which matches {schemas.MODEL_VERSION}"
            yield ("limits", "expected_models"), f"found {name!r}, expected {expected}"


def _of_crosses(slices: Slices) -> Iterator[Problem]:
    for cross in slices.crosses:
        found = list(cross)
        if len(set(found)) < 2 or len(set(found)) < len(found):
            yield ("slices", "crosses"), f"found {found}, expected two or more different columns"
        for name in found:
            if name not in slices.columns:
                yield ("slices", "crosses"), f"found {found}, {_no_slice(name, slices.columns)}"


def _of_slice_values(slices: Slices) -> Iterator[Problem]:
    for name, values in slices.values.items():
        if name not in slices.columns:
            yield ("slices", "values", name), _no_slice(name, slices.columns)
        for value in {*values} & {*_RESERVED_VALUES}:
            yield ("slices", "values", name), f"{value!r} is ranklake's own, expected another value"


def _no_slice(name: str, columns: Sequence[str]) -> str:
    listed = ", ".join(columns) or "empty"
    return f"{name!r} is not one of slices.columns ({listed}){near_miss(name, columns)}"


def _of_input(given: Input, known: Sequence[str]) -> Iterator[Problem]:
    if not given.path and not given.table:
        yield (), "found no place, expected path or table"
    if given.path and given.table:
        yield (), "found path and table, expected one of them"
    if given.format in ("csv", "json") and given.path and not given.declared_schema:
        example = 'schema = "query_id STRING, score DOUBLE"'
        yield ("format",), f"{given.format} has no types, expected a schema beside it: {example}"
    if given.version is not None and given.format != "delta":
        yield ("version",), f"only delta has versions, found format {given.format!r}"
    for column in given.columns:
        if column not in known:
            hint = near_miss(column, known)
            yield ("columns", column), f"unknown column, known are {', '.join(known)}{hint}"
    yield from _of_credentials(given)


def _of_credentials(given: Input) -> Iterator[Problem]:
    for key, value in given.options.items():
        if _CREDENTIAL.search(key) or _CREDENTIAL_IN_URL.search(value):
            yield ("options", key), f"looks like a credential, {_NO_CREDENTIAL}"
    if given.path and _CREDENTIAL_IN_URL.search(given.path):
        yield ("path",), f"holds a credential, {_NO_CREDENTIAL}"
