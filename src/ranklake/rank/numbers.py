"""Items → the ranks of the relevant ones: the windows over every candidate."""

from collections.abc import Collection, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ranklake.metrics import Measure, Need, needs_of
from ranklake.metrics.probabilities import score_sums
from ranklake.rank.order import Order, per_query
from ranklake.schemas import QUERY_KEYS


def numbered(
    items: DataFrame, *, gains: Sequence[str], order: Order, measures: Sequence[Measure]
) -> DataFrame:
    """The relevant items of each query, and one or two rows that speak for the query itself.

    rank          int   1 is best; null where the item was no candidate
    n_candidates  int   on the last candidate; null elsewhere
    n_rows        int   there, and on the query's own row: candidate rows, duplicates among them
    bucket, slice_id, min_slice_id and the query's other values
                        on the last candidate, over all candidates; else the row's own
    Every other row, the irrelevant candidates, is gone: no metric reads them. What some measure
    needs stands beside it: other ranks, tie_first and tie_last, is_judged, score and its sums.
    """
    needs = needs_of(measures)
    is_candidate = _takes_part(order)
    by_score = [is_candidate.desc(), F.col("score").desc_nulls_last()]
    best_first = per_query().orderBy(*by_score, *order.keys())
    rank = _rank(best_first, order)
    is_last = ~F.lead(is_candidate, 1, False).over(best_first)
    if order.depth:
        is_last = is_last | (rank == order.depth)
    rows = items.select(
        *(*QUERY_KEYS, "item_id", *gains),
        *[name for name in _kept_columns(needs) if name in items.columns],
        rank.alias("rank"),
        (rank.isNotNull() & is_last).alias("is_last"),
        *_of_query(items, best_first, is_cut=order.depth is not None),
        *_other_ranks(measures, order, by_score),
        *(_ties(by_score, rank.isNotNull(), order) if Need.TIES in needs else []),
        *(_score_sums(best_first, is_candidate) if Need.SCORES in needs else []),
    )
    speaks = F.col("is_last") | F.col("item_id").isNull()
    return rows.where(_is_kept(gains, measures)).withColumns(
        {
            "n_candidates": F.when(F.col("is_last"), F.col("rank")),
            "n_rows": F.when(speaks, F.col("n_rows")),
        }
    )


def _kept_columns(needs: Collection[Need]) -> list[str]:
    return ["copy", "is_judged", *(["score"] if Need.SCORES in needs else [])]


def _takes_part(order: Order) -> Column:
    is_candidate = F.col("n_rows") > 0
    is_judged = F.coalesce("is_judged", F.lit(False))
    return is_candidate & is_judged if order.only_judged else is_candidate


def _is_kept(gains: Sequence[str], measures: Sequence[Measure]) -> Column:
    """Whether the row is a relevant item, speaks for its query, or is judged where that counts."""
    is_relevant = [F.col(gain) > 0 for gain in gains]
    speaks = [F.col("is_last"), F.col("item_id").isNull()]
    ranks = {m.rank_column for m in measures if Need.JUDGED in m.needs}
    is_judged = [F.coalesce("is_judged", F.lit(False)) & F.col(r).isNotNull() for r in ranks]
    kept = [*is_relevant, *speaks, *is_judged]
    return reduce(lambda one, other: one | other, kept)


def _of_query(items: DataFrame, best_first: WindowSpec, *, is_cut: bool) -> list[Column]:
    """The values of the query, which its last candidate carries; n_slots every row."""
    whole = per_query().rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    over = whole if is_cut else _up_to_here(best_first)
    maxima = [name for name in ("bucket", "slice_id", "weight") if name in items.columns]
    columns = [
        F.sum("n_rows").over(over).cast("int").alias("n_rows"),
        *[F.max(name).over(over).alias(name) for name in maxima],
        F.min("min_slice_id").over(over).alias("min_slice_id"),
    ]
    if "n_slots" in items.columns:
        columns.append(F.max("n_slots").over(whole).alias("n_slots"))
    return columns


def _up_to_here(best_first: WindowSpec) -> WindowSpec:
    return best_first.rowsBetween(Window.unboundedPreceding, Window.currentRow)


def _other_ranks(
    measures: Sequence[Measure], order: Order, by_score: Sequence[Column]
) -> list[Column]:
    """The ranks under the tie-breaks that measures name themselves; the depth cuts each order."""
    named = {m.rank_column: m.tie_break for m in measures if m.tie_break}
    return [
        _rank(per_query().orderBy(*by_score, *order.keys(tie_break)), order).alias(column)
        for column, tie_break in named.items()
    ]


def _rank(best_first: WindowSpec, order: Order) -> Column:
    rank, is_candidate = F.row_number().over(best_first), _takes_part(order)
    return F.when(is_candidate & (rank <= order.depth) if order.depth else is_candidate, rank)


def _ties(by_score: Sequence[Column], within: Column, order: Order) -> list[Column]:
    """tie_first, tie_last: the ranks that an item's score could have, over all orders of ties."""
    peers = per_query().orderBy(*by_score)
    last = F.count(F.lit(1)).over(peers.rangeBetween(Window.unboundedPreceding, Window.currentRow))
    last = F.least(last, F.lit(order.depth)) if order.depth else last
    return [
        F.when(within, F.rank().over(peers)).alias("tie_first"),
        F.when(within, last).cast("int").alias("tie_last"),
    ]


def _score_sums(best_first: WindowSpec, is_candidate: Column) -> list[Column]:
    """What probabilities.score_sums says of the query, on its last candidate."""
    score = F.when(is_candidate, F.col("score"))
    return [
        column.over(_up_to_here(best_first)).alias(n) for n, column in score_sums(score).items()
    ]
