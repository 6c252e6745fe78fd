"""What a measure string may say in its brackets: every option, its values and its default."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ranklake.errors import near_miss

Options = Mapping[str, Any]
"""The values of a metric's options by name, defaults among them."""


@dataclass(frozen=True)
class Option:
    """One option. `parsed` turns its text into a value, or raises ValueError with what it expects.

    The default is a text too; a measure that says it explicitly is the same measure.
    """

    name: str
    default: str
    values: str
    meaning: str
    parsed: Callable[[str], Any]

    def canonical(self, text: str) -> str:
        """The text that all spellings of the value share. Raises ValueError."""
        value = self.parsed(text)
        if isinstance(value, bool) or value is None:
            return text
        if isinstance(value, float):
            return _plain(value)
        if isinstance(value, tuple):
            return "{" + ",".join(f"{_plain(grade)}:{_plain(gain)}" for grade, gain in value) + "}"
        return str(value)


def choice(name: str, meaning: str, *values: str) -> Option:
    """An option with these values, the first one its default."""

    def parsed(text: str) -> str:
        if text not in values:
            hint = near_miss(text, values)
            raise ValueError(f"found {text!r}, expected one of {', '.join(values)}{hint}")
        return text

    return Option(name, values[0], ", ".join(values), meaning, parsed)


def _plain(value: float) -> str:
    """The shortest text that is the same number."""
    return repr(value).removesuffix(".0")


def _float(text: str) -> float:
    """The number; nan for any other text, and for what only Python takes for one: 1_0, infinity."""
    return float(text) if re.fullmatch(r"[+-]?[0-9.]+(e[+-]?[0-9]+)?", text) else math.nan


def _number(low: float, high: float, in_words: str) -> Callable[[str], float]:
    def parsed(text: str) -> float:
        try:
            value = _float(text)
        except ValueError:  # such as 1.2.3
            value = math.nan
        if not low < value < high:
            raise ValueError(f"found {text!r}, expected {in_words}")
        return value

    return parsed


def _number_or(word: str, parsed: Callable[[str], float]) -> Callable[[str], float | None]:
    return lambda text: None if text == word else parsed(text)


_HUGE = 1e100
"""Numbers from there on cannot be added up."""
_POSITIVE = _number(0.0, _HUGE, "a number above 0")
_BETA = _number(0.0, 1e6, "a number above 0, below 1000000")
_GRADE = re.compile(r"\s*(?P<grade>[^:,{}]+):(?P<gain>[^:,{}]+)")


def _gain(text: str) -> str | tuple[tuple[float, float], ...]:
    """A named gain, or pairs of grade and gain in the order of the grades."""
    if text in GAINS:
        return text
    expected = f"found {text!r}, expected {', '.join(GAINS)} or a table such as {{1:1,2:3}}"
    inside = text.removeprefix("{").removesuffix("}")
    pairs = [_GRADE.fullmatch(pair) for pair in inside.split(",")]
    if len(text) - len(inside) != 2 or not all(pairs):
        raise ValueError(expected)
    try:
        found = {
            _float(pair["grade"].strip()): _float(pair["gain"].strip()) for pair in pairs if pair
        }
    except ValueError:
        raise ValueError(expected) from None
    gains = {grade: gain for grade, gain in found.items() if (grade, gain) != (0, 0)}
    is_sound = all(0 < grade < _HUGE and 0 <= gain < _HUGE for grade, gain in gains.items())
    if len(found) < len(pairs) or not is_sound:
        raise ValueError(f"{expected}; each grade once and above 0, gains 0 or more")
    return tuple(sorted(gains.items()))


GAINS = ("linear", "exp2", "binary")
TIE_BREAKS = ("run", "item_id_desc", "item_id_asc")
"""The orders of equal scores that a rank can have; `run` is that of rules.tie_break."""
OVER_TIES = ("expected", "best", "worst")
"""What is made of all orders of equal scores."""

REL = Option(
    "rel",
    "any",
    "any, a number above 0",
    "the smallest gain that is relevant; any: every gain above 0",
    _number_or("any", _POSITIVE),
)
PRECISION_DENOM = choice("denom", "what the hits are divided by", "k", "min_k_n")
RECALL_DENOM = choice("denom", "what the hits are divided by", "rel", "min_k_rel")
AP_DENOM = choice(
    "denom",
    "what the sum is divided by: |G|, min(k, |G|), k, the hits, min(|G|, n)",
    *("rel", "min_k_rel", "k", "hits", "min_rel_n"),
)
BETA = Option(
    "beta", "1", "a number above 0", "recall weighs beta² times as much as precision", _BETA
)
F1_MEAN = choice(
    "mean", "the mean of the queries' values, or made of both means", "per_query", "of_means"
)
GAIN = Option(
    "gain",
    "linear",
    "linear, exp2, binary, {grade:gain,...}",
    "gain of a grade g: g, 2^g - 1, 1 where relevant, or a table {grade:gain,...} (others: g)",
    _gain,
)
GAIN_RESPECTS_REL = choice(
    "gain_respects_rel", "whether grades below rel gain nothing", "false", "true"
)
IDEAL = choice(
    "ideal",
    "whose order is ideal: all relevant items, the candidates alone, or k items of gain 1",
    *("judged", "candidates", "k_ones"),
)
IDEAL_CUT = choice("ideal_cut", "where the ideal order is cut", "k", "none")
PERSISTENCE = Option(
    "p",
    "0.8",
    "above 0, below 1",
    "the chance of looking at the next item",
    _number(0.0, 1.0, "a number between 0 and 1"),
)
MAX_GAIN = Option(
    "max_gain",
    "none",
    "none, a number above 0",
    "the largest grade: gains are divided by it; none: 1 where relevant",
    _number_or("none", _POSITIVE),
)
TIES = choice(
    "tie_break",
    "the order of equal scores; run: as rules.tie_break says",
    *TIE_BREAKS,
)
TIES_AVERAGED = choice(
    "tie_break", f"{TIES.meaning}; expected: the mean over all", *TIE_BREAKS, "expected"
)
ALL_TIES = choice(
    "tie_break",
    f"{TIES.meaning}; expected, best, worst: over all of them",
    *TIE_BREAKS,
    *OVER_TIES,
)
AVERAGE = choice(
    "average",
    "the mean over queries: each alike, or by the input's weight",
    *("macro", "weighted"),
)
AUC_AVERAGE = choice(
    "average",
    "the mean over queries: each alike, by the input's weight, or by n (GAUC)",
    *("macro", "weighted", "n"),
)
