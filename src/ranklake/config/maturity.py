"""When the labels of a day are complete, and by when they have to be known."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from ranklake.config.events import duration
from ranklake.config.model import EvalConfig
from ranklake.metrics import CLICK, CONVERSION, CONVERSION_VALUE

_AT_ONCE = timedelta(0)


def labels_as_of(config: EvalConfig, day: date) -> datetime | None:
    """The instant by which labels of the day have to be known; None: all events count."""
    if config.label_delay is None:
        return None
    return _end_of(day, config.zone) + duration(config.label_delay)


def matures_at(config: EvalConfig, day: date) -> datetime | None:
    """The instant from which no further label of the day can happen; None: nobody can say."""
    longest = _longest_window(config)
    if longest is None:
        return None
    return _end_of(day, config.zone) + timedelta(minutes=config.max_query_span_minutes) + longest


def is_mature(
    config: EvalConfig, day: date, *, known_by: datetime | None, now: datetime
) -> bool | None:
    """Whether labels that the log had by `known_by` (None: by now) can be all of the day's.

    False, too, before that time has come: labels may still arrive. None: nobody can say.
    """
    matures = matures_at(config, day)
    if matures is None:
        return None
    return now >= (known_by or now) >= matures


def _longest_window(config: EvalConfig) -> timedelta | None:
    """From an impression to the last of its events that counts."""
    until_conversion = _until_conversion(config)
    windows = {
        CLICK: config.windows.of_clicks,
        CONVERSION: until_conversion,
        CONVERSION_VALUE: until_conversion,
    }
    kinds = config.event_kinds
    age = config.oldest_label
    lengths = [_shorter(windows.get(kind), age if kind in windows else None) for kind in kinds]
    known = [length for length in lengths if length is not None]
    return max(known) if len(known) == len(lengths) else None


def _until_conversion(config: EvalConfig) -> timedelta | None:
    from_touch, to_touch = config.windows.of_conversions, config.windows.of_clicks
    if config.attribution.touch == "last_impression":
        to_touch = _AT_ONCE
    return None if from_touch is None or to_touch is None else to_touch + from_touch


def _shorter(one: timedelta | None, other: timedelta | None) -> timedelta | None:
    lengths = [length for length in (one, other) if length is not None]
    return min(lengths, default=None)


def _end_of(day: date, zone: str) -> datetime:
    """The midnight at which the day ends, in the zone."""
    after = day + timedelta(days=1)
    return datetime(after.year, after.month, after.day, tzinfo=ZoneInfo(zone)).astimezone(UTC)
