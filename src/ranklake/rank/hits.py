"""Ranks → hits: windows over the relevant items alone, label by label."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from ranklake.metrics import Measure
from ranklake.metrics.atoms import gained, is_relevant
from ranklake.rank.order import per_query


def ranked(
    numbered: DataFrame,
    *,
    labels: Sequence[tuple[str, str]],
    measures: Sequence[Measure],
    is_graded: bool = True,
) -> DataFrame:
    """The hits: one row per (model, query, label, relevant item).

    gain          double  above 0 for a relevant item; 0 on a row that stays for another reason
    hits_so_far   int     relevant candidates at this rank or above
    ideal_rank    int     1 is the highest gain; null for a further copy of an item
    n_relevant    int     relevant items of the query
    and the same under other names for the measures that read the hits in another way; the other
    columns are as `numbered`. `labels` pairs each label with its column of gains; where no label
    `is_graded`, all relevant items of a query have one gain.
    """
    is_kept = F.col("gain") > 0
    if "is_judged" in numbered.columns:
        is_kept = is_kept | F.coalesce("is_judged", F.lit(False))
    if "n_rows" in numbered.columns:
        is_kept = is_kept | (F.col("n_rows") > 1)
    hits = _by_label(numbered, labels).where(is_kept)
    is_alike = not is_graded and not {"copy", "is_judged"}.intersection(numbered.columns)
    return hits.transform(read_as, measures=measures, is_alike=is_alike)


def read_as(hits: DataFrame, *, measures: Sequence[Measure], is_alike: bool = False) -> DataFrame:
    """The hits with hits_so_far, n_relevant and ideal_rank, as they are and as measures read them.

    Equal readings are one column: an option that changes no order and no relevance costs nothing.
    Where hits are `is_alike` (each a relevant item, of one gain) any order is ideal: one sort does.
    """
    is_first = F.col("copy") == 0 if "copy" in hits.columns else None
    as_they_are = Measure(measures[0].metric)  # how the counts read the hits
    readings: dict[str, Column] = {}
    if is_alike:
        place = F.row_number().over(_by_rank(as_they_are))
        readings = dict.fromkeys(
            (as_they_are.hits_so_far_column, as_they_are.ideal_rank_column), place
        )
    for measure in (as_they_are, *measures):
        if measure.hits_so_far_column not in readings:
            readings[measure.hits_so_far_column] = _hits_so_far(measure)
        if measure.n_relevant_column not in readings:
            readings[measure.n_relevant_column] = _n_relevant(measure, is_first)
        if measure.ideal_rank_column not in readings:
            readings[measure.ideal_rank_column] = _ideal_rank(measure, is_first)
    return hits.withColumns(readings)


def _hits_so_far(measure: Measure) -> Column:
    relevant = is_relevant(measure.values.get("rel")).cast("int")
    up_to_here = _by_rank(measure).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return F.sum(relevant).over(up_to_here)


def _by_rank(measure: Measure) -> WindowSpec:
    return per_query("label").orderBy(
        F.col(measure.rank_column).asc_nulls_last(), F.col("item_id").desc()
    )


def _n_relevant(measure: Measure, is_first: Column | None) -> Column:
    relevant = is_relevant(measure.values.get("rel"))
    counted = relevant if is_first is None else relevant & is_first
    return F.sum(counted.cast("int")).over(
        _by_gain(F.col("gain")).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    )


def _ideal_rank(measure: Measure, is_first: Column | None) -> Column:
    is_table = measure.options_of("gain").startswith("{")
    gain = gained(measure.values) if is_table else F.col("gain")
    is_candidate = F.col(measure.rank_column).isNotNull()
    parts = [is_candidate] if measure.options_of("ideal") == "candidates" else []
    parts += [] if is_first is None else [is_first]
    place = F.row_number().over(_by_gain(gain, *[part.desc() for part in parts]))
    return F.when(reduce(lambda one, other: one & other, parts), place) if parts else place


def _by_gain(gain: Column, *before: Column) -> WindowSpec:
    return per_query("label").orderBy(*before, gain.desc(), F.col("item_id").desc())


def _by_label(numbered: DataFrame, labels: Sequence[tuple[str, str]]) -> DataFrame:
    """One row per row of `numbered` and label, with the gain of that label alone."""
    others = [c for c in numbered.columns if c not in [gain for _, gain in labels]]
    if len(labels) == 1:
        ((name, gain),) = labels
        return numbered.select(*others, F.lit(name).alias("label"), F.col(gain).alias("gain"))
    gains = [
        F.struct(F.lit(name).alias("label"), F.col(gain).alias("gain")) for name, gain in labels
    ]
    return numbered.withColumn("each", F.explode(F.array(*gains))).select(
        *others, "each.label", "each.gain"
    )
