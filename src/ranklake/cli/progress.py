"""How a run shows that it lives: a bar on a terminal, plain lines elsewhere, nothing if quiet."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ranklake.run import Listener, silent

Tasks = Callable[[], tuple[int, int] | None]
"""Spark's finished and all tasks of the stages under way; None when unknown."""

_POLL_SECONDS = 0.5


@contextmanager
def progress(title: str, *, tasks: Tasks, quiet: bool) -> Iterator[Listener]:
    """A listener for the stages of a run."""
    console = Console(stderr=True)
    if quiet:
        yield silent
    elif console.is_terminal:
        with _bar(console, title, tasks) as listener:
            yield listener
    else:
        yield _Lines(console, title)


class _Lines:
    """One line a stage, for logs."""

    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title, self._begin = console, title, time.monotonic()

    def __call__(self, stage: str, n_rows: int) -> None:
        rows = f", {n_rows:,} rows" if n_rows else ""
        seconds = time.monotonic() - self._begin
        self._console.print(
            f"{self._title}: {stage}{rows} ({seconds:.1f} s)", highlight=False, soft_wrap=True
        )


@contextmanager
def _bar(console: Console, title: str, tasks: Tasks) -> Iterator[Listener]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        shown = bar.add_task(title, total=None, rows="")
        done = threading.Event()

        def listen(stage: str, n_rows: int) -> None:
            rows = f"{n_rows:,} rows" if n_rows else ""
            bar.reset(shown, total=None, description=f"{title}: {stage}", rows=rows)

        def poll() -> None:
            while not done.wait(_POLL_SECONDS):
                counts = tasks()
                if counts:
                    bar.update(shown, completed=counts[0], total=counts[1])

        poller = threading.Thread(target=poll, daemon=True)
        poller.start()
        try:
            yield listen
        finally:
            done.set()
            poller.join()
