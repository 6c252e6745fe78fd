"""What happened, whatever the logs say about it: who asked, what was shown, what was clicked.

`day` counts from 1970-01-01, `query` numbers the queries of a day, `slot` the candidates of a
query. With them a random number has the same key wherever it is used: see draws.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake.simulate.draws import Draws, chosen
from ranklake.simulate.simulation import Simulation

QUERY = ("day", "query")
ITEM = (*QUERY, "slot")

MICROS_PER_DAY = 86_400_000_000
_MICROS_PER_ITEM = 100_000
_SHOWN_WITHIN_MICROS = 9_000_000


@dataclass(frozen=True)
class _Trait:
    """One value of a slice: its share of the queries and its effect on the click probability."""

    value: str
    share: float
    effect: float
    n_slots: int = 0
    """Items on the first screen; more are a scroll away. Of placements only."""


DEVICES = (
    _Trait("mobile", 0.62, 1.0),
    _Trait("desktop", 0.30, 0.8),
    _Trait("tablet", 0.08, 1.3),
)
PLACEMENTS = (
    _Trait("search", 0.50, 1.2, n_slots=10),
    _Trait("feed", 0.35, 0.9, n_slots=5),
    _Trait("sidebar", 0.15, 0.5, n_slots=3),
)
COUNTRIES = (
    _Trait("US", 0.32, 1.0),
    _Trait("IN", 0.22, 1.3),
    _Trait("BR", 0.16, 1.2),
    _Trait("DE", 0.12, 0.8),
    _Trait("JP", 0.10, 0.7),
    _Trait("MX", 0.07, 1.1),
    _Trait("NZ", 0.01, 0.9),
)


def queries(spark: SparkSession, simulation: Simulation, *, n_partitions: int) -> DataFrame:
    """One row a query. The order of the rows is that of the dates and, in a date, of `query`.

    user_id is null, '' or '0' for an unknown user; appeal is the factor on the click probability of
    all the query's items; asked_micros is UTC, since 1970.
    """
    draw = Draws(simulation.seed)
    return (
        _numbered(spark, simulation, n_partitions=n_partitions)
        .withColumns({"user": _user(simulation, draw), "n_candidates": _n_candidates(simulation)})
        .withColumns(
            {
                "model": _model(simulation, draw),
                "device": _trait(DEVICES, draw.uniform("device", *QUERY)),
                "placement": _trait(PLACEMENTS, draw.uniform("placement", *QUERY)),
                "country": _trait(COUNTRIES, draw.uniform("country", "user")),
            }
        )
        .select(
            *QUERY,
            query_id(F.col("query")).alias("query_id"),
            _user_id(simulation, draw).alias("user_id"),
            F.col("model.name").alias("model_version"),
            F.col("model.quality").alias("quality"),
            *(F.col(f"{name}.value").alias(name) for name in ("device", "placement", "country")),
            F.least("placement.n_slots", "n_candidates").alias("n_slots"),
            "n_candidates",
            _appeal(simulation, draw).alias("appeal"),
            _asked_micros(draw).alias("asked_micros"),
        )
    )


def shown(queries: DataFrame, *, simulation: Simulation) -> DataFrame:
    """One row an item shown for a query; position 1 is the highest score of the query's model.

    Adds slot, position, item_id, impression_id, score, shown_micros to the columns of `queries`.
    """
    draw = Draws(simulation.seed)
    ranked_candidates = F.posexplode(_candidates_best_first(draw)).alias("above", "candidate")
    position = F.col("above") + 1
    return (
        queries.select("*", ranked_candidates)
        .select(*queries.columns, position.alias("position"), "candidate.*")
        .withColumns(
            {
                "item_id": item_id(simulation, draw, F.col("slot")),
                "impression_id": F.concat_ws("-", "query_id", "position"),
                "score": score(simulation, F.col("estimate")),
                "shown_micros": _shown_micros(),
            }
        )
        .drop("estimate")
    )


def clicked(shown: DataFrame, *, simulation: Simulation) -> DataFrame:
    """One row a clicked item, the rows of `shown` that are clicked. Adds clicked_micros."""
    draw = Draws(simulation.seed)
    examination = F.pow("position", F.lit(-simulation.examination_decay))
    attraction = simulation.click_level * _relevance(simulation, draw) * F.col("appeal")
    delay_s = 1 + 8 * draw.exponential("click delay", *ITEM)
    is_clicked = draw.uniform("click", *ITEM) < examination * attraction
    return shown.where(is_clicked).withColumn(
        "clicked_micros", later("shown_micros", seconds=delay_s)
    )


def query_id(query: Column) -> Column:
    """The id of the day's query of this number: '20260101-42'."""
    return F.concat_ws("-", F.date_format(event_date(), "yyyyMMdd"), query.cast("string"))


def item_id(simulation: Simulation, draw: Draws, slot: Column) -> Column:
    """The id of the item in this slot. Slots from n_candidates on are items that were not shown.

    The catalogue is cut into blocks of n_candidates items, and slot i takes the i-th item of some
    block: so the items of a query differ. Low blocks are more popular.
    """
    n_blocks = F.floor(F.lit(simulation.n_catalogue_items) / F.col("n_candidates"))
    inner_slot = slot % F.col("n_candidates")
    popularity = F.pow(draw.uniform("item", *QUERY, inner_slot), F.lit(2))
    next_block = F.when(slot < F.col("n_candidates"), 0).otherwise(1)
    block = (F.floor(n_blocks * popularity) + next_block) % n_blocks
    return F.concat(F.lit("item-"), (block * F.col("n_candidates") + inner_slot).cast("string"))


def estimate(draw: Draws, slot: Column, *, quality: Column) -> Column:
    """What the model of the row thinks of the item: `quality` is the correlation with the truth."""
    truth = draw.exponential("relevance", *QUERY, slot) - 1
    noise = draw.normal("noise", "model_version", *QUERY, slot)
    return (quality * truth + F.sqrt(1 - quality * quality) * noise).alias("estimate")


def score(simulation: Simulation, estimate: Column) -> Column:
    """The estimate as a number in (0, 1), of the size of a click rate but not calibrated."""
    return 1 / (1 + F.exp(-estimate) / simulation.click_level)


def later(micros: str, *, seconds: Column) -> Column:
    """The instant `seconds` after `micros`."""
    return F.col(micros) + F.floor(seconds * 1e6)


def event_date() -> Column:
    """The date of the row's day."""
    return F.date_from_unix_date(F.col("day").cast("int"))


def _numbered(spark: SparkSession, simulation: Simulation, *, n_partitions: int) -> DataFrame:
    """One row a query: day and query."""
    first_day = (simulation.first_date - date(1970, 1, 1)).days
    n_queries = simulation.n_queries
    ids = spark.range(
        first_day * n_queries,
        (first_day + simulation.n_dates) * n_queries,
        numPartitions=n_partitions,
    )
    return ids.select(
        F.floor(F.col("id") / n_queries).alias("day"), F.pmod("id", F.lit(n_queries)).alias("query")
    )


def _is_unknown_user(simulation: Simulation, draw: Draws) -> Column:
    return draw.chance(simulation.dirt.unknown_user_share, "unknown user", *QUERY)


def _user(simulation: Simulation, draw: Draws) -> Column:
    """The number of the user; of an unknown one a number that no other query has."""
    activity = F.pow(draw.uniform("user", *QUERY), F.lit(1.5))
    known = F.floor(simulation.n_users * activity)
    return F.when(_is_unknown_user(simulation, draw), F.xxhash64(*QUERY)).otherwise(known)


def _user_id(simulation: Simulation, draw: Draws) -> Column:
    unknown_ids = [(1.0, F.lit(value)) for value in (None, "", "0")]
    unknown_id = chosen(unknown_ids, draw.uniform("unknown user id", *QUERY))
    known_id = F.concat(F.lit("user-"), F.col("user").cast("string"))
    return F.when(_is_unknown_user(simulation, draw), unknown_id).otherwise(known_id)


def _n_candidates(simulation: Simulation) -> Column:
    n_items = F.lit(simulation.n_items_per_query)
    if not simulation.hot_query_items:
        return n_items
    return F.when(F.col("query") == 0, simulation.hot_query_items).otherwise(n_items)


def _model(simulation: Simulation, draw: Draws) -> Column:
    """name and quality of the model that serves the user."""
    choices = [
        (m.share, F.struct(F.lit(m.name).alias("name"), F.lit(m.quality).alias("quality")))
        for m in simulation.models
    ]
    return chosen(choices, draw.uniform("model", "user"))


def _trait(traits: Sequence[_Trait], uniform: Column) -> Column:
    """value, effect and n_slots of one of the traits; the effect is 1 on average."""
    mean_effect = sum(t.share * t.effect for t in traits) / sum(t.share for t in traits)
    choices = [
        (
            trait.share,
            F.struct(
                F.lit(trait.value).alias("value"),
                F.lit(trait.effect / mean_effect).alias("effect"),
                F.lit(trait.n_slots).alias("n_slots"),
            ),
        )
        for trait in traits
    ]
    return chosen(choices, uniform)


def _candidates_best_first(draw: Draws) -> Column:
    """The query's candidates: (estimate, slot), sorted in its row: nothing is shuffled."""
    slots = F.sequence(F.lit(0), F.col("n_candidates") - 1)
    candidates = F.transform(
        slots,
        lambda slot: F.struct(estimate(draw, slot, quality=F.col("quality")), slot.alias("slot")),
    )
    return F.sort_array(candidates, asc=False)


def _appeal(simulation: Simulation, draw: Draws) -> Column:
    """How much more than average the items of this query are clicked."""
    sigma = simulation.user_sigma
    of_user = F.exp(draw.normal("user appeal", "user") * sigma - sigma * sigma / 2)
    return of_user * F.col("device.effect") * F.col("placement.effect") * F.col("country.effect")


def _relevance(simulation: Simulation, draw: Draws) -> Column:
    """Pareto distributed, 1 on average: a few items of a query matter, most do not."""
    tail = simulation.relevance_tail
    return F.exp(tail * draw.exponential("relevance", *ITEM)) * (1 - tail)


def _asked_micros(draw: Draws) -> Column:
    # so early that the last item is still shown on the same day
    latest = MICROS_PER_DAY - _SHOWN_WITHIN_MICROS
    return F.col("day") * MICROS_PER_DAY + F.floor(latest * draw.uniform("time", *QUERY))


def _shown_micros() -> Column:
    after = F.least((F.col("position") - 1) * _MICROS_PER_ITEM, F.lit(_SHOWN_WITHIN_MICROS - 1))
    return F.col("asked_micros") + after
