"""`make bench`: ranklake on the JVM against DuckDB's plain SQL, the same metrics on the same files.

    .venv/bin/python benchmarks/run.py --rows 2000000 --runs 3

Both sides dedupe nothing (unique_key = true) and publish nothing; both numbers must agree before
any time is printed. The medians of the warm runs are compared, in this one process and machine.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated

import duckdb
import typer
from pyspark.sql import SparkSession

from ranklake import evaluate, simulate
from ranklake.session import session

DAY = date(2026, 1, 1)
K = 10
SQL = f"""
with labels as (select distinct query_id, item_id from read_parquet('{{log}}/clicks/**/*.parquet')),
ranked as (
    select i.model_version, i.query_id, l.item_id is not null as hit,
        row_number() over (
            partition by i.model_version, i.query_id
            order by i.score desc nulls last, i.item_id desc
        ) as rank
    from read_parquet('{{log}}/impressions/**/*.parquet') i
    left join labels l using (query_id, item_id)
),
queries as (
    select model_version, query_id, count_if(hit) as relevant,
        count_if(hit and rank <= {K}) as hits,
        sum(case when hit and rank <= {K} then 1 / log2(rank + 1) else 0 end) as dcg
    from ranked group by all
),
ideal as (
    select range as n, sum(1 / log2(range + 1)) over (order by range) as dcg
    from range(1, {K + 1})
)
select model_version, avg(hits / relevant) as recall, avg(queries.dcg / ideal.dcg) as ndcg
from queries join ideal on ideal.n = least(queries.relevant, {K})
where relevant > 0 group by all order by all
"""

Values = dict[tuple[str, str], float]


def by_duckdb(log: Path) -> Values:
    """Recall and nDCG of each model in the SQL a user would write: a window over everything."""
    rows = duckdb.connect().sql(SQL.format(log=log)).fetchall()
    return {
        (model, name): value
        for model, *pair in rows
        for name, value in zip(NAMES, pair, strict=True)
    }


def by_ranklake(spark: SparkSession, log: Path) -> Values:
    """The same through the job's own code."""
    frames = {name: spark.read.parquet(str(log / name)) for name in ("impressions", "clicks")}
    found = evaluate(**frames, day=DAY, ks=[K], metrics=list(NAMES), unique_key=True)
    return {
        (row["model_version"], row["metric"]): row["value"]
        for row in found.metrics.to_pylist()
        if row["metric"] in NAMES and row["population"] == "with_relevant"
    }


NAMES = ("recall", "ndcg")


def timed(run: Callable[[], Values], n_runs: int) -> tuple[float, Values]:
    """The median seconds of the runs after a first one, and what they found."""
    found = run()
    seconds = []
    for _ in range(n_runs):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), found


def main(
    rows: Annotated[int, typer.Option(help="Impressions.")] = 2_000_000,
    runs: Annotated[int, typer.Option(help="Warm runs of each side.")] = 3,
) -> None:
    """Measure both sides on one generated log."""
    spark = session()
    with tempfile.TemporaryDirectory() as home:
        log = Path(home) / "log"
        simulation = simulate.Simulation.of_rows(rows, n_dates=1, first_date=DAY)
        simulate.generate(spark, simulation, str(log), format="parquet")
        ours, found = timed(lambda: by_ranklake(spark, log), runs)
        theirs, expected = timed(lambda: by_duckdb(log), runs)
    differing = [key for key in expected if abs(found[key] - expected[key]) > 1e-9]
    if differing or found.keys() != expected.keys():
        raise SystemExit(f"the numbers differ: {found} against {expected}")
    print(
        f"{rows:,} impressions, recall and nDCG at {K}, median of {runs} warm runs, equal numbers"
    )
    print(f"ranklake (JVM) {ours:.1f} s, DuckDB {theirs:.1f} s, ratio {ours / theirs:.1f}")


if __name__ == "__main__":
    typer.run(main)
