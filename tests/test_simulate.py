"""Simulated logs: the world has the properties it claims, and the dirt is what was asked for.

Two logs are made once and looked at with pandas: CLEAN, and DIRTY, which is the same world with
every kind of dirt.
"""

from dataclasses import dataclass, replace
from datetime import date, timedelta
from math import log, sqrt
from pathlib import Path

import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from ranklake.cli import main
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


def tables_of(spark: SparkSession, simulation: Simulation) -> dict[str, DataFrame]:
    return {name: table(spark, simulation) for name, table in TABLES.items()}


def log_of(tables: dict[str, DataFrame]) -> Log:
    return Log(**{name: in_utc(table) for name, table in tables.items()})


def in_utc(table: DataFrame) -> pd.DataFrame:
    rows = table.toArrow().to_pandas()
    instants = rows.select_dtypes("datetimetz").columns
    return rows.assign(**{name: rows[name].dt.tz_convert("UTC") for name in instants})


@pytest.fixture(scope="module")
def clean_tables(spark: SparkSession) -> dict[str, DataFrame]:
    return tables_of(spark, CLEAN)


@pytest.fixture(scope="module")
def dirty_tables(spark: SparkSession) -> dict[str, DataFrame]:
    return tables_of(spark, DIRTY)


@pytest.fixture(scope="module")
def clean(clean_tables: dict[str, DataFrame]) -> Log:
    return log_of(clean_tables)


@pytest.fixture(scope="module")
def dirty(dirty_tables: dict[str, DataFrame]) -> Log:
    return log_of(dirty_tables)


@pytest.fixture(scope="module")
def small_rows(spark: SparkSession) -> dict[str, list[Row]]:
    """The rows of SMALL_AND_DIRTY, computed in one partition."""
    return {
        name: table(spark, SMALL_AND_DIRTY, n_partitions=1).collect()
        for name, table in TABLES.items()
    }


def about(share: float, n: int) -> object:
    """Equal to a share that was seen in n draws: within four standard errors."""
    return pytest.approx(share, abs=4 * sqrt(share * (1 - share) / n))


def share_of(column: pd.Series) -> float:
    return float(column.mean())


# What a simulated log is


def test_tables_have_the_columns_and_types_of_the_input_contracts(
    clean_tables: dict[str, DataFrame],
) -> None:
    slices = {"device": "string", "placement": "string", "country": "string"}
    for contract in (IMPRESSIONS, CLICKS, CONVERSIONS, SCORES):
        declared = {column.name: column.type.lower() for column in contract.columns} | slices
        types = dict(clean_tables[contract.name].dtypes)
        assert types.items() <= declared.items()
        assert set(contract.required) <= set(types)


def test_tables_are_made_without_a_shuffle_a_window_or_python(
    dirty_tables: dict[str, DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    for table in dirty_tables.values():
        table.explain()
        plan = capsys.readouterr().out
        assert "Range" in plan
        assert not [word for word in ("Exchange", "Window", "Python", "rand(") if word in plan]


def test_a_day_generated_alone_and_in_parts_is_that_day_of_the_whole_log(
    spark: SparkSession, small_rows: dict[str, list[Row]]
) -> None:
    second_date = SMALL_AND_DIRTY.first_date + timedelta(days=1)
    alone = replace(SMALL_AND_DIRTY, first_date=second_date, n_dates=1)
    for name, table in TABLES.items():
        of_second_date = [str(row) for row in small_rows[name] if row.event_date == second_date]
        assert 0 < len(of_second_date) < len(small_rows[name])
        in_parts = table(spark, alone, n_partitions=3).collect()
        assert [str(row) for row in in_parts] == of_second_date


def test_another_seed_is_another_log(spark: SparkSession, small_rows: dict[str, list[Row]]) -> None:
    other_rows = scores(spark, replace(SMALL_AND_DIRTY, seed=2)).collect()
    shared = {(row.query_id, row.item_id) for row in other_rows} & {
        (row.query_id, row.item_id) for row in small_rows["scores"]
    }
    assert len(shared) < 0.01 * len(other_rows)
    assert {row.score for row in other_rows} & {row.score for row in small_rows["scores"]} <= {None}


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
    assert queries.country.nunique() == 7


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
    random_clicks = in_utc(clicks(spark, random_order))
    n_queries = N_DATES * N_QUERIES
    position = random_clicks.impression_id.str.rsplit("-", n=1).str[1].astype(int)
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
    kept = 1 - 0.04  # either delivery of a pair may have lost its keys
    n_distinct = (~again).sum()
    assert again.sum() / n_distinct == about(0.1 * kept / (1 + 0.1 * (1 - kept)), n_distinct)
    facts = [name for name in sound.columns if name not in ("score", "ingest_ts")]
    assert sound.score.groupby(sound.impression_id).nunique().max() == 1
    assert (sound.duplicated(facts) == again).all()
    arrival = sound.groupby(ITEM).ingest_ts.agg(["first", "last", "size"])
    is_pair = arrival["size"] == 2
    # except where the first delivery is one of the late ones
    assert (arrival["last"] > arrival["first"])[is_pair].mean() > 1 - 0.05 - 0.02


def test_scores_are_lost_as_asked(dirty: Log) -> None:
    for table in (dirty.impressions, dirty.scores):
        assert share_of(table.score.isna()) == about(0.02 + 0.03, len(table))


def test_null_and_nan_scores_are_told_apart(dirty_tables: dict[str, DataFrame]) -> None:
    score = dirty_tables["scores"].select("score").toArrow()["score"]
    n_nan = pc.sum(pc.is_nan(score)).as_py()
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
    n_items = dirty.impressions.groupby("query_id").item_id.nunique()
    is_hot = n_items > 400  # some of its 500 rows have lost their keys
    assert is_hot.sum() == N_DATES
    assert n_items[~is_hot].max() == N_ITEMS


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


def test_generate_writes_delta_tables_by_date(
    spark: SparkSession, tmp_path: Path, small_rows: dict[str, list[Row]]
) -> None:
    generate(spark, SMALL_AND_DIRTY, str(tmp_path))
    for name, rows in small_rows.items():
        assert spark.read.format("delta").load(str(tmp_path / name)).count() == len(rows)
        assert len(list((tmp_path / name).glob("event_date=*"))) == N_DATES


def test_generate_replaces_a_log_only_when_told(spark: SparkSession, tmp_path: Path) -> None:
    generate(spark, SMALL_AND_DIRTY, str(tmp_path), format="parquet")
    before = files_below(tmp_path / "impressions")
    assert len(before) == N_DATES
    assert share_beside_its_query(before[0]) > 0.9

    one_date = replace(SMALL_AND_DIRTY, n_dates=1)
    with pytest.raises(ConfigError, match="not empty"):
        generate(spark, one_date, str(tmp_path), format="parquet")
    assert files_below(tmp_path / "impressions") == before

    generate(spark, one_date, str(tmp_path), format="parquet", layout="scattered", overwrite=True)
    (after,) = files_below(tmp_path / "impressions")
    assert after not in before
    assert share_beside_its_query(after) < 0.3


def files_below(directory: Path) -> list[Path]:
    return sorted(directory.glob("event_date=*/*.parquet"))


def share_beside_its_query(file: Path) -> float:
    """Of a file's rows, how many follow a row of the same query."""
    query_id = pq.ParquetFile(file).read(["query_id"])["query_id"].to_pandas()
    return share_of(query_id.ffill() == query_id.ffill().shift())


@pytest.mark.parametrize("models", ["", "v1,", "v 1"])
def test_a_model_that_could_not_be_published_is_not_generated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], models: str
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["generate", str(tmp_path / "log"), "--models", models])
    assert stop.value.code == 2
    assert "expected names that match" in capsys.readouterr().err
    assert not (tmp_path / "log").exists()
