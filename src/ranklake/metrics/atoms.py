"""Atoms: what happened in one query, as aggregates over its hits. Metrics are quotients of these.

The hits are what rank.ranked leaves of one (model, query, label):
    rank         1..n among the candidates; null for a relevant item that was no candidate
    gain         0 on a row that speaks for its query only, else above 0
    hits_so_far  relevant candidates at this rank or above
    ideal_rank   1..m among the relevant items, best gain first
    n_candidates on the last candidate
and, where a metric needs them: tie_first and tie_last (the ranks that the item's score could have),
is_judged, score, n_slots, score_sum and miss_loss of the query.
"""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from ranklake.metrics.measures import Measure
from ranklake.metrics.metric import NO_CUTOFF, SHOWN
from ranklake.metrics.options import Options
from ranklake.metrics.probabilities import as_probability, log_loss
from ranklake.metrics.ranking import MAX_EXPONENT, dcg


class Atoms:
    """The vocabulary of `Metric.column` for one measure: its options say how hits are read.

    k = 0 means no cut-off, k = -1 the query's own n_slots.
    """

    def __init__(self, measure: Measure) -> None:
        self._options = measure.values
        self._rank = F.col(measure.rank_column)
        self._hits_so_far = F.col(measure.hits_so_far_column)
        self._n_relevant = F.col(measure.n_relevant_column)
        self._ideal_rank = F.col(measure.ideal_rank_column)

    def is_relevant(self) -> Column:
        """Whether the row is a relevant item."""
        return is_relevant(self._options.get("rel"))

    def is_hit(self, k: int) -> Column:
        """Whether the row is a relevant candidate within the first k."""
        return self.is_relevant() & _within(self._rank, k)

    def relevant(self) -> Column:
        """|G|."""
        return _sum_where(self.is_relevant() & F.col("ideal_rank").isNotNull(), F.lit(1.0))

    def candidates(self) -> Column:
        """n."""
        return F.coalesce(F.max("n_candidates"), F.lit(0)).cast("double")

    def cut(self, k: int) -> Column:
        """The cut-off as a number of places: k, n_slots (every candidate where null), or n."""
        if k == SHOWN:
            return F.coalesce(F.max("n_slots").cast("double"), self.candidates())
        return F.lit(float(k)) if k else self.candidates()

    def shown_at(self, k: int) -> Column:
        """min(k, n)."""
        return F.least(self.cut(k), self.candidates())

    def hits_at(self, k: int) -> Column:
        """Relevant candidates within the first k; over all orders of equal scores if asked."""
        over_ties: dict[str, Callable[[], Column]] = {
            "expected": lambda: _sum_where(self.is_relevant(), _chance_within(k)),
            "best": lambda: self._certain(k) + F.least(self._tied(k), _tied_places(k)),
            "worst": lambda: self._certain(k) + self._least_of_tied(k),
        }
        choose = over_ties.get(self._options.get("tie_break", "run"))
        return choose() if choose else _sum_where(self.is_hit(k), F.lit(1.0))

    def any_hit_at(self, k: int) -> Column:
        """1 with a hit within the first k, else 0; `expected`: the chance of one."""
        if self._options.get("tie_break") != "expected":
            return (self.hits_at(k) > 0).cast("double")
        tied, size, places = self._tied(k), _tied_size(k), _tied_places(k)
        # No hit: none of the relevant tied items is drawn into the places, one after the other.
        none = F.aggregate(
            F.sequence(F.lit(0), tied.cast("int") - 1),
            F.lit(1.0),
            lambda chance, n: chance * F.greatest(size - places - n, F.lit(0.0)) / (size - n),
        )
        return F.when(self._certain(k) > 0, F.lit(1.0)).otherwise(
            F.when(tied > 0, F.lit(1.0) - none).otherwise(F.lit(0.0))
        )

    def depends_on_ties(self, k: int) -> Column:
        """1 where the order of equal scores decides how many hits are within k, else 0."""
        most = F.least(self._tied(k), _tied_places(k))
        return (most > self._least_of_tied(k)).cast("double")

    def hits_within_relevant(self) -> Column:
        """Relevant candidates within the first |G|."""
        return F.least(
            _sum_where(self.is_hit(0) & (self._rank <= self._n_relevant), F.lit(1.0)),
            self.relevant(),
        )

    def precisions_at_hits(self, k: int) -> Column:
        """Σ precision@rank over the hits within the first k."""
        return _sum_where(self.is_hit(k), self._hits_so_far / self._rank)

    def best_reciprocal_rank(self, k: int) -> Column:
        """1 / rank of the first hit within the first k; 0 when there is none."""
        return F.max(F.when(self.is_hit(k), F.lit(1.0) / self._rank).otherwise(F.lit(0.0)))

    def f_at(self, k: int) -> Column:
        """(1 + β²) h / (β² |G| + k), which is F of precision and recall."""
        weight = float(self._options["beta"]) ** 2
        return (1.0 + weight) * self.hits_at(k) / (weight * self.relevant() + self.cut(k))

    def gain_at(self, k: int) -> Column:
        """Cumulated gain of the first k."""
        return _sum_where(_within(self._rank, k), F.col("gain"))

    def dcg_at(self, k: int) -> Column:
        """Discounted cumulative gain of the first k."""
        gain = gained(self._options)
        if self._options["tie_break"] == "expected":
            return _sum_where(F.col("tie_first").isNotNull(), gain * _mean_discount(k))
        return _sum_where(_within(self._rank, k), gain * _discount(self._rank))

    def ideal_dcg_at(self, k: int) -> Column:
        """The largest DCG that any order could have: of what the option `ideal` says."""
        cut = NO_CUTOFF if self._options["ideal_cut"] == "none" else k
        if self._options["ideal"] == "k_ones":
            return F.lit(dcg([1.0] * k)) if k > 0 else _sum_of_discounts(self.cut(k))
        within = _within(self._ideal_rank, cut)
        return _sum_where(within, gained(self._options) * _discount(self._ideal_rank))

    def rank_biased_gain(self, k: int) -> Column:
        """(1 - p) Σ g p^(rank - 1) over the first k."""
        p, largest = float(self._options["p"]), self._options["max_gain"]
        gain = F.least(F.col("gain") / largest, F.lit(1.0)) if largest else F.lit(1.0)
        is_hit = _within(self._rank, k) & (F.col("gain") > 0 if largest else self.is_relevant())
        return (1.0 - p) * _sum_where(is_hit, gain * F.pow(F.lit(p), self._rank - 1))

    def auc(self) -> Column:
        """The share of pairs of a relevant and another candidate in the right order, ties ½."""
        m, n = _sum_where(self.is_hit(0), F.lit(1.0)), self.candidates()
        ranks = _sum_where(self.is_hit(0), (F.col("tie_first") + F.col("tie_last")) / 2.0)
        return self.ratio(m * n - ranks - m * (m - 1.0) / 2.0, m * (n - m))

    def judged_at(self, k: int) -> Column:
        """Judged candidates within the first k."""
        return _sum_where(F.col("is_judged") & _within(self._rank, k), F.lit(1.0))

    def sum_of_scores(self) -> Column:
        """Σ score over the candidates that have one."""
        return self.or_zero(F.max("score_sum"))

    def sum_of_losses(self) -> Column:
        """Σ log loss over the candidates with a score: as if nothing happened, then corrected."""
        score = as_probability(F.col("score"))
        correction = log_loss(score, True) - log_loss(score, False)
        is_scored = self.is_hit(0) & score.isNotNull()
        return self.or_zero(F.max("miss_loss")) + _sum_where(is_scored, correction)

    def where_relevant(self, value: Column) -> Column:
        """The value of a query with a relevant item; null without one."""
        return F.when(self.relevant() > 0, value)

    def or_zero(self, value: Column) -> Column:
        """The value, or 0 where it is a ratio over zero."""
        return F.coalesce(value, F.lit(0.0))

    def ratio(self, part: Column, whole: Column) -> Column:
        """part / whole, where the whole may be zero: then null, under ANSI too."""
        return part / F.nullif(whole, F.lit(0.0))

    def chosen_ratio(self, part: Column, k: int) -> Column:
        """The part over what the option `denom` says; null over zero."""
        denominators: dict[str, Callable[[], Column]] = {
            "rel": self.relevant,
            "k": lambda: self.cut(k),
            "hits": lambda: self.hits_at(k),
            "min_k_n": lambda: self.shown_at(k),
            "min_k_rel": lambda: F.least(self.cut(k), self.relevant()) if k else self.relevant(),
            "min_rel_n": lambda: F.least(self.relevant(), self.candidates()),
        }
        return self.ratio(part, denominators[self._options["denom"]]())

    def _certain(self, k: int) -> Column:
        """Hits that are within k in every order of equal scores."""
        return _sum_where(self.is_relevant() & _within(F.col("tie_last"), k), F.lit(1.0))

    def _tied(self, k: int) -> Column:
        """Relevant candidates whose score is also that of candidates on the other side of k."""
        return _sum_where(self.is_relevant() & _is_cut(k), F.lit(1.0))

    def _least_of_tied(self, k: int) -> Column:
        """The fewest of them that can be within k."""
        others = _tied_size(k) - _tied_places(k)
        return F.greatest(self._tied(k) - others, F.lit(0.0))


def is_relevant(rel: float | None) -> Column:
    """Whether the row is an item with a gain above 0, of `rel` at least."""
    return F.col("gain") >= F.lit(rel) if rel else F.col("gain") > 0


def gained(options: Options) -> Column:
    """What the row's grade gains, as the options `gain` and `gain_respects_rel` say; 0 or more."""
    grade, relevant = F.col("gain"), is_relevant(options["rel"])
    gain = options["gain"]
    if not isinstance(gain, str):
        value = grade
        for known, worth in gain:
            value = F.when(grade == F.lit(known), F.lit(worth)).otherwise(value)
    elif gain == "binary":
        value = relevant.cast("double")
    else:
        value = (
            grade
            if gain == "linear"
            else F.pow(F.lit(2.0), F.least(grade, F.lit(MAX_EXPONENT))) - 1.0
        )
    counts = relevant if options["gain_respects_rel"] == "true" else grade > 0
    return F.when(counts, value).otherwise(F.lit(0.0))


def _sum_where(condition: Column, value: Column) -> Column:
    return F.sum(F.when(condition, value).otherwise(F.lit(0.0)))


def _discount(rank: Column) -> Column:
    return F.lit(1.0) / F.log2(rank + F.lit(1.0))


def _places(k: int) -> Column:
    """The cut-off of a row: k, or its query's n_slots (none where null)."""
    return F.coalesce(F.col("n_slots"), F.lit(_NO_LIMIT)) if k == SHOWN else F.lit(k or _NO_LIMIT)


_NO_LIMIT = 2**31 - 1


def _within(rank: Column, k: int) -> Column:
    return rank <= _places(k) if k else rank.isNotNull()


def _chance_within(k: int) -> Column:
    """The chance that the row's place is within k, over all orders of equal scores."""
    size = F.col("tie_last") - F.col("tie_first") + 1
    places = F.least(F.col("tie_last"), _places(k)) - F.col("tie_first") + 1
    return F.when(F.col("tie_first") <= _places(k), places / size).otherwise(F.lit(0.0))


def _mean_discount(k: int) -> Column:
    """The mean of the row's discount over all orders of equal scores; 0 beyond k."""
    ranks = F.sequence("tie_first", F.least(F.col("tie_last"), _places(k)))
    total = F.aggregate(ranks, F.lit(0.0), lambda found, rank: found + _discount(rank))
    size = F.col("tie_last") - F.col("tie_first") + 1
    return F.when(F.col("tie_first") <= _places(k), total / size).otherwise(F.lit(0.0))


def _is_cut(k: int) -> Column:
    """Whether the cut-off divides the candidates that have the row's score."""
    return (F.col("tie_first") <= _places(k)) & (F.col("tie_last") > _places(k))


def _tied_size(k: int) -> Column:
    """How many candidates have the score that the cut-off divides; 0 without one."""
    size = F.col("tie_last") - F.col("tie_first") + 1
    return F.max(F.when(_is_cut(k), size).otherwise(F.lit(0))).cast("double")


def _tied_places(k: int) -> Column:
    """How many of them are within k."""
    places = _places(k) - F.col("tie_first") + 1
    return F.max(F.when(_is_cut(k), places).otherwise(F.lit(0))).cast("double")


def _sum_of_discounts(n: Column) -> Column:
    """Σ 1 / log2(rank + 1) over the first n ranks."""
    ranks = F.when(n >= 1, F.sequence(F.lit(1), n.cast("int"))).otherwise(
        F.array().cast("array<int>")
    )
    return F.aggregate(ranks, F.lit(0.0), lambda found, rank: found + _discount(rank))
