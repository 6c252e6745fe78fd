"""`ranklake init`: the tables of an evaluation."""

import typer

from ranklake.cli import options
from ranklake.cli.configured import configured


def init(
    config: options.Config = None, settings: options.Set = None, quiet: options.Quiet = False
) -> None:
    """Create the tables of the evaluation, and add new columns. Running it again does nothing."""
    loaded = configured(config, settings, needs_lake=True)
    from ranklake import session, write
    from ranklake.pipeline.publish import lake_tables

    done = write.create_tables(
        session.session(engine=loaded.engine), loaded.lake, lake_tables(loaded)
    )
    if not quiet:
        for line in done:
            typer.echo(line)
