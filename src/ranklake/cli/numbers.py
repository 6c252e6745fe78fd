"""Numbers as people read them, and as small pictures made of characters."""

from collections.abc import Sequence

_DIGITS = 4
_SMALL = 0.001


def number(value: float | None, *, sign: str = "") -> str:
    """Four digits behind the point; nothing for None.

    >>> number(0.5), number(0.5, sign="+"), number(None)
    ('0.5000', '+0.5000', '')
    """
    return "" if value is None else f"{value:{sign}.{_DIGITS}f}"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """The value and its interval, where there is one.

    >>> with_interval(0.5, 0.25, 0.75), with_interval(0.5, None, None)
    ('0.5000 [0.2500, 0.7500]', '0.5000')
    """
    return _interval(number(value), low, high)


def change(value: float | None, low: float | None, high: float | None) -> str:
    """As with_interval, of a difference: with its sign.

    >>> change(0.5, 0.25, 0.75)
    '+0.5000 [+0.2500, +0.7500]'
    """
    return _interval(number(value, sign="+"), low, high, sign="+")


def _interval(text: str, low: float | None, high: float | None, sign: str = "") -> str:
    if low is None or high is None:
        return text
    return f"{text} [{number(low, sign=sign)}, {number(high, sign=sign)}]"


def p_value(p: float | None) -> str:
    """Three digits behind the point.

    >>> p_value(0.02), p_value(0.0002)
    ('0.020', '< 0.001')
    """
    if p is None:
        return ""
    return f"< {_SMALL}" if p < _SMALL else f"{p:.3f}"


_BARS = "▁▂▃▄▅▆▇█"


def spark(values: Sequence[float | None]) -> str:
    """A bar a value, from the lowest to the highest of them; a dot where there is none.

    >>> spark([0.1, 0.2, None, 0.4])
    '▁▃·█'
    """
    known = [value for value in values if value is not None]
    low, width = min(known, default=0.0), max(known, default=0.0) - min(known, default=0.0)

    def bar(value: float) -> str:
        return _BARS[round((value - low) / width * (len(_BARS) - 1)) if width else 0]

    return "".join("·" if value is None else bar(value) for value in values)


def whisker(
    value: float | None,
    low: float | None,
    high: float | None,
    scale: tuple[float, float],
    width: int,
) -> str:
    """The value and its interval on a line whose ends are those of the scale.

    >>> whisker(0.5, 0.25, 1.0, scale=(0.0, 1.0), width=9)
    '  ├─●───┤'
    """

    def place(at: float) -> int:
        begin, end = scale
        return round((at - begin) / (end - begin) * (width - 1)) if end > begin else 0

    line = [" "] * width
    if low is not None and high is not None:
        begin, end = place(low), place(high)
        line[begin : end + 1] = "─" * (end + 1 - begin)
        line[begin], line[end] = "├", "┤"
    if value is not None:
        line[place(value)] = "●"
    return "".join(line).rstrip()
