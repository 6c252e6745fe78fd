"""`ranklake`: the entry point of the console script, of `python -m ranklake` and of jobs/."""

import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn, TextIO

import typer
from rich.console import Console
from rich.text import Text

from ranklake.cli import (
    backfill,
    check,
    compare,
    evaluate,
    explain,
    gate,
    generate,
    init,
    remeasure,
    show,
    trec,
    trend,
)
from ranklake.cli.startup import without_pandas
from ranklake.errors import ConfigError, RanklakeError, RanklakeWarning

app = typer.Typer(
    name="ranklake",
    help="Offline evaluation of rankers on click logs: recall@k, precision@k and their family.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("init")(init.init)
app.command("generate")(generate.generate)
app.command("evaluate")(evaluate.evaluate)
app.command("backfill")(backfill.backfill)
app.command("show")(show.show)
app.command("compare")(compare.compare)
app.command("gate")(gate.gate)
app.command("trend")(trend.trend)
app.command("explain")(explain.explain)
app.command("remeasure")(remeasure.remeasure)
app.command("trec")(trec.trec)
app.command("check")(check.check)


_QUICK = ("compare", "gate", "show", "trend")
"""Commands that read tables, and start no JVM unless they are in a catalog."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command. Returns on success (a platform may count exit(0) as an error).

    Raises SystemExit with the error's exit code otherwise, after saying what is wrong on stderr.
    """
    if arguments is None and sys.argv[1:2] and sys.argv[1] in _QUICK:
        without_pandas()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            app(args=None if arguments is None else list(arguments))
    except RanklakeError as error:
        _fail(error)
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        _fail(ConfigError("this command needs Spark: pip install 'ranklake[spark]'"))
    except SystemExit as stop:
        if stop.code:
            raise


def _fail(error: RanklakeError) -> NoReturn:
    for problem in error.problems:
        _say("error: ", "red", problem)
    sys.exit(error.exit_code)


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Ours are sentences for the user; where in the code they come from is of no use."""
    if issubclass(category, RanklakeWarning):
        _say("warning: ", "yellow", str(message))
    else:
        sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def _say(kind: str, style: str, text: str) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(Text(kind, style=style) + Text(text))
