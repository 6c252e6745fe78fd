"""Whether a day's candidates can be ranked inside the rows of their queries, and those rows."""

from collections.abc import Iterator
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake import clean
from ranklake.config import EvalConfig
from ranklake.metrics import Measure, Need
from ranklake.pipeline.inputs import Day
from ranklake.schemas import IS_WANTED

MAX_LABELS = 2_000_000
"""More labels than that, and their items are not sent to every executor."""


def why_flat(day: Day, config: EvalConfig) -> str | None:
    """Why a day of nested impressions is ranked as flat rows; None where that need not be."""
    return next(_reasons(day, config), None)


def _reasons(day: Day, config: EvalConfig) -> Iterator[str]:
    rules = config.rules
    if not config.unique_key:
        yield "unique_key = false: a query may stand in two rows"
    if config.candidates != ("served",) or day.base != "impressions":
        yield "more than the impressions says which queries and candidates there are"
    if day.in_rows is None:
        yield "days go by event_ts, or a column of the query is said by its candidates"
    if (rules.tie_break, rules.tie_key_type) != ("item_id_desc", "string"):
        yield "rules.tie_break or rules.tie_key_type differs from its default"
    if config.item_clusters:
        yield "item_clusters is set: candidates are counted item by item"
    if rules.depth is not None or rules.score_type != "double":
        yield "rules.depth or rules.score_type differs from its default"
    if {rules.nan_scores, rules.null_scores} - {"last", "error"}:
        yield "rules.nan_scores or rules.null_scores differs from 'last'"
    if config.ranks_every_query or config.needs & {Need.TIES, Need.SCORES}:
        yield "a measure needs ties, scores or judged items"
    if other := [measure for measure in config.per_query if not _is_usual(measure)]:
        yield f"{other[0]} reads the hits in a way of its own"
    if day.n_labels > MAX_LABELS:
        yield f"more than {MAX_LABELS:,} labels"


def _is_usual(measure: Measure) -> bool:
    """Whether the measure reads rank, hits_so_far, n_relevant and ideal_rank as they are."""
    plain = Measure(measure.metric)
    names = ("rank_column", "hits_so_far_column", "n_relevant_column", "ideal_rank_column")
    return all(getattr(measure, name) == getattr(plain, name) for name in names)


def cleaned(in_rows: DataFrame, day: Day, config: EvalConfig) -> DataFrame:
    """One row per query, as clean.cleaned: its columns, and its array of candidates as it came.

    n_candidates  int  those that count, above 0: a query without one is none of the model's
    """
    is_found = partial(day.has, "impressions")
    rows = clean.cleaned(in_rows, unknown_users=config.unknown_users, is_found=is_found)
    n = F.col("n_elements")
    if _has_dirt(day):
        n = F.greatest(F.coalesce(F.size(_counted()), F.lit(0)), F.lit(0))  # of null it may be -1
    return rows.withColumn("n_candidates", n).where("n_candidates > 0")


def scored(queries: DataFrame, day: Day, config: EvalConfig) -> DataFrame:
    """The rows of `cleaned`, each with its candidates as rank.nested wants them.

    candidates  array of structs of score (null for none) and item_id, of those that count
    """
    elements = _counted() if _has_dirt(day) else F.col("candidates")

    def score(one: Column) -> Column:
        if config.rank_by == "position":
            return -one["position"].cast("double")
        return F.when(~F.isnan(one["score"]), one["score"])

    candidates = F.transform(
        elements, lambda one: F.struct(score(one).alias("score"), one["item_id"].alias("item_id"))
    )
    return queries.withColumn("candidates", candidates)


def _has_dirt(day: Day) -> bool:
    """Whether some elements of the arrays are no candidates."""
    findings = ("left_out", "null_candidate", "no_item_id")
    return any(day.has("impressions", finding) for finding in findings)


def _counted() -> Column:
    return F.filter("candidates", lambda one: one[IS_WANTED] & (one["item_id"] != ""))
