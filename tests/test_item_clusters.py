"""ctr and cvr by the clusters of users and of items: by hand, by brute force, on a real log."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tables import DAY, impressions, table, value

from ranklake import Evaluation, evaluate
from ranklake.comparison import differences, sign_flips
from ranklake.config import of_values
from ranklake.errors import ConfigError, ContractError
from ranklake.estimate import SeriesSums, added, estimated, series_of, student_t

Array = npt.NDArray[Any]
SEED = 20_260_109
BY_ITEM = ("num_by_item", "den_by_item")
BY_BOTH = ("num_by_both", "den_by_both")


# the estimate


def log_of(n: int, n_users: int, n_items: int, *, seed: int = SEED) -> dict[str, Array]:
    """n impressions, of users and items that each have luck of their own; their mean is 0.3."""
    draw = np.random.default_rng(seed)
    user, item = draw.integers(0, n_users, n), draw.integers(0, n_items, n)
    luck = draw.normal(0, 0.1, n_users)[user] + draw.normal(0, 0.1, n_items)[item]
    pair = np.unique(user * n_items + item, return_inverse=True)[1]
    clicked = 0.3 + luck + draw.normal(0, 0.3, n)
    return {"user": user, "item": item, "pair": pair, "clicked": clicked}


def part_of(log: Mapping[str, Array], stays: Array) -> dict[str, Array]:
    return {name: of[stays] for name, of in log.items()}


def sums_of(log: Mapping[str, Array], *, n_buckets: int) -> pa.Table:
    """Rows of metric_sums of ctr@1: each user, item and pair of them is a bucket of its own."""
    clusters = {"user": ("num", "den"), "item": BY_ITEM, "pair": BY_BOTH}
    lists = {
        name: np.bincount(log[by], weights=weights, minlength=n_buckets).astype(float)
        for by, names in clusters.items()
        for name, weights in zip(names, (log["clicked"], None), strict=True)
    }
    key = {"model_version": "v1", "slice": "all", "slice_value": "all", "label": "click"}
    key |= {"variant": "", "definition_hash": "h"}
    counts = {"num": lists["den"], "den": lists["den"], **dict.fromkeys(BY_ITEM + BY_BOTH)}
    rows = [
        {**key, "metric": "n_queries", "k": 0, "population": "all", **counts},
        {**key, "metric": "n_queries", "k": 0, "population": "with_relevant", **counts},
        {**key, "metric": "hit_rate", "k": 1, "population": "with_relevant", **counts},
        {**key, "metric": "ctr", "k": 1, "population": "all", **lists},
    ]
    doubles = [(name, pa.list_(pa.float64())) for name in lists]
    texts = [(name, pa.string()) for name in (*key, "metric", "population")]
    schema = pa.schema([*texts, ("k", pa.int32()), *doubles, ("fingerprint", pa.list_(pa.int64()))])
    return pa.Table.from_pylist(rows, schema=schema)


def ctr_of(sums: pa.Table) -> SeriesSums:
    """The row of ctr alone."""
    series = series_of(sums)
    return series.take([series.keys["metric"].to_pylist().index("ctr")])


def variance(clusters: Array, value_of: Callable[[Array], float]) -> float:
    """What leaving each cluster's rows out gives: the rows that stay are a mask."""
    names = np.unique(clusters)
    without = np.array([value_of(clusters != name) for name in names])
    n = len(names)
    return float((n - 1) / n * ((without - without.mean()) ** 2).sum())


def two_way(log: Mapping[str, Array], value_of: Callable[[Array], float]) -> float:
    """The standard error of Cameron, Gelbach, Miller (2011), from the rows."""
    users, items, both = (variance(log[by], value_of) for by in ("user", "item", "pair"))
    return sqrt(max(users, items, users + items - both))


def test_it_is_what_leaving_out_users_items_and_pairs_gives() -> None:
    log = log_of(1_500, 80, 40)
    found = ctr_of(sums_of(log, n_buckets=1_500)).estimates
    expected = two_way(log, lambda stays: float(log["clicked"][stays].mean()))
    assert found.value[0] == pytest.approx(log["clicked"].mean())
    assert found.std_err[0] == pytest.approx(expected)
    assert found.n_clusters[0] == 40


def test_so_is_the_difference_of_two_models() -> None:
    """Each impression is of one of them: users and items see both."""
    log = log_of(1_500, 80, 40)
    is_one = np.random.default_rng(1).random(1_500) < 0.5
    one, other = (ctr_of(sums_of(part_of(log, of), n_buckets=1_500)) for of in (is_one, ~is_one))
    found = differences(one, other)

    def means(stays: Array) -> list[float]:
        return [float(log["clicked"][of & stays].mean()) for of in (is_one, ~is_one)]

    def difference(stays: Array) -> float:
        one, other = means(stays)
        return one - other

    def relative(stays: Array) -> float:
        one, other = means(stays)
        return one / other - 1

    assert found.delta.std_err[0] == pytest.approx(two_way(log, difference))
    assert found.relative.std_err[0] == pytest.approx(two_way(log, relative))
    assert found.delta.n_clusters[0] == 40
    assert np.isnan(sign_flips(one, one)[0])  # users' signs alone say nothing of items


def test_days_are_added_bucket_by_bucket_of_either_clustering() -> None:
    log = log_of(1_200, 80, 40)
    day = np.random.default_rng(2).integers(0, 3, 1_200)
    parts = [sums_of(part_of(log, day == d), n_buckets=1_200) for d in range(3)]
    (one_go,) = sums_of(log, n_buckets=1_200).slice(3).to_pylist()
    for window in (added(parts), added([added(parts[:2]), parts[2]])):
        row = window.to_pylist()[window["metric"].to_pylist().index("ctr")]
        for name in ("num", "den", *BY_ITEM, *BY_BOTH):
            assert row[name] == pytest.approx(one_go[name])
        assert window["num_by_item"].null_count == 3  # the other metrics


def test_few_items_are_few_clusters_and_without_items_users_are_all_there_is() -> None:
    log = log_of(900, 80, 20)
    sums = sums_of(log, n_buckets=900)
    (row,) = [row for row in estimated(sums, confidence=0.95).to_pylist() if row["metric"] == "ctr"]
    assert (row["n_clusters"], row["status"], row["ci_low"]) == (20, "insufficient", None)
    found = ctr_of(sums.drop_columns([*BY_ITEM, *BY_BOTH])).estimates
    expected = sqrt(variance(log["user"], lambda stays: float(log["clicked"][stays].mean())))
    assert found.std_err[0] == pytest.approx(expected)
    assert found.n_clusters[0] == 80


def test_intervals_hold_for_other_users_and_other_items() -> None:
    """Of 300 worlds, 95 % of the intervals hold the mean; by users alone far fewer do."""
    n_worlds, is_in = 300, {"both": 0, "users": 0}
    for world in range(n_worlds):
        log = log_of(4_000, 300, 60, seed=world)
        sums = sums_of(log, n_buckets=4_000)
        for name, some in (("both", sums), ("users", sums.drop_columns([*BY_ITEM, *BY_BOTH]))):
            found = ctr_of(some).estimates
            half = student_t(found.n_clusters, 0.05)[0] * found.std_err[0]
            is_in[name] += abs(found.value[0] - 0.3) <= half
    assert 0.92 <= is_in["both"] / n_worlds <= 0.98
    assert is_in["users"] / n_worlds < 0.75


# the sums, from a log


def pairs_of(found: Evaluation, **wanted: Any) -> Mapping[str, Array]:
    """The arrays of the one row of metric_sums."""
    rows = [
        row
        for row in found.metric_sums.to_pylist()
        if all(row[name] == value for name, value in wanted.items())
    ]
    (row,) = rows
    return {name: np.array(row[name]) for name in ("num", "den", *BY_ITEM, *BY_BOTH)}


def buckets_of(spark: SparkSession, names: Sequence[str], n_buckets: int) -> dict[str, int]:
    frame = spark.createDataFrame([(name,) for name in names], "name string")
    bucket = F.expr(f"pmod(xxhash64(name), {n_buckets})")
    return {row["name"]: row["bucket"] for row in frame.withColumn("bucket", bucket).collect()}


def candidates_of_a_day() -> list[dict[str, Any]]:
    """Two models' rankings of 60 queries: some items twice, some of no advertiser, ties."""
    draw = np.random.default_rng(SEED)
    rows = []
    for query in range(60):
        shared = {"query_id": f"q{query}", "user_id": f"u{query // 2}", "n_slots": query % 3 + 1}
        for model in ("a", "b"):
            for item in draw.choice(25, size=int(draw.integers(1, 7)), replace=False):
                advertiser = None if item % 9 == 0 else f"who{item % 7}"
                row = {"item_id": f"i{item}", "advertiser_id": advertiser, "model_version": model}
                score = float(draw.integers(0, 4))
                rows.append({**shared, **row, "score": score})
                if draw.random() < 0.1:
                    rows.append({**rows[-1], "score": score - 1})
    return rows


def ranked(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The distinct candidates with their ranks: score and item_id descending."""
    best: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["score"]):
        best[row["model_version"], row["query_id"], row["item_id"]] = row
    queries: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for (model, query, _), row in best.items():
        queries[model, query].append(row)
    for candidates in queries.values():
        order = sorted(candidates, key=lambda row: (row["score"], row["item_id"]), reverse=True)
        yield from enumerate(order, start=1)


def test_every_candidate_counts_for_its_item(spark: SparkSession) -> None:
    rows = candidates_of_a_day()
    draw = np.random.default_rng(3)
    clicked = {(f"q{q}", f"i{i}") for q, i in draw.integers(0, (60, 25), size=(400, 2))}
    bought = {pair for pair in clicked if draw.random() < 0.4}
    events = {
        "clicks": table(spark, "clicks", *({"query_id": q, "item_id": i} for q, i in clicked)),
        "conversions": table(
            spark, "conversions", *({"query_id": q, "item_id": i} for q, i in bought)
        ),
    }
    found = evaluate(
        impressions(spark, *rows),
        labels=["click", "conversion"],
        measures=["ctr@2", "ctr@shown", "cvr@2", "cvr"],
        item_clusters="advertiser_id",
        n_buckets=50,
        **events,
    )
    names = {row["advertiser_id"] or row["item_id"] for row in rows}
    bucket = buckets_of(spark, sorted(names), 50)
    labels = {"click": clicked, "conversion": bought}
    for metric, k, label in (
        *(("ctr", 2, "click"), ("ctr", 2, "conversion"), ("ctr", -1, "click")),
        *(("cvr", 2, "conversion"), ("cvr", 0, "conversion")),
    ):
        for model in ("a", "b"):
            num, den = np.zeros(50), np.zeros(50)
            for rank, row in ranked(rows):
                reach = {0: rank, -1: row["n_slots"]}.get(k, k)
                if row["model_version"] != model or rank > reach:
                    continue
                pair = (row["query_id"], row["item_id"])
                at = bucket[row["advertiser_id"] or row["item_id"]]
                num[at] += pair in labels[label]
                den[at] += metric == "ctr" or pair in clicked
            of_series = pairs_of(found, metric=metric, k=k, label=label, model_version=model)
            assert of_series["num_by_item"].tolist() == num.tolist(), (metric, k, label)
            assert of_series["den_by_item"].tolist() == den.tolist(), (metric, k, label)
            for name in ("num", "den"):  # the same items, in other buckets
                totals = {of_series[f"{name}{by}"].sum() for by in ("", "_by_item", "_by_both")}
                assert totals == {num.sum() if name == "num" else den.sum()}
    others = [row for row in found.metric_sums.to_pylist() if row["metric"] not in ("ctr", "cvr")]
    assert others
    assert all(row["num_by_item"] is None for row in others)


def test_ads_of_one_advertiser_share_its_luck(spark: SparkSession, shared_data: Path) -> None:
    """KDD Cup 2012: the standard error is that of users, items and pairs left out of the rows."""
    path = shared_data / "data" / "kdd12_ads" / "click_prediction_small.parquet"
    log = spark.read.parquet(str(path)).select(
        F.lit(DAY).alias("event_date"),
        F.lit("v1").alias("model_version"),
        F.col("row_id").cast("string").alias("query_id"),
        F.col("ad_id").cast("string").alias("item_id"),
        *(F.col(name).cast("string") for name in ("user_id", "advertiser_id")),
        *("position", F.col("click").cast("double").alias("clicked")),
    )
    found = evaluate(
        log,
        metrics=["ctr"],
        ks=[1],
        rank_by="position",
        unique_key=True,
        unknown_users=["0"],
        item_clusters="advertiser_id",
    )
    rows = log.toArrow()
    users = [
        query if user == "0" else f"u{user}"
        for query, user in zip(*(rows[n].to_pylist() for n in ("query_id", "user_id")), strict=True)
    ]
    user, item = (
        np.unique(np.array(of), return_inverse=True)[1]
        for of in (users, rows["advertiser_id"].to_pylist())
    )
    clicked = rows["clicked"].to_numpy()
    residual = clicked - clicked.mean()

    def spread(clusters: Array) -> float:
        """The delta method's variance: the clusters' sums of residuals, squared."""
        sums = np.bincount(clusters, weights=residual)
        n = len(sums)
        return float(n / (n - 1) * (sums**2).sum() / len(residual) ** 2)

    both = np.unique(user.astype(np.int64) * (item.max() + 1) + item, return_inverse=True)[1]
    variances = spread(user), spread(item), spread(user) + spread(item) - spread(both)
    assert value(found.metrics, "ctr", 1, column="std_err") == pytest.approx(
        sqrt(max(variances)), rel=0.12
    )
    assert sqrt(max(variances)) > 2.5 * sqrt(spread(user))


# what it refuses


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"metrics": ["recall"]}, "expected none without ctr or cvr"),
        (
            {"metrics": ["ctr"], "candidates": ["served", "scored"]},
            "expected 'item_id' with scored candidates",
        ),
        ({"metrics": ["ctr"], "labels": ["judgment"]}, "expected none where judgments are labels"),
        ({"metrics": ["ctr"], "item_clusters": "campaign"}, "advertiser_id"),
    ],
)
def test_what_has_no_clusters_of_items_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        of_values({"item_clusters": "advertiser_id", **values})


def test_a_column_that_is_not_there_is_named(spark: SparkSession) -> None:
    rows = impressions(spark, {"item_id": "i1", "clicked": 1.0})
    with pytest.raises(ContractError, match="column 'advertiser_id' is missing and not mapped"):
        evaluate(rows, metrics=["ctr"], item_clusters="advertiser_id")
