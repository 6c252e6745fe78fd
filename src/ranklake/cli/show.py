"""`ranklake show`: the published numbers, for people or for programs. Starts no JVM."""

from collections.abc import Sequence
from datetime import date as Day
from typing import Annotated

import pyarrow as pa
import typer
from rich.console import Console

from ranklake.choose import Choice
from ranklake.cli import options
from ranklake.cli.configured import configured, directory
from ranklake.cli.dates import dates
from ranklake.cli.printing import as_csv, as_json
from ranklake.cli.sheet import Row, in_order, sentence, sheet
from ranklake.errors import NoInputError
from ranklake.lake import Lake


def show(
    lake: options.LakePath = None,
    config: options.Config = None,
    settings: options.Set = None,
    date: Annotated[
        list[str] | None,
        typer.Option("--date", help="A day, YYYY-MM-DD; repeat it. Default: the newest."),
    ] = None,
    model_version: Annotated[
        list[str] | None,
        typer.Option("--model-version", help="A model; repeat it. Default: all of the day."),
    ] = None,
    metric: options.Metric = None,
    k: options.K = None,
    slices: options.SliceNames = None,
    label: options.Label = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also all slices, populations, windows, and the counts.")
    ] = False,
    output: options.OutputFormat = options.Output.TABLE,
) -> None:
    """Show published metrics with their intervals, each over the queries it is usually read over.

    [dim]ranklake show --lake lake --metric recall --k 10 --slice device[/dim]
    """
    stored = Lake(lake or directory(configured(config, settings), "show"))
    rows = _published(stored, dates(date) if date else None, model_version)
    choice = Choice(metric or (), k or (), slices or (), label or (), everything)
    rows = choice.of(rows)
    _print(in_order(rows.to_pylist()), output, unsaid=() if everything else ("population",))


def _published(stored: Lake, days: Sequence[Day] | None, models: Sequence[str] | None) -> pa.Table:
    """The metrics of these days and models. Raises NoInputError for those that have none."""
    rows = stored.metrics(dates=days or stored.latest_dates(models=models), models=models)
    wanted = {"event_date": days or (), "model_version": models or ()}
    lacking = [
        f"{stored.path}: no metrics are published for {value}"
        for column, values in wanted.items()
        for value in values
        if value not in rows[column].to_pylist()
    ]
    if lacking or not rows:
        raise NoInputError(lacking or f"{stored.path}: no metrics are published yet")
    return rows


def _print(rows: Sequence[Row], output: options.Output, *, unsaid: Sequence[str]) -> None:
    if output is options.Output.JSON:
        typer.echo(as_json(rows))
    elif output is options.Output.CSV:
        typer.echo(as_csv(rows), nl=False)
    elif output is options.Output.MARKDOWN:
        typer.echo(f"{sheet(rows, unsaid=unsaid).for_markdown()}\n\n{sentence(rows[0])}")
    else:
        _print_tables(rows, unsaid=unsaid)


def _print_tables(rows: Sequence[Row], *, unsaid: Sequence[str]) -> None:
    """The models side by side where the terminal is wide enough, else one below the other."""
    console = Console(highlight=False)
    sheets = [sheet(rows, unsaid=unsaid)]
    if not sheets[0].fits(console):
        models = dict.fromkeys(row["model_version"] for row in rows)
        of_models = [[row for row in rows if row["model_version"] == model] for model in models]
        sheets = [sheet(of_model, unsaid=unsaid) for of_model in of_models]
    tables = [each.for_terminal() for each in sheets]
    console.print(*tables, sentence(rows[0]), sep="\n", markup=False)
