"""`ranklake explain`: what a metric means. Starts no JVM and needs no lake."""

import math
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ranklake import metrics
from ranklake.errors import ConfigError
from ranklake.metrics import Denominator, Metric

_LEGEND = (
    "h = relevant candidates within the first k, n = candidates, G = the relevant items of a query"
)


def explain(
    name: Annotated[
        str | None, typer.Argument(help="A metric, by name or alias. Default: a table of all.")
    ] = None,
) -> None:
    """Say what a metric means: its formula, when it is null, and how to read it.

    [dim]ranklake explain ndcg[/dim]
    """
    console = Console(highlight=False)
    if name is None:
        console.print(_all(), Text(_LEGEND), sep="\n")
        return
    try:
        metric = metrics.metric(name)
    except KeyError as error:
        raise ConfigError(error.args[0]) from error
    console.print(_one(metric), Text(_LEGEND), sep="\n")


def _all() -> Table:
    table = Table("name", "aliases", "title", "formula", box=None, header_style="bold")
    for metric in metrics.METRICS:
        cells = (metric.name, ", ".join(metric.aliases), metric.title, metric.formula)
        table.add_row(*map(Text, cells))
    return table


def _one(metric: Metric) -> Table:
    meanings = {
        "name": ", ".join((metric.name, *metric.aliases)),
        "title": metric.title,
        "formula": metric.formula,
        "null when": metric.null_when,
        "mean over": _mean_over(metric),
        "reads as": metric.reads_as.format(value="x", k="k"),
        "range": "0 to 1" if math.isfinite(metric.upper) else "0 or more",
        "needs": "candidates that were shown: not for scores alone" if metric.served_only else "",
        "source": metric.source,
    }
    table = Table(box=None, show_header=False)
    for what, meaning in meanings.items():
        if meaning:
            table.add_row(Text(what, style="bold"), Text(meaning))
    return table


def _mean_over(metric: Metric) -> str:
    """The published populations, the usual one first; or what a ratio of sums divides by."""
    if metric.denominator is not Denominator.QUERIES:
        return f"nothing: it is a ratio of sums, over all {metric.denominator.value}"
    usual, *others = (population.in_words for population in metric.populations)
    return usual if not others else f"{usual}; also published over {', '.join(others)}"
