"""A candidate against a baseline, as rows of the table comparisons."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ranklake import schemas
from ranklake.comparison.differences import Differences, differences, sign_flips
from ranklake.comparison.families import benjamini_hochberg, holm
from ranklake.comparison.judge import Finding, Judge, tests_of
from ranklake.comparison.pairing import Pairing
from ranklake.comparison.sides import Pair, Series, Side, paired, pairing_of
from ranklake.comparison.verdicts import Verdict, worst
from ranklake.config import Gate, GateRule
from ranklake.estimate import Array, all_mature
from ranklake.metrics import Measure

Row = dict[str, Any]

DEFAULT_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Question:
    """What is asked of two models.

    wanted   series to compare, without a rule
    derived  measures among them, or in rules, that are made of the sums of others
    """

    wanted: Sequence[Series] = ()
    gate: Gate = field(default_factory=Gate)
    confidence: float = DEFAULT_CONFIDENCE
    derived: Sequence[Measure] = ()

    @property
    def alpha(self) -> float:
        """How often no difference at all is taken for one."""
        return 1 - self.confidence


@dataclass(frozen=True)
class Comparison:
    """A candidate against a baseline.

    run_id   the candidate's run of the last day
    rows     as in the table comparisons, without run_id: one a series that was asked for (rule is
             empty), then one a rule and series
    verdict  of the gate; None without a rule
    notes    what a reader has to know beside the numbers, a sentence each
    """

    candidate: str
    baseline: str
    run_id: str
    rows: pa.Table
    verdict: Verdict | None
    notes: tuple[str, ...]


def compared(
    candidate: Side,
    baseline: Side,
    question: Question,
    *,
    alias: str | None = None,
    left_out: Sequence[date] = (),
) -> Comparison:
    """The comparison.

    alias     the name that the baseline was asked for by
    left_out  days that only one of the models has

    Raises ConfigError where the sides cannot be compared, with every reason.
    """
    pair = paired(candidate, baseline, derived=question.derived)
    found = differences(pair.candidate, pair.baseline)
    judge = Judge(question.gate, question.alpha, pair, found, candidate, baseline)
    tests = tests_of(question.gate.rules, pair)
    findings = judge.findings(tests)
    lines = [
        *[_Line(s, row) for s in question.wanted if (row := pair.place_of(s)) is not None],
        *[_Line(t.series, t.row, t.rule, f) for t, f in zip(tests, findings, strict=True)],
    ]
    sheet = _Sheet(candidate, baseline, pair, found, question, lines)
    rows = [{**row, "baseline_alias": alias} for row in sheet.rows()]
    binding = [f.verdict for t, f in zip(tests, findings, strict=True) if t.rule.role != "info"]
    return Comparison(
        candidate.model,
        baseline.model,
        candidate.run_id,
        pa.Table.from_pylist(rows, schema=_SCHEMA),
        worst(binding) if tests else None,
        (*_left_out(left_out), *_notes(candidate, baseline, question, pair)),
    )


_SCHEMA = schemas.arrow_schema(schemas.COMPARISONS).remove(
    schemas.COMPARISONS.names.index("run_id")
)


class _Line(NamedTuple):
    """A series, its row in the pair (None: a side lacks it), and what a rule says of it."""

    series: Series
    row: int | None
    rule: GateRule | None = None
    finding: Finding | None = None


@dataclass(frozen=True)
class _Sheet:
    """The lines as rows."""

    candidate: Side
    baseline: Side
    pair: Pair
    found: Differences
    question: Question
    lines: Sequence[_Line]

    def rows(self) -> Iterator[Row]:
        """One a line."""
        for line, p_holm, p_bh in zip(self.lines, *self._adjusted, strict=True):
            numbers = {} if line.row is None else self._numbers(line.row)
            adjusted = {"p_holm": _number(p_holm), "p_bh": _number(p_bh)}
            yield {
                **self._of_sides,
                **line.series._asdict(),
                **numbers,
                **adjusted,
                **self._of_queries(line.series),
                **_of_rule(line),
                "status": "insufficient" if line.row is None else self._status(line.row),
            }

    @property
    def _of_sides(self) -> Row:
        one, other = self.candidate, self.baseline
        return {
            "event_date": one.days[-1],
            "model_version": one.model,
            "baseline_version": other.model,
            "date_from": one.days[0],
            "date_to": one.days[-1],
            "n_days": len(one.days),
            "confidence": self.question.confidence,
            "label_as_of": one.label_as_of,
            "is_mature": all_mature([one.is_mature, other.is_mature]),
        }

    def _numbers(self, row: int) -> Row:
        return {name: _number(column[row]) for name, column in self._columns.items()} | {
            "n_clusters": int(self.found.delta.n_clusters[row]),
            "definition_hash": self.pair.candidate.keys["definition_hash"][row].as_py(),
        }

    @cached_property
    def _columns(self) -> dict[str, Array]:
        alpha, found = self.question.alpha, self.found
        interval, relative = found.interval(alpha), found.relative_interval(alpha)
        return {
            "value": self.pair.candidate.value,
            "baseline_value": self.pair.baseline.value,
            "delta": found.delta.value,
            "std_err": np.where(found.is_enough, found.delta.std_err, np.nan),
            "ci_low": interval.low,
            "ci_high": interval.high,
            "relative_delta": found.relative.value,
            "relative_ci_low": relative.low,
            "relative_ci_high": relative.high,
            "p_value": found.p_values,
            "p_sign_flip": self._flipped,
            "mde": found.smallest_found(alpha),
        }

    @cached_property
    def _flipped(self) -> Array:
        """Only of rows that are shown: the flips are what a comparison takes longest for."""
        shown = sorted({line.row for line in self.lines if line.row is not None})
        flipped = np.full(len(self.pair.series), np.nan)
        if shown:
            flipped[shown] = sign_flips(
                self.pair.candidate.take(shown), self.pair.baseline.take(shown)
            )
        return np.where(np.isnan(self.found.p_values), np.nan, flipped)

    @cached_property
    def _adjusted(self) -> tuple[Array, Array]:
        """Holm's and Benjamini and Hochberg's p-values of the lines; a primary's is its own.

        The lines without a rule are a family, and those with one are another.
        """
        of_rows = self.found.p_values
        own = np.array([np.nan if line.row is None else of_rows[line.row] for line in self.lines])
        adjusted = own.copy(), own.copy()
        for is_ruled in (False, True):
            family = [
                place
                for place, line in enumerate(self.lines)
                if (line.rule is not None) == is_ruled
                and (line.rule is None or line.rule.role != "primary")
            ]
            for p_values, adjust in zip(adjusted, (holm, benjamini_hochberg), strict=True):
                p_values[family] = adjust(own[family])
        return adjusted

    def _of_queries(self, series: Series) -> Row:
        pairing = self._pairing(series)
        return {
            "pairing": pairing.kind.value,
            "n_queries": pairing.n_queries,
            "baseline_n_queries": pairing.n_baseline,
            "n_paired_queries": pairing.n_paired,
            "judged_at_k": self.candidate.judged(series),
            "baseline_judged_at_k": self.baseline.judged(series),
        }

    def _pairing(self, series: Series) -> Pairing:
        group = (series.slice, series.slice_value, series.label)
        if group not in self._pairings:
            self._pairings[group] = pairing_of(self.candidate, self.baseline, group)
        return self._pairings[group]

    @cached_property
    def _pairings(self) -> dict[tuple[str, str, str], Pairing]:
        return {}

    def _status(self, row: int) -> str:
        if self.found.is_same[row]:
            return "same"
        return "ok" if self.found.is_enough[row] else "insufficient"


def _of_rule(line: _Line) -> Row:
    if line.rule is None or line.finding is None:
        return {"rule": ""}
    bounds = ("max_drop", "max_relative_drop", "floor", "ceiling", "role")
    return {
        "rule": line.rule.title,
        **{name: getattr(line.rule, name) for name in bounds},
        "verdict": line.finding.verdict.value,
        "reason": line.finding.reason or None,
    }


def _left_out(days: Sequence[date]) -> Iterator[str]:
    if days:
        listed = ", ".join(map(str, days[:_LISTED]))
        more = f" and {len(days) - _LISTED} more" if len(days) > _LISTED else ""
        yield f"left out, since only one model has them: {listed}{more}"


_LISTED = 5


def _notes(candidate: Side, baseline: Side, question: Question, pair: Pair) -> Iterator[str]:
    for side in (candidate, baseline):
        if side.is_mature is False:
            yield f"{side.model}: labels are not complete yet"
    lacking = [series for series in question.wanted if pair.place_of(series) is None]
    if lacking:
        values = [*dict.fromkeys(f"{series.slice} {series.slice_value}" for series in lacking)]
        more = f" and {len(values) - _LISTED} more" if len(values) > _LISTED else ""
        yield f"left out, since only one model has them: {', '.join(values[:_LISTED])}{more}"


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
