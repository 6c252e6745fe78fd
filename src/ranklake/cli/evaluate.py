"""`ranklake evaluate`: the job."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ranklake.cli import options
from ranklake.cli.configured import configured
from ranklake.cli.dates import dates, instant
from ranklake.cli.progress import progress
from ranklake.config import EvalConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def evaluate(
    date: options.Date = None,
    model_version: Annotated[
        list[str] | None,
        typer.Option(
            "--model-version", help="A model to evaluate; repeat it. Default: all of the day."
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            "-b",
            help="A model, or an alias: the others are compared with it, and gate's rules read.",
        ),
    ] = None,
    config: options.Config = None,
    settings: options.Set = None,
    redefine: options.Redefine = False,
    label_as_of: options.LabelAsOf = None,
    quiet: options.Quiet = False,
) -> None:
    """Evaluate the day's models in one pass and publish their metrics.

    [dim]ranklake evaluate --config conf/prod.toml --date 2026-01-01[/dim]
    """
    days, known_by = dates(date), instant("--label-as-of", label_as_of)
    loaded = configured(config, settings, needs_lake=True)
    from ranklake import session

    spark = session.session(engine=loaded.engine)
    for day in days:
        evaluate_day(
            spark,
            loaded,
            day,
            models=model_version or (),
            baseline=baseline,
            label_as_of=known_by,
            redefine=redefine,
            quiet=quiet,
        )


def evaluate_day(
    spark: "SparkSession",
    config: EvalConfig,
    day: date,
    *,
    models: Sequence[str] = (),
    baseline: str | None = None,
    label_as_of: datetime | None,
    redefine: bool,
    quiet: bool,
) -> None:
    """Evaluates one day, and shows its progress and what it published."""
    from ranklake import pipeline, session

    title = f"{config.evaluation} {day}"
    with progress(title, tasks=lambda: session.task_progress(spark), quiet=quiet) as listener:
        found = pipeline.evaluate(
            spark,
            config,
            day,
            models=models,
            baseline=baseline,
            label_as_of=label_as_of,
            redefine=redefine,
            listener=listener,
        )
    if not quiet:
        names = ", ".join(sorted(set(found.metrics["model_version"].to_pylist())))
        n_metrics = found.metrics.num_rows
        typer.echo(f"{day}: published {n_metrics} metrics of {names} (run {found.run_id})")
        for compared in found.comparisons:
            says = f": {compared.verdict}" if compared.verdict else ""
            typer.echo(f"{day}: compared {compared.candidate} with {compared.baseline}{says}")
