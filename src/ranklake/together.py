"""Small jobs that do not need each other, at the same time: each mostly waits, for Delta's log."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def together(*tasks: Callable[[], Any]) -> list[Any]:
    """What the tasks return, in their order; they run in threads. Raises the first one's error.

    All have ended when it returns or raises.
    """
    with ThreadPoolExecutor(max_workers=len(tasks)) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]
