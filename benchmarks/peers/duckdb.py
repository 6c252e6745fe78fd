"""DuckDB: the SQL that a user would write, and ranklake's own plan written by hand in SQL."""

from collections.abc import Callable, Mapping
from typing import Any

import duckdb

from benchmarks.measures import IDEAL_DCG, KS, N_BUCKETS, Found, summed

# One row a query, from its rows: `hit`, `rank`, and `hits_so_far` where hit.
_AT_K = """
    count_if(hit and rank <= {k}) as hits_{k},
    sum(case when hit and rank <= {k} then hits_so_far / rank else 0 end) as precisions_{k},
    sum(case when hit and rank <= {k} then 1 / log2(rank + 1) else 0 end) as dcg_{k}"""
_PER_QUERY = ", ".join(
    [
        "count_if(hit)::double as relevant",
        "max(case when hit then 1 / rank else 0 end) as rr",
        *(_AT_K.format(k=k) for k in KS),
    ]
)

# The sums, from one row a query.
_SUM_AT_K = """
    sum(hits_{k} / nullif(relevant, 0)) as recall_at_{k},
    sum(hits_{k} / {k}.0) as precision_at_{k},
    sum(2.0 * hits_{k} / nullif(relevant + {k}, 0)) as f1_at_{k},
    sum(precisions_{k} / nullif(relevant, 0)) as ap_at_{k},
    sum(dcg_{k} / nullif({ideal}[least(relevant, {k})::int + 1], 0)) as ndcg_at_{k},
    sum((hits_{k} > 0)::int) as hit_rate_at_{k}"""
_SUMS = ", ".join(
    [
        "count(*) as n_queries",
        "sum(n) as n_candidates",
        "count_if(relevant > 0) as n_with_relevant",
        "sum(rr) as rr",
        *(_SUM_AT_K.format(k=k, ideal=f"({[*IDEAL_DCG]}::double[])") for k in KS),
    ]
)
_OF_QUERY = (
    f"any_value(hash(user_id) % {N_BUCKETS}) as bucket, any_value(device) as device, count(*) as n"
)
_BEST_FIRST = "partition by query_id order by score desc nulls last, item_id desc"

PLAIN = f"""
with
labels as (select distinct query_id, item_id, true as is_label from {{clicks}}),
ranked as (
    select
        query_id, user_id, device, is_label is not null as hit, row_number() over by_score as rank,
        count_if(is_label) over by_score as hits_so_far
    from {{impressions}} left join labels using (query_id, item_id)
    window by_score as ({_BEST_FIRST} rows unbounded preceding)
),
queries as (select query_id, {_OF_QUERY}, {_PER_QUERY} from ranked group by query_id)
select bucket, device, {_SUMS} from queries group by all
"""

PRUNED = f"""
with
labels as (select distinct query_id, item_id from {{clicks}}),
labelled as (select distinct query_id from labels),
counts as (select query_id, {_OF_QUERY} from {{impressions}} group by query_id),
ranked as (
    select query_id, item_id, row_number() over ({_BEST_FIRST}) as rank
    from {{impressions}} semi join labelled using (query_id)
),
hits as (
    select
        query_id, rank, true as hit,
        row_number() over (partition by query_id order by rank) as hits_so_far
    from ranked join labels using (query_id, item_id)
),
measured as (select query_id, {_PER_QUERY} from hits group by query_id)
select bucket, device, {_SUMS} from counts left join measured using (query_id) group by all
"""

_EACH_ITEM_ONCE = """(
    select query_id, item_id, max(score) as score, max(user_id) as user_id, max(device) as device
    from {impressions} group by query_id, item_id
)"""


def prepared(options: Mapping[str, Any]) -> Callable[[], Found]:
    """Options: log, and if wanted pruned, dedup (by query and item), memory_limit, temp."""
    connection = duckdb.connect()
    if options.get("temp"):
        connection.execute(f"set temp_directory = '{options['temp']}'")
    if options.get("memory_limit"):
        connection.execute(f"set memory_limit = '{options['memory_limit']}'")
    query = sql(options["log"], pruned=options.get("pruned"), dedup=options.get("dedup"))

    def run() -> Found:
        return summed(connection.sql(query).to_arrow_table().to_pylist())

    return run


def sql(log: str, *, pruned: bool = False, dedup: bool = False) -> str:
    """One row of sums per (bucket, device): the query over the files of a log."""
    impressions = f"read_parquet('{log}/impressions/*/*.parquet')"
    if dedup:
        impressions = _EACH_ITEM_ONCE.format(impressions=impressions)
    plan = PRUNED if pruned else PLAIN
    return plan.format(impressions=impressions, clicks=f"read_parquet('{log}/clicks/*/*.parquet')")
