"""What an evaluation needs of its inputs, beyond what each input's contract asks for."""

from collections.abc import Iterator, Mapping

from ranklake import read
from ranklake.config import EvalConfig
from ranklake.errors import ContractError
from ranklake.metrics import JUDGMENT

_SOURCES = {
    "click": ("clicks", "clicked"),
    "conversion": ("conversions", "converted"),
    "conversion_value": ("conversions", None),
    "judgment": ("judgments", "gain"),
}
"""For each kind of event, its input, and the column of impressions that can stand for it."""

Columns = Mapping[str, list[str]]


def check_needs(config: EvalConfig, sources: Mapping[str, read.Source]) -> None:
    """Raises ContractError with every input or column that is needed and not there."""
    columns = {name: source.rows.columns for name, source in sources.items()}
    problems = [
        *_missing_candidates(config, columns),
        *_missing_labels(config, columns),
        *_missing_keys(columns),
        *_missing_extras(config, columns),
    ]
    if problems:
        raise ContractError(problems)


def _missing_candidates(config: EvalConfig, columns: Columns) -> Iterator[str]:
    for candidates, name in (("served", "impressions"), ("scored", "scores")):
        if candidates not in config.candidates:
            continue
        order = config.rank_by if candidates == "served" else "score"
        if name not in columns:
            yield f"{name}: the input is not configured, and candidates = ['{candidates}'] reads it"
        elif order not in columns[name]:
            yield f"{name}: column {order!r} is missing and not mapped; it orders the candidates"
    if "impressions" in columns and not {"event_date", "event_ts"} & set(columns["impressions"]):
        yield "impressions: columns 'event_date' and 'event_ts' are missing: rows have no day"


def _missing_labels(config: EvalConfig, columns: Columns) -> Iterator[str]:
    if "impressions" not in columns and not judges(config):
        yield "impressions: the input is not configured, and clicks count for impressed queries"
    shown = columns.get("impressions", [])
    for label in config.labels:
        kinds = [kind for kind, gain in config.gains_of(label).items() if gain]
        if not any(_SOURCES[kind][0] in columns or _SOURCES[kind][1] in shown for kind in kinds):
            names = " or ".join(dict.fromkeys(_place(*_SOURCES[kind]) for kind in kinds))
            yield f"labels: {label!r} has no input: configure {names}"


def _place(name: str, column: str | None) -> str:
    return name if column is None else f"{name} (impressions.{column})"


def _missing_keys(columns: Columns) -> Iterator[str]:
    shown = columns.get("impressions", [])
    for name in ("clicks", "conversions"):
        has = set(columns.get(name, ["query_id", "item_id"]))
        by_delivery = "impression_id" in has and "impression_id" in shown
        if not {"query_id", "item_id"} <= has and not by_delivery:
            yield (
                f"{name}: say which item it was: map query_id and item_id, or impression_id"
                " (of impressions too)"
            )
    if "judgments" in columns and "gain" not in columns["judgments"]:
        yield "judgments: column 'gain' is missing and not mapped"


def _missing_extras(config: EvalConfig, columns: Columns) -> Iterator[str]:
    base = "judgments" if judges(config) and "judgments" in columns else "impressions"
    for name, what in (("n_slots", "@shown"), ("weight", "average=weighted")):
        if name in config.query_extras and name not in columns.get(base, [name]):
            yield f"{base}: column {name!r} is missing and not mapped; {what} needs it"
    tie_key = config.rules.tie_column
    for candidates, name in (("served", "impressions"), ("scored", "scores")):
        if candidates in config.candidates and tie_key not in (None, *columns.get(name, [tie_key])):
            yield f"{name}: column {tie_key!r} is missing and not mapped; rules.tie_break names it"


def judges(config: EvalConfig) -> bool:
    """Whether labels are judgments, so that these say which queries there are."""
    return any(config.gains_of(label).get(JUDGMENT) for label in config.labels)
