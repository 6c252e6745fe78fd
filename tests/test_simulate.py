"""Simulated logs: the world has the properties it claims, and the dirt is what was asked for.

Two logs are made once and looked at with pandas: CLEAN, and DIRTY, which is the same world with
every kind of dirt.
"""

from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import log, sqrt
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from ranklake.errors import ConfigError
from ranklake.schemas import CLICKS, CONVERSIONS, IMPRESSIONS, SCORES
from ranklake.simulate import (
    Dirt,
    ModelQuality,
    Simulation,
    clicks,
    conversions,
    generate,
    impressions,
    scores,
)

N_DATES, N_QUERIES, N_ITEMS = 2, 2_000, 20
ITEM = ["query_id", "item_id"]
TABLES = {
    "impressions": impressions,
    "clicks": clicks,
    "conversions": conversions,
    "scores": scores,
}

CLEAN = Simulation(
    n_dates=N_DATES,
    n_queries=N_QUERIES,
    n_items_per_query=N_ITEMS,
    conversion_share=0.5,
    dirt=Dirt(unknown_user_share=0.0),
)
DIRTY = replace(
    CLEAN,
    hot_query_items=500,
    dirt=Dirt(
        duplicate_share=0.1,
        repeated_click_share=0.2,
        unshown_click_share=0.15,
        orphan_click_share=0.1,
        late_share=0.05,
        null_score_share=0.02,
        nan_score_share=0.03,
        null_key_share=0.04,
        unknown_user_share=0.3,
    ),
)
SMALL_AND_DIRTY = replace(DIRTY, n_queries=40, hot_query_items=100)


@dataclass(frozen=True)
class Log:
    """The four tables, instants in UTC."""

    impressions: pd.DataFrame
    clicks: pd.DataFrame
    conversions: pd.DataFrame
    scores: pd.DataFrame


def collected(spark: SparkSession, simulation: Simulation) -> Log:
    return Log(**{name: in_utc(table(spark, simulation)) for name, table in TABLES.items()})


def in_utc(table: DataFrame) -> pd.DataFrame:
    rows = table.toArrow().to_pandas()
    instants = rows.select_dtypes("datetimetz").columns
    return rows.assign(**{name: rows[name].dt.tz_convert("UTC") for name in instants})


@pytest.fixture(scope="module")
def clean(spark: SparkSession) -> Log:
    return collected(spark, CLEAN)


@pytest.fixture(scope="module")
def dirty(spark: SparkSession) -> Log:
    return collected(spark, DIRTY)


def about(share: float, n: int) -> object:
    """Equal to a share that was seen in n draws: within four standard errors."""
    return pytest.approx(share, abs=4 * sqrt(share * (1 - share) / n))


def share_of(column: pd.Series) -> float:
    return float(column.mean())


# What a simulated log is


def test_tables_have_the_columns_and_types_of_the_input_contracts(spark: SparkSession) -> None:
    slices = {"device": "string", "placement": "string", "country": "string"}
    for contract in (IMPRESSIONS, CLICKS, CONVERSIONS, SCORES):
        declared = {column.name: column.type.lower() for column in contract.columns} | slices
        table = TABLES[contract.name](spark, CLEAN)
        assert dict(table.dtypes).items() <= declared.items()
        assert set(contract.required) <= set(table.columns)


def test_equal_simulations_are_equal_logs_however_partitioned(spark: SparkSession) -> None:
    for table in TABLES.values():
        one, many = (table(spark, SMALL_AND_DIRTY, n_partitions=n) for n in (1, 5))
        assert (one.rdd.getNumPartitions(), many.rdd.getNumPartitions()) == (1, 5)
        assert [str(row) for row in one.collect()] == [str(row) for row in many.collect()]


def test_a_day_generated_alone_is_that_day_of_the_whole_log(spark: SparkSession) -> None:
    second_date = SMALL_AND_DIRTY.first_date + timedelta(days=1)
    alone = replace(SMALL_AND_DIRTY, first_date=second_date, n_dates=1)
    for table in TABLES.values():
        rows = table(spark, SMALL_AND_DIRTY).collect()
        of_second_date = [str(row) for row in rows if row.event_date == second_date]
        assert 0 < len(of_second_date) < len(rows)
        assert of_second_date == [str(row) for row in table(spark, alone).collect()]


def test_another_seed_is_another_log(spark: SparkSession) -> None:
    one, other = (
        impressions(spark, replace(SMALL_AND_DIRTY, seed=seed)).toArrow() for seed in (1, 2)
    )
    for name in ("item_id", "score", "event_ts"):
        assert one[name] != other[name]


def test_tables_are_made_without_a_shuffle_a_window_or_python(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    for table in TABLES.values():
        table(spark, SMALL_AND_DIRTY).explain()
        plan = capsys.readouterr().out
        assert "Range" in plan
        assert not [word for word in ("Exchange", "Window", "Python", "rand(") if word in plan]


# The world


def test_every_query_shows_distinct_items_in_the_order_of_the_score(clean: Log) -> None:
    shown = clean.impressions
    assert len(shown) == N_DATES * N_QUERIES * N_ITEMS
    assert not shown.duplicated(ITEM).any()
    assert shown.impression_id.is_unique
    by_score = shown.groupby("query_id").score.rank(method="first", ascending=False)
    assert (by_score == shown.position).all()
    assert shown.score.between(0, 1, inclusive="neither").all()


def test_a_query_lies_within_seconds_of_its_utc_date(clean: Log) -> None:
    shown = clean.impressions
    assert (shown.event_ts.dt.date == shown.event_date).all()
    assert set(shown.event_date) == {date(2026, 1, 1), date(2026, 1, 2)}
    instants = shown.groupby("query_id").event_ts
    assert (instants.max() - instants.min()).max() < timedelta(seconds=10)


def test_a_user_has_one_model_and_one_country_on_all_dates(clean: Log) -> None:
    by_user = clean.impressions.groupby("user_id")
    assert (by_user.model_version.nunique() == 1).all()
    assert (by_user.country.nunique() == 1).all()
    assert by_user.event_date.nunique().max() == N_DATES


def test_slices_have_their_shares(clean: Log) -> None:
    queries = clean.impressions.drop_duplicates("query_id")
    assert share_of(queries.device == "mobile") == about(0.62, len(queries))
    assert share_of(queries.placement == "sidebar") == about(0.15, len(queries))
    assert queries.country.nunique() == 11


def test_a_quarter_of_the_queries_has_a_click(clean: Log) -> None:
    clicked = clean.clicks.query_id.nunique() / (N_DATES * N_QUERIES)
    assert clicked == pytest.approx(0.26, abs=0.03)


def test_a_better_model_has_its_clicks_higher_up(clean: Log) -> None:
    clicked = clean.impressions.merge(clean.clicks, on=ITEM)
    position = clicked.groupby("model_version").position
    z = (position.mean()["v1"] - position.mean()["v2"]) / sqrt(
        (position.var() / position.size()).sum()
    )
    assert z > 2
    assert CLEAN.models_best_first == ("v2", "v1")


def test_the_offline_model_also_scores_items_that_were_not_shown(clean: Log) -> None:
    scored = clean.scores.merge(clean.impressions[ITEM], on=ITEM, how="outer", indicator="side")
    per_query = len(clean.impressions) / N_ITEMS
    sides = scored.side.value_counts() / per_query
    assert sides.to_dict() == {"both": N_ITEMS, "left_only": 5, "right_only": 0}
    assert not clean.scores.duplicated(ITEM).any()


def test_the_offline_model_ranks_clicked_items_above_the_others(clean: Log) -> None:
    scored = (
        clean.impressions[ITEM]
        .merge(clean.scores, on=ITEM)
        .merge(clean.clicks[ITEM], on=ITEM, how="left", indicator="clicked")
    )
    mean_score = scored.groupby("clicked", observed=True).score.mean()
    assert mean_score["both"] > 1.5 * mean_score["left_only"]


def test_under_a_random_order_clicks_fall_with_position_as_examination_does(
    spark: SparkSession,
) -> None:
    random_order = replace(
        CLEAN,
        models=(ModelQuality("random", quality=0.0),),
        click_level=0.08,
        examination_decay=0.7,
        relevance_tail=0.2,  # no factor so large that a probability is cut off at 1
        user_sigma=0.3,
    )
    log_of = in_utc(clicks(spark, random_order))
    n_queries = N_DATES * N_QUERIES
    position = log_of.impression_id.str.rsplit("-", n=1).str[1].astype(int)
    rates = position.value_counts() / n_queries
    for at in (1, 2, 5, 10, 20):
        assert rates[at] == about(0.08 * at**-0.7, n_queries)
        assert random_order.random_click_rate(at) == pytest.approx(0.08 * at**-0.7)


def test_users_differ_in_how_often_they_click(clean: Log) -> None:
    clicked = clean.impressions.merge(clean.clicks, on=ITEM, how="left")
    by_user = clicked.groupby("user_id").agg(n=("item_id", "size"), k=("click_ts", "count"))
    rate = by_user.k.sum() / by_user.n.sum()
    # of independent rows, the squared surplus of a user's clicks is their binomial variance
    dispersion = ((by_user.k - rate * by_user.n) ** 2).sum() / (rate * (1 - rate) * by_user.n).sum()
    assert dispersion > 1.3


def test_conversion_delays_are_those_of_a_real_install_log(clean: Log) -> None:
    converted = clean.conversions.merge(clean.clicks, on=ITEM)
    assert len(converted) == len(clean.conversions)
    assert len(converted) / len(clean.clicks) == about(0.5, len(clean.clicks))
    delay_s = (converted.conversion_ts - converted.click_ts).dt.total_seconds()
    quartile, median, upper_quartile, last_tenth = delay_s.quantile([0.25, 0.5, 0.75, 0.9])
    assert 20 < quartile < 80
    assert log(median / 198) == pytest.approx(0, abs=0.5)
    assert log(upper_quartile / 4_888) == pytest.approx(0, abs=0.4)
    assert log(last_tenth / 14_957) == pytest.approx(0, abs=0.3)
    assert delay_s.mean() == pytest.approx(4_500, rel=0.25)
    assert delay_s.max() <= 46_341


# The dirt


def test_a_clean_log_has_no_dirt(clean: Log) -> None:
    for table in (clean.impressions, clean.clicks, clean.conversions, clean.scores):
        assert not table.isna().any(axis=None)
        assert not table.duplicated(ITEM).any()
    assert len(clean.clicks.merge(clean.impressions, on=[*ITEM, "impression_id"])) == len(
        clean.clicks
    )
    assert not clean.impressions.user_id.isin(["", "0"]).any()
    assert (ingest_delay(clean.impressions, "event_ts") < timedelta(minutes=1)).all()


def test_duplicates_repeat_everything_but_the_time_of_arrival(dirty: Log) -> None:
    sound = dirty.impressions.dropna(subset=ITEM)
    again = sound.duplicated(ITEM)
    first = ~again
    # either delivery of a pair may have lost its keys
    assert again.sum() / first.sum() == about(0.1, first.sum())
    facts = ["query_id", "item_id", "impression_id", "position", "score", "event_ts", "user_id"]
    assert (sound.duplicated(facts) == again).all()
    arrival = sound.groupby(ITEM).ingest_ts.agg(["first", "last", "size"])
    assert (arrival["last"] > arrival["first"])[arrival["size"] == 2].mean() > 0.9


def test_scores_are_lost_as_asked(dirty: Log) -> None:
    for table in (dirty.impressions, dirty.scores):
        assert share_of(table.score.isna()) == about(0.02 + 0.03, len(table))


def test_null_and_nan_scores_are_told_apart(spark: SparkSession) -> None:
    score = impressions(spark, replace(DIRTY, n_queries=500)).select("score").toArrow()["score"]
    n_nan = sum(value != value for value in score.drop_null().to_pylist())
    assert score.null_count / len(score) == about(0.02, len(score))
    assert n_nan / len(score) == about(0.03, len(score))


def test_keys_are_lost_as_asked(dirty: Log) -> None:
    for table in (dirty.impressions, dirty.clicks, dirty.conversions):
        for key in ITEM:
            assert share_of(table[key].isna()) == about(0.04 / 2, len(table))
        assert not table[ITEM].isna().all(axis=1).any()


def test_events_are_late_as_asked(dirty: Log) -> None:
    for table, instant in (
        (dirty.impressions, "event_ts"),
        (dirty.clicks, "click_ts"),
        (dirty.conversions, "conversion_ts"),
    ):
        delay = ingest_delay(table, instant)
        assert share_of(delay > timedelta(hours=1)) == about(0.05, len(table))
        assert delay.between(timedelta(minutes=2), timedelta(hours=3)).sum() == 0


def test_unknown_users_are_null_empty_or_zero(dirty: Log) -> None:
    queries = dirty.impressions.dropna(subset="query_id").drop_duplicates("query_id")
    for is_unknown in (queries.user_id.isna(), queries.user_id == "", queries.user_id == "0"):
        assert share_of(is_unknown) == about(0.3 / 3, len(queries))


def test_a_hot_query_a_date_has_many_candidates(dirty: Log) -> None:
    sound = dirty.impressions.dropna(subset=ITEM).drop_duplicates(ITEM)
    sizes = dirty.impressions.groupby("query_id").position.max()
    assert sizes.value_counts().to_dict() == {20: N_DATES * (N_QUERIES - 1), 500: N_DATES}
    assert sound.groupby("query_id").size().max() > 400


def test_extra_clicks_are_repeated_unshown_or_orphaned_as_asked(dirty: Log) -> None:
    sound = dirty.clicks.dropna(subset=ITEM)
    is_orphan = ~sound.query_id.isin(dirty.impressions.query_id)
    is_unshown = sound.impression_id.isna() & ~is_orphan
    is_repeated = sound.duplicated(ITEM) & ~is_unshown & ~is_orphan
    n_first = (~is_orphan & ~is_unshown & ~is_repeated).sum()
    assert is_orphan.sum() / n_first == about(0.1, n_first)
    assert is_unshown.sum() / n_first == about(0.15, n_first)
    assert is_repeated.sum() / n_first == about(0.2, n_first)
    unshown = sound[is_unshown].merge(dirty.impressions, on=ITEM)
    assert unshown.empty


def ingest_delay(table: pd.DataFrame, instant: str) -> pd.Series:
    return table.ingest_ts - table[instant]


# Sizes, mistakes, files


def test_of_rows_has_about_that_many_rows() -> None:
    simulation = Simulation.of_rows(1_000_000, n_dates=3, n_items_per_query=7, seed=5)
    rows = simulation.n_dates * simulation.n_queries * simulation.n_items_per_query
    assert rows == pytest.approx(1_000_000, abs=3 * 7)
    assert simulation.seed == 5


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        Simulation(
            n_dates=0,
            n_items_per_query=600_000,
            models=(ModelQuality("v1", 1.2), ModelQuality("v1", 0.5, share=0)),
            click_level=-0.1,
            dirt=Dirt(late_share=2),
        )
    mistakes = ("n_dates", "n_catalogue_items", "'v1' is used 2", "1.2", "0", "-0.1", "late_share")
    for mistake, problem in zip(mistakes, error.value.problems, strict=True):
        assert mistake in problem


def test_generate_writes_delta_tables_by_date(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "log")
    generate(spark, SMALL_AND_DIRTY, path)
    for name, table in TABLES.items():
        written = spark.read.format("delta").load(f"{path}/{name}")
        assert written.count() == table(spark, SMALL_AND_DIRTY).count()
        assert len(list((tmp_path / "log" / name).glob("event_date=*"))) == N_DATES


def test_generate_replaces_a_log_only_when_told(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path)
    one_date = replace(SMALL_AND_DIRTY, n_dates=1)
    generate(spark, SMALL_AND_DIRTY, path, format="parquet")
    with pytest.raises(ConfigError, match="not empty"):
        generate(spark, one_date, path, format="parquet")
    assert spark.read.parquet(f"{path}/scores").count() == 2 * one_date_scores(one_date)
    generate(spark, one_date, path, format="parquet", overwrite=True)
    assert spark.read.parquet(f"{path}/scores").count() == one_date_scores(one_date)


def one_date_scores(simulation: Simulation) -> int:
    n_regular = simulation.n_queries - 1
    return n_regular * (N_ITEMS + 5) + simulation.hot_query_items + 5


@pytest.mark.parametrize(("layout", "low", "high"), [("clustered", 0.9, 1), ("scattered", 0, 0.1)])
def test_rows_of_a_query_lie_together_only_in_a_clustered_log(
    spark: SparkSession, tmp_path: Path, layout: str, low: float, high: float
) -> None:
    simulation = replace(CLEAN, n_queries=100, n_dates=1)
    generate(spark, simulation, str(tmp_path), format="parquet", layout=layout)
    (file,) = (tmp_path / "impressions").glob("event_date=*/*.parquet")
    query_id = pd.Series(pq.ParquetFile(file).read(["query_id"])["query_id"].to_pandas())
    assert low < share_of(query_id == query_id.shift()) + 1e-9 < high
