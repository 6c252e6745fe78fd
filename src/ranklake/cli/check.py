"""`ranklake check`: is everything there for a run? Nothing is computed, nothing is written."""

import typer

from ranklake.cli import options
from ranklake.cli.configured import configured
from ranklake.cli.dates import dates


def check(
    date: options.Date = None,
    config: options.Config = None,
    settings: options.Set = None,
) -> None:
    """Validate the configuration, the inputs' schemas and, with --date, that the day is there."""
    days = dates(date) if date else []
    loaded = configured(config, settings)
    typer.echo(f"configuration: ok (evaluation {loaded.evaluation!r})")
    from ranklake import pipeline, session

    for line in pipeline.checked(session.session(engine=loaded.engine), loaded, days):
        typer.echo(line)
