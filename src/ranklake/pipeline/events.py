"""Clicks and conversions of a day → which of them count: for the labels, and counted by reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ranklake import label
from ranklake.config import EvalConfig
from ranklake.metrics import CLICK, CONVERSION, CONVERSION_VALUE
from ranklake.pipeline.inputs import Day
from ranklake.schemas import ITEM

Rows = Mapping[str, DataFrame]

_TIMES = {"clicks": "click_ts", "conversions": "conversion_ts"}


class Told(NamedTuple):
    """Events, one row each, with the reason why it does not count, or null; and the reasons."""

    rows: DataFrame
    reasons: Sequence[str]


@dataclass(frozen=True)
class Events:
    """The clicks and conversions of a day, and the impressions that they are of. All lazy.

    rows     impressions, clicks and conversions, cleaned; impressions of removed queries too
    nearby   impressions and clicks of other days, cleaned, where they compete for conversions
    removed  one row per query of the day that is removed; None: none is
    removed_nearby  the same of the other days
    """

    rows: Rows
    nearby: Rows
    day: Day
    config: EvalConfig
    sends_hashes: bool
    removed: DataFrame | None = None
    removed_nearby: DataFrame | None = None

    def counting(self) -> dict[str, DataFrame]:
        """By kind of event, one row per event that counts, with its query_id and item_id.

        A repeated click may count twice: a label is the same. Where nothing can keep a click from
        counting it is taken as it is, and the log is not looked at.
        """
        asked = self.config.event_kinds
        counting = {}
        if CLICK in asked and "clicks" in self.rows:
            counting[CLICK] = self._counting_clicks().where("reason IS NULL")
        of_conversions = sorted(asked & {CONVERSION, CONVERSION_VALUE})
        if of_conversions and "conversions" in self.rows:
            conversions = self._conversions(knows_asked=False).where("reason IS NULL")
            counting |= dict.fromkeys(of_conversions, conversions)
        return counting

    def told(self) -> dict[str, Told]:
        """The usable events by input, with the reasons why they do not count."""
        told = {}
        if "impressions" not in self.rows:
            return {}
        if "clicks" in self.rows:
            unasked = _unasked(self.rows["clicks"])
            told["clicks"] = Told(
                label.once(self._clicks(knows_asked=True)), (unasked, *label.CLICK_REASONS)
            )
        if "conversions" in self.rows:
            unasked = _unasked(self.rows["conversions"])
            by_user = self.config.attribution.is_by_user
            reasons = (unasked, *label.CONVERSION_REASONS)
            told["conversions"] = Told(
                self._conversions(knows_asked=True),
                label.ATTRIBUTION_REASONS if by_user else reasons,
            )
        return told

    def known_clicks(self, *, nearby: bool = False) -> DataFrame | None:
        """The clicks that the log has in time, each with the query and item that it names."""
        rows = self.nearby if nearby else self.rows
        if "clicks" not in rows or "impressions" not in rows:
            return None
        matched = self._matched("clicks", rows["clicks"], rows["impressions"])
        return matched.where(~label.is_late(matched, self.day.known_by))

    def _counting_clicks(self) -> DataFrame:
        clicks = self.rows["clicks"]
        if self._all_count:
            return clicks.withColumn("reason", _none())
        return self._clicks(knows_asked=False)

    @property
    def _all_count(self) -> bool:
        """Whether every click counts that names its query and item."""
        config, shown = self.config, self.rows["impressions"].columns
        clicks = self.rows["clicks"].columns
        is_timed = "click_ts" in clicks and "event_ts" in shown
        has_window = config.windows.of_clicks is not None or config.oldest_label is not None
        return not (
            (is_timed and has_window)
            or ("impression_id" in clicks and "impression_id" in shown)
            or (self.day.known_by is not None and "ingest_ts" in clicks)
            or config.unshown_clicks == "reject"
            or self.removed is not None
        )

    def _clicks(self, *, knows_asked: bool) -> DataFrame:
        """The day's clicks, with the reason why one does not count.

        Whether their queries were asked takes another look at the log: those that were not are
        nobody's, so labels do not need to know.
        """
        return self._told_clicks(
            self.rows["clicks"], self.rows["impressions"], self.removed, knows_asked
        )

    def _told_clicks(
        self,
        clicks: DataFrame,
        impressions: DataFrame,
        removed: DataFrame | None,
        knows_asked: bool,
    ) -> DataFrame:
        matched = self._matched("clicks", clicks, impressions)
        windows = self.config.windows
        return label.told_clicks(
            matched,
            rules=label.ClickRules(
                window=windows.of_clicks,
                tolerance=windows.tolerance,
                oldest=self.config.oldest_label,
                known_by=self.day.known_by,
                rejects_unshown=self.config.unshown_clicks == "reject",
            ),
            unasked=_unasked(clicks),
            removed=removed,
            asked=self._asked(matched, impressions) if knows_asked else None,
        )

    def _matched(self, name: str, events: DataFrame, impressions: DataFrame) -> DataFrame:
        return label.matched(
            events, impressions=impressions, at=_TIMES[name], sends_hashes=self.sends_hashes
        )

    def _asked(self, matched: DataFrame, impressions: DataFrame) -> DataFrame:
        """The queries of the log among those of events whose item was not shown."""
        return label.asked_among(
            matched.where(~F.col("is_shown")),
            impressions=impressions,
            sends_hashes=self.sends_hashes,
        )

    def _conversions(self, *, knows_asked: bool) -> DataFrame:
        """The day's conversions, with the reason why one does not count."""
        config = self.config
        own = label.without_copies(self.rows["conversions"], known_by=self.day.known_by)
        rules = label.ConversionRules(
            window=config.windows.of_conversions,
            oldest=config.oldest_label,
            known_by=self.day.known_by,
            is_first=config.attribution.touch == "first_click",
            rejects_unshown=config.unshown_clicks == "reject",
        )
        if config.attribution.is_by_user:
            keys = config.attribution.columns
            return label.attributed(own, touches=self._touches(), keys=keys, rules=rules)
        matched = self._matched("conversions", own, self.rows["impressions"])
        by_click = config.attribution.touch != "last_impression" and "clicks" in self.rows
        return label.told_conversions(
            matched,
            clicks=self._clicks(knows_asked=False).where("reason IS NULL") if by_click else None,
            rules=rules,
            unasked=_unasked(own),
            removed=self.removed,
            asked=self._asked(matched, self.rows["impressions"]) if knows_asked else None,
        )

    def _touches(self) -> DataFrame:
        """What conversions may belong to, of any day: clicks that count, or impressions."""
        by_click = self.config.attribution.touch != "last_impression"
        offered = self._clicked if by_click else self._shown
        own = offered(self.rows, self.removed).withColumn("is_own", F.lit(True))
        others = offered(self.nearby, self.removed_nearby).withColumn("is_own", F.lit(False))
        return own.unionByName(others)

    def _clicked(self, rows: Rows, removed: DataFrame | None) -> DataFrame:
        told = self._told_clicks(rows["clicks"], rows["impressions"], removed, knows_asked=True)
        return self._as_touches(told.where("reason IS NULL"))

    def _shown(self, rows: Rows, removed: DataFrame | None) -> DataFrame:
        keys = [*self.config.attribution.columns]
        asking = self.rows["conversions"].select(*keys).distinct()
        sent = F.broadcast(asking) if self.sends_hashes else asking
        shown = rows["impressions"].join(sent, on=keys, how="left_semi")
        if removed is not None:
            shown = shown.join(removed.select("query_id"), on=["query_id"], how="left_anti")
        first = F.min("event_ts").alias("shown_at")  # of its deliveries
        by_item = shown.groupBy(*dict.fromkeys((*keys, *ITEM))).agg(first)
        return self._as_touches(by_item.withColumn("happened_at", F.col("shown_at")))

    def _as_touches(self, rows: DataFrame) -> DataFrame:
        columns = dict.fromkeys(
            (*self.config.attribution.columns, *ITEM, "shown_at", "happened_at")
        )
        has_keys = [F.col(name).isNotNull() for name in self.config.attribution.columns]
        touches = rows.where(F.col("happened_at").isNotNull()).select(*columns)
        for has_key in has_keys:
            touches = touches.where(has_key)
        return touches


def _unasked(events: DataFrame) -> str:
    """What the event is whose query is not in the day's log: undated, it may be another day's."""
    return "orphan" if "event_date" in events.columns else "elsewhere"


def _none() -> Column:
    return F.lit(None).cast("string")
