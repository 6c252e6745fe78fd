"""Rows of `comparisons` as people read them: one line a series, or a rule and series."""

from collections.abc import Sequence
from typing import Any

from ranklake import metrics, schemas
from ranklake.cli.numbers import change, number, p_value
from ranklake.cli.sheet import KNOWN, Row, Sheet, measure, place
from ranklake.comparison import Comparison, Kind


def of_series(found: Comparison) -> list[Sheet]:
    """The series that were compared, without a rule: one sheet a label."""
    rows = sorted((row for row in found.rows.to_pylist() if not row["rule"]), key=_place)
    labels = dict.fromkeys(row["label"] for row in rows)
    return [_of_label(found, [row for row in rows if row["label"] == name]) for name in labels]


def _of_label(found: Comparison, rows: Sequence[Row]) -> Sheet:
    keys = [key for key in ("slice", "slice_value") if _varies(rows, key)]
    queries = _queries(rows)
    columns = (found.candidate, found.baseline, "difference", "p", "p (BH)", "mde")
    return Sheet(
        title=_title(found, rows, keys),
        header=(*keys, "metric", *columns, *queries, "reads"),
        lines=[
            (
                *(row[key] for key in keys),
                measure(row),
                *_numbers(row),
                p_value(row["p_bh"]),
                number(row["mde"]),
                *(column[place] for column in queries.values()),
                reading(row),
            )
            for place, row in enumerate(rows)
        ],
        optional=("p", "mde", *queries, "p (BH)"),
    )


def of_rules(found: Comparison) -> list[Sheet]:
    """The rules, each with its verdict."""
    rows = [row for row in found.rows.to_pylist() if row["rule"]]
    keys = [key for key in ("label",) if _varies(rows, key)]
    queries = _queries(rows)
    reasons = ("why",) if any(row["reason"] for row in rows) else ()
    columns = (found.candidate, found.baseline, "difference", "p", "p (Holm)", "mde")
    return [
        Sheet(
            title=_title(found, rows, [*keys, "slice", "slice_value"]),
            header=("rule", "role", *keys, "allowed", *columns, *queries, "verdict", *reasons),
            lines=[
                (
                    *(ruled(row), row["role"]),
                    *(row[key] for key in keys),
                    allowed(row),
                    *_numbers(row),
                    p_value(row["p_holm"]),
                    number(row["mde"]),
                    *(column[place] for column in queries.values()),
                    row["verdict"],
                    *(row["reason"] or "" for _ in reasons),
                )
                for place, row in enumerate(rows)
            ],
            optional=("why", "p", "mde", *queries, "role", "p (Holm)"),
        )
    ]


def ruled(row: Row) -> str:
    """The rule, and the slice value that this row of it is about."""
    of_all = row["slice"] == schemas.EVERY_QUERY
    return str(row["rule"]) if of_all else f"{row['rule']} ({row['slice_value']})"


def reading(row: Row) -> str:
    """What the difference says, once its p-value is adjusted over what was asked for beside it.

    >>> reading({"metric": "recall", "status": "ok", "p_bh": 0.01, "confidence": 0.95, "delta": 1})
    'better'
    """
    if row["status"] != "ok":
        return str(row["status"])
    if row["p_bh"] >= 1 - row["confidence"]:
        return "not told apart"
    better = metrics.metric(row["metric"]).better if row["metric"] in KNOWN else "neither"
    if better == "neither":
        return "higher" if row["delta"] > 0 else "lower"
    return "better" if (row["delta"] > 0) == (better == "higher") else "worse"


def _title(found: Comparison, rows: Sequence[Row], keys: Sequence[str]) -> str:
    first = rows[0]
    days = f"{first['date_from']}"
    if first["date_from"] != first["date_to"]:
        days += f" to {first['date_to']} ({first['n_days']} days)"
    fixed = [
        f"{key} {first[key]}"
        for key in ("label", "slice", "slice_value")
        if key in first and key not in keys and not _varies(rows, key)
        if first[key] != schemas.EVERY_QUERY
    ]
    alias = f" ({first['baseline_alias']})" if first["baseline_alias"] else ""
    columns = _queries(rows)
    same = [
        *([] if "queries" in columns else [_counts(first)]),
        *([] if "they are" in columns else [_KINDS[first["pairing"]]]),
    ]
    if same:
        fixed.append(" ".join([*same, "queries"]))
    return ", ".join([f"{found.candidate} against {found.baseline}{alias}", days, *fixed])


def _varies(rows: Sequence[Row], key: str) -> bool:
    return len({row[key] for row in rows}) > 1


def _numbers(row: Row) -> tuple[str, ...]:
    """Both values, the difference with its interval, and its p-value."""
    return (
        number(row["value"]),
        number(row["baseline_value"]),
        change(row["delta"], row["ci_low"], row["ci_high"]),
        p_value(row["p_value"]),
    )


def _queries(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Columns of how many queries there are, and whose; none where the title says it for all."""
    counts, kinds = [_counts(row) for row in rows], [_KINDS[row["pairing"]] for row in rows]
    return {
        name: cells for name, cells in (("queries", counts), ("they are", kinds)) if _differ(cells)
    }


def _counts(row: Row) -> str:
    """The candidate's queries, and the baseline's where it has others."""
    counts = (row["n_queries"], row["baseline_n_queries"])
    return " / ".join(f"{count:,}" for count in dict.fromkeys(counts))


_KINDS = {
    Kind.SAME_QUERIES: "same",
    Kind.PARTIAL: "partly the same",
    Kind.DISJOINT: "different",
}


def _differ(cells: Sequence[str]) -> bool:
    return len({*cells}) > 1


def allowed(row: Row) -> str:
    """What the rule asks for, in signs."""
    bounds = {
        "drop ≤ {:g}": row["max_drop"],
        "drop ≤ {:.3g} %": _hundredfold(row["max_relative_drop"]),
        "≥ {:g}": row["floor"],
        "≤ {:g}": row["ceiling"],
    }
    return ", ".join(form.format(bound) for form, bound in bounds.items() if bound is not None)


def _hundredfold(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _place(row: Row) -> tuple[Any, ...]:
    return (*(row[key] for key in ("label", "slice", "slice_value")), *place(row))
