"""The log that all contestants read: as many rows as wanted, the same for the same arguments.

20 candidates a query, 26 % of the queries with a click, 0.3 clicks a query. *Clustered*: the rows
of a query lie together in a file; *scattered*: they lie all over, and in any order. *Timed*: with
the times of impressions and clicks, and the users of both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
from deltalake import Field, Schema, convert_to_deltalake

DAY = "2026-01-01"
PER_QUERY = 20
QUERIES_PER_FILE = 125_000
CLICK_FILE_QUERIES = 5_000_000
MODELS = ("s1", "s2", "s3")
"""The scored models; the first has the scores that the served one had."""

_DONE = "_complete"
_ITEM = "'i' || ((hash(q, 2) % 1000000 + i * 7919) % 1000000)"
_IMPRESSION = f"""
    'm1' as model_version, 'q' || q as query_id, 'u' || (hash(q, 1) % {{users}}) as user_id,
    {_ITEM} as item_id, (i + 1)::integer as position,
    round((hash(q, i, 3) % 1000000) / 1e6, 4)::double as score,
    (['mobile', 'desktop', 'tablet'])[(1 + hash(q, 4) % 3)::int] as device
"""
_SHOWN = f"(timestamp '{DAY}' + to_seconds((hash(q, 12) % 86000)::bigint))::timestamptz"
_TIMES = f", {_SHOWN} as event_ts"
_CLICK_TIMES = f"""
    , 'u' || (hash(q, 1) % {{users}}) as user_id,
    {_SHOWN} + to_seconds((1 + hash(q, i, 13) % 600)::bigint) as click_ts,
    {_SHOWN} + to_seconds((601 + hash(q, i, 14) % 600)::bigint) as ingest_ts
"""
_SCORE = f"""
    '{{model}}' as model_version, 'q' || q as query_id, {_ITEM} as item_id,
    round((hash(q, i, {{seed}}) % 1000000) / 1e6, 4)::double as score
"""


@dataclass(frozen=True)
class Log:
    """A log in a directory, one folder an input: impressions, clicks, and scores if there are any.

    Parquet by day; the same files as Delta tables lie in `delta`, once `with_delta` has been there.
    """

    home: Path

    @property
    def delta(self) -> Path:
        """Where the Delta tables are."""
        return self.home / "delta"

    @property
    def n_bytes(self) -> int:
        """Bytes of the impressions and the clicks."""
        names = ("impressions", "clicks")
        return sum(f.stat().st_size for n in names for f in (self.home / n).rglob("*.parquet"))


def generated(
    home: Path, *, rows: int, layout: str, scores: bool = False, times: bool = False
) -> Log:
    """The log of so many impressions, written unless it is there; `layout` as in the module's text.

    With `scores`, every model of MODELS scores the candidates of every query: `scores` holds all
    three, `scores-of-one` the first alone. With `times` it is timed. One file at a time, so that
    memory does not grow with the log; only a scattered log is read through once a file.
    """
    log, n_queries = Log(home), rows // PER_QUERY
    parts = [
        ("impressions", _impressions(n_queries, layout, times=times)),
        ("clicks", _clicks(n_queries, times=times)),
        *([("scores", _scores(n_queries))] if scores else []),
    ]
    connection = duckdb.connect(config={"temp_directory": str(home / "tmp")})
    connection.execute("set TimeZone = 'UTC'")
    for name, files in parts:
        folder = home / name
        if not (folder / _DONE).exists():
            _write(connection, folder / f"event_date={DAY}", files)
            (folder / _DONE).touch()
    if scores and not (home / "scores-of-one").exists():
        _link(home / "scores", home / "scores-of-one", f"{MODELS[0]}-*.parquet")
    return log


def with_delta(log: Log) -> Log:
    """The log with Delta tables of the same files: hard links, which take no space."""
    by_day = Schema([Field("event_date", "date")])
    for name in ("impressions", "clicks"):
        table = log.delta / name
        if not (table / "_delta_log").exists():
            _link(log.home / name, table, "*.parquet")
            convert_to_deltalake(table, partition_by=by_day, partition_strategy="hive")
    return log


def _write(connection: duckdb.DuckDBPyConnection, day: Path, files: Iterator[tuple]) -> None:
    day.mkdir(parents=True, exist_ok=True)
    for name, query in files:
        target = f"'{day / name}.parquet' (format parquet, row_group_size 1000000)"
        connection.execute(f"copy ({query}) to {target}")


def _impressions(n_queries: int, layout: str, *, times: bool) -> Iterator[tuple[str, str]]:
    """A file's name and its rows in SQL."""
    columns, n_files = _IMPRESSION.format(users=_users(n_queries)), _n_files(n_queries)
    columns += _TIMES if times else ""
    for number in range(n_files):
        if layout == "clustered":
            rows = f"{_range(number, n_files, n_queries)}, range({PER_QUERY}) s(i) order by q, i"
        else:
            rows = (
                f"range({n_queries}) r(q), range({PER_QUERY}) s(i)"
                f" where hash(q, i, 9) % {n_files} = {number} order by hash(q, i, 10)"
            )
        yield f"part-{number:05d}", f"select {columns} from {rows}"


def _clicks(n_queries: int, *, times: bool) -> Iterator[tuple[str, str]]:
    """One click for 26 % of the queries, and a second one for some of them; in any order."""
    n_files = -(-n_queries // CLICK_FILE_QUERIES)
    for number in range(n_files):
        queries = (
            f"(select q from {_range(number, n_files, n_queries)} where hash(q, 5) % 100 < 26)"
        )
        clicked = f"""
            select q, (hash(q, 6) % {PER_QUERY})::int as i from {queries}
            union select q, (hash(q, 7) % {PER_QUERY})::int from {queries}
                where hash(q, 8) % 100 < 16
        """
        columns = f"'q' || q as query_id, {_ITEM} as item_id"
        columns += _CLICK_TIMES.format(users=_users(n_queries)) if times else ""
        yield f"part-{number:05d}", f"select {columns} from ({clicked}) order by hash(q, i, 11)"


def _scores(n_queries: int) -> Iterator[tuple[str, str]]:
    for seed, model in enumerate(MODELS, start=3):
        columns, n_files = _SCORE.format(model=model, seed=seed), _n_files(n_queries)
        for number in range(n_files):
            rows = f"{_range(number, n_files, n_queries)}, range({PER_QUERY}) s(i) order by q, i"
            yield f"{model}-{number:05d}", f"select {columns} from {rows}"


def _users(n_queries: int) -> int:
    return max(1, n_queries // 3)


def _n_files(n_queries: int) -> int:
    return max(1, n_queries // QUERIES_PER_FILE)


def _range(number: int, n_files: int, n_queries: int) -> str:
    """The queries of one file out of n, in SQL."""
    first, end = number * n_queries // n_files, (number + 1) * n_queries // n_files
    return f"range({first}, {end}) r(q)"


def _link(source: Path, target: Path, pattern: str) -> None:
    for file in source.rglob(pattern):
        link = target / file.relative_to(source)
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.hardlink_to(file)
