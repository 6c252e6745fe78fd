"""`ranklake compare`: how much better one model is than another. Starts no JVM."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from ranklake import comparison
from ranklake.cli import options
from ranklake.cli.configured import configured, tables
from ranklake.cli.dates import from_to
from ranklake.cli.differences import of_series
from ranklake.cli.printing import as_csv, as_json
from ranklake.cli.sheet import Sheet
from ranklake.comparison import Comparison
from ranklake.errors import NoInputError


def compare(
    candidate: Annotated[str, typer.Argument(help="The model that is new.")],
    baseline: options.Baseline,
    lake: options.LakePath = None,
    config: options.Config = None,
    settings: options.Set = None,
    dates: options.Dates = None,
    metric: options.Metric = None,
    k: options.K = None,
    slices: options.SliceNames = None,
    label: options.Label = None,
    output: options.OutputFormat = options.Output.TABLE,
) -> None:
    """Compare two models by their published sums: differences with paired intervals.

    [dim]ranklake compare v43 --baseline v42 --lake lake --metric recall@10 --slice device[/dim]
    """
    loaded = configured(config, settings)
    found = comparison.compare(
        tables(loaded, lake, "compare"),
        candidate,
        baseline,
        dates=from_to(dates),
        metrics=metric or (),
        ks=k or (),
        slices=slices or (),
        labels=label or (),
        confidence=loaded.confidence,
        aliases=loaded.aliases,
    )
    if not len(found.rows):
        raise NoInputError(f"nothing to compare: {'; '.join(found.notes)}")
    print_comparison(found, of_series(found), output)


def print_comparison(found: Comparison, sheets: Sequence[Sheet], output: options.Output) -> None:
    """The comparison as asked for; its notes go to the terminal, or into the Markdown."""
    notes = [*found.notes, *([f"Verdict: {found.verdict}"] if found.verdict else [])]
    if output is options.Output.JSON:
        typer.echo(as_json(found.rows.to_pylist()))
    elif output is options.Output.CSV:
        typer.echo(as_csv(found.rows.to_pylist()), nl=False)
    elif output is options.Output.MARKDOWN:
        typer.echo("\n\n".join([*(sheet.for_markdown() for sheet in sheets), *notes]))
    else:
        console = Console(highlight=False)
        tables = [sheet.narrowed(console).for_terminal() for sheet in sheets]
        console.print(*tables, *notes, sep="\n", markup=False)
