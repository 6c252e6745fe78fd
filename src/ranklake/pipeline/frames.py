"""The lazy middle of the pipeline: rows of the day → one row a query. Nothing here runs a job."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake import count, label, measure, rank
from ranklake.config import EvalConfig
from ranklake.metrics import Measure, Need
from ranklake.pipeline.events import Told
from ranklake.rank import nested
from ranklake.schemas import OF_QUERY, QUERY_KEYS

MAX_BROADCAST_LABELS = 20_000_000
"""More labels than that, and the hashes of their queries are not sent to every executor."""


@dataclass(frozen=True)
class InRows:
    """Queries whose candidates stand in their rows: one row per (model, query).

    queries  all of them: what is known of each, and n_candidates
    reached  those that a label reaches, with their candidates as rank.nested wants them
    """

    queries: DataFrame
    reached: DataFrame


class RemovedRows(NamedTuple):
    """Invalid traffic: the candidates of removed queries by model, and a row per query and rule."""

    candidates: DataFrame
    broken: DataFrame


@dataclass(frozen=True)
class Frames:
    """What the day's rows become. Every frame is lazy.

    base    the rows that say which queries there are: impressions, or judgments
    served  candidates of the models whose log this is; they carry bucket and slice_id
    listed  candidates of models that were given every asked query
    events  the clicks and conversions of the day, by input, with the reason why one does not count
    removed what invalid traffic is removed; None: none is looked for
    labels  the label events, a row for every model; where judged items count, these too
    hashes  the hashes of the queries that any label reaches
    in_rows the queries of `served`, where their candidates are ranked in their rows; why_flat says
            why a nested input's are not
    """

    base: DataFrame
    served: DataFrame | None
    listed: DataFrame | None
    listed_models: Sequence[str]
    events: Mapping[str, Told]
    removed: RemovedRows | None
    labels: DataFrame
    hashes: DataFrame
    has_few_labels: bool
    config: EvalConfig
    in_rows: InRows | None = None
    why_flat: str | None = None

    @property
    def is_pruned(self) -> bool:
        """Whether only the queries that have a label are ranked."""
        return not self.config.ranks_every_query

    @property
    def plan(self) -> tuple[str, str]:
        """The plan's name and the reason for it, for the manifest."""
        if self.in_rows is not None:
            return (
                "nested",
                "a query's candidates are in its row and ranked there: hits are shuffled",
            )
        name, reason = self._flat_plan
        return name, reason if self.why_flat is None else f"{reason}; not nested: {self.why_flat}"

    @property
    def _flat_plan(self) -> tuple[str, str]:
        limit = f"{MAX_BROADCAST_LABELS:,}"
        if not self.is_pruned:
            return "full", "judged@k or rules.unjudged = 'drop' depend on every query's order"
        if self.has_few_labels:
            return "pruned", f"at most {limit} labels: rows of other queries are not shuffled"
        return "pruned late", f"more than {limit} labels: too many hashes to send to every executor"

    def served_models(self, served: Iterable[str]) -> list[str]:
        """Those of the models whose candidates were shown; none where queries are judged ones."""
        return [] if self.served is None else list(served)

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

    def queries(self) -> DataFrame:
        """One row per (model, query that it has): counts, bucket, slice_id.

        Without the queries that have too many candidates to be ranked.
        """
        queries = self.counts.where(F.col("n_candidates") <= self.config.max_candidates_per_query)
        if self.config.rules.missing_in_run == "skip":
            queries = queries.where(F.col("n_candidates") > 0)
        if self.order.only_judged:
            queries = self._of_judged(queries)
        if depth := self.order.depth:
            n = F.least("n_candidates", F.lit(depth))
            queries = queries.withColumn("n_candidates", n)
        return queries

    @property
    def counts(self) -> DataFrame:
        """One row per (model, query), the too large ones among them."""
        if self.in_rows is not None:
            return count.counted_in_rows(self.in_rows.queries)
        frames = []
        if self.served is not None:
            rows = self.served.select(*self._counted_columns(self.served))
            frames.append(count.counted(rows, is_unique=self._is_unique))
        if self.listed is not None:
            asked = count.asked(self.base, models=self.listed_models)
            frames.append(count.counted_for(asked, candidates=self._distinct(self.listed)))
        return union(frames).transform(count.known_whole)

    @property
    def hot(self) -> DataFrame:
        """The (model, query) pairs with too many candidates, as `counts`."""
        return self.counts.where(F.col("n_candidates") > self.config.max_candidates_per_query)

    @property
    def _is_unique(self) -> bool:
        """Whether every row is a candidate of its own."""
        return self.config.unique_key or self.config.rules.duplicates == "keep"

    @property
    def _has_scores(self) -> bool:
        return Need.SCORES in self.config.needs

    def _counted_columns(self, candidates: DataFrame) -> list[str]:
        counted = [*QUERY_KEYS, "item_id", *OF_QUERY, *(["score"] if self._has_scores else [])]
        return [name for name in candidates.columns if name in counted]

    def _distinct(self, candidates: DataFrame) -> DataFrame:
        keys = [*QUERY_KEYS, "item_id"]
        scores = ["score"] if self._has_scores else []
        needed = candidates.select(*keys, *scores)
        return needed if self._is_unique else count.distinct_items(needed)

    def _of_judged(self, queries: DataFrame) -> DataFrame:
        """The queries, with the counts of their judged candidates alone."""
        judged = self._items().transform(
            rank.taking_part, order=self.order, has_scores=self._has_scores
        )
        others = [name for name in queries.columns if name not in judged.columns]
        joined = queries.select(*QUERY_KEYS, *others).join(judged, on=[*QUERY_KEYS], how="left")
        return joined.withColumn("n_candidates", F.coalesce("n_candidates", F.lit(0)))

    def _items(self) -> DataFrame:
        """One row per (model, query to rank, item)."""
        early = self.is_pruned and self.has_few_labels
        candidates = self._candidates.drop("item_bucket")
        if early:
            candidates = candidates.join(
                F.broadcast(self.hashes), on=["query_hash"], how="left_semi"
            )
        items = self._items_of(candidates)
        if self.is_pruned and not early:
            reached = self.labels.select(*QUERY_KEYS).distinct().hint("shuffle_hash")
            items = items.join(reached, on=[*QUERY_KEYS], how="left_semi")
        return items

    @property
    def _candidates(self) -> DataFrame:
        """All rows of candidates, of whatever models."""
        return union([rows for rows in (self.served, self.listed) if rows is not None])

    def _items_of(self, candidates: DataFrame) -> DataFrame:
        """The candidates and the labels' items, each once; without queries that are too large."""
        too_large = F.broadcast(self.hot.select(*QUERY_KEYS))
        return rank.items(
            candidates.drop(*OF_QUERY).join(too_large, on=[*QUERY_KEYS], how="left_anti"),
            labels=self.labels,
            gains=[label.gain_column(name) for name in self.config.labels],
            order=self.order,
        )

    def placed(self) -> DataFrame:
        """One row per (model, query, candidate), of every query: as rank.placed, bucket, slice_id.

        n_slots too, where a measure needs it.
        """
        gains = [label.gain_column(name) for name in self.config.labels]
        known = [name for name in self.config.query_extras if name == "n_slots"]
        queries = self.queries().select(*QUERY_KEYS, "bucket", "slice_id", *known)
        return (
            self._items_of(self._candidates)
            .transform(rank.placed, gains=gains, order=self.order)
            .transform(measure.of_queries, queries=queries)
        )

    def measured(self, measures: Sequence[Measure]) -> DataFrame:
        """One row per (model, query, label) that has a hit, as measure.measured."""
        if self.in_rows is not None:
            return self._measured_in(self.in_rows.reached, measures)
        names = self.config.labels
        gains = [label.gain_column(name) for name in names]
        return (
            self._items()
            .transform(
                rank.numbered,
                gains=gains,
                order=self.order,
                measures=measures,
                is_unique=self.config.unique_key,
            )
            .transform(
                rank.ranked,
                labels=[*zip(names, gains, strict=True)],
                measures=measures,
                is_graded=self.config.is_graded,
            )
            .transform(measure.of_queries, queries=self.queries())
            .transform(measure.measured, measures=measures)
        )

    def relevant(self, measures: Sequence[Measure]) -> DataFrame:
        """The rows of `measured` that have a relevant item; a broken unique_key fails the job."""
        return self._kept_promise(self.measured(measures)).where(F.col("n_relevant") > 0)

    def _measured_in(self, reached: DataFrame, measures: Sequence[Measure]) -> DataFrame:
        names = self.config.labels
        gains = [label.gain_column(name) for name in names]
        return (
            reached.where(F.col("n_candidates") <= self.config.max_candidates_per_query)
            .withColumn("has_mixed_slices", F.lit(False))
            .transform(
                nested.ranked,
                relevant=nested.by_query(self.labels, gains=gains),
                labels=[*zip(names, gains, strict=True)],
                is_graded=self.config.is_graded,
            )
            .transform(measure.measured, measures=measures)
            .transform(nested.told_apart)
            .transform(measure.without_duplicates)
        )

    def per_query(self, measures: Sequence[Measure]) -> DataFrame:
        """One row per (model, query, label) of all queries: ranked where a label reaches them."""
        completed = self.queries().transform(
            measure.completed,
            measured=self.measured(measures),
            labels=self.config.labels,
            measures=measures,
        )
        return self._kept_promise(completed)

    def _kept_promise(self, measured: DataFrame) -> DataFrame:
        is_unverified = self.config.unique_key and "n_rows" in measured.columns
        return measured.transform(measure.without_duplicates) if is_unverified else measured


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames; a column that one lacks is null there."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
