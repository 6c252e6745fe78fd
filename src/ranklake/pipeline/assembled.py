"""The day's rows → Frames: cleaned, hashed, identified, each with the columns that it needs."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial, reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake import clean, count, label, rank
from ranklake.aggregate import slices
from ranklake.config import EvalConfig
from ranklake.metrics import CONVERSION_VALUE
from ranklake.pipeline import frames, nested
from ranklake.pipeline.events import Events
from ranklake.pipeline.frames import Frames, InRows, RemovedRows, union
from ranklake.pipeline.inputs import Day
from ranklake.pipeline.reading import keys_of
from ranklake.pipeline.traffic import Removed, only, removed_nearby, removed_of, without
from ranklake.schemas import OF_QUERY, QUERY_KEYS, SliceLists

Rows = Mapping[str, DataFrame]


def broken_traffic(day: Day, config: EvalConfig) -> DataFrame | None:
    """One row per rule and query of the day's invalid traffic; None: none is looked for."""
    removed = removed_of(_known_events(_cleaned(day, config), day, config), config)
    return None if removed is None else removed.broken


def frames_of(
    day: Day, config: EvalConfig, slice_lists: SliceLists, *, broken: DataFrame | None = None
) -> Frames:
    """The day's frames. `broken` are the rows of `broken_traffic`, where they are known already."""
    every = _cleaned(day, config)
    events, removed = _events(every, day, config, broken)
    rows = _that_stay(every, removed)
    base = _identified(_asking(rows, day, config), config, slice_lists)
    impressions = rows.get("impressions")
    judged = day.base == "judgments"
    served = _served(impressions if judged else base, day, config)
    scored = _scored(rows, day, config)
    listed = [
        _ranked_columns(frame, config)
        for frame in (served if judged else None, scored)
        if frame is not None
    ]
    labels = _labels(rows, impressions, events, config)
    hashes = label.labelled_hashes(labels)
    models = [*day.models]
    with_judged = _with_judged(labels, rows, day, config)
    return Frames(
        base=base.select(*_present(base, "query_hash", "query_id", *OF_QUERY)),
        served=None if judged or served is None else _ranked_columns(served, config, *OF_QUERY),
        listed=union(listed) if listed else None,
        listed_models=[*(day.served if judged else ()), *day.scored],
        events=events.told(),
        removed=None if removed is None else _told_removed(removed, every, day, config),
        labels=label.for_models(with_judged, models=models),
        hashes=hashes,
        has_few_labels=day.n_labels <= frames.MAX_BROADCAST_LABELS,
        config=config,
        in_rows=_in_rows(day, config, slice_lists, hashes, removed),
        why_flat=nested.why_flat(day, config) if day.is_nested else None,
    )


def _that_stay(every: Rows, removed: Removed | None) -> Rows:
    """The rows, without those of queries that are removed; candidates have query_hash."""
    candidates = ("impressions", "scores")
    return {
        name: without(count.hashed(rows), removed) if name in candidates else rows
        for name, rows in every.items()
    }


def _told_removed(removed: Removed, every: Rows, day: Day, config: EvalConfig) -> RemovedRows:
    """What is removed, for quality: the candidates of every model, and why their queries are."""
    hashed = _that_stay(every, None)
    found = [
        only(rows, removed).select("model_version", "query_id", "item_id")
        for rows in (_served(hashed["impressions"], day, config), _scored(hashed, day, config))
        if rows is not None
    ]
    return RemovedRows(union(found), removed.broken)


def _in_rows(
    day: Day,
    config: EvalConfig,
    slice_lists: SliceLists,
    hashes: DataFrame,
    removed: Removed | None,
) -> InRows | None:
    """The queries whose candidates are ranked in their rows; None where they are not."""
    if day.in_rows is None or nested.why_flat(day, config):
        return None
    queries = _identified(nested.cleaned(day.in_rows, day, config), config, slice_lists)
    staying = without(queries, removed)
    ours = _of_models(staying, day.served, audited=day.audits["impressions"])
    # Before the arrays are worked on: those of other queries are not touched.
    reached = ours.join(F.broadcast(hashes), on=["query_hash"], how="left_semi")
    known = _present(ours, *QUERY_KEYS, *OF_QUERY, "n_candidates")
    return InRows(
        queries=ours.select(*known),
        reached=nested.scored(reached, day, config).select(*known, "candidates"),
    )


def cleaned(name: str, day: Day, config: EvalConfig) -> DataFrame:
    """The input's rows that count, as the rules of the evaluation say."""
    rules = config.rules
    shown = day.rows["impressions"].columns if "impressions" in day.rows else ()
    return clean.cleaned(
        day.rows[name],
        keys=keys_of(name, config, impressions=shown),
        unknown_users=config.unknown_users,
        scores=clean.Scores(rules.nan_scores, rules.null_scores, rules.score_type == "float"),
        is_found=partial(day.has, name),
    )


def _cleaned(day: Day, config: EvalConfig) -> Rows:
    return {name: cleaned(name, day, config) for name in day.rows}


def _events(
    rows: Rows, day: Day, config: EvalConfig, broken: DataFrame | None
) -> tuple[Events, Removed | None]:
    """The day's events, and the queries that are removed, among which some of them are."""
    events = _known_events(rows, day, config)
    removed = removed_of(events, config) if broken is None else Removed.of(broken)
    if removed is not None:
        nearby = removed_nearby(events, config)
        events = replace(events, removed=removed.queries, removed_nearby=nearby)
    return events, removed


def _known_events(rows: Rows, day: Day, config: EvalConfig) -> Events:
    """The day's events, before it is known which queries are removed."""
    return Events(
        rows=rows,
        nearby={name: _cleaned_nearby(name, day, config) for name in day.nearby},
        day=day,
        config=config,
        sends_hashes=day.n_labels <= frames.MAX_BROADCAST_LABELS,
    )


def _cleaned_nearby(name: str, day: Day, config: EvalConfig) -> DataFrame:
    """The input's rows of other days that count; nobody has looked for their dirt."""
    shown = day.nearby["impressions"].columns
    return clean.cleaned(
        day.nearby[name],
        keys=keys_of(name, config, impressions=shown),
        unknown_users=config.unknown_users,
    )


def _asking(rows: Rows, day: Day, config: EvalConfig) -> DataFrame:
    """The rows that say which queries there are; with a rule, those of all candidates too."""
    base = rows[day.base]
    if config.rules.missing_in_truth != "zero":
        return base
    others = [rows[n] for n in ("impressions", "scores") if n in rows and n != day.base]
    return union(
        [base, *[other.select(*_present(other, "query_id", "user_id")) for other in others]]
    )


def _served(rows: DataFrame | None, day: Day, config: EvalConfig) -> DataFrame | None:
    if "served" not in config.candidates or rows is None:
        return None
    ours = _of_models(rows, day.served, audited=day.audits["impressions"])
    return ours.transform(_ordered, config=config)


def _scored(rows: Rows, day: Day, config: EvalConfig) -> DataFrame | None:
    if "scored" not in config.candidates:
        return None
    return _of_models(rows["scores"], day.scored, audited=day.audits["scores"])


def _ordered(candidates: DataFrame, *, config: EvalConfig) -> DataFrame:
    return rank.by_position(candidates) if config.rank_by == "position" else candidates


def _identified(rows: DataFrame, config: EvalConfig, slice_lists: SliceLists) -> DataFrame:
    unused = {"n_slots", "weight"} - {*config.query_extras}
    return (
        rows.drop(*unused)
        .transform(count.hashed)
        .transform(slices.bucketed, n_buckets=config.n_buckets)
        .transform(slices.sliced, slice_lists=slice_lists)
    )


def _ranked_columns(candidates: DataFrame, config: EvalConfig, *more: str) -> DataFrame:
    """The candidates' keys, what orders them, and where it counts the cluster of the item."""
    tie_key = config.rules.tie_column
    keys = [*QUERY_KEYS, "item_id", "score", *([tie_key] if tie_key else [])]
    if config.item_clusters:
        keys.append("item_bucket")
        candidates = candidates.transform(
            slices.item_bucketed, column=config.item_clusters, n_buckets=config.n_buckets
        )
    return candidates.select(*_present(candidates, *keys, *more))


def _present(rows: DataFrame, *names: str) -> list[str]:
    return [name for name in names if name in rows.columns]


def _with_judged(labels: DataFrame, rows: Rows, day: Day, config: EvalConfig) -> DataFrame:
    """The labels, and where something asks which items are judged, a row for each of those."""
    if not config.ranks_every_query:
        return labels
    judged = rows[day.base]
    if day.base == "judgments":
        judged = judged.where(F.col("gain") >= 0)
    return union([labels, label.judged_items(count.hashed(judged))])


def _of_models(
    rows: DataFrame, models: Mapping[str, str], *, audited: Collection[str | None]
) -> DataFrame:
    """The rows of the models, under their published names; `audited` are those of the input."""
    raw = F.col("model_version")
    renamed = [(name, original) for name, original in models.items() if name != original]
    if {*audited} != {*models.values()}:
        rows = rows.where(raw.isin(list(models.values())))
    if not renamed:
        return rows
    published = reduce(
        lambda chosen, pair: F.when(raw == pair[1], F.lit(pair[0])).otherwise(chosen), renamed, raw
    )
    return rows.withColumn("model_version", published)


def _labels(
    rows: Rows, impressions: DataFrame | None, events: Events, config: EvalConfig
) -> DataFrame:
    """One row per label event of any source, with query_hash and a gain a label."""
    gains = {name: config.gains_of(name) for name in config.labels}
    frames = [] if impressions is None else label.judged_on_rows(impressions, gains=gains)
    for kind, counting in events.counting().items():
        has_value = kind == CONVERSION_VALUE
        worth = label.valued(counting) if has_value else counting
        grade = F.col("value") if has_value else None
        frames.append(label.judged(worth, kind=kind, gains=gains, grade=grade))
    if "judgments" in rows:
        judged = label.judged(rows["judgments"], kind="judgment", gains=gains, grade=F.col("gain"))
        if config.unshown_clicks == "reject" and impressions is not None:
            judged = label.shown_only(judged, impressions=impressions)
        frames.append(judged)
    return count.hashed(union(frames))
