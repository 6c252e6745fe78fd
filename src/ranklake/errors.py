"""One class a reaction: what a scheduler, a data owner or an engineer has to do next.

Every message is one line a problem, `where: what is wrong, found, expected`, all problems at once.
The exit codes are part of the interface: schedulers act on them.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import ClassVar


class RanklakeError(Exception):
    """Something the caller can act on; `exit_code` says how."""

    exit_code: ClassVar[int] = 1

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class ConfigError(RanklakeError):
    """The configuration or the command line is wrong: do not retry."""

    exit_code = 2


class ContractError(RanklakeError):
    """An input breaks its contract: do not retry, call the data owner."""

    exit_code = 3


class GateFailed(RanklakeError):
    """The candidate is worse than allowed: stop the rollout."""

    exit_code = 4


class WriteConflict(RanklakeError):
    """Another run committed first, again and again: retry."""

    exit_code = 5


class GateInconclusive(RanklakeError):
    """The data cannot tell: a person decides."""

    exit_code = 6


class NoInputError(RanklakeError):
    """The day is missing or empty: retry later."""

    exit_code = 7


class DataLimitExceeded(RanklakeError):
    """The data is outside its limits and nothing was published: a person looks."""

    exit_code = 8


class RanklakeWarning(UserWarning):
    """The run goes on, but not quite as it was asked for."""


def near_miss(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name, to end a sentence with; or nothing.

    >>> near_miss("impresions", ["impressions", "clicks"])
    "; did you mean 'impressions'?"
    """
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
