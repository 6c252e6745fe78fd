"""TREC files: what is read of them, what is refused with its line, and the three columns."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ir_measures import read_trec_qrels
from pyspark.sql import SparkSession

from ranklake import trec
from ranklake.cli import main
from ranklake.errors import ContractError

QRELS = """\
q1 0 a 2
q1 0 b 1
q1 0 c 0
q1 0 d -1
q2 0 a 1
q3 0 b 0
"""
RUN = """\
q1 Q0 c 1 3.0 mine
q1 Q0 a 2 2.0 mine
q1\tQ0\te\t3\t2.0\tmine

q3 Q0 b 1 -1e3 mine
q9 Q0 a 1 1.0 mine
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text(QRELS, encoding="utf-8")
    run.write_text(RUN, encoding="utf-8")
    return qrels, run


def test_qrels_are_judgments_with_their_grades(files: tuple[Path, Path]) -> None:
    rows = trec.qrels(files[0]).to_pylist()
    assert rows[0] == {"query_id": "q1", "item_id": "a", "gain": 2.0}
    assert [row["gain"] for row in rows] == [2, 1, 0, -1, 1, 0]


def test_a_run_has_scores_and_the_order_of_its_lines(files: tuple[Path, Path]) -> None:
    found = trec.run(files[1])
    assert found.tag == "mine"
    assert found.rows.to_pylist()[2:4] == [
        {"query_id": "q1", "item_id": "e", "score": 2.0, "position": 3},
        {"query_id": "q3", "item_id": "b", "score": -1000.0, "position": 5},
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("usnistgov_trec_eval/qrels.test", "usnistgov_trec_eval/qrels.rel_level"),
        *("terrierteam_ir_measures/cwl.qrels", "AmenRa_ranx/qrels.trec"),
    ],
)
def test_other_tools_qrels_are_read_as_ir_measures_reads_them(shared_data: Path, name: str) -> None:
    path = shared_data / "fixtures" / name
    expected = [(q.query_id, q.doc_id, q.relevance) for q in read_trec_qrels(str(path))]
    found = [(r["query_id"], r["item_id"], r["gain"]) for r in trec.qrels(path).to_pylist()]
    assert found == expected


@pytest.mark.parametrize(
    "name",
    [
        *("usnistgov_trec_eval/results.test", "usnistgov_trec_eval/results.trunc"),
        *("terrierteam_ir_measures/cwl.run", "AmenRa_ranx/run.trec"),
    ],
)
def test_other_tools_runs_are_read_line_by_line(shared_data: Path, name: str) -> None:
    """As split at white space: what stands behind the sixth field is none, as for trec_eval."""
    path = shared_data / "fixtures" / name
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.split()]
    rows = trec.run(path).rows.to_pylist()
    assert [(r["query_id"], r["item_id"], r["score"]) for r in rows] == [
        (fields[0], fields[2], float(fields[4])) for fields in lines
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"q1 0 a", "found 3 fields, expected 4: query iteration document relevance"),
        (b"q1 0 a 1 2", "found 5 fields, expected 4"),
        (b"q1 0 z 1.5", "relevance is '1.5', expected a whole number"),
        (b"q1 0 z high", "relevance is 'high', expected a whole number"),
        (b"q1 0 a 1", "document 'a' of query 'q1' stands in line 1 already"),
        (b"q1 0 \xff 1", "is not UTF-8"),
        (b"q1 0 z 1_0", "relevance is '1_0', expected a whole number"),
        (b"q1 0 z " + b"9" * 400, "9', expected a whole number"),
    ],
)
def test_a_malformed_judgment_is_told_with_file_and_line(
    files: tuple[Path, Path], line: bytes, words: str
) -> None:
    files[0].write_bytes(QRELS.encode() + line + b"\nq1 0\n")
    with pytest.raises(ContractError) as refused:
        trec.qrels(files[0])
    assert [problem.split(": ")[0] for problem in refused.value.problems] == [
        f"{files[0]}:7",
        f"{files[0]}:8",
    ]
    assert words in refused.value.problems[0]
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("q1 Q0 z 9 mine", "found 5 fields, expected 6: query Q0 document rank score tag"),
        ("q1 Q0 z 9 nan mine", "score is 'nan', expected a number"),
        ("q1 Q0 z 9 1,5 mine", "score is '1,5', expected a number"),
        ("q1 Q0 z 9 1_0 mine", "score is '1_0', expected a number"),
        ("q1 Q0 a 9 1.0 mine", "document 'a' of query 'q1' stands in line 2 already"),
    ],
)
def test_a_malformed_ranking_is_told_with_file_and_line(
    files: tuple[Path, Path], line: str, words: str
) -> None:
    files[1].write_text(RUN + line + "\n", encoding="utf-8")
    with pytest.raises(ContractError) as refused:
        trec.run(files[1])
    assert refused.value.problems == (f"{files[1]}:7: {words}",)


def test_only_the_first_of_many_malformed_lines_are_told(files: tuple[Path, Path]) -> None:
    files[0].write_text("q1 0\n" * 1000, encoding="utf-8")
    with pytest.raises(ContractError) as refused:
        trec.qrels(files[0])
    assert len(refused.value.problems) == 21
    assert refused.value.problems[-1] == "and 980 more lines"


def test_a_run_may_repeat_a_document_where_copies_count(files: tuple[Path, Path]) -> None:
    files[1].write_text(RUN + "q1 Q0 a 9 1.0 mine\n", encoding="utf-8")
    assert trec.run(files[1], is_unique=False).rows.num_rows == 6


def test_fields_are_divided_by_ascii_white_space_only(files: tuple[Path, Path]) -> None:
    """As in C: a no-break space is a part of a document's name; a byte order mark is no part."""
    files[1].write_bytes("\ufeffq1 Q0 a\u00a0b 1 inf mine\r\n".encode())
    assert trec.run(files[1]).rows.to_pylist() == [
        {"query_id": "q1", "item_id": "a\u00a0b", "score": float("inf"), "position": 1}
    ]


@pytest.mark.parametrize("read", [trec.qrels, trec.run])
def test_a_file_without_lines_is_told(tmp_path: Path, read: Callable[[Path], object]) -> None:
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    with pytest.raises(ContractError, match="empty: holds no line"):
        read(tmp_path / "empty")


def test_a_run_of_other_queries_is_told(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files[1].write_text("q8 Q0 a 1 1.0 mine\n", encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["trec", *map(str, files), "-m", "AP"])
    assert stopped.value.code == 3
    assert "none of its queries is judged in" in capsys.readouterr().err


def test_a_missing_file_is_told() -> None:
    with pytest.raises(ContractError, match="no/qrels: cannot be read: No such file"):
        trec.qrels(Path("no/qrels"))


def test_the_values_are_printed_as_trec_eval_prints_them(
    spark: SparkSession, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """q1 ranks c, e, a (equal scores: e first); q2 has no candidate, q3 nothing relevant."""
    measures = ["-m", "P@2", "-m", "RR", "-m", "R(rel=2)@3"]
    assert main(["trec", *map(str, files), *measures, "-q"]) is None
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "precision@2           \tq1\t0.0000",
        "rr                    \tq1\t0.3333",
        "recall(rel=2)@3       \tq1\t1.0000",
        "precision@2           \tq3\t0.0000",
        "rr                    \tq3\t0.0000",
        "recall(rel=2)@3       \tq3\t0.0000",
        "runid                 \tall\tmine",
        "num_q                 \tall\t2",
        "precision@2           \tall\t0.0000",
        "rr                    \tall\t0.1667",
        "recall(rel=2)@3       \tall\t0.5000",
    ]


def test_missing_queries_depth_and_grades_are_options(
    spark: SparkSession, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["RR", "nDCG", "P@1", "RBP(max_gain=2)", "auc", "recall_micro@2"]
    measures = [part for text in asked for part in ("-m", text)]
    options = ["-c", "-M", "2", "-l", "2", *measures, "-q"]
    assert main(["trec", *map(str, files), *options, "-o", "json"]) is None
    found = json.loads(capsys.readouterr().out)
    assert found["run"] == "mine"
    assert found["preset"] == "trec_eval"
    assert found["n_queries"] == 3
    assert {*found["queries"]} == {"q1", "q2", "q3"}
    assert found["queries"]["q2"] == {
        "rr(rel=2)": 0,
        "ndcg": 0,
        "precision(rel=2)@1": 0,
        "rbp(max_gain=2)": 0,
        "auc(rel=2)": None,
    }
    assert found["all"] == {**found["queries"]["q2"], "recall_micro@2": 0}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-m", "P", "-m", "recal@5"], 2, "-m P: precision needs a cut-off"),
        (["-m", "P", "-m", "recal@5"], 2, "did you mean 'recall'?"),
        (["--preset", "trec"], 2, "preset: found 'trec', known are trec_eval"),
        (["-M", "0"], 2, "rules.depth: found 0, expected at least 1"),
        (["-m", "ctr@5"], 2, "-m ctr@5: needs to know what was shown"),
        (["-m", "P@shown"], 2, "-m P@shown: needs to know what was shown"),
        (["-l", "0", "-m", "P@5"], 2, "--rel: found '0', expected a number above 0"),
    ],
)
def test_a_wrong_option_is_a_configuration_error(
    files: tuple[Path, Path],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["trec", *map(str, files), *arguments])
    assert stopped.value.code == code
    assert words in capsys.readouterr().err
