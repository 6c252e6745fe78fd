"""Measure strings: `recall@10`, `nDCG(gain=exp2,ideal=candidates)@10`, `AP`, `ctr@shown`.

The canonical one has the metric's name, options in order and without defaults, and the cut-off.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from ranklake.errors import near_miss
from ranklake.metrics.catalog import metric
from ranklake.metrics.measures import Measure
from ranklake.metrics.metric import NO_CUTOFF, SHOWN, Cutoff, Metric

MAX_K = 1_000_000
MAX_LENGTH = 1000
"""Characters of a measure string."""
_STRING = re.compile(r"(?P<name>\w+)(\((?P<options>.*)\))?(@(?P<k>\w+))?")
_OPTION = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>\{[^{}]*\}|[^\s,{}]+)\s*(,|$)")
_ALIASES = {"GAUC": ("auc", {"average": "n"}), "gauc": ("auc", {"average": "n"})}
"""Names of a metric with options."""


def measure(text: str) -> Measure:
    """The measure that the string names.

    Raises ValueError, in one sentence, for an unknown metric, option or value, and for a cut-off
    that the metric needs or cannot have.

    >>> str(measure("nDCG(ideal=judged, gain=exp2)@10")), str(measure("Rprec"))
    ('ndcg(gain=exp2)@10', 'r_precision')
    """
    named, k = _parsed(text, {})
    if k is None and named.metric.cutoff is Cutoff.REQUIRED:
        raise ValueError(f"{text}: {named.metric.name} needs a cut-off, such as {text}@10")
    return named


def metric_with_options(text: str) -> Measure:
    """The metric and options that the string names, to be measured at other cut-offs.

    Raises ValueError as `measure` does, and for a cut-off.
    """
    named, k = _parsed(text, {})
    if k is not None:
        raise ValueError(f"{text}: has a cut-off of its own, expected it in `measures`")
    return named


def with_defaults(text: str, defaults: Mapping[str, str]) -> str:
    """The measure string with options that it does not give itself, not even as a default.

    Raises ValueError as `measure` does, for a default too.

    >>> with_defaults("AP(rel=2)@5", {"denom": "k", "rel": "1"})
    'ap(denom=k,rel=2)@5'
    """
    return str(_parsed(text, defaults)[0])


@cache
def of_series(metric_name: str, variant: str, k: int) -> Measure:
    """The measure of a row of metric_sums or metrics. Raises ValueError where it is a count."""
    named, _ = _parsed(f"{metric_name}({variant})" if variant else metric_name, {})
    return replace(named, k=k)


def _parsed(text: str, defaults: Mapping[str, str]) -> tuple[Measure, int | None]:
    """The measure, and its cut-off as far as the text says one."""
    text = text.strip()
    found = _STRING.fullmatch(text) if _is_plain(text) else None
    if not found:
        raise ValueError(f"{_shown(text)} is no measure, expected one such as ndcg(gain=exp2)@10")
    name, implied = _ALIASES.get(found["name"], (found["name"], {}))
    try:
        of = metric(name)
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    given = dict(_pairs(text, found["options"] or ""))
    options = _canonical(text, of, {**defaults, **implied, **given})
    k = _cutoff_of(text, of, found["k"])
    return Measure(of, NO_CUTOFF if k is None else k, options), k


def _is_plain(text: str) -> bool:
    return len(text) <= MAX_LENGTH and text.isascii() and text.isprintable()


def _shown(text: str) -> str:
    """The text for a message: quoted, and not longer than a line."""
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}..."


def _cutoff_of(text: str, of: Metric, k: str | None) -> int | None:
    if k is None:
        return None
    if not of.has_cutoff:
        raise ValueError(f"{text}: {of.name} has no cut-off")
    if k == "shown":
        return SHOWN
    if not k.isdigit() or len(k) > len(str(MAX_K)) or not 1 <= int(k) <= MAX_K:
        raise ValueError(f"{text}: found @{k}, expected @1 to @{MAX_K} or @shown")
    return int(k)


def _canonical(text: str, of: Metric, given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The options in canonical spelling and order, without defaults."""
    known = {option.name: option for option in of.options}
    for name in given:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise ValueError(
                f"{text}: unknown option {name!r} of {of.name}, known are {listed}"
                f"{near_miss(name, known)}"
            )
    spelled: dict[str, str] = {}
    for name, value in given.items():
        try:
            spelled[name] = known[name].canonical(value)
        except ValueError as error:
            raise ValueError(f"{text}: {name}: {error}") from None
    others = tuple(sorted((n, v) for n, v in spelled.items() if v != known[n].default))
    if {"rel", "max_gain"} <= {name for name, _ in others}:
        raise ValueError(f"{text}: rel has no part in it where max_gain is given")
    return others


def _pairs(text: str, inside: str) -> Iterator[tuple[str, str]]:
    at, names = 0, set()
    while at < len(inside):
        found = _OPTION.match(inside, at)
        if not found:
            raise ValueError(f"{text}: found {inside[at:]!r}, expected option=value")
        if found["name"] in names:
            raise ValueError(f"{text}: {found['name']} is given more than once")
        names.add(found["name"])
        yield found["name"], found["value"]
        at = found.end()
