"""Candidates that stand together in the row of their query → hits, ranked inside the row.

The same hits as rank.ranked's, of the usual order (score descending, unscored last, then item_id
descending by UTF-8 bytes), without a shuffle or a window over candidates: one row has all of them.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.rank.order import per_query
from ranklake.schemas import QUERY_KEYS


def by_query(labels: DataFrame, *, gains: Sequence[str]) -> DataFrame:
    """One row per (model, query) with a label; `labels` hold one row per label event and model.

    relevant  array of structs, one a relevant item: item_id, and its largest gain of each label
    """
    largest = [F.coalesce(F.max(gain), F.lit(0.0)).alias(gain) for gain in gains]
    return (
        labels.repartition(*QUERY_KEYS)
        .groupBy(*QUERY_KEYS, "item_id")
        .agg(*largest)
        .groupBy(*QUERY_KEYS)
        .agg(F.collect_list(F.struct("item_id", *gains)).alias("relevant"))
    )


def ranked(
    queries: DataFrame,
    *,
    relevant: DataFrame,
    labels: Sequence[tuple[str, str]],
    is_graded: bool = True,
) -> DataFrame:
    """The hits: one row per (model, query, label, relevant item), as rank.ranked.

    `queries` hold one row per (model, query): what is known of it, and `candidates`, an array of
    structs of score (null for none, never NaN) and item_id. `relevant` is as `by_query`, and is
    sent to every executor. `labels` pairs each label with its gain; where no label `is_graded`, all
    relevant items of a query have one gain. n_rows is 2 where an item stands twice in the array.
    """
    of_query = [name for name in queries.columns if name != "candidates"]
    best_first = F.sort_array("candidates", asc=False)["item_id"]
    sorted_once = F.explode(F.array(best_first)).alias("items")  # else it is put into the lambdas
    n_items = F.size("items")
    n_rows = F.when(F.size(F.array_distinct("items")) < n_items, F.lit(2)).otherwise(F.lit(1))
    each_label = F.explode(F.array(*[_of_label(name, gain) for name, gain in labels]))
    return (
        queries.join(F.broadcast(relevant), on=[*QUERY_KEYS], how="inner")
        .select(*of_query, "relevant", sorted_once)
        .select(*of_query, n_rows.alias("n_rows"), each_label.alias("of"))
        .select(*of_query, "n_rows", "of.label", F.col("of.hits").alias("hits"))
        .transform(_numbered, is_graded=is_graded)
        .repartition(*QUERY_KEYS)  # the hits alone
    )


def _of_label(name: str, gain: str) -> Column:
    """The label's hits, the best rank first and those without one last."""

    def hit(item: Column) -> Column:
        place = F.array_position(F.col("items"), item["item_id"]).cast("int")
        return F.struct(
            (place == 0).alias("is_missed"),
            F.nullif(place, F.lit(0)).alias("rank"),
            item["item_id"].alias("item_id"),
            item[gain].alias("gain"),
        )

    relevant = F.filter("relevant", lambda item: item[gain] > 0)
    hits = F.sort_array(F.transform(relevant, hit))
    return F.struct(F.lit(name).alias("label"), hits.alias("hits"))


def _numbered(by_label: DataFrame, *, is_graded: bool) -> DataFrame:
    """One row per hit of each row's array `hits`, with hits_so_far, n_relevant and ideal_rank."""
    others = [name for name in by_label.columns if name != "hits"]
    gains = F.transform("hits", _by_gain)
    ideal = [F.sort_array(gains, asc=False).alias("ideal")] if is_graded else []
    place = F.col("place") + 1
    ideal_rank = F.array_position("ideal", _by_gain(F.col("hit"))).cast("int")
    return (
        by_label.select(*others, "hits", *ideal)
        .select(
            *(*others, *(["ideal"] if is_graded else [])),
            F.size("hits").alias("n_relevant"),
            F.posexplode("hits").alias("place", "hit"),
        )
        .select(
            *(*others, "n_relevant", "hit.item_id", "hit.gain", "hit.rank"),
            place.alias("hits_so_far"),
            (ideal_rank if is_graded else place).alias("ideal_rank"),
        )
    )


def _by_gain(hit: Column) -> Column:
    return F.struct(hit["gain"].alias("gain"), hit["item_id"].alias("item_id"))


def told_apart(measured: DataFrame) -> DataFrame:
    """The rows, with n_rows above 1 where a query was ranked in two parts.

    One row per (model, query, label), as a rule: two where two input rows know the query in
    different ways. The rows are partitioned by the query, so that nothing is shuffled.
    """
    n_parts = F.count(F.lit(1)).over(per_query("label"))
    return measured.withColumn("n_rows", F.greatest("n_rows", n_parts))
