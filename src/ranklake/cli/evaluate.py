"""`ranklake evaluate`: the job."""

from typing import Annotated

import typer

from ranklake.cli import options
from ranklake.cli.configured import configured
from ranklake.cli.dates import dates, instant
from ranklake.cli.progress import progress


def evaluate(
    date: options.Date = None,
    model_version: Annotated[
        list[str] | None,
        typer.Option(
            "--model-version", help="A model to evaluate; repeat it. Default: all of the day."
        ),
    ] = None,
    config: options.Config = None,
    settings: options.Set = None,
    redefine: Annotated[
        bool, typer.Option("--redefine", help="Publish although the numbers' definitions changed.")
    ] = False,
    label_as_of: options.LabelAsOf = None,
    quiet: options.Quiet = False,
) -> None:
    """Evaluate the day's models in one pass and publish their metrics.

    [dim]ranklake evaluate --config conf/prod.toml --date 2026-01-01[/dim]
    """
    days, known_by = dates(date), instant("--label-as-of", label_as_of)
    loaded = configured(config, settings, needs_lake=True)
    from ranklake import pipeline, session

    spark = session.session(engine=loaded.engine)
    for day in days:
        with progress(
            f"{loaded.evaluation} {day}", tasks=lambda: session.task_progress(spark), quiet=quiet
        ) as listener:
            found = pipeline.evaluate(
                spark,
                loaded,
                day,
                models=model_version or (),
                label_as_of=known_by,
                redefine=redefine,
                listener=listener,
            )
        if not quiet:
            models = ", ".join(sorted(set(found.metrics["model_version"].to_pylist())))
            n_metrics = found.metrics.num_rows
            typer.echo(f"{day}: published {n_metrics} metrics of {models} (run {found.run_id})")
