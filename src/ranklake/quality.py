"""What the audit and the sums found → the rows of the table quality. Plain Python."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ranklake.metrics import measure
from ranklake.schemas import EVERY_QUERY

Counts = Mapping[str, int]

_INPUT_ROWS = "n_rows"
_LARGEST = "largest_query"


def of_input(name: str, counts: Counts) -> list[dict[str, Any]]:
    """One row per finding of an input's audit; the number of its rows comes first."""
    n_rows = counts.get(_INPUT_ROWS, 0)
    rows = [check(f"{name}.rows", n_rows, n_rows, is_finding=False)]
    for finding, n in counts.items():
        if finding not in (_INPUT_ROWS, "usable") and not finding.startswith("labelled_"):
            rows.append(check(f"{name}.{finding}", n, n_rows))
    return rows


@dataclass(frozen=True)
class Sums:
    """The bucket sums of one model over all queries: totals by label (None: of the queries).

    largest_query is the most candidates that a query has.
    """

    by_label: Mapping[str | None, Mapping[str, float]]
    largest_query: int

    @classmethod
    def of(cls, sums: pa.Table, *, model: str) -> "Sums":
        """The totals of the rows of aggregate.sums."""
        is_own = (pc.field("model_version") == model) & (pc.field("slice") == EVERY_QUERY)
        rows = sums.filter(is_own)
        names = [n for n in rows.column_names if n not in _KEYS]
        largest = pc.max(rows[_LARGEST]).as_py() or 0.0
        totals: dict[str | None, dict[str, float]] = {}
        for label in pc.unique(rows["label"]).to_pylist():
            mask = pc.equal(rows["label"], label) if label else pc.is_null(rows["label"])
            own = rows.filter(mask)
            totals[label] = {name: pc.sum(own[name]).as_py() or 0.0 for name in names}
        return cls(totals, int(largest))

    def total(self, name: str, label: str | None = None) -> float:
        """The sum over all buckets; 0 where no query had a part in it."""
        return self.by_label.get(label, {}).get(name, 0.0)

    @property
    def n_queries(self) -> int:
        """Queries of the model."""
        return int(self.total("n_queries"))


_KEYS = ("model_version", "label", "slice", "slice_value", "bucket", "fingerprint", _LARGEST)


@dataclass(frozen=True)
class Candidates:
    """A model's candidate rows, as far as they are not in its sums.

    n_rows      the usable ones; None where what became of them cannot be told
    n_too_many  distinct candidates of queries that have too many, and are left out
    n_queries   those queries
    """

    n_rows: int | None
    n_too_many: int = 0
    n_queries: int = 0


def of_queries(
    sums: Sums, *, labels: Sequence[str], ks: Sequence[int], candidates: Candidates
) -> list[dict[str, Any]]:
    """One row per finding about the model's queries and relevant items.

    A candidate row that no distinct candidate accounts for is a duplicate.
    """
    n_queries = sums.n_queries
    without = int(sums.total("n_without_candidates"))
    mixed = int(sums.total("n_mixed_slices"))
    rows = [
        check("queries.all", n_queries, n_queries, is_finding=False),
        check("queries.without_candidates", without, n_queries),
        check("queries.too_large", candidates.n_queries, n_queries + candidates.n_queries),
        check("queries.largest", sums.largest_query, n_queries, is_finding=False),
        check("queries.mixed_slices", mixed, n_queries),
        *(
            check(f"queries.short@{k}", sums.total(f"n_short_at_{k}"), n_queries, is_finding=False)
            for k in ks
        ),
    ]
    if candidates.n_rows is not None:
        counted = int(sums.total("n_candidates")) + candidates.n_too_many
        duplicates = candidates.n_rows - counted
        rows.append(check("candidates.duplicates", duplicates, candidates.n_rows))
    return [*rows, *(row for label in labels for row in _of_label(sums, label, ks))]


def _of_label(sums: Sums, label: str, ks: Sequence[int]) -> Iterator[dict[str, Any]]:
    n_relevant = int(sums.total("n_relevant", label))
    n_retrieved = int(sums.total("n_retrieved", label))
    without = sums.n_queries - int(sums.total("n_with_relevant", label))
    yield check(f"queries.without_relevant.{label}", without, sums.n_queries)
    yield check(f"relevant_items.never_candidates.{label}", n_relevant - n_retrieved, n_relevant)
    for k in ks:
        within = int(sums.total(measure(f"hits@{k}").column, label))
        parts = {"within": within, "below": n_retrieved - within}
        for name, n in parts.items():
            yield check(f"relevant_items.{name}.{label}@{k}", n, n_relevant, is_finding=False)


def of_ties(sums: Sums, *, labels: Sequence[str], ks: Sequence[int]) -> Iterator[dict[str, Any]]:
    """What the order of equal scores decides: in how many queries, and between which bounds."""
    for label in labels:
        n_defined = int(sums.total("n_with_relevant", label))
        for k in ks:
            yield check(
                f"ties.tied.{label}@{k}",
                sums.total(measure(f"tied@{k}").column, label),
                sums.n_queries,
            )
            for metric, n in (("precision", sums.n_queries), ("recall", n_defined)):
                for bound in ("worst", "best"):
                    column = measure(f"{metric}(tie_break={bound})@{k}").column
                    total = sums.total(column, label)
                    name = f"ties.{metric}_{bound}.{label}@{k}"
                    yield check(name, total / n if n else 0.0, n, is_finding=False)


def check(name: str, n: float, n_rows: int, *, is_finding: bool = True) -> dict[str, Any]:
    """One check without a limit: a finding where anything was found."""
    status = "finding" if is_finding and n > 0 else "ok"
    return {"name": name, "value": float(n), "n_rows": n_rows, "limit": None, "status": status}
