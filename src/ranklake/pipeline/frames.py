"""The lazy middle of the pipeline: rows of the day → one row a query. Nothing here runs a job."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake import count, label, measure, rank
from ranklake.config import EvalConfig
from ranklake.metrics import Measure, Need
from ranklake.schemas import OF_QUERY, QUERY_KEYS

MAX_BROADCAST_LABELS = 20_000_000
"""More labels than that, and the hashes of their queries are not sent to every executor."""

Part = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Frames:
    """What the day's rows become. `kept` and `rest` part them by whether a label can reach them.

    base    the rows that say which queries there are: impressions, or judgments
    served  candidates of the models whose log this is; they carry bucket and slice_id
    listed  candidates of models that were given every asked query
    events  the clicks and conversions of the day, by input
    labels  the label events, a row for every model; where judged items count, these too
    """

    base: DataFrame
    served: DataFrame | None
    listed: DataFrame | None
    listed_models: Sequence[str]
    impressions: DataFrame | None
    events: Mapping[str, DataFrame]
    labels: DataFrame
    hashes: DataFrame
    has_few_labels: bool
    config: EvalConfig

    @property
    def is_pruned(self) -> bool:
        """Whether only the queries that have a label are ranked."""
        return self.has_few_labels and not self.config.ranks_every_query

    @property
    def plan(self) -> tuple[str, str]:
        """The plan's name and the reason for it, for the manifest."""
        limit = f"{MAX_BROADCAST_LABELS:,}"
        if self.is_pruned:
            return "pruned", f"at most {limit} labels: only the queries that have one are ranked"
        if self.config.ranks_every_query:
            return "full", "judged@k or rules.unjudged = 'drop' depend on every query's order"
        return "full", f"more than {limit} labels: their queries' hashes are too many to broadcast"

    def served_models(self, served: Iterable[str]) -> list[str]:
        """Those of the models whose candidates were shown; none where queries are judged ones."""
        return [] if self.served is None else list(served)

    def kept(self, rows: DataFrame) -> DataFrame:
        """The rows of the queries to rank; all of them in a full plan."""
        if not self.is_pruned:
            return rows
        return rows.join(F.broadcast(self.hashes), on=["query_hash"], how="left_semi")

    def rest(self, rows: DataFrame) -> DataFrame:
        """The other rows: their queries have no relevant item and are only counted."""
        if not self.is_pruned:
            return rows.where(F.lit(False))
        return rows.join(F.broadcast(self.hashes), on=["query_hash"], how="left_anti")

    @property
    def order(self) -> rank.Order:
        """How candidates are ordered."""
        rules = self.config.rules
        return rank.Order(
            tie_break=rules.tie_break,
            is_native=rules.tie_key_type == "native",
            depth=rules.depth,
            only_judged=rules.unjudged == "drop",
            keeps_copies=rules.duplicates == "keep",
        )

    def queries(self, part: Part = lambda rows: rows) -> DataFrame:
        """One row per (model, query that it has) of the part: counts, bucket, slice_id."""
        frames, depth = [], self.config.rules.depth
        if self.served is not None:
            rows = part(self.served).select(*self._counted_columns(self.served))
            frames.append(count.counted(rows, is_unique=self._is_unique, depth=depth))
        if self.listed is not None:
            asked = count.asked(part(self.base), models=self.listed_models)
            candidates = self._distinct(part(self.listed))
            frames.append(count.counted_for(asked, candidates=candidates, depth=depth))
        return self._with_candidates(union(frames))

    @property
    def _is_unique(self) -> bool:
        """Whether every row is a candidate of its own."""
        return self.config.unique_key or self.config.rules.duplicates == "keep"

    def _counted_columns(self, candidates: DataFrame) -> list[str]:
        counted = [*QUERY_KEYS, "item_id", *OF_QUERY]
        counted += ["score"] if Need.SCORES in self.config.needs else []
        return [name for name in candidates.columns if name in counted]

    def _distinct(self, candidates: DataFrame) -> DataFrame:
        keys = [*QUERY_KEYS, "item_id"]
        scores = ["score"] if Need.SCORES in self.config.needs else []
        if self._is_unique:
            return candidates.select(*keys, *scores)
        if not scores:
            return candidates.select(*keys).distinct()
        return candidates.groupBy(*keys).agg(F.max("score").alias("score"))

    def _with_candidates(self, queries: DataFrame, *, n: str = "n_candidates") -> DataFrame:
        """Without the queries that have none, where the rules leave them out.

        A query whose candidates are all unjudged has some (n_rows), though none takes part.
        """
        is_counted = self.config.rules.missing_in_run != "skip"
        return queries if is_counted else queries.where(F.col(n) > 0)

    def measured(self, measures: Sequence[Measure]) -> DataFrame:
        """One row per (model, query, label) of the kept queries, as measure.measured."""
        gains = [label.gain_column(name) for name in self.config.labels]
        candidates = union(
            [self.kept(rows) for rows in (self.served, self.listed) if rows is not None]
        )
        queries = None
        if self.listed is not None:
            queries = count.asked(self.kept(self.base), models=self.listed_models)
        pairs = list(zip(self.config.labels, gains, strict=True))
        measured = (
            rank.items(
                candidates, labels=self.labels, queries=queries, gains=gains, order=self.order
            )
            .transform(rank.numbered, gains=gains, order=self.order, measures=measures)
            .transform(rank.ranked, labels=pairs, measures=measures)
            .transform(measure.measured, measures=measures)
            .transform(self._with_candidates, n="n_rows")
        )
        return (
            measured.transform(measure.without_duplicates) if self.config.unique_key else measured
        )

    def per_query(self, measures: Sequence[Measure]) -> DataFrame:
        """One row per (model, query, label) of all queries: ranked where a label can reach them."""
        if not self.is_pruned:
            return self.measured(measures)
        unranked = self.queries(self.rest).transform(
            measure.unranked, labels=self.config.labels, measures=measures
        )
        return self.measured(measures).unionByName(unranked, allowMissingColumns=True)


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames; a column that one lacks is null there."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
