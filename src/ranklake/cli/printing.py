"""Rows for programs: JSON and CSV, with every column."""

import csv
import io
import json
from collections.abc import Sequence
from datetime import date
from typing import Any

Row = dict[str, Any]


def as_json(found: Sequence[Row] | Row) -> str:
    """The rows, or one object; days and instants in ISO form."""
    return json.dumps(found, indent=2, ensure_ascii=False, default=_plain)


def as_csv(rows: Sequence[Row]) -> str:
    """A header, and a line a row."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _plain(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
