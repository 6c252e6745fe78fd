"""What an evaluation needs of its inputs, beyond what each input's contract asks for."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from ranklake import read
from ranklake.config import EvalConfig
from ranklake.errors import ContractError
from ranklake.metrics import CLICK, CONVERSION, CONVERSION_VALUE, JUDGMENT

_SOURCES = {
    "click": ("clicks", "clicked"),
    "conversion": ("conversions", "converted"),
    "conversion_value": ("conversions", None),
    "judgment": ("judgments", "gain"),
}
"""For each kind of event, its input, and the column of impressions that can stand for it."""

Columns = Mapping[str, list[str]]


def check_needs(
    config: EvalConfig, sources: Mapping[str, read.Source], *, known_by: datetime | None = None
) -> None:
    """Raises ContractError with every input or column that is needed and not there.

    Where labels have to be known by some time (`known_by`, or as the configuration says), their
    inputs have to say since when they are.
    """
    columns = {name: source.rows.columns for name, source in sources.items()}
    problems = [
        *_missing_candidates(config, columns),
        *_missing_labels(config, columns),
        *_missing_keys(config, columns),
        *_missing_extras(config, columns),
        *_missing_times(config, columns, known_by),
        *_missing_traffic(config, columns),
        *_missing_clusters(config, columns),
    ]
    if problems:
        raise ContractError([*dict.fromkeys(problems)])


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


def _missing_clusters(config: EvalConfig, columns: Columns) -> Iterator[str]:
    clusters = config.item_clusters
    if clusters and clusters not in columns.get("impressions", [clusters]):
        yield f"impressions: column {clusters!r} is missing and not mapped; item_clusters names it"


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


def _missing_keys(config: EvalConfig, columns: Columns) -> Iterator[str]:
    shown = columns.get("impressions", [])
    by_user = config.attribution.is_by_user and "conversions" in columns
    if by_user:
        yield from _missing_of_users(config, columns)
    for name in ("clicks",) if by_user else ("clicks", "conversions"):
        has = set(columns.get(name, ["query_id", "item_id"]))
        by_delivery = "impression_id" in has and "impression_id" in shown
        if not {"query_id", "item_id"} <= has and not by_delivery:
            yield (
                f"{name}: say which item it was: map query_id and item_id, or impression_id"
                " (of impressions too)"
            )
    if "judgments" in columns and "gain" not in columns["judgments"]:
        yield "judgments: column 'gain' is missing and not mapped"


def _missing_of_users(config: EvalConfig, columns: Columns) -> Iterator[str]:
    """What conversions that name a user need, and what may be their touches."""
    keys = config.attribution.columns
    by_click = config.attribution.touch != "last_impression"
    touches, time = ("clicks", "click_ts") if by_click else ("impressions", "event_ts")
    needed = {"conversions": (*keys, "conversion_ts"), touches: (*keys, time, "event_date")}
    needed["impressions"] = (*needed.get("impressions", ()), "event_date")
    for name, wanted in needed.items():
        if name not in columns:
            yield f"{name}: the input is not configured; {_attribution(config)} needs it"
            continue
        for column in dict.fromkeys(wanted):
            if column not in columns[name]:
                yield f"{name}: {_lacks(column)}; {_attribution(config)} needs it"


def _lacks(column: str) -> str:
    return f"column {column!r} is missing and not mapped"


def _attribution(config: EvalConfig) -> str:
    return f"attribution.key = {config.attribution.key!r}"


def _missing_times(
    config: EvalConfig, columns: Columns, known_by: datetime | None
) -> Iterator[str]:
    """The times without which labels cannot be told apart by their age."""
    as_of_a_time = config.label_delay is not None or known_by is not None
    kinds = {"clicks": ({CLICK}, "click_ts")}
    kinds["conversions"] = ({CONVERSION, CONVERSION_VALUE}, "conversion_ts")
    for name, (of_input, time) in kinds.items():
        if name not in columns or not of_input & config.event_kinds:
            continue
        if as_of_a_time and "ingest_ts" not in columns[name]:
            yield f"{name}: {_lacks('ingest_ts')}; labels as of a time need it"
        if config.label_age is not None:
            for table, column in ((name, time), ("impressions", "event_ts")):
                if column not in columns.get(table, [column]):
                    yield f"{table}: {_lacks(column)}; label_age needs it"
    if CONVERSION_VALUE in config.event_kinds and "value" not in columns.get(
        "conversions", ["value"]
    ):
        yield "conversions: column 'value' is missing and not mapped; conversion_value adds it up"


def _missing_traffic(config: EvalConfig, columns: Columns) -> Iterator[str]:
    """What the rules for invalid traffic look at."""
    traffic = config.traffic
    looked_at = {
        "max_queries_per_hour": (("impressions", "event_ts"), ("impressions", "user_id")),
        "max_clicks_per_minute": (("clicks", "click_ts"),),
        "max_click_rate": (("clicks", None),),
    }
    for rule, places in looked_at.items():
        if getattr(traffic, rule) is None:
            continue
        for name, column in places:
            if name not in columns:
                yield f"{name}: the input is not configured; traffic.{rule} looks at it"
            elif column is not None and column not in columns[name]:
                yield f"{name}: {_lacks(column)}; traffic.{rule} needs it"
    listed = columns.get("invalid_traffic")
    if listed is not None and not {"query_id", "user_id"} & {*listed}:
        yield "invalid_traffic: say what to remove: map query_id or user_id"
    elif (
        listed is not None
        and "user_id" in listed
        and "user_id" not in columns.get("impressions", [])
    ):
        yield "impressions: column 'user_id' is missing and not mapped; invalid_traffic names users"


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
