"""`make bench`: ranklake against its peers on one generated log; writes docs/benchmarks.md.

    .venv/bin/python -m benchmarks.run --rows 20000000 --runs 5

Every contestant runs in a process of its own, once to get warm and then in turn with the others of
its heat. Its numbers must agree with the reference's before any time is printed.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks import log, page, profile, results
from benchmarks.contestant import Contestant, ContestantFailed, Measured
from benchmarks.heats import Entrant, Heat, heats
from benchmarks.measures import Found, differences, means
from benchmarks.peers import replay
from ranklake.session.cache import cache_dir
from ranklake.session.java import launcher_home, supported_java

# Two Sparks are warm at once, so none may take half of the machine, as it would alone.
os.environ.setdefault("RANKLAKE_DRIVER_MEMORY", "6g")

console = Console()
tell = Console(stderr=True)

Rounds = dict[str, list[Measured]]


def main(
    rows: Annotated[int, typer.Option(help="Impressions.")] = 20_000_000,
    runs: Annotated[int, typer.Option(help="Warm runs of each contestant.")] = 5,
    small_rows: Annotated[int, typer.Option(help="Impressions for the slow peers.")] = 2_000_000,
    only: Annotated[list[str] | None, typer.Option(help="Heats whose name has this part.")] = None,
    home: Annotated[Path, typer.Option(help="Where logs and results are kept.")] = page.HOME,
    peers_venv: Annotated[
        Path | None, typer.Option(help="Where RePlay's environment is, or shall be made.")
    ] = None,
    to: Annotated[Path, typer.Option(help="The page to write.")] = page.PAGE,
    render_only: Annotated[bool, typer.Option(help="Write the page from kept results.")] = False,
) -> None:
    """Measure, print a table, and write the page."""
    home = home.resolve()
    options = [f"--rows {rows}", f"--runs {runs}", f"--small-rows {small_rows}"]
    around = results.surroundings(f"make bench OPTIONS='{' '.join(options)}'")
    wanted = [heat for heat in heats() if not only or any(part in heat.name for part in only)]
    for heat in [] if render_only else wanted:
        n_rows = small_rows if heat.is_small else rows
        found = run_heat(heat, n_rows, runs, home, peers_venv or cache_dir() / "peers" / "replay")
        results.kept(home, heat.name, {**found, **around})
    if not render_only and (not only or any(part in "profile" for part in only)):
        results.kept(home, "profile", {**profile.profiled(home, rows, runs), **around})
    stored = results.stored(home)
    console.print(page.overview(stored))
    page.write(stored, to)
    console.print(f"written: {to}")


def run_heat(heat: Heat, rows: int, n_runs: int, home: Path, peers_venv: Path) -> results.Result:
    """All entrants warm, then so many rounds; the result holds those that could not run, too."""
    place = home / f"{heat.layout}{'-timed' if heat.has_times else ''}-{rows}"
    tell.print(f"{heat.name}: {rows:,} rows, {heat.layout}: {heat.title}")
    read = log.generated(
        place, rows=rows, layout=heat.layout, scores=heat.has_scores, times=heat.has_times
    )
    if any(entrant.options.get("task") == "evaluate" for entrant in heat.entrants):
        log.with_delta(read)
    started: dict[str, Contestant] = {}
    failed: dict[str, str] = {}
    try:
        for entrant in heat.entrants:
            try:
                started[entrant.title] = _started(entrant, place, home, peers_venv)
            except (ContestantFailed, subprocess.CalledProcessError, OSError) as error:
                failed[entrant.title] = _reason(error)
        rounds = _rounds(started, failed, n_runs)
    finally:
        for contestant in started.values():
            contestant.stop()
    agreed(heat, rounds)
    return _described(heat, rows, read.n_bytes, rounds, failed)


def _started(entrant: Entrant, place: Path, home: Path, peers_venv: Path) -> Contestant:
    options: dict[str, Any] = {"log": str(place), "temp": str(home / "tmp"), **entrant.options}
    engine = options.get("engine")
    if options.get("task") == "evaluate":
        options["lake"] = str(place / f"lake-{_file_name(entrant)}")
    python = replay.installed(peers_venv) if entrant.environment == "replay" else sys.executable
    errors = home / "errors" / f"{_file_name(entrant)}.txt"
    errors.parent.mkdir(parents=True, exist_ok=True)
    # ranklake's sessions find a Java by themselves; the peers are given the same one.
    java = {} if engine else {"JAVA_HOME": str(launcher_home(supported_java()))}
    contestant = Contestant(entrant.module, options, python=python, errors=errors, environment=java)
    tell.print(f"  {entrant.title}: ready in {contestant.ready['ready']:.1f} s")
    return contestant


def _file_name(entrant: Entrant) -> str:
    return entrant.title.replace(" ", "-").replace(",", "")


def _rounds(started: dict[str, Contestant], failed: dict[str, str], n_runs: int) -> Rounds:
    """The warm runs of each, in turn; who fails once is out."""
    rounds: Rounds = {title: [] for title in started}
    for number in range(n_runs + 1):
        for title in [*rounds]:
            try:
                run = started[title].run()
            except ContestantFailed as error:
                failed[title] = _reason(error)
                del rounds[title]
                continue
            tell.print(f"  {title}: {run.seconds:.2f} s{'' if number else ', to get warm'}")
            if number:
                rounds[title].append(run)
    return rounds


def agreed(heat: Heat, rounds: Rounds) -> None:
    """Every run found the reference's numbers; else the benchmark ends here."""
    reference = rounds[heat.entrants[0].title][0].found
    expected: dict[str, Found] = {"sums": reference, "means": means(reference)}
    gives = {entrant.title: entrant.gives for entrant in heat.entrants}
    for title, runs in rounds.items():
        for run in runs:
            known = expected[gives[title]]
            wrong = differences(known, run.found)
            unknown = run.found["all"].keys() - known["all"].keys()
            if wrong or unknown or not run.found["all"]:
                raise SystemExit(f"{heat.name}: {title}: {wrong[:5] or unknown or 'no numbers'}")


def _described(
    heat: Heat, rows: int, n_bytes: int, rounds: Rounds, failed: dict[str, str]
) -> results.Result:
    entrants: dict[str, results.Result] = {
        entrant.title: {"failed": failed[entrant.title]}
        if entrant.title in failed
        else results.of_runs(rounds[entrant.title], rows)
        | {"n_compared": sum(map(len, rounds[entrant.title][0].found.values()))}
        for entrant in heat.entrants
    }
    duels = [
        {
            **vars(duel),
            "ratio": (found := results.ratio(entrants[duel.one], entrants[duel.other])),
            "is_met": results.is_met(found, duel.limit, is_least=duel.is_least),
        }
        for duel in heat.duels
    ]
    about = {"title": heat.title, "layout": heat.layout, "rows": rows, "log_bytes": n_bytes}
    return {**about, "entrants": entrants, "duels": duels}


def _reason(error: Exception) -> str:
    output = getattr(error, "stderr", None) or str(error)
    return output.strip().splitlines()[-1] if output.strip() else type(error).__name__


if __name__ == "__main__":
    typer.run(main)
