"""Candidates and gains → hits: the ranks of the relevant items. The windows, and the one shuffle.

Order inside a query: score descending, unscored last, then item_id descending by UTF-8 bytes
(trec_eval's rule) or another total order, so that no partitioning and no rerun changes a rank.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ranklake.metrics import Measure, Need, needs_of
from ranklake.metrics.atoms import gained, is_relevant, score_sums
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


def by_position(candidates: DataFrame) -> DataFrame:
    """The candidates scored by the order in which they were shown: position 1 scores highest."""
    return candidates.withColumn("score", -F.col("position").cast("double"))


def items(
    candidates: DataFrame,
    *,
    labels: DataFrame,
    queries: DataFrame | None = None,
    gains: Sequence[str],
    order: Order,
) -> DataFrame:
    """One row per (model, query, item), each item once, partitioned by query_hash.

    n_rows    candidate rows of the item; 0 for a labelled item that was no candidate
    score     the best of them; null when never scored
    <gains>   the largest gain of each label, 0 without one
    bucket, slice_id, min_slice_id and the other values of the query
              null on rows of `labels`, and of scored candidates, which know them by `queries`: one
              row (without an item) per query of a scored model
    copy      0, 1, ... where the order keeps copies: then every candidate row is one of the rows
    """
    rows = candidates.withColumn("n_rows", F.lit(1)).unionByName(
        labels.withColumn("n_rows", F.lit(0)), allowMissingColumns=True
    )
    if queries is not None:
        rows = rows.unionByName(queries.withColumn("n_rows", F.lit(0)), allowMissingColumns=True)
    # Rows of `queries` bring the range of slice_id, rows of candidates a single one.
    smallest = F.col("slice_id") if queries is None else F.coalesce("min_slice_id", "slice_id")
    maxima = ("bucket", "slice_id", "n_slots", "weight", "is_judged", order.column)
    once = (
        rows.repartition("query_hash")  # the one shuffle: all that follows reuses it
        .groupBy(*QUERY_KEYS, "item_id")
        .agg(
            F.sum("n_rows").cast("int").alias("n_rows"),
            *_scores(order),
            *[F.max(name).alias(name) for name in maxima if name in rows.columns],
            F.min(smallest).alias("min_slice_id"),
            *[F.coalesce(F.max(gain), F.lit(0.0)).alias(gain) for gain in gains],
        )
    )
    return once.transform(_copied) if order.keeps_copies else once


def _scores(order: Order) -> list[Column]:
    if not order.keeps_copies:
        return [F.max("score").alias("score")]
    scores = F.collect_list(F.when(F.col("n_rows") > 0, F.struct("score")))
    return [F.sort_array(scores, asc=False).alias("scores")]


def _copied(items: DataFrame) -> DataFrame:
    """One row per candidate row, the best first: copy counts them; items without one stay."""
    return (
        items.select("*", F.posexplode_outer("scores").alias("copy", "of"))
        .withColumns(
            {
                "score": F.col("of.score"),
                "copy": F.coalesce("copy", F.lit(0)),
                "n_rows": F.least("n_rows", F.lit(1)),
            }
        )
        .drop("scores", "of")
    )


def numbered(
    items: DataFrame, *, gains: Sequence[str], order: Order, measures: Sequence[Measure]
) -> DataFrame:
    """The relevant items of each query, and one or two rows that speak for the query itself.

    rank          int   1 is best; null where the item was no candidate
    n_candidates  int   on the last candidate; null elsewhere
    n_rows        int   on the last candidate: candidate rows of the query, duplicates among them
    bucket, slice_id, min_slice_id and the query's other values
                        on the last candidate, over all candidates; else the row's own
    Every other row, the irrelevant candidates, is gone: no metric reads them. What some measure
    needs stands beside it: other ranks, tie_first and tie_last, is_judged, score and its sums.
    """
    needs = needs_of(measures)
    is_candidate = F.col("n_rows") > 0
    if order.only_judged:
        is_candidate = is_candidate & F.coalesce("is_judged", F.lit(False))
    by_score = [is_candidate.desc(), F.col("score").desc_nulls_last()]
    best_first = _per_query().orderBy(*by_score, *order.keys())
    rank = F.row_number().over(best_first)
    is_last = is_candidate & ~F.lead(is_candidate, 1, False).over(best_first)
    if order.depth:
        is_last = (is_last & (rank <= order.depth)) | (is_candidate & (rank == order.depth))
        is_candidate = is_candidate & (rank <= order.depth)
    rows = items.select(
        *QUERY_KEYS,
        "item_id",
        *gains,
        *[name for name in ("copy", "is_judged", "score") if name in items.columns],
        F.when(is_candidate, rank).alias("rank"),
        is_last.alias("is_last"),
        *_of_query(items, best_first, is_cut=order.depth is not None),
        *_other_ranks(measures, order, by_score, is_candidate),
        *(_ties(by_score, is_candidate) if Need.TIES in needs else []),
        *(_score_sums(best_first, is_candidate) if Need.SCORES in needs else []),
    )
    kept = _any_relevant(gains) | F.col("is_last") | F.col("item_id").isNull()
    if Need.JUDGED in needs:
        kept = kept | (F.coalesce("is_judged", F.lit(False)) & F.col("rank").isNotNull())
    return rows.where(kept).withColumns(
        {
            "n_candidates": F.when(F.col("is_last"), F.col("rank")),
            "n_rows": F.when(F.col("is_last"), F.col("n_rows")),
        }
    )


def _of_query(items: DataFrame, best_first: WindowSpec, *, is_cut: bool) -> list[Column]:
    """The values of the query, which its last candidate carries; n_slots every row."""
    whole = _per_query().rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
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
    measures: Sequence[Measure], order: Order, by_score: Sequence[Column], within: Column
) -> list[Column]:
    """The ranks under the tie-breaks that measures name themselves."""
    named = {m.rank_column: m.tie_break for m in measures if m.tie_break}
    return [
        F.when(
            within, F.row_number().over(_per_query().orderBy(*by_score, *order.keys(tie_break)))
        ).alias(column)
        for column, tie_break in named.items()
    ]


def _ties(by_score: Sequence[Column], within: Column) -> list[Column]:
    """tie_first, tie_last: the ranks that an item's score could have, over all orders of ties."""
    peers = _per_query().orderBy(*by_score)
    up_to_peers = peers.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    return [
        F.when(within, F.rank().over(peers)).alias("tie_first"),
        F.when(within, F.count(F.lit(1)).over(up_to_peers)).cast("int").alias("tie_last"),
    ]


def _score_sums(best_first: WindowSpec, is_candidate: Column) -> list[Column]:
    """What count.score_sums says of the query, on its last candidate."""
    score = F.when(is_candidate, F.col("score"))
    return [
        column.over(_up_to_here(best_first)).alias(n) for n, column in score_sums(score).items()
    ]


def ranked(
    numbered: DataFrame, *, labels: Sequence[tuple[str, str]], measures: Sequence[Measure]
) -> DataFrame:
    """The hits: one row per (model, query, label, relevant item), and one for the query itself.

    gain          double  above 0 for a relevant item; 0 on a row that speaks for the query only
    hits_so_far   int     relevant candidates at this rank or above
    ideal_rank    int     1 is the highest gain; null for a further copy of an item
    n_relevant    int     relevant items of the query
    and the same under other names for the measures that read the hits in another way; the other
    columns are as `numbered`. `labels` pairs each label with its column of gains.
    """
    hits = _by_label(numbered, labels)
    speaks = F.col("n_candidates").isNotNull() | F.col("item_id").isNull()
    if "is_judged" in numbered.columns:
        speaks = speaks | F.coalesce("is_judged", F.lit(False))
    readings: dict[str, Column] = {}
    is_first = F.col("copy") == 0 if "copy" in numbered.columns else None
    for measure in (Measure(measures[0].metric), *measures):  # the counts read the hits as they are
        readings.setdefault(measure.hits_so_far_column, _hits_so_far(measure))
        readings.setdefault(measure.n_relevant_column, _n_relevant(measure, is_first))
        readings.setdefault(measure.ideal_rank_column, _ideal_rank(measure, is_first))
    return hits.where((F.col("gain") > 0) | speaks).withColumns(readings)


def _hits_so_far(measure: Measure) -> Column:
    by_rank = _per_query("label").orderBy(
        F.col(measure.rank_column).asc_nulls_last(), F.col("item_id").desc()
    )
    relevant = is_relevant(measure.values.get("rel")).cast("int")
    return F.sum(relevant).over(by_rank.rowsBetween(Window.unboundedPreceding, Window.currentRow))


def _n_relevant(measure: Measure, is_first: Column | None) -> Column:
    relevant = is_relevant(measure.values.get("rel"))
    counted = relevant if is_first is None else relevant & is_first
    return F.sum(counted.cast("int")).over(
        _by_gain(F.col("gain")).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    )


def _ideal_rank(measure: Measure, is_first: Column | None) -> Column:
    is_table = measure.options_of("gain").startswith("{")
    gain = gained(measure.values) if is_table else F.col("gain")
    is_candidate = F.col("rank").isNotNull()
    parts = [is_candidate] if measure.options_of("ideal") == "candidates" else []
    parts += [] if is_first is None else [is_first]
    place = F.row_number().over(_by_gain(gain, *[part.desc() for part in parts]))
    return F.when(reduce(lambda one, other: one & other, parts), place) if parts else place


def _by_gain(gain: Column, *before: Column) -> WindowSpec:
    return _per_query("label").orderBy(*before, gain.desc(), F.col("item_id").desc())


def _by_label(numbered: DataFrame, labels: Sequence[tuple[str, str]]) -> DataFrame:
    """One row per row of `numbered` and label, with the gain of that label alone."""
    gains = [
        F.struct(F.lit(name).alias("label"), F.col(gain).alias("gain")) for name, gain in labels
    ]
    others = [c for c in numbered.columns if c not in [gain for _, gain in labels]]
    return numbered.withColumn("each", F.explode(F.array(*gains))).select(
        *others, "each.label", "each.gain"
    )


def _per_query(*more: str) -> WindowSpec:
    return Window.partitionBy(*QUERY_KEYS, *more)


def _any_relevant(gains: Sequence[str]) -> Column:
    return reduce(lambda one, other: one | other, [F.col(gain) > 0 for gain in gains])
