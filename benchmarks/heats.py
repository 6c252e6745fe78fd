"""Who runs against whom, on which log, and what is asked of the ratio of their times.

A heat's entrants are all warm at once, and run in turn, so that a ratio is one of neighbours. In a
duel, `one`'s seconds are divided by `other`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.log import MODELS

DUCKDB = "DuckDB, the SQL of a user"
BY_HAND = "DuckDB, ranklake's plan by hand"
POLARS = "Polars, ranklake's plan by hand"
RANKINGMETRICS = "RankingMetrics (MLlib)"
REPLAY = {"spark": "RePlay on Spark", "polars": "RePlay on Polars"}


@dataclass(frozen=True)
class Entrant:
    """One contestant of a heat. `environment` names an environment of its own, where it has one."""

    title: str
    module: str
    options: Mapping[str, Any] = field(default_factory=dict)
    gives: str = "sums"
    environment: str = ""


@dataclass(frozen=True)
class Duel:
    """A ratio that is looked at. `limit` is its target: at most, or at least; None without one."""

    one: str
    other: str
    limit: float | None = None
    is_least: bool = False


@dataclass(frozen=True)
class Heat:
    """Entrants on one log, and the duels among them. The first entrant's sums are the reference."""

    name: str
    title: str
    layout: str
    entrants: tuple[Entrant, ...]
    duels: tuple[Duel, ...]
    is_small: bool = False
    has_scores: bool = False
    has_times: bool = False


def heats() -> list[Heat]:
    """All of them, in the order of the page."""
    at_layouts = [
        part
        for layout in ("clustered", "scattered")
        for part in (_sums(layout), _dedup(layout), _evaluate(layout))
    ]
    return [*at_layouts, _labels(), _late(), _models(), _small()]


def ours(engine: str, what: str = "", gives: str = "sums", **options: Any) -> Entrant:
    """ranklake with an engine."""
    title = f"ranklake {engine}{what}"
    return Entrant(title, "benchmarks.ours", {"engine": engine, **options}, gives)


def duckdb(title: str = DUCKDB, **options: Any) -> Entrant:
    """DuckDB with options of its module."""
    return Entrant(title, "benchmarks.peers.duckdb", options)


def _of(layout: str, clustered: float, scattered: float) -> float:
    return clustered if layout == "clustered" else scattered


def _sums(layout: str) -> Heat:
    comet, jvm = ours("comet"), ours("jvm")
    return Heat(
        f"sums-{layout}",
        "Parquet rows → sums, unique_key = true",
        layout,
        (
            *(duckdb(), duckdb(BY_HAND, pruned=True)),
            *(Entrant(POLARS, "benchmarks.peers.polars"), comet, jvm),
        ),
        (
            Duel(comet.title, DUCKDB, _of(layout, 0.9, 1.2)),
            Duel(comet.title, BY_HAND, _of(layout, 2.5, 1.8)),
            Duel(comet.title, POLARS),
            Duel(jvm.title, DUCKDB, _of(layout, 2.0, 3.0)),
        ),
    )


def _dedup(layout: str) -> Heat:
    comet, jvm = (ours(engine, unique=False) for engine in ("comet", "jvm"))
    return Heat(
        f"dedup-{layout}",
        "Parquet rows → sums, each item of a query once (unique_key = false)",
        layout,
        (
            *(duckdb(dedup=True), duckdb(BY_HAND, dedup=True, pruned=True)),
            *(Entrant(POLARS, "benchmarks.peers.polars", {"dedup": True}), comet, jvm),
        ),
        (
            Duel(comet.title, DUCKDB, _of(layout, 1.0, 1.3)),
            Duel(comet.title, BY_HAND),
            Duel(comet.title, POLARS),
            Duel(jvm.title, DUCKDB),
        ),
    )


def _evaluate(layout: str) -> Heat:
    what = {"what": ", whole evaluate", "gives": "means", "task": "evaluate"}
    comet, jvm = (ours(engine, **what) for engine in ("comet", "jvm"))
    return Heat(
        f"evaluate-{layout}",
        "The whole evaluate: Delta rows → every table of the lake; DuckDB's query alone",
        layout,
        (duckdb(), comet, jvm),
        (Duel(comet.title, DUCKDB, _of(layout, 2.0, 2.5)), Duel(jvm.title, DUCKDB)),
    )


def _labels() -> Heat:
    """A clean log, of which no row is dropped: what it costs to know that."""
    windows = {"windows": {"click": "30m"}, "label_delay": "36h"}
    rules = {"max_queries_per_hour": 1000, "max_clicks_per_minute": 100, "max_click_rate": 0.9}
    limits = {"null_scores": 0.1, "duplicates": 0.1, "orphan_clicks": 0.1}
    without, windowed, ruled = (
        ours("comet", what, "means", task="evaluate", changes=changes)
        for what, changes in (
            (", times not looked at", {"windows": {"click": "any"}}),
            (", windows and delay", windows),
            (", and rules and limits", {**windows, "traffic": rules, "limits": limits}),
        )
    )
    return Heat(
        "labels",
        "The whole evaluate of a log with times: windows, rules against bots, and limits",
        "clustered",
        (duckdb(), without, windowed, ruled),
        (Duel(windowed.title, without.title, 1.3), Duel(ruled.title, without.title, 1.3)),
        has_times=True,
    )


def _late() -> Heat:
    early, late = ours("comet"), ours("comet", ", pruned late", max_broadcast_labels=0)
    return Heat(
        "late",
        "As with more than 20 M labels: other queries are dropped after the shuffle",
        "clustered",
        (duckdb(), early, late),
        (Duel(late.title, early.title),),
    )


def _models() -> Heat:
    one, three = (ours("comet", f", {n} scored", scored=n) for n in ("one", "three"))
    return Heat(
        "models",
        f"Scored models, {len(MODELS)} in one pass against one",
        "clustered",
        (duckdb(), one, three),
        (Duel(three.title, one.title, 2.6),),
        has_scores=True,
    )


def _small() -> Heat:
    engines = [ours("comet"), ours("jvm")]
    rankingmetrics = Entrant(RANKINGMETRICS, "benchmarks.peers.rankingmetrics", gives="means")
    replays = {
        form: Entrant(title, "benchmarks.peers.replay", {"form": form}, "means", "replay")
        for form, title in REPLAY.items()
    }
    return Heat(
        "small",
        "Other evaluators, at a size that they can do",
        "clustered",
        (duckdb(), *engines, rankingmetrics, *replays.values()),
        tuple(
            Duel(peer, engine.title, limit, is_least=True)
            for engine in engines
            for peer, limit in (
                *((RANKINGMETRICS, 8.0), (REPLAY["spark"], 30.0), (REPLAY["polars"], None)),
            )
        ),
        is_small=True,
    )
