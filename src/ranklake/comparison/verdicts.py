"""PASS, FAIL or INCONCLUSIVE: a rule's words for where an interval lies.

FAIL where all of the interval is below what the rule allows, PASS where none of it is, else
INCONCLUSIVE.
"""

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """What a gate says, the worst first."""

    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    PASS = "PASS"


_ORDER = list(Verdict)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of them; of none, PASS."""
    return min(verdicts, key=_ORDER.index, default=Verdict.PASS)


def at_least(bound: float, *, low: float, surely_low: float) -> Verdict:
    """Whether something is at least `bound`.

    low         the interval's lower end, by which it passes
    surely_low  the upper end of the interval by which it fails
    """
    if surely_low < bound:
        return Verdict.FAIL
    return Verdict.PASS if low >= bound else Verdict.INCONCLUSIVE
