"""Jobs that do not need each other, at the same time: each mostly waits, for Delta."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Answer = TypeVar("Answer")


def together(*tasks: Callable[[], Any]) -> list[Any]:
    """What the tasks return, in their order; they run in threads. Raises the first one's error.

    All have ended when it returns or raises.
    """
    with ThreadPoolExecutor(max_workers=len(tasks)) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]


def ahead(tasks: Iterable[Callable[[], Answer]], *, n: int = 2) -> Iterator[Answer]:
    """What the tasks return, in their order: while one answer is used, the next n are made.

    >>> [*ahead([lambda: "a", lambda: "b", lambda: "c", lambda: "d"])]
    ['a', 'b', 'c', 'd']
    """
    with ThreadPoolExecutor(max_workers=n) as pool:
        later: deque[Future[Answer]] = deque()
        for task in tasks:
            later.append(pool.submit(task))
            if len(later) > n:
                yield later.popleft().result()
        while later:
            yield later.popleft().result()
