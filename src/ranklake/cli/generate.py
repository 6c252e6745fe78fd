"""`ranklake generate`: a sample log."""

from datetime import date
from enum import StrEnum
from typing import Annotated

import typer

from ranklake import schemas
from ranklake.cli import options
from ranklake.cli.dates import dates
from ranklake.errors import ConfigError


class Format(StrEnum):
    """How the log's tables are stored."""

    DELTA = "delta"
    PARQUET = "parquet"


class Layout(StrEnum):
    """Whether a query's rows lie together."""

    CLUSTERED = "clustered"
    SCATTERED = "scattered"


_FIRST_DATE = date(2026, 1, 1)


def generate(
    out: Annotated[str, typer.Argument(help="The directory of the log's tables.")],
    rows: Annotated[int, typer.Option(help="Impressions, over all dates.", min=1)] = 1_000_000,
    first_date: Annotated[str, typer.Option(help="The first day, YYYY-MM-DD.")] = str(_FIRST_DATE),
    n_dates: Annotated[int, typer.Option("--dates", help="How many days.", min=1)] = 3,
    models: Annotated[
        str, typer.Option(help="The models, each better than the one before.")
    ] = "v1,v2",
    candidates: Annotated[int, typer.Option(help="Items of a query.", min=1)] = 20,
    hot_query: Annotated[int, typer.Option(help="Items of one query a day; 0: none is hot.")] = 0,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal logs.")] = 1,
    format: Annotated[Format, typer.Option(help="How the tables are stored.")] = Format.DELTA,
    layout: Annotated[
        Layout, typer.Option(help="Whether a query's rows lie together.")
    ] = Layout.CLUSTERED,
    duplicates: Annotated[float, typer.Option(help="Share of impressions delivered twice.")] = 0.0,
    repeated_clicks: Annotated[
        float, typer.Option(help="Share of clicks followed by another.")
    ] = 0.0,
    unshown_clicks: Annotated[
        float, typer.Option(help="Clicks on items not shown, per click.")
    ] = 0.0,
    orphan_clicks: Annotated[float, typer.Option(help="Clicks without a query, per click.")] = 0.0,
    late: Annotated[float, typer.Option(help="Share of events that arrive hours late.")] = 0.0,
    null_scores: Annotated[float, typer.Option(help="Share of null scores.")] = 0.0,
    nan_scores: Annotated[float, typer.Option(help="Share of NaN scores.")] = 0.0,
    null_keys: Annotated[float, typer.Option(help="Share of rows without a key.")] = 0.0,
    unknown_users: Annotated[float, typer.Option(help="Share of queries of nobody known.")] = 0.05,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a realistic log: impressions, clicks, conversions, and scores of an offline model.

    [dim]ranklake generate demo/log --rows 1000000 --dates 3 --models v1,v2[/dim]
    """
    (first,) = dates([first_date])
    from ranklake import session, simulate

    simulation = simulate.Simulation.of_rows(
        rows,
        n_dates=n_dates,
        n_items_per_query=candidates,
        seed=seed,
        first_date=first,
        models=simulate.rising_models(_names(models)),
        hot_query_items=hot_query,
        dirt=simulate.Dirt(
            duplicate_share=duplicates,
            repeated_click_share=repeated_clicks,
            unshown_click_share=unshown_clicks,
            orphan_click_share=orphan_clicks,
            late_share=late,
            null_score_share=null_scores,
            nan_score_share=nan_scores,
            null_key_share=null_keys,
            unknown_user_share=unknown_users,
        ),
    )
    spark = session.session()
    simulate.generate(
        spark, simulation, out, format=format.value, layout=layout.value, overwrite=overwrite
    )
    if not quiet:
        n_rows = simulation.n_rows_per_date * n_dates
        typer.echo(f"{out}: {n_rows:,} impressions of {n_dates} days, models {models}")


def _names(models: str) -> list[str]:
    names = [name.strip() for name in models.split(",")]
    for name in names:
        if not schemas.is_model_version(name):
            expected = f"names that match {schemas.MODEL_VERSION}"
            raise ConfigError(f"--models {models}: found {name!r}, expected {expected}")
    return names
