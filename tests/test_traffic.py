"""Queries that no person made: each rule at, below and above its limit; removed as a whole."""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tables import DAY, clicks, impressions, table, value

from ranklake import evaluate, traffic

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICRO, MINUTE, HOUR = timedelta(microseconds=1), timedelta(minutes=1), timedelta(hours=1)
Row = Mapping[str, Any]


def asked(spark: SparkSession, shown: Sequence[Row]) -> DataFrame:
    """The impressions, with hashes: of item a at noon, unless a row says otherwise."""
    rows = impressions(spark, *[{"item_id": "a", "event_ts": NOON, **row} for row in shown])
    return rows.withColumn("query_hash", F.xxhash64("query_id"))


def matched(spark: SparkSession, clicked: Sequence[Row]) -> DataFrame:
    """The clicks, as they are once they are matched: of item a at noon."""
    rows = clicks(spark, *[{"item_id": "a", "click_ts": NOON, **row} for row in clicked])
    return rows.withColumnRenamed("click_ts", "happened_at")


def removed(
    spark: SparkSession,
    shown: Sequence[Row],
    clicked: Sequence[Row] | None = None,
    listed: Sequence[Row] | None = None,
    *,
    without: Sequence[str] = (),
    by_day: bool = False,
    **limits: Any,
) -> set[tuple[str, str]]:
    """The queries that are removed, each with the rule; impressions lack the columns `without`."""
    found = traffic.broken(
        asked(spark, shown).drop(*without),
        clicks=None if clicked is None else matched(spark, clicked),
        listed=None if listed is None else table(spark, "invalid_traffic", *listed),
        limits=traffic.Limits(**limits),
        by_day=by_day,
    ).collect()
    told = [(row["query_id"], row["rule"]) for row in found]
    assert len(told) == len(set(told))
    return set(told)


def later(rows: Sequence[Row], column: str) -> list[Row]:
    """The same rows 7 minutes later: no hour or minute on the clock is what it was."""
    return [
        {**row, column: row.get(column, NOON) and row.get(column, NOON) + 7 * MINUTE}
        for row in rows
    ]


def test_more_queries_within_an_hour_than_a_person_asks(spark: SparkSession) -> None:
    """Two are allowed: three within 60 minutes are too many, also over the hour on the clock."""
    begun = {
        "as many": [HOUR, HOUR],
        "at the end": [0 * HOUR, 30 * MINUTE, HOUR],
        "just later": [0 * HOUR, 30 * MINUTE, HOUR + MICRO],
        "at once": [HOUR, HOUR, HOUR, 5 * HOUR],
        "in between": [0 * HOUR, 2 * HOUR, 3 * HOUR - MICRO, 3 * HOUR, 9 * HOUR],
        None: [0 * HOUR] * 5,
    }
    shown = [
        {"query_id": f"{user} {n}", "user_id": user, "event_ts": NOON + after}
        for user, times in begun.items()
        for n, after in enumerate(times)
    ]
    again = [{**row, "item_id": "b", "event_ts": row["event_ts"] + 2 * HOUR} for row in shown]
    bad = {
        (f"{user} {n}", "queries_per_hour")
        for user in ("at the end", "at once", "in between")
        for n in range(len(begun[user]))
    }
    assert removed(spark, [*shown, *again], queries_per_hour=2) == bad
    assert removed(spark, later([*again, *shown], "event_ts"), queries_per_hour=2) == bad


def test_more_clicks_within_a_minute_than_a_hand_makes(spark: SparkSession) -> None:
    """Two are allowed; a copy of a click is none of its own, nor is one of a query elsewhere."""
    users = {"q1": "fast", "q2": "fast", "q3": "slow", "q4": None, "q5": None, "q6": None}
    shown = [{"query_id": query, "user_id": user} for query, user in users.items()]
    shown += [{"query_id": "q7", "user_id": "at once"}, {"query_id": "q8", "user_id": "at once"}]
    shown += [{"query_id": "q9", "user_id": "of a delivery that nobody knows"}]
    clicked = [
        {"query_id": "q1"},
        {"query_id": "q2"},
        {"query_id": "q2", "click_ts": NOON + MINUTE},
        *[{"query_id": "q3"}] * 3,
        {"query_id": "q3", "click_ts": NOON + MINUTE / 2},
        {"query_id": "q3", "click_ts": NOON + MINUTE + MICRO},
        *[{"query_id": "q3", "item_id": item, "click_ts": None} for item in "abc"],
        *[{"query_id": "q4", "click_ts": NOON + n * MICRO} for n in range(3)],
        *[{"query_id": query, "item_id": item} for query in ("q5", "q6") for item in "ab"],
        *[{"query_id": "q7", "item_id": item} for item in "abc"],
        *[{"query_id": "q9", "item_id": item} for item in ("a", "b", None, None)],
        *[{"query_id": "elsewhere", "click_ts": NOON + n * MICRO} for n in range(9)],
    ]
    bad = {(query, "clicks_per_minute") for query in ("q1", "q2", "q4", "q7", "q8", "q9")}
    assert removed(spark, shown, clicked, clicks_per_minute=2) == bad
    assert removed(spark, shown, later(clicked, "click_ts"), clicks_per_minute=2) == bad


def test_more_of_the_shown_items_clicked_than_anybody_likes(spark: SparkSession) -> None:
    """From four shown items on, more than half: of distinct items that were shown."""
    shown = [
        {"query_id": query, "user_id": user, "item_id": item}
        for user, query, items in (
            ("half", "q1", "abcd"),
            ("more", "q2", "abc"),
            ("more", "q3", "ab"),
            ("few", "q4", "abc"),
            (None, "q5", "abcd"),
        )
        for item in items
    ]
    clicked = [
        {"query_id": query, "item_id": item}
        for query, items in (
            ("q1", "aabbxyz"),
            ("q2", "abc"),
            ("q4", "abc"),
            ("q5", "abc"),
        )
        for item in items
    ]
    bad = {("q2", "click_rate"), ("q3", "click_rate"), ("q5", "click_rate")}
    found = removed(spark, [*shown, *shown], clicked, click_rate=0.5, min_impressions=4)
    assert found == bad


def test_a_share_at_the_limit_is_not_larger(spark: SparkSession) -> None:
    """29 of 100 are 0.29, though 0.29 * 100 is less than 29 in binary; 99 items are too few."""
    sizes = {"at": (29, 100), "above": (30, 100), "few": (99, 99)}
    shown = [
        {"query_id": user, "user_id": user, "item_id": f"{n}"}
        for user, (_, n_shown) in sizes.items()
        for n in range(n_shown)
    ]
    clicked = [
        {"query_id": user, "item_id": f"{n}"}
        for user, (n_clicked, _) in sizes.items()
        for n in range(n_clicked)
    ]
    bad = {("above", "click_rate")}
    assert removed(spark, shown, clicked, click_rate=0.29, min_impressions=100) == bad


def test_a_listed_query_or_any_query_of_a_listed_user(spark: SparkSession) -> None:
    shown = [
        {"query_id": query, "user_id": user}
        for query, users in {
            "query": ["u"],
            "u's other": ["u"],
            "user": ["bot"],
            "two users": ["u", "bot", "v"],
            "half known": [None, "bot"],
            "nobody": [None],
            "one row's query": ["w"],
            "one row's user": ["x"],
            "bot": [None],
            "": [""],
        }.items()
        for user in users
    ]
    queries = [{"query_id": "query"}, {"query_id": None}, {"query_id": "elsewhere"}]
    users = [{"user_id": "bot"}, {"user_id": None}, {"user_id": "bot"}]
    both = [
        {"query_id": None, "user_id": None},
        {"query_id": "", "user_id": ""},
        {"query_id": "one row's query", "user_id": "x"},
    ]
    of_users = {"user", "two users", "half known"}
    of_both = {"one row's query", "one row's user"}
    for listed, bad in (
        (queries, {"query"}),
        (users, of_users),
        ([*queries, *users, *both], {"query"} | of_users | of_both),
    ):
        assert removed(spark, shown, listed=listed) == {(query, "table") for query in bad}


def test_one_bad_user_on_its_rows_takes_a_query_along(spark: SparkSession) -> None:
    """The other user's queries stay. A user and a query of nobody may have the same name."""
    shown = [
        {"query_id": query, "user_id": user, "item_id": item}
        for query, user in (
            ("shared", "bot"),
            ("shared", "good"),
            ("bot's", "bot"),
            ("good's", "good"),
            ("name", None),
            ("name's", "name"),
        )
        for item in "abcd"
    ]
    clicked = [
        {"query_id": query, "item_id": item}
        for query, items in (("bot's", "abc"), ("name", "ab"), ("name's", "cd"))
        for item in items
    ]
    bad = {(query, "clicks_per_minute") for query in ("bot's", "shared")}
    assert removed(spark, shown, clicked, clicks_per_minute=2) == bad


def test_nobody_breaks_a_rule_that_has_nothing_to_look_at(spark: SparkSession) -> None:
    shown = [{"query_id": f"q{n}", "user_id": "u"} for n in range(3)]
    clicked = [{"query_id": "q1", "click_ts": NOON + n * MICRO} for n in range(3)]
    rules = {"queries_per_hour": 1, "clicks_per_minute": 1, "click_rate": 0.1}
    timeless = removed(spark, shown, clicked, without=["event_ts"], **rules)
    of_clicks = ("clicks_per_minute", "click_rate")
    assert timeless == {(f"q{n}", rule) for n in range(3) for rule in of_clicks}
    apart = removed(spark, shown, clicked, without=["user_id"], **rules)
    assert apart == {("q1", rule) for rule in of_clicks}
    unclicked = removed(spark, shown, **rules)
    assert unclicked == {(f"q{n}", "queries_per_hour") for n in range(3)}
    assert removed(spark, shown, clicks_per_minute=1, click_rate=0.1) == set()


def test_of_several_days_each_is_judged_alone(spark: SparkSession) -> None:
    """Two queries an hour are allowed: four around midnight are two on each of two days."""
    midnight = datetime(2026, 1, 2, tzinfo=UTC)
    shown = [
        {
            "query_id": f"{user} {n}",
            "user_id": user,
            "event_ts": midnight + n * MINUTE,
            "event_date": DAY + timedelta(days=int(n >= 0)),
        }
        for user, minutes in (("over", (-2, -1, 0, 1)), ("after", (-1, 1, 2, 3)))
        for n in minutes
    ]
    listed = [{"user_id": "over", "event_date": DAY}]
    bad = {(f"after {n}", "queries_per_hour") for n in (1, 2, 3)}
    bad |= {("over -2", "table"), ("over -1", "table")}
    assert removed(spark, shown, listed=listed, by_day=True, queries_per_hour=2) == bad


def most(times: Iterable[datetime], within: timedelta) -> int:
    """How many of the times lie at most so far apart, both ends included."""
    every = list(times)
    return max((sum(t <= u <= t + within for u in every) for t in every), default=0)


def expected(
    shown: Sequence[Row], clicked: Sequence[Row], listed: Sequence[Row], limits: traffic.Limits
) -> Iterator[tuple[str, str]]:
    """What docs/labels.md says, user by user, slowly."""
    rows = defaultdict(list)
    for row in shown:
        user = row["user_id"]
        rows["query" if user is None else "user", user or row["query_id"]].append(row)
        if any(name[key] == row[key] for name in listed for key in name if name[key]):
            yield row["query_id"], "table"
    for theirs in rows.values():
        queries = {row["query_id"] for row in theirs}
        items = {(row["query_id"], row["item_id"]) for row in theirs}
        made = [row for row in clicked if row["query_id"] in queries]
        begun = [min(r["event_ts"] for r in theirs if r["query_id"] == q) for q in queries]
        copies = {(r["query_id"], r["item_id"], r["click_ts"]) for r in made if r["click_ts"]}
        liked = items & {(row["query_id"], row["item_id"]) for row in made}
        is_too_much = {
            "queries_per_hour": most(begun, HOUR) > limits.queries_per_hour,
            "clicks_per_minute": most((at for *_, at in copies), MINUTE) > limits.clicks_per_minute,
            "click_rate": len(items) >= limits.min_impressions
            and Fraction(len(liked), len(items)) > Fraction(str(limits.click_rate)),
        }
        yield from ((q, rule) for q in queries for rule, is_bad in is_too_much.items() if is_bad)


def some_log(chance: random.Random) -> tuple[list[Row], list[Row], list[Row]]:
    """Impressions, clicks and a list, with times that are an hour or a minute apart, or nearly."""
    users = {f"q{n}": chance.choice((0.1, 0.4, 0.8)) for n in range(30)}
    shown: list[Row] = []
    clicked: list[Row] = []
    for n in range(240):
        query, likes = f"q{n}", chance.choice(list(users.values()))
        owners = chance.choices([*users, None], k=1 + (n % 9 == 0))
        owners = owners if None not in owners else [None]
        begun = NOON + chance.randrange(12) * 20 * MINUTE + chance.choice((-1, 0, 0, 1)) * MICRO
        likes = users.get(owners[0] or "", likes)
        for item in "abcdef"[: chance.randint(1, 6)]:
            at = begun + chance.choice((0, 0, 5)) * MINUTE
            shown += [
                {"query_id": query, "user_id": user, "item_id": item, "event_ts": at}
                for user in owners
                for _ in range(chance.choice((1, 1, 2)))
            ]
        for item in "abcdefg":
            if chance.random() < likes:
                at = NOON + chance.randrange(40) * MINUTE / 3 + chance.choice((-1, 0, 1)) * MICRO
                click = {
                    "query_id": query,
                    "item_id": item,
                    "click_ts": chance.choice((at, at, None)),
                }
                clicked += [click] * chance.choice((1, 1, 2))
    clicked += [{"query_id": "elsewhere", "item_id": "a", "click_ts": NOON}] * 20
    listed = [{"query_id": f"q{n}", "user_id": None} for n in chance.sample(range(300), 9)]
    return shown, clicked, [*listed, {"query_id": None, "user_id": "q7"}]


def test_every_rule_agrees_with_a_slow_reading_of_the_specification(spark: SparkSession) -> None:
    seed = 20260101
    shown, clicked, listed = some_log(random.Random(seed))
    limits = {
        "queries_per_hour": 3,
        "clicks_per_minute": 4,
        "click_rate": 0.4,
        "min_impressions": 20,
    }
    told = list(expected(shown, clicked, listed, traffic.Limits(**limits)))
    by_rule = {rule: len({q for q, r in told if r == rule}) for rule in traffic.RULES}
    assert all(5 < n < 200 for n in by_rule.values()), by_rule
    assert removed(spark, shown, clicked, listed, **limits) == set(told), f"seed {seed}"


def test_a_removed_query_counts_nowhere_but_in_quality(spark: SparkSession) -> None:
    """Listed by query or by user; a query with one bad user on its rows goes as a whole."""
    shown = impressions(
        spark,
        *[
            {"query_id": query, "item_id": item, "user_id": user, "score": -ord(item) * 1.0}
            for query, item, user in (
                ("listed", "a", "u"),
                ("good", "a", "u"),
                ("good", "b", "u"),
                ("good", "b", "u"),
                ("two users", "a", "u"),
                ("two users", "b", "bot"),
                ("two users", "b", "bot"),
                ("nobody", "a", None),
            )
        ],
    )
    clicked = clicks(
        spark,
        *[
            {"query_id": query, "item_id": item}
            for query, item in (
                ("listed", "a"),
                ("good", "b"),
                ("two users", "a"),
                ("two users", "a"),
                ("two users", "elsewhere"),
            )
        ],
    )
    bad = table(
        spark,
        "invalid_traffic",
        {"query_id": "listed", "user_id": None},
        {"query_id": None, "user_id": "bot"},
        {"query_id": "good", "user_id": None, "event_date": datetime(2026, 1, 2).date()},
        {"query_id": None, "user_id": None},
    )
    found = evaluate(
        shown,
        clicked,
        invalid_traffic=bad,
        day=datetime(2026, 1, 1).date(),
        ks=[1, 2],
        metrics=["recall", "precision"],
    )
    assert value(found.metrics, "recall", 2, column="n_queries") == 2
    assert value(found.metrics, "recall", 1) == 0
    assert value(found.metrics, "recall", 2) == 1
    quality = {row["name"]: row["value"] for row in found.quality.to_pylist()}
    assert quality["impressions.kept"] == 3
    assert quality["impressions.dropped.invalid_traffic"] == 3
    assert quality["impressions.dropped.redelivered"] == 2
    assert quality["clicks.dropped.invalid_traffic"] == 4
    assert quality["clicks.kept"] == 1
    assert quality["queries.invalid_traffic"] == 2
    assert quality["traffic.table"] == 2


def test_no_row_moves_for_a_query_to_be_removed(spark: SparkSession) -> None:
    rows = impressions(spark, {"item_id": "a"}).withColumn("query_hash", F.xxhash64("query_id"))
    bad = rows.select("query_hash", "query_id").distinct()
    plan = str(traffic.kept(rows, removed=bad)._jdf.queryExecution().executedPlan().toString())
    rows_side = plan.split("BroadcastExchange")[0]  # what is above the broadcast, and the join
    assert "BroadcastHashJoin" in rows_side
    assert "Exchange hashpartitioning" not in rows_side


def test_rows_are_reduced_before_anything_is_shuffled(spark: SparkSession, tmp_path: Path) -> None:
    shown, clicked, listed = some_log(random.Random(1))
    frames = {
        "shown": asked(spark, shown),
        "clicked": matched(spark, clicked),
        "listed": table(spark, "invalid_traffic", *listed),
    }
    stored = {}
    for name, rows in frames.items():
        rows.write.parquet(str(tmp_path / name))
        stored[name] = spark.read.parquet(str(tmp_path / name))
    found = traffic.broken(
        stored["shown"],
        clicks=stored["clicked"],
        listed=stored["listed"],
        limits=traffic.Limits(queries_per_hour=3, clicks_per_minute=4, click_rate=0.4),
    )
    plan = str(found._jdf.queryExecution().executedPlan().toString())
    for costly in ("Python", "CartesianProduct", "BroadcastNestedLoopJoin", "collect_", "Generate"):
        assert costly not in plan
    shuffled = plan.split(" Exchange hashpartitioning")[1:]
    assert len(shuffled) > 3
    assert all(
        side.index("HashAggregate") < (side + "FileScan").index("FileScan") for side in shuffled
    )
