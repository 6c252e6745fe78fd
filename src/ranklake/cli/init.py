"""`ranklake init`: the tables of an evaluation."""

import typer

from ranklake.cli import options
from ranklake.config import load
from ranklake.errors import ConfigError


def init(
    config: options.Config = None, settings: options.Set = None, quiet: options.Quiet = False
) -> None:
    """Create the tables of the evaluation, and add new columns. Running it again does nothing."""
    loaded = load(config or (), settings or ())
    if not loaded.lake.is_given:
        raise ConfigError("lake: give lake.path (a directory) or lake.catalog_schema")
    from ranklake import session, write
    from ranklake.pipeline.publish import lake_tables

    done = write.create_tables(session.session(), loaded.lake, lake_tables(loaded))
    if not quiet:
        for line in done:
            typer.echo(line)
