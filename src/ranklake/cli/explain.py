"""`ranklake explain`: what a metric or measure means. Starts no JVM and needs no lake."""

import math
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ranklake import metrics
from ranklake.errors import ConfigError
from ranklake.metrics import Cutoff, Denominator, Measure, Metric, Need

_LEGEND = (
    "h = relevant candidates within the first k, n = candidates, G = the relevant items of a query"
)
_ORDER = "score descending, unscored last; equal scores as rules.tie_break says: item_id descending"
_NEEDS = {
    Need.TIES: "which candidates have equal scores: a window more over the ranked queries",
    Need.JUDGED: "every query's order: no query can be left out of the ranking",
    Need.SCORES: "scores that are probabilities: score_is_probability = true",
}


def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A metric or measure, such as 'nDCG(gain=exp2)@10'. Default: a table of all."
        ),
    ] = None,
) -> None:
    """Say what a number means: its formula, when it is null, its options, and how to read it.

    [dim]ranklake explain 'nDCG(gain=exp2)@10'[/dim]
    """
    console = Console(highlight=False)
    if name is None:
        console.print(_all(), Text(_LEGEND), sep="\n")
        return
    measure = _named(name)
    console.print(_one(measure))
    if measure.metric.options:
        console.print(_options(measure))
    console.print(Text(_LEGEND))


def _named(text: str) -> Measure:
    """The measure; or the metric with its options, to be read at any k."""
    try:
        if "@" in text:
            return metrics.measure(text)
        return metrics.metric_with_options(text)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def _all() -> Table:
    table = Table("name", "aliases", "title", "formula", box=None, header_style="bold")
    for metric in metrics.METRICS:
        cells = (metric.name, ", ".join(metric.aliases), metric.title, metric.formula)
        table.add_row(*map(Text, cells))
    return table


def _one(measure: Measure) -> Table:
    metric = measure.metric
    is_plain = measure == Measure(metric)
    meanings = {
        "name": ", ".join((metric.name, *metric.aliases)) if is_plain else str(measure),
        "column": "" if measure.is_derived else _column(measure),
        "title": metric.title,
        "formula": metric.formula + (", with the options below" if measure.options else ""),
        "null when": metric.null_when,
        "order": _order(measure),
        "mean over": _mean_over(metric),
        "reads as": metric.reading("x", measure.k if measure.k > 0 else "k"),
        "range": "0 to 1" if math.isfinite(measure.upper) else "0 or more",
        "needs": "; ".join(_needs(measure)),
        "source": metric.source,
    }
    table = Table(box=None, show_header=False)
    for what, meaning in meanings.items():
        if meaning:
            table.add_row(Text(what, style="bold"), Text(meaning))
    return table


def _column(measure: Measure) -> str:
    """The column of query_metrics; at k where the metric is asked about and not a measure."""
    is_cut = measure.k or not measure.metric.has_cutoff
    at_k = "" if is_cut else f"{measure.column}_at_k"
    without = measure.column if measure.metric.cutoff is not Cutoff.REQUIRED or is_cut else ""
    return "; without a cut-off ".join(name for name in (at_k, without) if name)


def _order(measure: Measure) -> str:
    """How candidates are ordered, and what equal scores mean for the value."""
    if Need.TIES in measure.metric.needs:
        return "score descending, unscored last; equal scores count as such"
    over = {
        "expected": "the mean over all their orders",
        "best": "in the best of their orders",
        "worst": "in the worst of their orders",
    }
    text = measure.options_of("tie_break")
    if text:
        return f"score descending, unscored last; equal scores: {over.get(text, text)}"
    return _ORDER


def _needs(measure: Measure) -> list[str]:
    shown = (
        ["candidates that were shown: not for scores alone"] if measure.metric.served_only else []
    )
    ordered = ["an order of its own: the ranked queries are sorted once more"]
    return [
        *shown,
        *(ordered if measure.tie_break else []),
        *(_NEEDS[need] for need in Need if need in measure.needs),
    ]


def _options(measure: Measure) -> Table:
    table = Table("option", "value", "default", "meaning", box=None, header_style="bold")
    given = dict(measure.options)
    for option in measure.metric.options:
        value = given.get(option.name, option.default)
        cells = (option.name, value, option.default, option.meaning)
        table.add_row(*map(Text, cells), style="" if option.name not in given else "bold")
    return table


def _mean_over(metric: Metric) -> str:
    """The published populations, the usual one first; or what a ratio of sums divides by."""
    if metric.denominator is Denominator.DEFINED:
        return Denominator.DEFINED.value
    if metric.denominator is not Denominator.QUERIES:
        return f"nothing: it is a ratio of sums, over all {metric.denominator.value}"
    usual, *others = (population.in_words for population in metric.populations)
    return usual if not others else f"{usual}; also published over {', '.join(others)}"
