"""`ranklake trend`: how a measure goes, day by day, and against the days before. Starts no JVM."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import Console

from ranklake import comparison
from ranklake.cli import options
from ranklake.cli.configured import configured, tables
from ranklake.cli.dates import n_days
from ranklake.cli.numbers import change, number, p_value, spark, whisker, with_interval
from ranklake.cli.printing import Row, as_csv, as_json
from ranklake.cli.sheet import Sheet, measure
from ranklake.comparison import Trend
from ranklake.schemas import EVERY_QUERY

_MOST_CHARTS = 4
"""Series whose days are shown one by one."""
_WIDTH = 40
"""Characters of a chart."""


def trend(
    metric: Annotated[str, typer.Argument(help="A measure, such as recall@10.")],
    lake: options.LakePath = None,
    config: options.Config = None,
    settings: options.Set = None,
    last: Annotated[str, typer.Option("--last", help="How many days: 28d, 4w.")] = "28d",
    until: Annotated[
        str | None, typer.Option("--until", help="The last day. Default: the newest.")
    ] = None,
    model_version: Annotated[
        list[str] | None,
        typer.Option("--model-version", help="A model; repeat it. Default: all of the last day."),
    ] = None,
    slices: options.SliceNames = None,
    label: options.Label = None,
    output: options.OutputFormat = options.Output.TABLE,
) -> None:
    """Show a measure day by day, and whether it changed against as many days before.

    [dim]ranklake trend recall@10 --lake lake --last 7d --slice device[/dim]
    """
    loaded = configured(config, settings)
    found = comparison.trend(
        tables(loaded, lake, "trend"),
        metric,
        last=n_days(last),
        until=until,
        models=model_version,
        slices=slices or (),
        labels=label or (),
        confidence=loaded.confidence,
    )
    if output is options.Output.JSON:
        parts = {"days": found.days, "changes": found.changes}
        rows = {name: part.to_pylist() for name, part in parts.items()}
        typer.echo(as_json({**rows, "notes": found.notes}))
    elif output is options.Output.CSV:
        typer.echo(as_csv(found.days.to_pylist()), nl=False)
    elif output is options.Output.MARKDOWN:
        sheets = [sheet.for_markdown() for sheet in _sheets(found)]
        typer.echo("\n\n".join([*sheets, *found.notes]))
    else:
        console = Console(highlight=False)
        shown = [sheet.narrowed(console).for_terminal() for sheet in _sheets(found)]
        console.print(*shown, *found.notes, sep="\n", markup=False)


def _sheets(found: Trend) -> list[Sheet]:
    """Each series' days, where there are few series, and the windows of all of them."""
    changes = found.changes.to_pylist()
    of_series: dict[tuple[object, ...], list[Row]] = {_key(row): [] for row in changes}
    for row in found.days.to_pylist():
        of_series[_key(row)].append(row)
    charts = []
    if len(changes) <= _MOST_CHARTS:
        charts = [_chart(rows) for rows in of_series.values() if len(rows) > 1]
    return [*charts, _summary(found, changes, list(of_series.values()))]


_KEYS = ("model_version", "slice", "slice_value", "label", "population", "metric", "variant", "k")


def _key(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in _KEYS)


def _chart(rows: Sequence[Row]) -> Sheet:
    """The days of one series, one a line."""
    ends = [row[end] for row in rows for end in ("value", "ci_low", "ci_high")]
    known = [end for end in ends if end is not None]
    scale = (min(known, default=0.0), max(known, default=1.0))
    return Sheet(
        title=_named(rows[0]),
        header=("day", "value", f"{scale[0]:.4f} to {scale[1]:.4f}", "queries"),
        lines=[
            (
                f"{row['event_date']}{'' if row['is_mature'] is not False else ' *'}",
                with_interval(row["value"], row["ci_low"], row["ci_high"]),
                whisker(row["value"], row["ci_low"], row["ci_high"], scale=scale, width=_WIDTH),
                f"{row['n_queries']:,}",
            )
            for row in rows
        ],
        optional=("queries",),
    )


def _summary(found: Trend, changes: Sequence[Row], days: Sequence[Sequence[Row]]) -> Sheet:
    """One line a model and series; a key has a column where it varies."""
    window = found.window
    keys = {
        "metric": [measure(row) for row in changes],
        **{name: [row[name] for row in changes] for name in ("slice", "slice_value", "label")},
    }
    varying = {name: values for name, values in keys.items() if len({*values}) > 1}
    named = "" if "metric" in varying else f"{keys['metric'][0]}, "
    return Sheet(
        title=(
            f"{named}{window.first} to {window.last}, against"
            f" {window.before.first} to {window.before.last}"
        ),
        header=("model", *varying, "days", "value", "before", "change", "p"),
        lines=[
            (
                row["model_version"],
                *(values[place] for values in varying.values()),
                spark([*_by_day(found, days[place])]),
                with_interval(row["value"], row["ci_low"], row["ci_high"]),
                number(row["previous_value"]),
                change(row["delta"], row["delta_ci_low"], row["delta_ci_high"]),
                p_value(row["p_value"]),
            )
            for place, row in enumerate(changes)
        ],
        optional=("p", "before", "days"),
    )


def _by_day(found: Trend, rows: Sequence[Row]) -> Iterator[float | None]:
    """The value of every day of the window; None where there is none."""
    values = {row["event_date"]: row["value"] for row in rows}
    for day in found.window.days:
        yield values.get(day)


def _named(row: Row) -> str:
    where = "" if row["slice"] == EVERY_QUERY else f", {row['slice']} {row['slice_value']}"
    return f"{measure(row)} of {row['model_version']}, {row['label']}{where}"
