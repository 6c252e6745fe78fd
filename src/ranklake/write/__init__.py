"""The only writes."""

from ranklake.write.commits import retried
from ranklake.write.rows import Within, append, replace_little, replace_partitions
from ranklake.write.tables import columns_of, create_tables

__all__ = [
    "Within",
    "append",
    "columns_of",
    "create_tables",
    "replace_little",
    "replace_partitions",
    "retried",
]
