"""Options that several commands share, declared once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    list[Path] | None,
    typer.Option(
        "--config", "-c", help="A TOML file over conf/base.toml; repeat it, later ones win."
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="One key over the files: --set slices.max_values=20"),
]
Date = Annotated[
    list[str] | None,
    typer.Option("--date", help="The day to evaluate, YYYY-MM-DD; repeat it for several."),
]
From = Annotated[str | None, typer.Option("--from", help="The first day, YYYY-MM-DD.")]
To = Annotated[str | None, typer.Option("--to", help="The last day, YYYY-MM-DD.")]
Redefine = Annotated[
    bool, typer.Option("--redefine", help="Publish although the numbers' definitions changed.")
]
LabelAsOf = Annotated[
    str | None,
    typer.Option(
        "--label-as-of",
        help="Only labels that the log had by then count: an instant, 2026-01-02T00:00:00Z.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
LakePath = Annotated[
    str | None,
    typer.Option("--lake", help="The lake's directory. Default: that of the configuration."),
]


class Output(StrEnum):
    """How a command prints what it read."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"


OutputFormat = Annotated[
    Output, typer.Option("--output", "-o", help="How to print it; json and csv have every column.")
]
Baseline = Annotated[
    str,
    typer.Option(
        "--baseline", "-b", help="The model compared with, or an alias such as production."
    ),
]
Dates = Annotated[
    str | None,
    typer.Option(
        "--dates",
        help="A day, or the first and the last: 2026-01-01..2026-01-28. Default: the newest of"
        " both models.",
    ),
]
Metric = Annotated[
    list[str] | None,
    typer.Option(
        "--metric", help="A metric with its variants, or a measure; repeat it. Default: all."
    ),
]
K = Annotated[list[int] | None, typer.Option("--k", help="A cut-off; repeat it. Default: all.")]
SliceNames = Annotated[
    list[str] | None,
    typer.Option("--slice", help="A slice, such as device; repeat it. Default: all queries."),
]
Label = Annotated[
    list[str] | None, typer.Option("--label", help="A label; repeat it. Default: all.")
]
