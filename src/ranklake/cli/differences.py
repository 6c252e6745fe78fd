"""Rows of `comparisons` as people read them: one line a series, or a rule and series."""

from collections.abc import Sequence
from typing import Any

from ranklake import metrics, schemas
from ranklake.cli.sheet import Row, Sheet, measure
from ranklake.comparison import Comparison, Kind

_PLACES = {metric.name: place for place, metric in enumerate(metrics.METRICS)}


def of_series(found: Comparison) -> Sheet:
    """The series that were compared, without a rule."""
    rows = sorted((row for row in found.rows.to_pylist() if not row["rule"]), key=_place)
    keys = [key for key in ("label", "slice", "slice_value") if _varies(rows, key)]
    columns = (found.candidate, found.baseline, *_DIFFERENCE, "p (BH)", "mde", "queries", "reads")
    return Sheet(
        title=_title(found, rows, keys),
        header=(*keys, "metric", *columns),
        lines=[
            (
                *(row[key] for key in keys),
                measure(row),
                *_numbers(row),
                _p(row["p_bh"]),
                _number(row["mde"], "."),
                _queries(row),
                reading(row),
            )
            for row in rows
        ],
    )


def of_rules(found: Comparison) -> Sheet:
    """The rules, each with its verdict."""
    rows = [row for row in found.rows.to_pylist() if row["rule"]]
    keys = [key for key in ("label", "slice_value") if _varies(rows, key)]
    columns = (found.candidate, found.baseline, *_DIFFERENCE, "p (Holm)", "mde", "queries")
    return Sheet(
        title=_title(found, rows, keys),
        header=("rule", "role", *keys, "allowed", *columns, "verdict"),
        lines=[
            (
                *(row["rule"], row["role"]),
                *(row[key] for key in keys),
                _allowed(row),
                *_numbers(row),
                _p(row["p_holm"]),
                _number(row["mde"], "."),
                _queries(row),
                row["verdict"] if not row["reason"] else f"{row['verdict']}: {row['reason']}",
            )
            for row in rows
        ],
    )


_DIFFERENCE = ("difference", "p")


def reading(row: Row) -> str:
    """What the difference says, once its p-value is adjusted over what was asked for beside it.

    >>> reading({"metric": "recall", "status": "ok", "p_bh": 0.01, "confidence": 0.95, "delta": 1})
    'better'
    """
    if row["status"] != "ok":
        return str(row["status"])
    if row["p_bh"] >= 1 - row["confidence"]:
        return "not told apart"
    better = metrics.metric(row["metric"]).better if row["metric"] in _PLACES else "neither"
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
    return ", ".join([f"{found.candidate} against {found.baseline}{alias}", days, *fixed])


def _varies(rows: Sequence[Row], key: str) -> bool:
    return len({row[key] for row in rows}) > 1


def _numbers(row: Row) -> tuple[str, ...]:
    """Both values, the difference with its interval, and its p-value."""
    difference = _number(row["delta"], "+.")
    if row["ci_low"] is not None:
        difference += f" [{row['ci_low']:+.4f}, {row['ci_high']:+.4f}]"
    return (
        _number(row["value"], "."),
        _number(row["baseline_value"], "."),
        difference,
        _p(row["p_value"]),
    )


def _number(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}4f}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "< 0.001" if value < _SMALL else f"{value:.3f}"


_SMALL = 0.001


def _queries(row: Row) -> str:
    """How many, and how sure it is that both models saw the same."""
    if row["pairing"] == Kind.SAME_QUERIES:
        return f"{row['n_queries']:,} same"
    return f"{row['n_queries']:,} / {row['baseline_n_queries']:,} {row['pairing']}"


def _allowed(row: Row) -> str:
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
    return (
        *(row[key] for key in ("label", "slice", "slice_value")),
        _PLACES.get(row["metric"], len(_PLACES)),
        *(row[key] for key in ("metric", "variant", "k", "population")),
    )
