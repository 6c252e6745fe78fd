"""Other evaluators' own test cases, replayed: their inputs through ours, against their numbers."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ranklake import evaluate
from ranklake.config import PRESETS
from ranklake.metrics import Measure, measure, with_defaults

EXACT, PRINTED = 1e-9, 5.1e-5  # trec_eval prints four decimals
KS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)

NOT_MATCHED = {
    "11pt_avg": "interpolated precision is no metric here",
    "iprec_at_recall": "interpolated precision is no metric here",
    "G": "no metric here",
    "binG": "no metric here",
    "bpref": "no metric here",
    "infAP": "no metric here",
    "Rprec_mult": "precision at a multiple of |G| is no metric here",
    "utility": "no metric here",
    "gm_map": "means are arithmetic",
    "gm_bpref": "means are arithmetic",
    "Rndcg": "an ideal of its own",
    "ndcg_rel": "an ideal of its own",
    "set_F": "f1 needs a cut-off",
    "set_map": "set_P times set_recall is no metric here",
    "set_relative_P": "min(n, |G|) is no denominator of recall",
    "num_q": "a count",
    "num_rel": "a sum, means are published",
    "num_rel_ret": "a sum, means are published",
    "num_ret": "a sum, means are published",
    "num_nonrel_judged_ret": "a sum, means are published",
    "rbp_resid": "no metric here",
    "relstring": "no number",
    "runid": "no number",
}
"""What trec_eval prints and ranklake has not, by the name without its parameters."""

NO_COUNTERPART = {
    "sb-ai-lab_RePlay": {
        "expected_mean.RocAuc": "auc has no cut-off, theirs is of the top k",
        "confidence_half_width_alpha_0.95@2": "intervals here are jackknifed over users",
        "descriptor_case.half_width_alpha_0.05": "intervals here are jackknifed over users",
        "median@2": "means are published; take the median of the per-query values",
        "descriptor_case.median": "means are published; take the median of the per-query values",
    },
    "cvangysel_pytrec_eval": {"empty": "without a candidate there is nothing to evaluate"},
}
"""Expected values of the other files that are not replayed, and why."""

Items = Mapping[str, float]


@dataclass(frozen=True)
class Case:
    """One test case: the gains of each query, and the scores of its candidates, best first."""

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
    queries: Mapping[str, Mapping[str, Any]]

    def mean(self, case: str, text: str) -> float | None:
        """The mean of the measure over the case's queries, as the preset takes it."""
        return self.means[case, str(self._measure(text))]

    def of_query(self, case: str, query: str, text: str) -> float | None:
        """The measure of one query."""
        return self.queries[f"{case}/{query}"][self._measure(text).column]

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
    """The cases in one evaluation, each a slice."""
    found = evaluate(
        spark.createDataFrame(pa.Table.from_pylist([r for c in cases for r in c.impressions()])),
        judgments=spark.createDataFrame(
            pa.Table.from_pylist([r for c in cases for r in c.judgments()])
        ),
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
    queries = {row["query_id"]: row for row in found.per_query().toArrow().to_pylist()}
    return Replay(preset, means, queries)


def _string(row: Mapping[str, Any]) -> str:
    brackets = f"({row['variant']})" if row["variant"] else ""
    return f"{row['metric']}{brackets}" + (f"@{row['k']}" if row["k"] else "")


def expected_of(shared_data: Path, folder: str) -> dict[str, Any]:
    """The one JSON file of the folder."""
    (path,) = (shared_data / "fixtures" / folder).glob("*.json")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def nested(rows: Sequence[Sequence[float]]) -> dict[str, dict[str, float]]:
    """[query, item, value] or [query, item] as values by query and item, the largest first."""
    values: dict[str, dict[str, float]] = {}
    for query, item, *value in sorted(rows, key=lambda row: [-v for v in row[2:]]):
        values.setdefault(str(query), {})[str(item)] = float(value[0] if value else 1.0)
    return values


def ordered(items: Sequence[Any]) -> dict[str, float]:
    """The items in that order, with scores that fall."""
    return {str(item): float(-place) for place, item in enumerate(items)}


# trec_eval

TREC_NAMES = {
    r"P_(\d+)": "precision@{}",
    r"recall_(\d+)": "recall@{}",
    r"relative_P_(\d+)": "recall(denom=min_k_rel)@{}",
    r"map_cut_(\d+)": "ap@{}",
    r"ndcg_cut_(\d+)": "ndcg@{}",
    r"success_(\d+)": "hit_rate@{}",
    r"unj_(\d+)": "judged@{}",
    "map": "ap",
    "ndcg": "ndcg",
    "ndcg_1=3,2=9,4=4.5": "ndcg(gain={{1:3,2:9,4:4.5}})",
    "recip_rank": "rr",
    "Rprec": "r_precision",
    "set_recall": "recall",
    "set_P": "precision(denom=min_k_n)@1000",
    "rbp": "rbp(p=0.9)",
}
"""trec_eval's names as patterns, and ours."""

LARGEST_GRADE = {"301": 4, "302": 3, "303": 2}
"""rbp divides by the largest grade of the query; where one grade is relevant that is rel."""

TREC_RUNS = {
    # file: case, rules of the run, the smallest relevant grade
    "out.test": ("test", "complete", None),
    "out.test.a": ("test", "complete", None),
    "out.test.aq": ("test", "complete", None),
    "out.test.meas_params": ("test", "complete", None),
    "out.test.aql": ("level", "complete", "2"),
    "out.test.aqc": ("trunc", "-c", None),
    "out.test.aqc.v9.0.8": ("trunc", "-c", None),
    "out.test.aqcM": ("trunc", "-c -M100", None),
    "out.test.aqcM.v9.0.8": ("trunc", "-c -M100", None),
}


def trec_measure(name: str, rel: str | None = None) -> str | None:
    """Our measure of trec_eval's name; None where there is none."""
    for pattern, text in TREC_NAMES.items():
        if found := re.fullmatch(pattern, name):
            named = text.format(*found.groups())
            takes_rel = rel and not named.startswith(("ndcg", "judged", "rbp"))
            return with_defaults(named, {"rel": rel}) if rel and takes_rel else named
    return None


def trec_values(path: Path) -> list[tuple[str, str, float]]:
    """The name, query (or all) and value of each line that we have a measure for."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return [(name, query, float(value)) for name, query, value in lines if trec_measure(name)]


def trec_case(directory: Path, name: str, qrels: str, run: str) -> Case:
    """The qrels and run; as in trec_eval, what stands behind a line's fields is ignored."""
    judged = [line.split() for line in (directory / qrels).read_text().splitlines()]
    ranked = [line.split() for line in (directory / run).read_text().splitlines()]
    gains = nested([(query, item, float(grade)) for query, _, item, grade in judged])
    return Case(name, gains, nested([(q, item, float(s)) for q, _, item, _, s, *_ in ranked]))


@pytest.fixture(scope="module")
def trec_directory(shared_data: Path) -> Path:
    return shared_data / "fixtures" / "usnistgov_trec_eval"
