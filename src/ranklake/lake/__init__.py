"""Reading the lake's tables without a JVM: deltalake → Arrow."""

from ranklake.lake.lake import Lake
from ranklake.lake.query import Asked

__all__ = ["Asked", "Lake"]
