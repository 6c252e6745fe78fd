"""`make bench-scale`: the same plan on 20 M, 200 M and 1 000 M rows; its section of the page.

    .venv/bin/python -m benchmarks.scale

ranklake with Comet at every size, DuckDB beside it but for the largest. What each stage cost comes
from Spark's own status store.
"""

import os
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks import log, ours, page, results
from benchmarks.contestant import Contestant, ContestantFailed, Measured
from benchmarks.measures import Found, differences
from benchmarks.results import GIB

# What fits eight gigabytes, all processes together.
MEMORY = {"RANKLAKE_DRIVER_MEMORY": "7g"}
COMET, DUCKDB = "ranklake comet", "DuckDB, the SQL of a user"
DUCKDB_MEMORY = "10GB"
STAGE = "stage "

tell = Console(stderr=True)


def prepared(options: Mapping[str, Any]) -> Callable[[], Found]:
    """Options as of `ours`; what it finds, and under `stage <n> ...` what each stage cost."""
    run, seen = ours.prepared(options), set[int]()

    def run_and_look() -> Found:
        found = run()
        return found | dict(_new_stages(seen))

    return run_and_look


def _new_stages(seen: set[int]) -> list[tuple[str, dict[str, float]]]:
    """The stages that ran and were not seen before, in their order."""
    from pyspark.sql import SparkSession

    context = SparkSession.builder.getOrCreate().sparkContext
    store, gateway = context._jsc.sc().statusStore(), context._gateway
    nothing = gateway.jvm.java.util.ArrayList()
    no_quantiles = gateway.new_array(gateway.jvm.double, 0)
    listed = store.stageList(None, False, False, no_quantiles, nothing)
    stages = [listed.apply(number) for number in range(listed.size())]
    new = [s for s in stages if str(s.status()) == "COMPLETE" and s.stageId() not in seen]
    seen |= {stage.stageId() for stage in new}
    return [
        (f"{STAGE}{number}: {_what(stage)}", _cost(stage))
        for number, stage in enumerate(sorted(new, key=lambda stage: stage.stageId()), start=1)
    ]


def _what(stage: Any) -> str:
    reads = "files" if stage.inputBytes() else "shuffle" if stage.shuffleReadBytes() else "little"
    return f"{reads} → {'shuffle' if stage.shuffleWriteBytes() else 'result'}"


def _cost(stage: Any) -> dict[str, float]:
    return {
        "tasks": stage.numTasks(),
        "run_seconds": stage.executorRunTime() / 1e3,
        "cpu_seconds": stage.executorCpuTime() / 1e9,
        "bytes_read": stage.inputBytes(),
        "bytes_shuffled": stage.shuffleWriteBytes(),
        "bytes_spilled": stage.diskBytesSpilled(),
    }


def main(
    sizes: Annotated[str, typer.Option(help="Impressions, with commas between.")] = (
        "20000000,200000000,1000000000"
    ),
    runs: Annotated[int, typer.Option(help="Warm runs, but one at the largest size.")] = 3,
    home: Annotated[Path, typer.Option(help="Where logs and results are kept.")] = page.HOME,
    keep: Annotated[bool, typer.Option(help="Keep the logs of more than the first size.")] = False,
    to: Annotated[Path, typer.Option(help="The page to write.")] = page.PAGE,
) -> None:
    """Measure every size, and write the page."""
    home = home.resolve()
    wanted = [int(size) for size in sizes.split(",")]
    measured = []
    for rows in wanted:
        is_largest = rows == max(wanted) and len(wanted) > 1
        measured.append(measured_at(rows, 0 if is_largest else runs, home))
        if rows > min(wanted) and not keep:
            shutil.rmtree(home / f"clustered-{rows}")
    found = {
        "sizes": measured,
        "targets": targets(measured),
        "settings": f"ranklake: {_memory()}.",
        **results.surroundings(f"make bench-scale OPTIONS='--sizes {sizes} --runs {runs}'"),
    }
    results.kept(home, "scale", found)
    page.write(results.stored(home), to)
    for target in found["targets"]:
        tell.print(target)


def measured_at(rows: int, n_warm: int, home: Path) -> results.Result:
    """Both at one size in turn; without warm runs, ranklake alone and once."""
    place = home / f"clustered-{rows}"
    tell.print(f"{rows:,} rows")
    log.generated(place, rows=rows, layout="clustered")
    rounds, failed = _rounds(_specs(place, home, is_alone=n_warm == 0), n_warm, home)
    first = {title: runs[0].found for title, runs in rounds.items() if runs}
    if len(first) == 2 and (wrong := differences(first[COMET], first[DUCKDB])):
        raise SystemExit(f"{rows:,} rows: {wrong[:5]}")
    entrants = {title: results.of_runs(runs, rows) for title, runs in rounds.items() if runs}
    entrants = {title: of | {"n_compared": 0} for title, of in entrants.items()}
    stages = {key: of for key, of in first.get(COMET, {}).items() if key.startswith(STAGE)}
    reasons = {title: {"failed": reason} for title, reason in failed.items()}
    return {"rows": rows, "entrants": entrants | reasons, "stages": stages}


def _specs(place: Path, home: Path, *, is_alone: bool) -> dict[str, tuple[str, dict]]:
    """Title → module and options of each contestant."""
    comet = {"log": str(place), "engine": "comet"}
    duckdb = {"log": str(place), "memory_limit": DUCKDB_MEMORY, "temp": str(home / "tmp")}
    specs = {COMET: ("benchmarks.scale", comet)}
    return specs if is_alone else {**specs, DUCKDB: ("benchmarks.peers.duckdb", duckdb)}


def _rounds(
    specs: Mapping[str, tuple[str, dict]], n_warm: int, home: Path
) -> tuple[dict[str, list[Measured]], dict[str, str]]:
    """The measured runs of each, in turn, and why others have none."""
    started: dict[str, Contestant] = {}
    rounds: dict[str, list[Measured]] = {title: [] for title in specs}
    failed: dict[str, str] = {}
    (home / "errors").mkdir(parents=True, exist_ok=True)
    try:
        for title, (module, options) in specs.items():
            errors = home / "errors" / f"scale-{title.partition(' ')[0]}.txt"
            started[title] = Contestant(module, options, errors=errors, environment=_chosen())
        for number in range(n_warm + 1):
            for title in [*started]:
                run = started[title].run()
                tell.print(f"  {title}: {run.seconds:.1f} s, {run.peak_bytes / GIB:.1f} GiB")
                if number or not n_warm:
                    rounds[title].append(run)
    except ContestantFailed as error:
        failed[title] = str(error)
    finally:
        for contestant in started.values():
            contestant.stop()
    return rounds, failed


def targets(sizes: list[results.Result]) -> list[results.Result]:
    """What is asked of growth: of the second size against the first, and of the largest."""
    found = []
    if len(sizes) > 1:
        small, middle = sizes[0]["entrants"], sizes[1]["entrants"]
        ours, before = middle.get(COMET, {}), small.get(COMET, {})
        pair = _medians(ours, before)
        text = f"{sizes[1]['rows']:,} rows against {sizes[0]['rows']:,}, comet"
        found.append(_target(text, pair, 9.0))
        duck = results.ratio(ours, middle.get(DUCKDB, {}))
        found.append(_target(f"{sizes[1]['rows']:,} rows, comet against DuckDB", duck, 0.45))
    largest = sizes[-1]["entrants"].get(COMET, {})
    text = f"{sizes[-1]['rows']:,} rows"
    speed, peak = largest.get("rows_per_core_second"), largest.get("peak_bytes")
    found.append(_target(f"{text}: rows a core-second", speed, 2_000_000, is_least=True))
    found.append(_target(f"{text}: peak memory, GB", peak and peak / 1e9, 8.0))
    return found


def _target(
    what: str, value: float | None, limit: float, *, is_least: bool = False
) -> results.Result:
    is_met = results.is_met(value, limit, is_least=is_least)
    return {"what": what, "ratio": value, "limit": limit, "is_least": is_least, "is_met": is_met}


def _medians(one: results.Result, other: results.Result) -> float | None:
    if "seconds" not in one or "seconds" not in other:
        return None
    return statistics.median(one["seconds"]) / statistics.median(other["seconds"])


def _chosen() -> dict[str, str]:
    return {name: os.environ.get(name, value) for name, value in MEMORY.items()}


def _memory() -> str:
    return ", ".join(f"{name}={value}" for name, value in _chosen().items())


if __name__ == "__main__":
    sys.exit(typer.run(main))
