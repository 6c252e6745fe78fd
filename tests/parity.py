"""Cases of other evaluators through ranklake: many in one evaluation, each a slice of its own."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ranklake import evaluate
from ranklake.config import PRESETS
from ranklake.metrics import Measure, measure

Items = Mapping[str, float]
"""Gains or scores by item."""


@dataclass(frozen=True)
class Case:
    """The gains of each query's items, and the scores of its candidates in the given order."""

    name: str
    gains: Mapping[str, Items]
    run: Mapping[str, Items]

    def judgments(self) -> Iterator[dict[str, Any]]:
        """A row per gain. A query without any has one of 0, so that it is judged."""
        for query, items in self.gains.items():
            for item, gain in (items or {"nothing": 0.0}).items():
                yield {**self._key(query, item), "gain": float(gain)}

    def impressions(self) -> Iterator[dict[str, Any]]:
        """A row per candidate."""
        for query, items in self.run.items():
            for position, (item, score) in enumerate(items.items(), start=1):
                yield {**self._key(query, item), "score": float(score), "position": position}

    def _key(self, query: str, item: str) -> dict[str, str]:
        return {"query_id": f"{self.name}/{query}", "item_id": item, "case": self.name}


@dataclass(frozen=True)
class Replay:
    """What one evaluation of several cases found."""

    preset: str | None
    means: Mapping[tuple[str, str], float | None]
    per_query: Callable[[], DataFrame]

    def mean(self, case: str, text: str) -> float | None:
        """The mean of the measure over the case's queries, as the preset takes it."""
        return self.means[case, str(self._measure(text))]

    def of_query(self, case: str, query: str, text: str) -> float | None:
        """The measure of one query."""
        return self.queries[f"{case}/{query}"][self._measure(text).column]

    @cached_property
    def queries(self) -> Mapping[str, Mapping[str, Any]]:
        """The rows of the queries, which are computed when one is looked at."""
        return {row["query_id"]: row for row in self.per_query().toArrow().to_pylist()}

    def query_ids(self, case: str) -> set[str]:
        """The case's queries that were evaluated."""
        return {q.removeprefix(f"{case}/") for q in self.queries if q.startswith(f"{case}/")}

    def _measure(self, text: str) -> Measure:
        return measure(PRESETS[self.preset].of_measure(text) if self.preset else text)


def replayed(
    spark: SparkSession,
    cases: Sequence[Case],
    measures: Sequence[str],
    *,
    preset: str | None = None,
    **rules: Any,
) -> Replay:
    """The cases in one evaluation; `rules` are laid over those of the preset."""
    shown = [row for case in cases for row in case.impressions()]
    judged = [row for case in cases for row in case.judgments()]
    found = evaluate(
        spark.createDataFrame(pa.Table.from_pylist(shown)),
        judgments=spark.createDataFrame(pa.Table.from_pylist(judged)),
        labels=["judgment"],
        measures=list(measures),
        slices={"columns": ["case"]},
        preset=preset,
        rules=rules,
    )
    population = PRESETS[preset].population.value if preset else "all"
    means = {
        (row["slice_value"], _string(row)): row["value"]
        for row in found.metrics.to_pylist()
        if row["slice"] == "case" and row["population"] == population
    }
    return Replay(preset, means, found.per_query)


def _string(row: Mapping[str, Any]) -> str:
    brackets = f"({row['variant']})" if row["variant"] else ""
    return f"{row['metric']}{brackets}" + (f"@{row['k']}" if row["k"] else "")


def mismatches(
    pairs: Sequence[tuple[Any, float | None, float]], tolerance: float
) -> list[tuple[Any, float | None, float]]:
    """Of (what, found, expected) those that differ by more."""
    return [
        (what, found, expected)
        for what, found, expected in pairs
        if found is None or not abs(found - expected) <= tolerance
    ]


def expected_in(shared_data: Path, folder: str) -> dict[str, Any]:
    """The one JSON file in the folder of an evaluator's test cases."""
    (path,) = (shared_data / "fixtures" / folder).glob("*.json")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def by_query(rows: Sequence[Sequence[Any]]) -> dict[str, dict[str, float]]:
    """(query, item, value) by query and item; the value is 1 where there is none."""
    values: dict[str, dict[str, float]] = {}
    for query, item, *value in rows:
        values.setdefault(str(query), {})[str(item)] = float(value[0] if value else 1.0)
    return values


def ordered(items: Sequence[Any]) -> dict[str, float]:
    """The items in that order, with scores that fall."""
    return {str(item): float(-place) for place, item in enumerate(items, start=1)}


def best_first(rows: Sequence[tuple[Any, Any, float]]) -> dict[str, dict[str, float]]:
    """(query, item, score) by query and item."""
    return by_query(sorted(rows, key=lambda row: -row[2]))


def graded(rows: Iterable[tuple[Any, float]]) -> dict[str, float]:
    """(item, gain) by item."""
    return {str(item): float(gain) for item, gain in rows}


def ordered_ones(items: Sequence[Any] | None) -> dict[str, float]:
    """Each item with a gain of 1."""
    return {str(item): 1.0 for item in items or ()}


def first(run: Mapping[str, Mapping[str, float]], k: int) -> dict[str, dict[str, float]]:
    """The first k candidates of each query."""
    return {query: dict([*items.items()][:k]) for query, items in run.items()}
