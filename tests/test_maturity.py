"""When the labels of a day are complete: its end, the query's span, and the longest window."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from ranklake.config import is_mature, labels_as_of, matures_at, of_values

DAY = date(2026, 3, 28)  # in Berlin it ends at 23:00 UTC; clocks go forward the night after
END = datetime(2026, 3, 28, 23, tzinfo=UTC)
SPAN, CLICK, CONVERSION = timedelta(minutes=30), timedelta(minutes=30), timedelta(days=30)


def config(**values: Any) -> Any:
    return of_values({"zone": "Europe/Berlin", **values})


@pytest.mark.parametrize(
    ("values", "after"),
    [
        ({}, SPAN + CLICK),
        ({"labels": ["conversion"]}, SPAN + CLICK + CONVERSION),
        ({"labels": ["click", "conversion_value"]}, SPAN + CLICK + CONVERSION),
        (
            {"labels": ["conversion"], "attribution": {"touch": "last_impression"}},
            SPAN + CONVERSION,
        ),
        ({"labels": ["conversion"], "label_age": "24h"}, SPAN + timedelta(hours=24)),
        ({"label_age": "24h"}, SPAN + CLICK),
        ({"windows": {"click": "any"}, "label_age": "24h"}, SPAN + timedelta(hours=24)),
        ({"windows": {"click": "any"}}, None),
        ({"labels": ["conversion"], "windows": {"conversion": "any"}}, None),
        ({"labels": ["judgment"]}, None),
        ({"max_query_span_minutes": 0, "windows": {"click": "2d"}}, timedelta(days=2)),
    ],
)
def test_a_day_matures_after_its_longest_window(
    values: dict[str, Any], after: timedelta | None
) -> None:
    assert matures_at(config(**values), DAY) == (None if after is None else END + after)


def test_labels_are_known_some_time_after_the_days_end() -> None:
    assert labels_as_of(config(), DAY) is None
    assert labels_as_of(config(label_delay="36h"), DAY) == END + timedelta(hours=36)


def test_labels_are_mature_when_all_have_happened_and_that_time_has_come() -> None:
    matures, second = END + SPAN + CLICK, timedelta(seconds=1)

    def told(known_by: datetime | None, now: datetime, **values: Any) -> bool | None:
        return is_mature(config(**values), DAY, known_by=known_by, now=now)

    assert told(None, matures) is True
    assert told(None, matures - second) is False
    assert told(matures, matures + 9 * CLICK) is True
    assert told(matures - second, matures + 9 * CLICK) is False
    assert told(matures + CLICK, matures) is False  # late ones may still arrive
    assert told(None, matures, windows={"click": "any"}) is None
