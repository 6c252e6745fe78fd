"""The kept results → a table in the terminal, and docs/benchmarks.md."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import heats, log
from benchmarks.measures import COUNTS, SUMS
from benchmarks.results import GIB, Result

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "bench"
PAGE = ROOT / "docs" / "benchmarks.md"

_INTRODUCTION = f"""# Benchmarks

Written by `make bench` and `make bench-scale` from what they measured: run them, don't edit this
page.

**The task.** Impressions and clicks in, {len(SUMS) - len(COUNTS)} measures and {len(COUNTS)} counts
out, summed by device and by 400 buckets of users: recall, precision, F1, AP, nDCG and hit rate at
1, 3, 5, 10 and 20, and RR. {log.PER_QUERY} candidates a query, 26 % of the queries clicked, 0.3
clicks a query. *Clustered*: the rows of a query lie together in a file; *scattered*: all over.

**The rules.** Every contestant has a process of its own and runs once to get warm; then all of a
heat run in turn, and a ratio is the median over the rounds of the ratio within a round. So sessions
are started and compiled for all. The numbers of each run must equal DuckDB's within 1e-9, or no
time is published. Peak memory is the largest sum of resident memory over the contestant's
process tree, looked at every 0.2 s; a page that two processes share counts twice. A core-second
is CPU time of that tree.

**What differs.** `evaluate` also audits its input, finds the slice values, and writes every table
of the lake, the one with a row a query among them; the other ranklake rows are the lazy plan alone,
with those before it. RankingMetrics and RePlay compute means over the clicked queries, without
counts, slices or buckets: RankingMetrics precision, recall, nDCG and AP at the same k, RePlay also
hit rate, and RR as MRR@20. Their AP divides by k where a query has more relevant items, ours by all
of them; so AP@1 is computed but not compared. F1 neither has.
"""

_PROFILE = """## Where the time goes

Seconds of the plan's prefixes, each run alone to a sum over all its columns; in brackets what a
stage adds to the one before. The counts are a branch of their own beside the other stages, and the
last line is the whole plan, counts included. Before the exchange, queries with too many candidates
are looked for, which is a count by query too.
"""


def write(stored: Mapping[str, Result], to: Path) -> None:
    """The page of all kept results."""
    parts = [_INTRODUCTION, *_surroundings(stored), *_targets(stored)]
    for heat in heats.heats():
        if heat.name in stored:
            parts.append(_heat(stored[heat.name]))
    if "profile" in stored:
        parts.append(_PROFILE + "\n" + _profile(stored["profile"]))
    if "scale" in stored:
        parts.append(_scale(stored["scale"]))
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text("\n".join(part.rstrip("\n") + "\n" for part in parts))


def overview(stored: Mapping[str, Result]) -> Table:
    """One row a duel."""
    table = Table("rows", "log", "what", "s", "against", "s", "ratio", "target", "met")
    for row in _duels(stored):
        table.add_row(*row)
    return table


def _duels(stored: Mapping[str, Result]) -> Iterable[list[str]]:
    for heat in heats.heats():
        result = stored.get(heat.name, {"duels": []})
        for duel in result["duels"]:
            one, other = (result["entrants"][duel[side]] for side in ("one", "other"))
            yield [
                *(_millions(result["rows"]), result["layout"]),
                *(_named(heat.name, duel["one"]), _median(one)),
                *(_named(heat.name, duel["other"]), _median(other)),
                *(_number(duel["ratio"]), _limit(duel), _met(duel["is_met"])),
            ]


def _named(heat: str, title: str) -> str:
    return f"{title}, deduplicated" if heat.startswith("dedup") else title


def _targets(stored: Mapping[str, Result]) -> list[str]:
    rows = [*_duels(stored)]
    if not rows:
        return []
    head = ["rows", "log", "", "s", "against", "s", "ratio", "target", "met"]
    return ["## Ratios\n\n" + _markdown(head, rows)]


def _surroundings(stored: Mapping[str, Result]) -> list[str]:
    """Machine, versions and commands; a line for each that differs."""
    lines: dict[str, None] = {}
    for result in stored.values():
        versions = ", ".join(f"{name} {v}" for name, v in result["versions"].items())
        lines[
            f"- `{result['command']}`, {result['date']}: {result['cores']} cores"
            f" ({result['processor']}), {result['memory_gib']} GiB, {result['system']}; {versions}"
        ] = None
    return ["**Measured with**\n\n" + "\n".join(lines)] if lines else []


def _heat(result: Result) -> str:
    title = (
        f"## {result['title']}\n\n{_millions(result['rows'])} rows, {result['layout']},"
        f" {result['log_bytes'] / GIB:.2f} GiB of Parquet.\n"
    )
    head = ["", "s, median (min – max)", "peak memory, GiB", "rows a core-second", "equal numbers"]
    rows = [_entrant(name, entrant) for name, entrant in result["entrants"].items()]
    return title + "\n" + _markdown(head, rows)


def _entrant(name: str, entrant: Result) -> list[str]:
    if "failed" in entrant:
        return [name, f"not had: {entrant['failed']}", "", "", ""]
    seconds = entrant["seconds"]
    return [
        name,
        f"{statistics.median(seconds):.2f} ({min(seconds):.2f} – {max(seconds):.2f})",
        f"{entrant['peak_bytes'] / GIB:.1f}",
        f"{entrant['rows_per_core_second']:,.0f}" if entrant["rows_per_core_second"] else "",
        str(entrant["n_compared"]),
    ]


def _profile(result: Result) -> str:
    columns = [(layout, engine) for layout, of in result["stages"].items() for engine in of]
    measured = [result["stages"][layout][engine] for layout, engine in columns]
    stages = next((column for column in measured if isinstance(column, dict)), {})
    head = [f"{_millions(result['rows'])} rows", *[f"{e}, {layout}" for layout, e in columns]]
    rows = [[stage, *[_added(column, stage) for column in measured]] for stage in stages]
    return _markdown(head, rows)


# Which prefix each stage adds to; the others stand alone.
_BEFORE = {"semi-filter": "scan", "exchange, dedup": "semi-filter", "window": "exchange, dedup"}


def _added(column: Mapping[str, float] | str, stage: str) -> str:
    if isinstance(column, str):
        return "not had"
    before = _BEFORE.get(stage)
    added = f" (+{column[stage] - column[before]:.2f})" if before else ""
    return f"{column[stage]:.2f}{added}"


def _scale(result: Result) -> str:
    head = ["rows", "", "s, median (min – max)", "peak memory, GiB", "rows a core-second", ""]
    rows = [
        [_millions(size["rows"]), *_entrant(title, entrant)]
        for size in result["sizes"]
        for title, entrant in size["entrants"].items()
    ]
    targets = [[t["what"], _value(t), _limit(t), _met(t["is_met"])] for t in result["targets"]]
    parts = [
        "## Scale\n\nClustered logs; DuckDB may use 10 GB of memory and the disk. The largest log"
        f" is run once, in a fresh session. {result['settings']}\n",
        _markdown(head[:-1], [row[:-1] for row in rows]),
        _markdown(["", "found", "target", "met"], targets),
        "### Cost a row, by stage\n\nOf ranklake, as Spark counts it; *all* is CPU time and bytes"
        " of the whole process tree, from the file cache or the disk.\n",
        _markdown(
            ["rows", "stage", "tasks", "task µs", "CPU µs", "bytes read", "shuffled", "spilled"],
            [row for size in result["sizes"] for row in _costs(size)],
        ),
    ]
    return "\n".join(parts)


def _costs(size: Result) -> Iterable[list[str]]:
    rows = size["rows"]
    for stage, of in size["stages"].items():
        seconds = [of["run_seconds"], of["cpu_seconds"]]
        moved = [of["bytes_read"], of["bytes_shuffled"], of["bytes_spilled"]]
        per_row = [*(f"{1e6 * s / rows:.3f}" for s in seconds), *(f"{b / rows:.2f}" for b in moved)]
        yield [_millions(rows), stage, f"{of['tasks']:.0f}", *per_row]
    ours = size["entrants"].get("ranklake comet", {})
    if "moved" in ours:
        cpu, read = 1e6 * ours["cpu_seconds"] / rows, ours["moved"]["read"] / rows
        yield [_millions(rows), "all", "", "", f"{cpu:.3f}", f"{read:.2f}", "", ""]


def _value(target: Mapping[str, Any]) -> str:
    value = target["ratio"]
    return "–" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


def _median(entrant: Result) -> str:
    return f"{statistics.median(entrant['seconds']):.2f}" if "seconds" in entrant else "not had"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _limit(duel: Mapping[str, Any]) -> str:
    if duel["limit"] is None:
        return ""
    return f"{'≥' if duel['is_least'] else '≤'} {duel['limit']:,}"


def _met(is_met: bool | None) -> str:
    return "" if is_met is None else "yes" if is_met else "no"


def _millions(rows: int) -> str:
    return f"{rows / 1e6:,g} M"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
