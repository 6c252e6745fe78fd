"""`ranklake remeasure`: new metrics for days that are published, without their logs."""

import typer

from ranklake.cli import options
from ranklake.cli.configured import configured
from ranklake.cli.dates import span
from ranklake.cli.progress import progress
from ranklake.errors import NoInputError


def remeasure(
    first: options.From = None,
    last: options.To = None,
    config: options.Config = None,
    settings: options.Set = None,
    quiet: options.Quiet = False,
) -> None:
    """Publish past days with the metrics, options and cut-offs that the configuration has now.

    From the hits in query_metrics: the logs are not read.

    [dim]ranklake remeasure --config conf/prod.toml --from 2026-01-01 --to 2026-03-31[/dim]
    """
    begin, end = span(first, last)
    loaded = configured(config, settings, needs_lake=True)
    from ranklake import read, schemas, session
    from ranklake.pipeline.publish import check_tables
    from ranklake.pipeline.remeasure import remeasure as remeasured

    spark = session.session(engine=loaded.engine)
    check_tables(spark, loaded, schemas.LAKE)
    days = read.published_days(spark, loaded.lake, begin, end)
    if not days:
        raise NoInputError(f"metrics: nothing is published from {begin} to {end}")
    for day in days:
        with progress(
            f"{loaded.evaluation} {day}", tasks=lambda: session.task_progress(spark), quiet=quiet
        ) as listener:
            done = list(remeasured(spark, loaded, day, listener=listener))
        for models, n_rows in done if not quiet else ():
            typer.echo(f"{day}: published {n_rows} metrics of {models}, from their hits")
