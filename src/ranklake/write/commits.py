"""A commit while others write: again after a conflict, and one at a time on a local disk."""

import fcntl
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ranklake.config import Lake
from ranklake.errors import WriteConflict
from ranklake.schemas import Table

Result = TypeVar("Result")

ATTEMPTS = 5
RETRIED = (
    "ConcurrentAppendException",
    "ConcurrentWriteException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentTransactionException",
    "CommitFailedError",
)
"""Delta's conflicts that trying again can cure. A changed schema or protocol is none of them."""


def retried(
    write: Callable[[], Result], table: Table, *, pause: Callable[[float], None] = time.sleep
) -> Result:
    """Runs the write, again after a RETRIED conflict. Raises WriteConflict at the end."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return write()
        except Exception as error:  # Delta's conflicts have no common class: told by their names
            if not _is_conflict(error):
                raise
            if attempt == ATTEMPTS:
                raise WriteConflict(
                    f"{table.name}: another run committed first, {ATTEMPTS} attempts:"
                    f" {type(error).__name__}"
                ) from error
            pause(random.uniform(0.5, 1.5) * attempt)
    raise AssertionError("unreachable")


def _is_conflict(error: Exception) -> bool:
    return type(error).__name__ in RETRIED


@contextmanager
def locked(lake: Lake, table: Table) -> Iterator[None]:
    """One writer at a time on a local disk, where two can break a Delta log (decision 0008)."""
    directory = lake.directory(table.name)
    if directory is None:
        yield
        return
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / f"{table.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
