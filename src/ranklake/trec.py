"""TREC's two text formats: qrels (who is relevant) and runs (what was ranked). No Spark.

qrels  query iteration document relevance
run    query Q0 document rank score tag
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ranklake.errors import ContractError

MAX_PROBLEMS = 20
"""So many malformed lines are told; the others are counted."""

Line = tuple[int, list[str]]
"""A line's number, from 1, and its fields."""


class Run(NamedTuple):
    """What a run file holds: `rows` by query_id, item_id, score and position; and its tag."""

    rows: pa.Table
    tag: str


def qrels(path: Path) -> pa.Table:
    """One row per judgment: query_id, item_id and gain, which may be negative.

    Raises ContractError with every malformed line, and every document judged twice for a query.
    """
    problems: list[str] = []
    rows: list[Mapping[str, Any]] = []
    lines_of: dict[tuple[str, str], int] = {}
    for number, fields in _lines(path, "query iteration document relevance", problems):
        query, _, document, relevance = fields
        gain = _number(relevance, r"[+-]?[0-9]{1,9}")
        if gain is None:
            problems.append(
                f"{path}:{number}: relevance is {relevance[:40]!r}, expected a whole number"
            )
            continue
        _refuse_repeated(path, number, (query, document), lines_of, problems)
        rows.append({"query_id": query, "item_id": document, "gain": float(gain)})
    _refuse(problems or _empty(path, rows))
    return pa.Table.from_pylist(rows, schema=_QRELS)


def run(path: Path, *, is_unique: bool = True) -> Run:
    """One row per ranked document; position is its place among all lines of the file.

    Raises ContractError with every malformed line, and where `is_unique` with every document that
    stands twice for a query.
    """
    problems: list[str] = []
    rows: list[Mapping[str, Any]] = []
    lines_of: dict[tuple[str, str], int] = {}
    tag = ""
    for number, fields in _lines(path, "query Q0 document rank score tag", problems):
        query, _, document, _, sim, tag = fields
        score = _number(sim, r"[+-]?([0-9.]+(e[+-]?[0-9]+)?|inf|infinity)")
        if score is None:
            problems.append(f"{path}:{number}: score is {sim[:40]!r}, expected a number")
            continue
        if is_unique:
            _refuse_repeated(path, number, (query, document), lines_of, problems)
        key = {"query_id": query, "item_id": document}
        rows.append({**key, "score": score, "position": number})
    _refuse(problems or _empty(path, rows))
    return Run(pa.Table.from_pylist(rows, schema=_RUN), tag)


_QRELS = pa.schema([("query_id", pa.string()), ("item_id", pa.string()), ("gain", pa.float64())])
_RUN = pa.schema(
    [
        ("query_id", pa.string()),
        ("item_id", pa.string()),
        ("score", pa.float64()),
        ("position", pa.int32()),
    ]
)


def _lines(path: Path, form: str, problems: list[str]) -> Iterator[Line]:
    """The lines with as many fields as the form; the others become problems, blank ones nothing.

    What stands behind the tag of a run is no field: trec_eval does not read it either.
    """
    n_fields = len(form.split())
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                line = raw.removeprefix(BOM_UTF8) if number == 1 else raw
                try:
                    fields = [part.decode() for part in line.split()]  # at ASCII white space
                except UnicodeDecodeError:
                    problems.append(f"{path}:{number}: is not UTF-8")
                    continue
                if len(fields) == n_fields or (len(fields) > n_fields and form.endswith("tag")):
                    yield number, fields[:n_fields]
                elif fields:
                    found = f"found {len(fields)} fields, expected {n_fields}"
                    problems.append(f"{path}:{number}: {found}: {form}")
    except OSError as error:
        raise ContractError(f"{path}: cannot be read: {error.strerror}") from error


def _number(text: str, pattern: str) -> float | None:
    """The number, in the spelling of C; None for another one, such as Python's 1_0."""
    try:
        return float(text) if re.fullmatch(pattern, text, re.IGNORECASE) else None
    except ValueError:  # such as 1.2.3
        return None


def _refuse_repeated(
    path: Path,
    number: int,
    key: tuple[str, str],
    lines_of: dict[tuple[str, str], int],
    problems: list[str],
) -> None:
    first = lines_of.setdefault(key, number)
    if first != number:
        query, document = key
        stands = f"document {document!r} of query {query!r} stands in line {first} already"
        problems.append(f"{path}:{number}: {stands}")


def _empty(path: Path, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [] if rows else [f"{path}: holds no line"]


def _refuse(problems: Sequence[str]) -> None:
    if len(problems) > MAX_PROBLEMS:
        more = len(problems) - MAX_PROBLEMS
        problems = [*problems[:MAX_PROBLEMS], f"and {more} more lines"]
    if problems:
        raise ContractError(problems)
