"""The order of a query's candidates: which of two equal scores comes first."""

import re
from dataclasses import dataclass

from pyspark.sql import Column, Window, WindowSpec
from pyspark.sql import functions as F

from ranklake.schemas import QUERY_KEYS

_OF_COLUMN = re.compile(r"column:(?P<name>\w+)(?: (?P<direction>asc|desc))?")
_OF_HASH = re.compile(r"hash\((?P<seed>\d+)\)")


@dataclass(frozen=True)
class Order:
    """How equal scores are ordered, and which candidates take part.

    tie_break     item_id_desc, item_id_asc, column:<name>[ asc|desc], hash(<seed>)
    is_native     item ids are numbers, and compared as such
    depth         candidates beyond that rank are none; None: all take part
    only_judged   candidates without a judgment are none
    keeps_copies  an item that stands twice is two candidates
    """

    tie_break: str = "item_id_desc"
    is_native: bool = False
    depth: int | None = None
    only_judged: bool = False
    keeps_copies: bool = False

    @property
    def column(self) -> str | None:
        """The candidates' column that orders equal scores; None: it goes by the item."""
        found = _OF_COLUMN.fullmatch(self.tie_break)
        return found["name"] if found else None

    def first_key(self) -> Column:
        """Of an item's several rows, the value of `column` that comes first."""
        found = _OF_COLUMN.fullmatch(self.tie_break)
        if not found:
            raise ValueError(f"{self.tie_break} names no column")
        first = F.max if found["direction"] == "desc" else F.min
        return first(found["name"]).alias(found["name"])

    def keys(self, tie_break: str = "") -> list[Column]:
        """What orders equal scores, the item last: a total order."""
        rule = tie_break or self.tie_break
        item = F.col("item_id").cast("bigint") if self.is_native else F.col("item_id")
        if rule == "item_id_asc":
            return [item.asc()]
        found, seeded = _OF_COLUMN.fullmatch(rule), _OF_HASH.fullmatch(rule)
        if found:
            key = F.col(found["name"])
            first = key.desc_nulls_last() if found["direction"] == "desc" else key.asc_nulls_last()
            return [first, item.desc()]
        if seeded:
            return [F.xxhash64(F.lit(int(seeded["seed"])), "item_id").asc(), item.desc()]
        return [item.desc()]


def per_query(*more: str) -> WindowSpec:
    """The rows of one ranking; with `label` for one label."""
    return Window.partitionBy(*QUERY_KEYS, *more)
