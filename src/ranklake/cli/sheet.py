"""Rows of `metrics` as people read them: one line a metric and cut-off, the models side by side."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ranklake import metrics

Row = dict[str, Any]
"""One row of `metrics`."""

_KEYS = ("event_date", "label", "slice", "slice_value", "window_days", "population")
_UNSAID = ("all", 1)
"""Values that go without saying: every query, the day alone."""

_COUNTS = "queries / defined"
_UNLIMITED = 10_000
"""Columns of a terminal on which everything fits."""
KNOWN = {metric.name: place for place, metric in enumerate(metrics.METRICS)}
"""The metrics in the order in which people read them."""


class Sheet(NamedTuple):
    """A title, a header, and lines of cells: texts, not yet laid out.

    `optional` are columns that a narrow terminal can do without, the first one first.
    """

    title: str
    header: tuple[str, ...]
    lines: list[tuple[str, ...]]
    optional: tuple[str, ...] = ()

    def fits(self, console: Console) -> bool:
        """Whether the terminal is wide enough for it without folding a cell."""
        unfolded = console.options.update(max_width=_UNLIMITED)
        return console.measure(self.for_terminal(), options=unfolded).maximum <= console.width

    def narrowed(self, console: Console) -> "Sheet":
        """The sheet without those optional columns that keep it from fitting."""
        found = self
        for name in self.optional:
            if found.fits(console):
                break
            found = found.without(name)
        return found

    def without(self, name: str) -> "Sheet":
        """The sheet without a column."""
        kept = [place for place, other in enumerate(self.header) if other != name]
        header, *lines = (
            tuple(line[place] for place in kept) for line in (self.header, *self.lines)
        )
        return self._replace(header=header, lines=lines)

    def for_terminal(self) -> Group:
        """The sheet laid out by rich, which folds what the terminal is too narrow for.

        Every text is a Text: a slice value such as [red] is no markup.
        """
        table = Table(box=box.SIMPLE_HEAD)
        for name in self.header:
            justify: Literal["left", "right"] = "right" if name == _COUNTS else "left"
            table.add_column(Text(name), justify=justify, overflow="fold")
        for line in self.lines:
            table.add_row(*map(Text, line))
        return Group(Text(self.title, style="bold"), table)

    def for_markdown(self) -> str:
        """The sheet as a Markdown table."""
        lines = [self.header, ("---",) * len(self.header), *self.lines]
        escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        table = "\n".join(f"| {' | '.join(line)} |" for line in escaped)
        return f"**{self.title}**\n\n{table}"


def sheet(rows: Sequence[Row], *, unsaid: Sequence[str] = ()) -> Sheet:
    """One line is one measure; a key has a column where it varies, else it is in the title.

    The keys in `unsaid` have neither. Each model has two columns: the value with its interval, and
    how many queries there are and have a value.
    """
    keys = [key for key in _KEYS if key not in unsaid]
    varying = [key for key in keys if len({row[key] for row in rows}) > 1]
    title = [
        f"{key} {rows[0][key]}"
        for key in keys
        if key not in varying and rows[0][key] not in _UNSAID
    ]
    models = sorted({row["model_version"] for row in rows})
    lines: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        line = (*(str(row[key]) for key in varying), measure(row))
        lines.setdefault(line, {})[row["model_version"]] = row
    return Sheet(
        title=", ".join(title),
        header=(*varying, "metric", *(cell for model in models for cell in (model, _COUNTS))),
        lines=[
            (*line, *(cell for model in models for cell in _cells(of_models.get(model))))
            for line, of_models in lines.items()
        ],
    )


def in_order(rows: Iterable[Row]) -> list[Row]:
    """The rows by day, label and slice, then in the order of METRICS, then by cut-off and model."""
    return sorted(rows, key=_place)


def _place(row: Row) -> tuple[Any, ...]:
    return (
        *(row[key] for key in ("event_date", "label", "slice", "slice_value", "window_days")),
        *place(row),
        row["model_version"],
    )


def place(row: Row) -> tuple[Any, ...]:
    """Where a row of a slice value stands among the others."""
    known = KNOWN.get(row["metric"], len(KNOWN))
    return (known, *(row[key] for key in ("metric", "variant", "k", "population")))


def measure(row: Row) -> str:
    """The metric with its options and its cut-off."""
    return metrics.spelled(row["metric"], row["variant"], row["k"])


def _cells(row: Row | None) -> tuple[str, str]:
    if row is None:
        return "", ""
    return _value(row), f"{row['n_queries']:,} / {row['n_defined']:,}"


def _value(row: Row) -> str:
    if row["value"] is None:
        return "undefined"
    interval = (
        f"[{row['ci_low']:.4f}, {row['ci_high']:.4f}]" if row["status"] == "ok" else row["status"]
    )
    return f"{row['value']:.4f} {interval}"


def sentence(row: Row) -> str:
    """What the number says; nothing for a count or an undefined value.

    >>> sentence({"metric": "recall", "variant": "", "k": 10, "value": 0.75, "model_version": "v1"})
    "recall@10 of v1: of a query's relevant items, on average 75 % are in the top 10."
    """
    if row["metric"] not in KNOWN or row["value"] is None:
        return ""
    metric = metrics.metric(row["metric"])
    value = f"{100 * row['value']:.3g} %" if metric.upper == 1 else f"{row['value']:.4g}"
    cutoff = "n_slots" if row["k"] == -1 else row["k"]
    return f"{measure(row)} of {row['model_version']}: {metric.reading(value, cutoff)}."
