"""Rules on differences: which tests a rule makes, and what each of them says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ranklake.comparison.differences import Differences
from ranklake.comparison.sides import Pair, Series, Side
from ranklake.comparison.verdicts import Verdict, at_least, worst
from ranklake.config import Gate, GateRule
from ranklake.errors import ConfigError, near_miss
from ranklake.estimate import is_enough, student_t

OF_PLACES = ("ctr", "cvr", "f1", "precision", "precision_micro")
"""Metrics that take what nobody saw for not relevant."""


@dataclass(frozen=True)
class Test:
    """One rule on one series. `row` is that of the pair; None where a side has no such query."""

    rule: GateRule
    series: Series
    row: int | None


@dataclass(frozen=True)
class Finding:
    """What a test says, and why it is not a plain matter of the interval."""

    verdict: Verdict
    reason: str = ""

    @classmethod
    def worst(cls, findings: Sequence["Finding"]) -> "Finding":
        """The first of the worst."""
        verdict = worst(finding.verdict for finding in findings)
        return next(finding for finding in findings if finding.verdict is verdict)


def tests_of(rules: Sequence[GateRule], pair: Pair) -> list[Test]:
    """Every test that the rules make. Raises ConfigError for a rule of what is not published."""
    problems = [*unpublished(rules, pair.series)]
    if problems:
        raise ConfigError(problems)
    return [
        Test(rule, series, pair.place_of(series))
        for rule in rules
        for series in _series_of(rule, [*pair.series, *pair.alone])
    ]


def unpublished(rules: Sequence[GateRule], known: Sequence[Series]) -> Iterator[str]:
    """A sentence for each rule of what is not among the series that both models have."""
    for rule in rules:
        if not any(_is_of(rule, series) for series in known):
            yield _no_series(rule, known)


def _series_of(rule: GateRule, known: Sequence[Series]) -> Iterator[Series]:
    """The series that it looks at, also of a slice value that a side lacks, or both do."""
    of_measure = [series for series in known if _is_of(rule, series)]
    if rule.slice_value is not None:
        of_measure = [series._replace(slice_value=rule.slice_value) for series in of_measure]
    yield from dict.fromkeys(of_measure)


def _is_of(rule: GateRule, series: Series) -> bool:
    measure = rule.measured
    population = rule.population or measure.metric.populations[0]
    wanted = (measure.metric.name, measure.variant, measure.k, population.value, rule.slice)
    found = (series.metric, series.variant, series.k, series.population, series.slice)
    return found == wanted and rule.label in (None, series.label)


def _no_series(rule: GateRule, known: Sequence[Series]) -> str:
    labels = sorted({series.label for series in known})
    slices = sorted({series.slice for series in known})
    kind, word, others = "measure", rule.measure, []
    if rule.label is not None and rule.label not in labels:
        kind, word, others = "label", rule.label, labels
    elif rule.slice not in slices:
        kind, word, others = "slice", rule.slice, slices
    known_ones = f", known are {', '.join(others)}{near_miss(word, others)}" if others else ""
    return f"gate.rules: {rule.title}: {kind} {word!r} is not published for both models{known_ones}"


@dataclass(frozen=True)
class Judge:
    """Reads the tests' intervals. A guard-rail fails at alpha / (number of guard-rails)."""

    gate: Gate
    alpha: float
    pair: Pair
    found: Differences
    candidate: Side
    baseline: Side

    def findings(self, tests: Sequence[Test]) -> list[Finding]:
        """What each test says."""
        n_guardrails = sum(test.rule.role == "guardrail" for test in tests)
        share = self.alpha / max(n_guardrails, 1)
        return [
            self._finding(test, share if test.rule.role == "guardrail" else self.alpha)
            for test in tests
        ]

    def _finding(self, test: Test, fail_alpha: float) -> Finding:
        if test.row is None:
            return Finding(Verdict.INCONCLUSIVE, "no such queries on one side")
        n_queries = int(self.pair.candidate.counts.queries[test.row])
        if n_queries < test.rule.min_queries:
            words = f"{n_queries:,} queries, expected {test.rule.min_queries:,}"
            return Finding(Verdict.INCONCLUSIVE, words)
        findings = [
            *self._of_drop(test.rule, test.row, fail_alpha),
            *self._of_bounds(test.rule, test.row, fail_alpha),
        ]
        found = Finding.worst(findings)
        if found.verdict is Verdict.PASS and self._is_unseen(test.series):
            return Finding(Verdict.INCONCLUSIVE, self._unseen(test.series))
        return found

    def _of_drop(self, rule: GateRule, row: int, fail_alpha: float) -> Iterator[Finding]:
        found = self.found
        allowed = rule.max_drop if rule.max_relative_drop is None else rule.max_relative_drop
        if allowed is None:
            return
        interval = found.interval if rule.max_relative_drop is None else found.relative_interval
        plain, wide = interval(self.alpha), interval(fail_alpha)
        if rule.measured.metric.better == "lower":
            low, surely_low = -plain.high[row], -wide.low[row]
        else:
            low, surely_low = plain.low[row], wide.high[row]
        yield _judged(-allowed, low=low, surely_low=surely_low)

    def _of_bounds(self, rule: GateRule, row: int, fail_alpha: float) -> Iterator[Finding]:
        """Of the candidate alone."""
        series = self.pair.candidate.take([row])
        own = series.estimates
        value = float(own.value[0])
        std_err = float(own.std_err[0]) if is_enough(series)[0] else np.nan
        half, wide = (
            float(student_t(own.n_clusters, alpha)[0]) * std_err
            for alpha in (self.alpha, fail_alpha)
        )
        words = f"value {value:.4f} [{value - half:.4f}, {value + half:.4f}], expected"
        if rule.floor is not None:
            least = f"{words} at least {rule.floor:g}"
            yield _judged(rule.floor, low=value - half, surely_low=value + wide, words=least)
        if rule.ceiling is not None:
            most = f"{words} at most {rule.ceiling:g}"
            yield _judged(-rule.ceiling, low=-value - half, surely_low=wide - value, words=most)

    def _is_unseen(self, series: Series) -> bool:
        """Whether what one side ranks high was seen less than what the other does."""
        if series.metric not in OF_PLACES:
            return False
        shares = [side.judged(series) for side in (self.candidate, self.baseline)]
        if None in shares:
            return True
        one, other = (share or 0.0 for share in shares)
        return bool(abs(one - other) > self.gate.max_judged_gap)

    def _unseen(self, series: Series) -> str:
        shares = [
            "unknown" if share is None else f"{share:.1%}"
            for share in (self.candidate.judged(series), self.baseline.judged(series))
        ]
        return f"judged of the top {series.k}: {shares[0]} against {shares[1]}"


def _judged(bound: float, *, low: float, surely_low: float, words: str = "") -> Finding:
    """Of an interval: see `at_least`. `words` say why it does not pass."""
    if not (np.isfinite(low) and np.isfinite(surely_low)):
        return Finding(Verdict.INCONCLUSIVE, "too little data for an interval")
    verdict = at_least(bound, low=low, surely_low=surely_low)
    return Finding(verdict, "" if verdict is Verdict.PASS else words)
