"""Measures: a metric with its options at a cut-off, and the string that says so.

recall@10 · P(rel=2)@5 · nDCG(gain=exp2,ideal=candidates)@10 · AP · ctr@shown
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ranklake.errors import near_miss
from ranklake.metrics.catalog import metric
from ranklake.metrics.metric import NO_CUTOFF, SHOWN, Cutoff, Denominator, Metric, Need
from ranklake.metrics.options import AUC_AVERAGE, OVER_TIES, Options
from ranklake.metrics.per_query import HIT_RATE

MAX_K = 1_000_000
_STRING = re.compile(r"(?P<name>\w+)(\((?P<options>.*)\))?(@(?P<k>\w+))?", re.DOTALL)
_OPTION = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>\{[^{}]*\}|[^,{}]+?)\s*(,|$)")
_ALIASES = {"GAUC": "auc(average=n)", "gauc": "auc(average=n)"}
"""Names of a metric with an option."""


@dataclass(frozen=True)
class Measure:
    """A metric at one cut-off (0: none, -1: the query's n_slots).

    `options` are those that differ from the metric's defaults, in canonical spelling, by name.
    """

    metric: Metric
    k: int = NO_CUTOFF
    options: tuple[tuple[str, str], ...] = ()

    @property
    def values(self) -> Options:
        """The value of every option."""
        known = {option.name: option for option in self.metric.options}
        given = {name: known[name].parsed(text) for name, text in self.options}
        return {**self.metric.defaults, **given}

    @property
    def variant(self) -> str:
        """The options as in the brackets of a measure string; empty as a rule."""
        return ",".join(f"{name}={text}" for name, text in self.options)

    def __str__(self) -> str:
        """The canonical measure string."""
        brackets = f"({self.variant})" if self.options else ""
        cutoff = {NO_CUTOFF: "", SHOWN: "@shown"}.get(self.k, f"@{self.k}")
        return f"{self.metric.name}{brackets}{cutoff}"

    @property
    def column(self) -> str:
        """The column of query_metrics that it adds up."""
        cutoff = {NO_CUTOFF: "", SHOWN: "_at_shown"}.get(self.k, f"_at_{self.k}")
        options = "".join(
            f"_{name}_{_as_name(text)}" for name, text in self.options if name not in _OF_THE_MEAN
        )
        return f"{self.metric.summand}{options}{cutoff}"

    @property
    def is_derived(self) -> bool:
        """Whether its value is made of the sums of other measures, not of its own."""
        return self.values.get("mean") == "of_means"

    @property
    def weight(self) -> str:
        """The column that weighs the queries; empty: each counts alike."""
        return {"weighted": "weight", "n": "n_candidates"}.get(self.values.get("average", ""), "")

    @property
    def counts_defined(self) -> bool:
        """Whether its population is not simply every query with a relevant item."""
        return self.is_of_defined or bool(self.weight or self.options_of("rel"))

    @property
    def is_of_defined(self) -> bool:
        """Whether its population is the queries where its own value is defined."""
        return self.metric.denominator is Denominator.DEFINED

    @property
    def rank_column(self) -> str:
        """The column of the hits that has the rank it goes by."""
        return f"rank{_suffix(tie_break=self.tie_break)}"

    @property
    def hits_so_far_column(self) -> str:
        """The column of the hits that counts the relevant candidates up to a row."""
        return f"hits_so_far{_suffix(tie_break=self.tie_break, rel=self.options_of('rel'))}"

    @property
    def n_relevant_column(self) -> str:
        """The column of the hits that has |G|."""
        return f"n_relevant{_suffix(rel=self.options_of('rel'))}"

    @property
    def ideal_rank_column(self) -> str:
        """The column of the hits that has the rank in the ideal order."""
        of = "candidates" if self.options_of("ideal") == "candidates" else ""
        table = self.options_of("gain") if self.options_of("gain").startswith("{") else ""
        rel = self.options_of("rel") if table and self.options_of("gain_respects_rel") else ""
        return f"ideal_rank{_suffix(of=of, gain=table, rel=rel)}"

    def options_of(self, name: str) -> str:
        """The text of an option that differs from its default; else empty."""
        return dict(self.options).get(name, "")

    @property
    def counting(self) -> "Measure":
        """The hit rate that counts the queries where it is above 0, and those where it is defined.

        >>> str(measure("P(rel=2,denom=min_k_n)@5").counting)
        'hit_rate(rel=2)@5'
        """
        rel = tuple(pair for pair in self.options if pair[0] == "rel")
        return Measure(HIT_RATE, self.k, rel)

    @property
    def unweighted(self) -> "Measure":
        """The same measure where each query counts alike."""
        return replace(self, options=tuple(p for p in self.options if p[0] != "average"))

    @property
    def parts(self) -> tuple["Measure", ...]:
        """The measures that a derived one is made of: precision and recall."""
        if not self.is_derived:
            return ()
        shared = tuple(pair for pair in self.options if pair[0] in ("average", "rel", "tie_break"))
        return Measure(metric("precision"), self.k, shared), Measure(
            metric("recall"), self.k, shared
        )

    @property
    def tie_break(self) -> str:
        """The order of equal scores that it names itself; empty: that of the run."""
        text = self.options_of("tie_break")
        return "" if text in OVER_TIES else text

    @property
    def needs(self) -> frozenset[Need]:
        """What it needs beyond the hits and their ranks."""
        is_over_ties = self.options_of("tie_break") in OVER_TIES
        return self.metric.needs | ({Need.TIES} if is_over_ties else frozenset())


_OF_THE_MEAN = (AUC_AVERAGE.name, "mean")
"""Options that say how queries are averaged: the queries' own values do not know them."""


def measure(text: str) -> Measure:
    """The measure that the string names.

    Raises ValueError, in one sentence, for an unknown metric, option or value, and for a cut-off
    that the metric needs or cannot have.

    >>> str(measure("nDCG(ideal=judged, gain=exp2)@10")), str(measure("Rprec"))
    ('ndcg(gain=exp2)@10', 'r_precision')
    """
    named, k = _without_cutoff(text)
    if k is None:
        if named.metric.cutoff is Cutoff.REQUIRED:
            raise ValueError(f"{text}: {named.metric.name} needs a cut-off, such as {text}@10")
        return named
    return replace(named, k=k)


def of_series(metric_name: str, variant: str, k: int) -> Measure:
    """The measure of a row of metric_sums or metrics. Raises ValueError where it is a count."""
    named, _ = _without_cutoff(f"{metric_name}({variant})" if variant else metric_name)
    return replace(named, k=k)


def metric_with_options(text: str) -> Measure:
    """The metric and options that the string names, to be measured at other cut-offs.

    Raises ValueError as `measure` does, and for a cut-off.
    """
    named, k = _without_cutoff(text)
    if k is not None:
        raise ValueError(f"{text}: has a cut-off of its own, expected it in `measures`")
    return named


def _without_cutoff(text: str) -> tuple[Measure, int | None]:
    found = _STRING.fullmatch(_expanded(text.strip()))
    if not found:
        raise ValueError(f"{text!r} is no measure, expected one such as ndcg(gain=exp2)@10")
    try:
        named = metric(found["name"])
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    given = _options_of(text, named, found["options"] or "")
    return Measure(named, NO_CUTOFF, given), _cutoff_of(text, named, found["k"])


def _expanded(text: str) -> str:
    return _ALIASES.get(text, text)


def _cutoff_of(text: str, of: Metric, k: str | None) -> int | None:
    if k is None:
        return None
    if not of.has_cutoff:
        raise ValueError(f"{text}: {of.name} has no cut-off")
    if k == "shown":
        return SHOWN
    if not k.isascii() or not k.isdigit() or not 1 <= int(k) <= MAX_K:
        raise ValueError(f"{text}: found @{k}, expected @1 to @{MAX_K} or @shown")
    return int(k)


def _options_of(text: str, of: Metric, inside: str) -> tuple[tuple[str, str], ...]:
    known = {option.name: option for option in of.options}
    found: dict[str, str] = {}
    for name, value in _pairs(text, inside):
        if name not in known:
            listed = ", ".join(known) or "none"
            raise ValueError(
                f"{text}: unknown option {name!r} of {of.name}, known are {listed}"
                f"{near_miss(name, known)}"
            )
        if name in found:
            raise ValueError(f"{text}: {name} is given more than once")
        try:
            found[name] = known[name].canonical(value)
        except ValueError as error:
            raise ValueError(f"{text}: {name}: {error}") from None
    return tuple(sorted((n, v) for n, v in found.items() if v != known[n].default))


def _pairs(text: str, inside: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(inside):
        found = _OPTION.match(inside, at)
        if not found:
            raise ValueError(f"{text}: found {inside[at:]!r}, expected option=value")
        yield found["name"], found["value"]
        at = found.end()


def measures_of(
    names: Sequence[str], ks: Sequence[int], measures: Sequence[str] = ()
) -> tuple[Measure, ...]:
    """The metrics at their cut-offs and the measures, in order, and what they are counted by.

    The hit rate counts the queries above zero, which every interval needs to know.
    """
    crossed = [
        replace(named, k=k)
        for named in map(metric_with_options, names)
        for k in named.metric.cutoffs(tuple(ks))
    ]
    asked = [*crossed, *map(measure, measures)]
    parts = [part for m in asked for part in m.parts]
    counting = [c for m in asked for c in (m.counting, *([m.unweighted] if m.weight else []))]
    return _distinct([*asked, *parts, *counting])


def per_query_measures(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """The measures whose per-query columns the given ones add up, each once.

    >>> [m.column for m in per_query_measures(measures_of(["recall", "ctr"], [5]))]
    ['recall_at_5', 'hits_at_5', 'hit_rate_at_5']
    """
    own = [replace(m, metric=metric(m.metric.summand)) for m in measures if not m.is_derived]
    return tuple({m.column: m for m in own}.values())


def needs_of(measures: Iterable[Measure]) -> frozenset[Need]:
    """What the measures need together."""
    return frozenset(need for measure in measures for need in measure.needs)


def with_defaults(text: str, defaults: Mapping[str, str]) -> str:
    """The measure string with options that it does not give itself, not even as a default.

    >>> with_defaults("AP(rel=2)@5", {"denom": "k", "rel": "1"})
    'ap(denom=k,rel=2)@5'
    """
    named, k = _without_cutoff(text)
    known = {option.name: option.default for option in named.metric.options}
    says = re.findall(r"(\w+)\s*=", text)
    others = {name: value for name, value in defaults.items() if name not in says}
    found = {**others, **dict(named.options)}
    options = tuple(sorted((n, v) for n, v in found.items() if v != known[n]))
    return str(Measure(named.metric, NO_CUTOFF if k is None else k, options))


def _as_name(text: str) -> str:
    """The text as a part of a column's name, other for every other text."""
    return re.sub(r"\W+", "_", text.replace(".", "p")).strip("_")


def _suffix(**parts: str) -> str:
    return "".join(f"_{name}_{_as_name(text)}" for name, text in parts.items() if text)


def _distinct(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    return tuple({str(m): m for m in measures}.values())
