"""Clicks, conversions and judgments → gains: what counts as relevant, and how much."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake.schemas import ITEM, ROW_LABELS

LabelGains = Mapping[str, Mapping[str, float]]
"""For each label, what one event of each kind (click, conversion, judgment) is worth."""


def gain_column(label: str) -> str:
    """The column of a label's gain.

    >>> gain_column("click")
    'gain_click'
    """
    return f"gain_{label}"


def judged(
    events: DataFrame, *, kind: str, gains: LabelGains, grade: Column | None = None
) -> DataFrame:
    """One row per event that is worth something to some label, by query_id and item_id.

    Adds gain_<label>: the worth of the kind, times the grade for a judgment; 0 or more, never null.
    An item may have several events: rank.items makes them one, with the largest gain.
    """
    worth = {label: F.lit(float(of_kind.get(kind, 0.0))) for label, of_kind in gains.items()}
    if grade is not None:
        positive = F.greatest(F.coalesce(grade, F.lit(0.0)), F.lit(0.0))
        worth = {label: value * positive for label, value in worth.items()}
    columns = [value.alias(gain_column(label)) for label, value in worth.items()]
    relevant = F.greatest(*[F.col(gain_column(label)) for label in gains], F.lit(0.0)) > 0
    return events.select(*ITEM, *columns).where(relevant)


def valued(conversions: DataFrame) -> DataFrame:
    """One row per query_id and item_id that converted: value, the sum of its conversions' values.

    A value that is null, NaN, infinite or below 0 is worth nothing.
    """
    value = F.col("value")
    is_worth = ~F.isnan(value) & (value > 0) & (value < F.lit(1e100))
    return conversions.groupBy(*ITEM).agg(F.sum(F.when(is_worth, value)).alias("value"))


def judged_on_rows(impressions: DataFrame, *, gains: LabelGains) -> list[DataFrame]:
    """The labels that stand on the impressions themselves, one frame a kind; rows as `judged`."""
    frames = []
    for column, kind in ROW_LABELS.items():
        if column in impressions.columns and any(of_kind.get(kind) for of_kind in gains.values()):
            events = impressions.where(F.col(column) > 0)
            grade = F.col(column) if kind == "judgment" else None
            frames.append(judged(events, kind=kind, gains=gains, grade=grade))
    return frames


def shown_only(labels: DataFrame, *, impressions: DataFrame) -> DataFrame:
    """The labels of items that were shown for their query; rows as `labels`, others are lost."""
    return labels.join(impressions.select(*ITEM), on=[*ITEM], how="left_semi")


def judged_items(rows: DataFrame) -> DataFrame:
    """One row per row of judged items, with is_judged; `rows` have query_hash."""
    return rows.select("query_hash", *ITEM, F.lit(True).alias("is_judged"))


def labelled_hashes(labels: DataFrame) -> DataFrame:
    """One row per query_hash with a label: a safe pre-filter, since a collision only ranks more."""
    return labels.select("query_hash").distinct()


def for_models(labels: DataFrame, *, models: Sequence[str]) -> DataFrame:
    """One row per row of `labels` and model: labels carry no model and reach all of them."""
    return labels.withColumn("model_version", F.explode(F.array(*[F.lit(name) for name in models])))
