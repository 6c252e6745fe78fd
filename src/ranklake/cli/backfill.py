"""`ranklake backfill`: many dates, or those that a run would change."""

from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Annotated

import typer

from ranklake.cli import options
from ranklake.cli.configured import configured
from ranklake.cli.dates import bounds, instant, span
from ranklake.cli.evaluate import evaluate_day


def backfill(
    first: options.From = None,
    last: options.To = None,
    stale: Annotated[
        bool,
        typer.Option("--stale", help="Only published days that a run would change. Default: all."),
    ] = False,
    only_list: Annotated[
        bool, typer.Option("--list", help="Say where each published day stands; change nothing.")
    ] = False,
    config: options.Config = None,
    settings: options.Set = None,
    redefine: options.Redefine = False,
    label_as_of: options.LabelAsOf = None,
    quiet: options.Quiet = False,
) -> None:
    """Evaluate every day of a range, or the published days whose labels or inputs have changed.

    A day that fails does not stop the others.

    [dim]ranklake backfill --config conf/prod.toml --stale[/dim]
    """
    chooses = stale or only_list
    begin, end = bounds(first, last) if chooses else span(first, last)
    known_by = instant("--label-as-of", label_as_of)
    loaded = configured(config, settings, needs_lake=True)
    from ranklake import session
    from ranklake.pipeline.backfill import each, standings

    spark, now = session.session(engine=loaded.engine), datetime.now(UTC)
    asked = partial(standings, spark, loaded, first=begin, last=end, label_as_of=known_by, now=now)
    where = dict(asked()) if chooses else {}
    if only_list:
        for day in sorted({*where, *_days(begin, end)}):
            typer.echo(f"{day}: {where.get(day, 'not published')}")
        return
    say = _silent if quiet else typer.echo
    for day, standing in where.items():
        if standing.kind != "fresh":
            say(f"{day}: {standing}")
    days = [day for day, standing in where.items() if standing.kind == "stale"]
    if stale and not days:
        say(f"nothing is stale, of {len(where)} published days")
    each(
        days if stale else _days(begin, end),
        partial(evaluate_day, spark, loaded, label_as_of=known_by, redefine=redefine, quiet=quiet),
        failed=lambda day, error: say(f"{day}: failed ({type(error).__name__})"),
    )


def _days(begin: date | None, end: date | None) -> list[date]:
    """Every day from begin to end; none where one of them is open."""
    if begin is None or end is None:
        return []
    return [begin + timedelta(days=n) for n in range((end - begin).days + 1)]


def _silent(line: str) -> None:
    """Says nothing."""
