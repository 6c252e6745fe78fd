"""What the audit and the sums found → the rows of the table quality. Plain Python."""

import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
        if finding not in _OTHERWISE and not finding.startswith(("labelled_", "usable")):
            rows.append(check(f"{name}.{finding}", n, n_rows))
    return rows


_AT_THE_DOOR = ("left_out", "empty", "null_candidate", "invalid_keys")
"""Why rows of an input do not count, whatever else they are."""
_OTHERWISE = (_INPUT_ROWS, *_AT_THE_DOOR)
"""Counts of an audit that are told as rows of the input that do not count, or not at all."""


def of_events(name: str, counts: Counts, told: Mapping[str | None, int]) -> list[dict[str, Any]]:
    """One row per reason for which events do not count, then how many do, and what is left over.

    `counts` are of the audit, `told` those of its usable rows: by reason, None where they count.
    """
    n_rows, kept = counts[_INPUT_ROWS], told.get(None, 0)
    dropped = _at_the_door(counts)
    dropped |= {reason: n for reason, n in told.items() if reason is not None}
    unaccounted = n_rows - kept - sum(dropped.values())
    return [
        *(check(f"{name}.dropped.{reason}", n, n_rows) for reason, n in dropped.items()),
        check(f"{name}.kept", kept, n_rows, is_finding=False),
        check(f"{name}.unaccounted", unaccounted, n_rows),
    ]


def of_candidates(
    name: str, counts: Counts, candidates: "Candidates", *, kept: int
) -> Iterator[dict[str, Any]]:
    """One row per reason for which a model's candidate rows do not count, then how many do.

    `kept` are its distinct candidates; a row that nothing else accounts for is delivered again.
    """
    n_rows = counts[_INPUT_ROWS]
    dropped = _at_the_door(counts)
    if candidates.n_rows is not None:
        distinct = kept + candidates.n_removed + candidates.n_too_many
        dropped |= {
            "unscored": candidates.n_unscored,
            **({"unlabelled": candidates.n_unlabelled} if name == "scores" else {}),
            "redelivered": candidates.n_rows - distinct,
            "invalid_traffic": candidates.n_removed,
            "too_large": candidates.n_too_many,
        }
    for reason, n in dropped.items():
        yield check(f"{name}.dropped.{reason}", n, n_rows)
    yield check(f"{name}.kept", kept, n_rows, is_finding=False)


def at_the_door(name: str, counts: Counts) -> list[dict[str, Any]]:
    """One row per reason for which rows of an input do not count, whatever else they are."""
    n_rows = counts[_INPUT_ROWS]
    return [check(f"{name}.dropped.{r}", n, n_rows) for r, n in _at_the_door(counts).items()]


def _at_the_door(counts: Counts) -> dict[str, int]:
    return {reason: counts[reason] for reason in _AT_THE_DOOR if reason in counts}


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

    n_rows        those that are usable, scored if they must be, and of a query that was asked;
                  None where what became of them cannot be told
    n_unscored    usable ones without a score, where such are dropped
    n_unlabelled  usable ones of queries that nobody asked or judged
    n_removed     distinct candidates of queries that are removed
    n_too_many    distinct candidates of queries that have too many, and are left out
    n_queries     those queries
    """

    n_rows: int | None
    n_unscored: int = 0
    n_unlabelled: int = 0
    n_removed: int = 0
    n_too_many: int = 0
    n_queries: int = 0


def of_queries(
    sums: Sums, *, labels: Sequence[str], ks: Sequence[int], candidates: Candidates
) -> list[dict[str, Any]]:
    """One row per finding about the model's queries and relevant items."""
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


class Limited(NamedTuple):
    """A check with a limit: its row of quality, and what is beyond the limit; None: nothing is."""

    row: dict[str, Any]
    problem: str | None = None


_SHARES = {
    "null_scores": "null scores",
    "duplicates": "duplicates",
    "orphan_clicks": "orphans",
    "without_candidates": "queries without candidates",
}
LEAST_DAYS = 3
"""With fewer days before it a day's rows are compared with nothing."""


def looked_at(counts: Counts) -> int:
    """The rows of an input that `where` keeps and, where they are nested, that are candidates."""
    others = ("left_out", "empty", "null_candidate")
    return counts[_INPUT_ROWS] - sum(counts.get(name, 0) for name in others)


def limited_share(key: str, n: int, n_rows: int, *, limit: float, where: str) -> Limited:
    """Whether n are a larger share of n_rows than the limit of that key.

    >>> limited_share("null_scores", 2480, 20000, limit=0.01, where="v1").problem
    'v1: null scores: 12.4 % of 20,000, limit 1 % (limits.null_scores)'
    """
    share = n / n_rows if n_rows else 0.0
    row = _limited(key, share, n_rows, limit=limit, is_beyond=share > limit)
    if share <= limit:
        return Limited(row)
    allowed = f"{100 * limit:.6g} %"
    texts = [f"{100 * share:.{digits}g} %" for digits in (3, 6, 9, 17)]
    found = next((text for text in texts if text != allowed), texts[-1])  # never "1 %, limit 1 %"
    said = f"{where}: {_SHARES[key]}: {found} of {n_rows:,}, limit {allowed} (limits.{key})"
    return Limited(row, said)


def limited_rows(
    name: str, n_rows: int, earlier: Sequence[int], *, least: float | None, most: float | None
) -> Iterator[Limited]:
    """Whether an input has as many rows as the median of earlier days lets expect.

    The limits are multiples of it; quality tells them in rows, and none after too few days.
    """
    median = statistics.median(earlier) if len(earlier) >= LEAST_DAYS else None
    for key, times in (("least_rows", least), ("most_rows", most)):
        if times is None:
            continue
        if median is None:
            yield Limited(_limited(key, n_rows, n_rows, limit=None, is_beyond=False))
            continue
        ratio = n_rows / median
        is_beyond = ratio < times if key == "least_rows" else ratio > times
        row = _limited(key, n_rows, n_rows, limit=times * median, is_beyond=is_beyond)
        said = (
            f"{name}: {n_rows:,} rows, expected at {key.removesuffix('_rows')} {times:g} times"
            f" {median:,.12g}, the median of the last {len(earlier)} days (limits.{key})"
        )
        yield Limited(row, said if is_beyond else None)


def limited_models(found: Collection[str], *, expected: Sequence[str], where: str) -> Limited:
    """Whether every expected model has candidates."""
    missing = [name for name in expected if name not in found]
    n = len(missing)
    row = _limited("expected_models", n, len(expected), limit=0.0, is_beyond=n > 0)
    said = (
        f"{where}: no candidates of {', '.join(missing)}; there are {', '.join(found)}"
        " (limits.expected_models)"
    )
    return Limited(row, said if missing else None)


def _limited(
    key: str, value: float, n_rows: int, *, limit: float | None, is_beyond: bool
) -> dict[str, Any]:
    found = check(f"limits.{key}", value, n_rows)
    return {**found, "limit": limit, "status": "exceeded" if is_beyond else "ok"}
