"""trec_eval's and pytrec_eval's own test cases, replayed through ours against their numbers."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from parity import Case, Replay, by_query, expected_in, mismatches, replayed
from pyspark.sql import SparkSession

from ranklake.metrics import with_defaults

EXACT, FOUR_DECIMALS = 1e-9, 5.1e-5

NOT_IN_RANKLAKE = {
    "interpolated precision": ("11pt_avg", "iprec_at_recall"),
    "other metrics": ("G", "binG", "bpref", "infAP", "Rprec_mult", "utility", "set_map"),
    "other ideals of nDCG": ("Rndcg", "ndcg_rel"),
    "geometric means": ("gm_map", "gm_bpref"),
    "F and min(n, |G|) without a cut-off": ("set_F", "set_relative_P"),
    "sums, means are published": ("num_q", "num_rel", "num_rel_ret", "num_ret"),
    "about unjudged items": ("num_nonrel_judged_ret", "rbp_resid"),
    "no numbers": ("relstring", "runid"),
}
"""What trec_eval prints and is not replayed, by reason; names are without their parameters."""

TREC_NAMES = {
    r"P_(\d+)": "precision@{}",
    r"recall_(\d+)": "recall@{}",
    r"relative_P_(\d+)": "recall(denom=min_k_rel)@{}",
    r"map_cut_(\d+)": "ap@{}",
    r"ndcg_cut_(\d+)": "ndcg@{}",
    r"success_(\d+)": "hit_rate@{}",
    "map": "ap",
    "ndcg": "ndcg",
    "ndcg_1=3,2=9,4=4.5": "ndcg(gain={{1:3,2:9,4:4.5}})",
    "recip_rank": "rr",
    "Rprec": "r_precision",
    "set_recall": "recall",
    "set_P": "precision(denom=min_k_n)@1000",
    "rbp": "rbp(p=0.9)",
}
"""trec_eval's names as patterns, and ours. unj_k and graded rbp have tests of their own."""

TREC_OUTPUTS = {
    "out.test": ("test", "-c"),
    "out.test.a": ("test", "-c"),
    "out.test.aq": ("test", "-c"),
    "out.test.meas_params": ("test", "-c"),
    "out.test.aql": ("level", "-c"),
    "out.test.aqc": ("trunc", "-c"),
    "out.test.aqc.v9.0.8": ("trunc", "-c"),
    "out.test.aqcM": ("trunc", "-c -M100"),
    "out.test.aqcM.v9.0.8": ("trunc", "-c -M100"),
}
"""Each output's case and the options of its run; -c changes nothing where no query is missing."""
TREC_RULES: Mapping[str, Mapping[str, Any]] = {
    "-c": {"missing_in_run": "zero"},
    "-c -M100": {"missing_in_run": "zero", "depth": 100},
}
SMALLEST_RELEVANT = {"level": "2"}
LARGEST_GRADE = {"301": 4, "302": 3, "303": 2}
"""In the qrels with levels."""

Line = tuple[str, str, str]


def lines_of(directory: Path, output: str) -> Iterator[Line]:
    """Name, query (or all) and value of each line."""
    for line in (directory / output).read_text().splitlines():
        name, query, value = line.split()
        yield name, query, value


def trec_measure(name: str, case: str) -> str | None:
    """Our measure of trec_eval's name; None where there is none."""
    for pattern, text in TREC_NAMES.items():
        if found := re.fullmatch(pattern, name):
            named = text.format(*found.groups())
            rel = SMALLEST_RELEVANT.get(case)
            takes_rel = rel and not named.startswith(("ndcg", "rbp"))
            return with_defaults(named, {"rel": str(rel)}) if takes_rel else named
    return None


def trec_case(directory: Path, name: str, qrels: str, run: str) -> Case:
    """The two files' rows; as in trec_eval, what stands behind a line's fields is ignored."""
    judged, ranked = (
        [line.split() for line in (directory / file).read_text().splitlines()]
        for file in (qrels, run)
    )
    return Case(
        name,
        by_query([(query, item, grade) for query, _, item, grade in judged]),
        by_query([(query, item, score) for query, _, item, _, score, *_ in ranked]),
    )


@pytest.fixture(scope="module")
def trec_directory(shared_data: Path) -> Path:
    return shared_data / "fixtures" / "usnistgov_trec_eval"


@pytest.fixture(scope="module")
def pytrec(shared_data: Path) -> dict[str, Any]:
    return expected_in(shared_data, "cvangysel_pytrec_eval")


def pytrec_cases(pytrec: Mapping[str, Any]) -> list[Case]:
    """The runs of pytrec_eval's tests, with the same judgments."""
    return [Case(f"pytrec{n}", pytrec["qrel"], of["run"]) for n, of in enumerate(pytrec["cases"])]


@pytest.fixture(scope="module")
def trec(spark: SparkSession, trec_directory: Path, pytrec: Mapping[str, Any]) -> dict[str, Replay]:
    """The replay of each run of trec_eval, by its options; pytrec_eval's cases are in the first."""
    trunc = trec_case(trec_directory, "trunc", "qrels.test", "results.trunc")
    cases = {
        "-c": [
            trec_case(trec_directory, "test", "qrels.test", "results.test"),
            trec_case(trec_directory, "level", "qrels.rel_level", "results.test"),
            trunc,
            *pytrec_cases(pytrec),
        ],
        "-c -M100": [trunc],
    }
    asked = {
        options: {
            text
            for output, (case, of) in TREC_OUTPUTS.items()
            for name, *_ in lines_of(trec_directory, output)
            if of == options and (text := trec_measure(name, case))
        }
        for options in cases
    }
    asked["-c"] |= {f"judged@{k}" for k in (5, 10, 20)} | {f"ndcg@{k}" for k in (1, 2, 3)}
    asked["-c"] |= {f"rbp(max_gain={grade},p=0.9)" for grade in LARGEST_GRADE.values()}
    return {
        options: replayed(
            spark, of, sorted(asked[options]), preset="trec_eval", **TREC_RULES[options]
        )
        for options, of in cases.items()
    }


@pytest.mark.parametrize("output", TREC_OUTPUTS)
def test_trec_evals_outputs_are_reproduced(
    output: str, trec: dict[str, Replay], trec_directory: Path
) -> None:
    case, options = TREC_OUTPUTS[output]
    found = trec[options]
    pairs = [
        (
            (name, query),
            found.mean(case, text) if query == "all" else found.of_query(case, query, text) or 0.0,
            float(value),
        )
        for name, query, value in lines_of(trec_directory, output)
        if (text := trec_measure(name, case)) and (name, case) != ("rbp", "level")
    ]
    assert len(pairs) > 10
    assert mismatches(pairs, FOUR_DECIMALS) == []


def test_rbp_of_trec_eval_divides_by_the_largest_grade_of_the_query(
    trec: dict[str, Replay], trec_directory: Path
) -> None:
    pairs = [
        (
            query,
            trec["-c"].of_query("level", query, f"rbp(max_gain={LARGEST_GRADE[query]},p=0.9)"),
            float(value),
        )
        for name, query, value in lines_of(trec_directory, "out.test.aql")
        if name == "rbp" and query != "all"
    ]
    assert len(pairs) == 3
    assert mismatches(pairs, FOUR_DECIMALS) == []


@pytest.mark.parametrize("output", ["out.test.aq", "out.test.aql"])
def test_unj_of_trec_eval_is_what_is_not_judged(
    output: str, trec: dict[str, Replay], trec_directory: Path
) -> None:
    case, options = TREC_OUTPUTS[output]
    pairs = [
        (
            (name, query),
            1 - (found.mean(case, text) if query == "all" else found.of_query(case, query, text)),
            float(value),
        )
        for name, query, value in lines_of(trec_directory, output)
        if name.startswith("unj_")
        for found, text in [(trec[options], name.replace("unj_", "judged@"))]
    ]
    assert len(pairs) == 12
    assert mismatches(pairs, FOUR_DECIMALS) == []


def test_every_name_of_trec_eval_is_replayed_or_listed(trec_directory: Path) -> None:
    listed = {name for names in NOT_IN_RANKLAKE.values() for name in names}
    names = {name for output in TREC_OUTPUTS for name, *_ in lines_of(trec_directory, output)}
    without_parameters = {name: re.sub(r"_[-\d.,]+$", "", name) for name in names}
    unknown = {n for n, bare in without_parameters.items() if not trec_measure(n, "test")}
    assert {without_parameters[name] for name in unknown} - listed - {"unj"} == set()


def test_pytrec_evals_cases_are_reproduced(
    trec: dict[str, Replay], pytrec: Mapping[str, Any]
) -> None:
    pairs = [
        ((n, query, name), trec["-c"].of_query(f"pytrec{n}", query, trec_measure(name, "")), value)
        for n, of in enumerate(pytrec["cases"])
        for query, values in of.get("expected", {"q1": of.get("expected_q1")}).items()
        for name, value in values.items()
    ]
    assert len(pairs) == 12
    assert mismatches(pairs, EXACT) == []
