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
    items: DataFrame,
    *,
    gains: Sequence[str],
    order: Order,
    measures: Sequence[Measure],
    is_unique: bool = False,
) -> DataFrame:
    """The relevant items of each query, with their ranks.

    rank  int  1 is best; null where the item was no candidate
    Every other row, the irrelevant candidates, is gone: no metric reads them. What some measure
    needs stands beside it: other ranks, tie_first and tie_last, is_judged (then judged items stay
    too), score. Where `is_unique` is promised, items that break it stay, with their n_rows.
    """
    needs = needs_of(measures)
    by_score = _by_score(order)
    rank = _rank(per_query().orderBy(*by_score, *order.keys()), order)
    kept = [*(F.col(gain) > 0 for gain in gains)]
    kept += [_is_judged()] if Need.JUDGED in needs and "is_judged" in items.columns else []
    kept += [F.col("n_rows") > 1] if is_unique else []
    return items.select(
        *(*QUERY_KEYS, "item_id", *gains),
        *[name for name in _kept_columns(needs, is_unique) if name in items.columns],
        rank.alias("rank"),
        *_other_ranks(measures, order, by_score),
        *(_ties(by_score, rank.isNotNull(), order) if Need.TIES in needs else []),
    ).where(reduce(lambda one, other: one | other, kept))


def placed(items: DataFrame, *, gains: Sequence[str], order: Order) -> DataFrame:
    """One row per (model, query, candidate): its rank, 1 the best, its gains, and item_bucket.

    For what is counted item by item: candidates beyond the depth and items that were none are gone.
    """
    rank = _rank(per_query().orderBy(*_by_score(order), *order.keys()), order)
    placed = items.select(*QUERY_KEYS, "item_bucket", *gains, rank.alias("rank"))
    return placed.where(F.col("rank").isNotNull())


def taking_part(items: DataFrame, *, order: Order, has_scores: bool) -> DataFrame:
    """One row per (model, query): n_candidates that take part, and where wanted their scores' sums.

    For an order that leaves candidates out, so that counting the rows does not tell.
    """
    takes_part = _takes_part(order)
    sums = score_sums(F.when(takes_part, F.col("score"))) if has_scores else {}
    return items.groupBy(*QUERY_KEYS).agg(
        F.count_if(takes_part).cast("int").alias("n_candidates"),
        *[column.alias(name) for name, column in sums.items()],
    )


def _kept_columns(needs: Collection[Need], is_unique: bool) -> list[str]:
    optional = {
        "copy": True,
        "is_judged": Need.JUDGED in needs,
        "score": Need.SCORES in needs,
        "n_rows": is_unique,
    }
    return [name for name, is_kept in optional.items() if is_kept]


def _by_score(order: Order) -> list[Column]:
    return [_takes_part(order).desc(), F.col("score").desc_nulls_last()]


def _is_judged() -> Column:
    return F.coalesce("is_judged", F.lit(False))


def _takes_part(order: Order) -> Column:
    is_candidate = F.col("n_rows") > 0
    return is_candidate & _is_judged() if order.only_judged else is_candidate


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
