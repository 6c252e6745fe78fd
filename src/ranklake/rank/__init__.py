"""Candidates and gains → hits: the ranks of the relevant items. The windows, and the one shuffle.

Order inside a query: score descending, unscored last, then item_id descending by UTF-8 bytes
(trec_eval's rule) or another total order, so that no partitioning and no rerun changes a rank.
"""

from ranklake.rank.hits import ranked, read_as
from ranklake.rank.items import by_position, items
from ranklake.rank.numbers import numbered, placed, taking_part
from ranklake.rank.order import Order

__all__ = [
    "Order",
    "by_position",
    "items",
    "numbered",
    "placed",
    "ranked",
    "read_as",
    "taking_part",
]
