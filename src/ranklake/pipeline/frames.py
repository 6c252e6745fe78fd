"""The lazy middle of the pipeline: rows of the day → one row a query. Nothing here runs a job."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake import clean, count, label, measure, rank
from ranklake.aggregate import slices
from ranklake.config import EvalConfig
from ranklake.metrics import Measure
from ranklake.pipeline.inputs import Day
from ranklake.schemas import QUERY_KEYS, SliceLists

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
    """

    base: DataFrame
    served: DataFrame | None
    listed: DataFrame | None
    listed_models: Sequence[str]
    impressions: DataFrame | None
    events: Mapping[str, DataFrame]
    labels: DataFrame
    hashes: DataFrame
    is_pruned: bool
    config: EvalConfig

    @property
    def plan(self) -> tuple[str, str]:
        """The plan's name and the reason for it, for the manifest."""
        limit = f"{MAX_BROADCAST_LABELS:,}"
        if self.is_pruned:
            return "pruned", f"at most {limit} labels: only the queries that have one are ranked"
        return "full", f"more than {limit} labels: their queries' hashes are too many to broadcast"

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

    def queries(self, part: Part = lambda rows: rows) -> DataFrame:
        """One row per (model, query that it has) of the part: counts, bucket, slice_id."""
        frames = []
        if self.served is not None:
            frames.append(count.counted(part(self.served), unique_key=self.config.unique_key))
        if self.listed is not None:
            asked = count.asked(part(self.base), models=self.listed_models)
            frames.append(count.counted_for(asked, candidates=self._distinct(part(self.listed))))
        return _union(frames)

    def _distinct(self, candidates: DataFrame) -> DataFrame:
        keys = [*QUERY_KEYS, "item_id"]
        return (
            candidates.select(*keys)
            if self.config.unique_key
            else candidates.select(*keys).distinct()
        )

    def measured(self, measures: Sequence[Measure]) -> DataFrame:
        """One row per (model, query, label) of the kept queries, as measure.measured."""
        gains = [label.gain_column(name) for name in self.config.labels]
        candidates = _union(
            [self.kept(rows) for rows in (self.served, self.listed) if rows is not None]
        )
        queries = None
        if self.listed is not None:
            queries = count.asked(self.kept(self.base), models=self.listed_models)
        measured = (
            rank.items(candidates, labels=self.labels, queries=queries, gains=gains)
            .transform(rank.numbered, gains=gains)
            .transform(rank.ranked, labels=list(zip(self.config.labels, gains, strict=True)))
            .transform(measure.measured, measures=measures)
        )
        return (
            measured.transform(measure.without_duplicates) if self.config.unique_key else measured
        )

    def per_query(self, measures: Sequence[Measure]) -> DataFrame:
        """One row per (model, query, label) of all queries: ranked where a label can reach them."""
        unranked = self.queries(self.rest).transform(
            measure.unranked, labels=self.config.labels, measures=measures
        )
        return self.measured(measures).unionByName(unranked)


def frames_of(day: Day, config: EvalConfig, slice_lists: SliceLists) -> Frames:
    """The day's frames."""
    rows = {
        name: clean.cleaned(frame, unknown_users=config.unknown_users)
        for name, frame in day.rows.items()
    }
    judged = day.base == "judgments"
    base = _identified(rows[day.base], config, slice_lists)
    impressions = count.hashed(rows["impressions"]) if "impressions" in rows else None
    served_rows = None
    if "served" in config.candidates and impressions is not None:
        served_rows = _of_models(impressions if judged else base, day.served)
        served_rows = rank.by_position(served_rows) if config.rank_by == "position" else served_rows
    scored_rows = None
    if "scored" in config.candidates:
        scored_rows = _of_models(count.hashed(rows["scores"]), day.scored)
    listed = [
        _keys_and_score(f) for f in (served_rows if judged else None, scored_rows) if f is not None
    ]
    labels = _labels(rows, impressions, config)
    return Frames(
        base=base.select("query_hash", "query_id", "bucket", "slice_id"),
        served=None
        if judged or served_rows is None
        else _keys_and_score(served_rows, "bucket", "slice_id"),
        listed=_union(listed) if listed else None,
        listed_models=[*(day.served if judged else ()), *day.scored],
        impressions=impressions,
        events={name: rows[name] for name in ("clicks", "conversions") if name in rows},
        labels=label.for_models(labels, models=list(day.models)),
        hashes=label.labelled_hashes(labels),
        is_pruned=day.n_labels <= MAX_BROADCAST_LABELS,
        config=config,
    )


def _identified(rows: DataFrame, config: EvalConfig, slice_lists: SliceLists) -> DataFrame:
    return (
        rows.transform(count.hashed)
        .transform(slices.bucketed, n_buckets=config.n_buckets)
        .transform(slices.sliced, slice_lists=slice_lists)
    )


def _keys_and_score(candidates: DataFrame, *more: str) -> DataFrame:
    return candidates.select(*QUERY_KEYS, "item_id", "score", *more)


def _of_models(rows: DataFrame, models: Mapping[str, str]) -> DataFrame:
    """The rows of the models, under their published names."""
    raw = F.col("model_version")
    published = reduce(
        lambda chosen, pair: F.when(raw == pair[1], F.lit(pair[0])).otherwise(chosen),
        [(name, original) for name, original in models.items() if name != original],
        raw,
    )
    kept = rows.where(raw.isin(list(models.values())))
    return kept.withColumn("model_version", published)


def _labels(
    rows: Mapping[str, DataFrame], impressions: DataFrame | None, config: EvalConfig
) -> DataFrame:
    """One row per label event of any source, with query_hash and a gain a label."""
    gains = {name: config.gains_of(name) for name in config.labels}
    frames = [] if impressions is None else label.judged_on_rows(impressions, gains=gains)
    for name, kind in (("clicks", "click"), ("conversions", "conversion")):
        if name in rows and any(of_kind.get(kind) for of_kind in gains.values()):
            events = rows[name]
            if impressions is not None:
                events = label.with_item_keys(events, impressions=impressions)
            frames.append(label.judged(events, kind=kind, gains=gains))
    if "judgments" in rows:
        frames.append(
            label.judged(rows["judgments"], kind="judgment", gains=gains, grade=F.col("gain"))
        )
    labels = count.hashed(_union(frames))
    if config.unshown_clicks == "reject" and impressions is not None:
        labels = label.shown_only(labels, impressions=impressions)
    return labels


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
