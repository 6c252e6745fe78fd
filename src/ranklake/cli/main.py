"""`ranklake`: the entry point of the console script, of `python -m ranklake` and of jobs/."""

import sys
from collections.abc import Sequence
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

from ranklake.cli import check, evaluate, explain, generate, init, remeasure, show, trec
from ranklake.errors import ConfigError, RanklakeError

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
app.command("show")(show.show)
app.command("explain")(explain.explain)
app.command("remeasure")(remeasure.remeasure)
app.command("trec")(trec.trec)
app.command("check")(check.check)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command. Returns on success (a platform may count exit(0) as an error).

    Raises SystemExit with the error's exit code otherwise, after saying what is wrong on stderr.
    """
    try:
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
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for problem in error.problems:
        console.print(Text("error: ", style="red") + Text(problem))
    sys.exit(error.exit_code)
