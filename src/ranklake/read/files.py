"""The fingerprint of the files that hold some rows of an input: another one, where they changed.

Told from what the table or the file system says of the files; their rows stay unread, but in Delta
tables with deletion vectors. Any change of the rows changes it. It also changes without one where
files are written again (OPTIMIZE), and where files are not told apart by date: then it is that of
the whole table. That is so of plain files (Parquet, CSV, JSON) in a directory whose event_date is
not in their directories' names, and of tables that plain files make in a catalog likewise; and of a
Delta table that has neither partitions nor statistics of what dates its rows.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake.read.inputs import Source
from ranklake.read.stored import FILE, Files

Chosen = Callable[[Source], DataFrame]
"""Some of the rows of a source; of its files, where their listing stands for the rows."""

NO_FILES = "no files"
"""The fingerprint of no file."""


def fingerprint(source: Source, chosen: Chosen) -> str | None:
    """32 hex digits for the files that hold the chosen rows, in any order; NO_FILES where none do.

    None where it cannot be told: of a DataFrame, of a view, or where the platform does not say.
    """
    try:
        files = _files_of(source, chosen)
    except Exception:  # what a platform does not tell must not stop a run; unknown counts as stale
        return None
    if not files:
        return None if files is None else NO_FILES
    return hashlib.sha256("\n".join(sorted(files)).encode()).hexdigest()[:32]


def _files_of(source: Source, chosen: Chosen) -> Sequence[str] | None:
    """A line a file, that no other state of the file has."""
    if source.files is None:
        return None
    if source.files.listing is not None:
        listed = replace(source, rows=source.files.listing)
        return _stated(chosen(listed) if listed.is_dated else listed.rows)
    rows = chosen(source)
    if source.version is None:
        return _of_plain_table(source, source.files, rows)
    # A file of Delta is never written again, but a deletion vector can take rows out of it.
    return _marked(rows) if _has_deletion_vectors(rows, source.files) else rows.inputFiles()


def _stated(listing: DataFrame) -> list[str]:
    """A line a file of the listing: its path, size and time of modification."""
    path, size, time = FILE
    found = listing.select(path, size, F.unix_micros(time).alias(time)).collect()
    return ["\t".join(map(str, row)) for row in found]


def _of_plain_table(source: Source, files: Files, rows: DataFrame) -> list[str] | None:
    """A line a file of a catalog's table of plain files: Spark prunes its partitions.

    None for a view, whose tables may be anything, and where Spark names no file at all.
    """
    spark = rows.sparkSession
    if spark.catalog.getTable(files.sql_name).tableType not in ("MANAGED", "EXTERNAL"):
        return None
    names = rows.inputFiles()
    if not names:
        return [] if source.rows.inputFiles() else None
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", True)
    return _stated(reader.load(names))


def _has_deletion_vectors(rows: DataFrame, files: Files) -> bool:
    detail = rows.sparkSession.sql(f"DESCRIBE DETAIL {files.sql_name}").first()
    return detail is None or "deletionVectors" in (detail["tableFeatures"] or ())


def _marked(rows: DataFrame) -> list[str]:
    """A line a file: which rows of it are left. Reads no more columns than `rows` filters by."""
    places = F.bit_xor(F.xxhash64("_metadata.row_index"))
    files = rows.groupBy("_metadata.file_path").agg(F.count(F.lit(1)), places)
    return ["\t".join(map(str, row)) for row in files.collect()]
