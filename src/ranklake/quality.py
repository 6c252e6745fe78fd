"""What the audit and the sums found → the rows of the table quality. Plain Python."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ranklake.schemas import EVERY_QUERY

Counts = Mapping[str, int]

_INPUT_ROWS = "n_rows"


def of_input(name: str, counts: Counts) -> list[dict[str, Any]]:
    """One row per finding of an input's audit; the number of its rows comes first."""
    n_rows = counts.get(_INPUT_ROWS, 0)
    rows = [check(f"{name}.rows", n_rows, n_rows, is_finding=False)]
    for finding, n in counts.items():
        if finding not in (_INPUT_ROWS, "usable") and not finding.startswith("labelled_"):
            rows.append(check(f"{name}.{finding}", n, n_rows))
    return rows


def of_queries(
    sums: pa.Table, *, model: str, labels: Sequence[str], usable_rows: int | None
) -> list[dict[str, Any]]:
    """One row per finding about the model's queries and relevant items.

    `usable_rows` are the model's candidate rows: what no distinct candidate accounts for is a
    duplicate. None where candidates of other queries are among them.
    """
    everything = [
        row
        for row in sums.to_pylist()
        if row["model_version"] == model and row["slice"] == EVERY_QUERY
    ]
    queries = [row for row in everything if row["label"] is None]
    n_queries = _total(queries, "n_queries")
    n_candidates = _total(queries, "n_candidates")
    rows = [
        check("queries.all", n_queries, n_queries, is_finding=False),
        check("queries.mixed_slices", _total(queries, "n_mixed_slices"), n_queries),
    ]
    if usable_rows is not None:
        rows.append(check("candidates.duplicates", usable_rows - n_candidates, usable_rows))
    for label in labels:
        of_label = [row for row in everything if row["label"] == label]
        n_relevant = _total(of_label, "n_relevant")
        without = n_queries - _total(of_label, "n_with_relevant")
        never = n_relevant - _total(of_label, "n_retrieved")
        rows.append(check(f"queries.without_relevant.{label}", without, n_queries))
        rows.append(check(f"relevant_items.never_candidates.{label}", never, n_relevant))
    return rows


def check(name: str, n: float, n_rows: int, *, is_finding: bool = True) -> dict[str, Any]:
    """One check without a limit: a finding where anything was found."""
    status = "finding" if is_finding and n > 0 else "ok"
    return {"name": name, "value": float(n), "n_rows": n_rows, "limit": None, "status": status}


def _total(rows: Sequence[Mapping[str, Any]], column: str) -> int:
    return int(sum(row[column] or 0.0 for row in rows))
