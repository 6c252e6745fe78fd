"""evaluate --baseline and gate --record: what they write into comparisons, and what they refuse."""

import json
import random
import shutil
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from ranklake import Lake, compare, pipeline, read
from ranklake.cli import main
from ranklake.config import EvalConfig, of_values
from ranklake.errors import ConfigError, NoInputError
from ranklake.pipeline.publish import Publisher, lake_tables
from ranklake.write import create_tables

DAY = date(2026, 1, 5)
MODELS = ("s1", "s2", "s3")
N_BUCKETS = 50
RULES = [
    {"measure": "recall@1", "max_drop": 0.05},
    {"measure": "recall@1", "slice": "device", "max_drop": 0.05, "name": "on a device"},
    {"measure": "P@1", "max_drop": 0.05, "role": "info"},
]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of 600 queries of 90 users; s2 ranks better than s1, and s3 as s1 does."""
    rng = random.Random(3)
    shown: list[dict[str, Any]] = []
    clicked, scored = [], []
    for n in range(600):
        query = {"event_date": DAY, "query_id": f"q{n}"}
        device = rng.choice(["phone", "tv"])
        for item in range(5):
            key = {**query, "item_id": f"i{item}"}
            is_clicked = rng.random() < 0.25
            shown.append({**key, "user_id": f"u{n % 90}", "device": device, "position": item + 1})
            clicked += [key] if is_clicked else []
            noise = rng.random()
            for model, weight in zip(MODELS, (0.2, 0.5, 0.2), strict=True):
                score = noise + weight * is_clicked
                scored.append({**key, "model_version": model, "score": score})
    home = tmp_path_factory.mktemp("log")
    for name, rows in (("impressions", shown), ("clicks", clicked), ("scores", scored)):
        pl.DataFrame(rows).write_parquet(home / f"{name}.parquet")
    return home


def settings(log: Path, lake: Path, **changes: Any) -> dict[str, Any]:
    names = ("impressions", "clicks", "scores")
    return {
        "evaluation": "baseline_test",
        "candidates": ["scored"],
        "metrics": ["recall", "precision"],
        "ks": [1, 3],
        "n_buckets": N_BUCKETS,
        "slices": {"columns": ["device"]},
        "gate": {"rules": RULES},
        "aliases": {"production": "s1"},
        "lake": {"path": str(lake)},
        "inputs": {n: {"format": "parquet", "path": str(log / f"{n}.parquet")} for n in names},
        **changes,
    }


def config_of(log: Path, lake: Path, **changes: Any) -> EvalConfig:
    return of_values(settings(log, lake, **changes))


@pytest.fixture(scope="module")
def published(spark: SparkSession, log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the day of all three, compared with production."""
    home = tmp_path_factory.mktemp("lake")
    config = config_of(log, home)
    create_tables(spark, config.lake, lake_tables(config))
    pipeline.evaluate(spark, config, DAY, baseline="production")
    return home


@pytest.fixture
def lake(published: Path, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(published, tmp_path / "lake"))


def rows(lake: Path, *, baseline: str = "s1") -> dict[tuple[Any, ...], dict[str, Any]]:
    """The published comparisons with the baseline by what they are of, without their run."""
    names = ("model_version", "rule", "metric", "k", "slice_value")
    found = Lake(lake).comparisons(where=f"baseline_version = '{baseline}'")
    kept = found.drop_columns(["run_id"]).to_pylist()
    return {tuple(row[name] for name in names): row for row in kept}


def test_the_differences_are_those_of_the_queries(published: Path) -> None:
    found = rows(published)
    frame = pl.from_arrow(Lake(published).query_metrics(where="n_relevant > 0"))
    assert isinstance(frame, pl.DataFrame)
    for device in ("all", "phone"):
        own, other = (frame.filter(model_version=m).sort("query_id") for m in ("s2", "s1"))
        if device != "all":
            own, other = (part.filter(device=device) for part in (own, other))
        differences = (own["recall_at_1"] - other["recall_at_1"]).to_numpy()
        buckets = own["bucket"].to_numpy()
        without = np.array([differences[buckets != b].mean() for b in np.unique(buckets)])
        spread = ((without - without.mean()) ** 2).sum()
        line = found["s2", "", "recall", 1, device]
        assert line["delta"] == pytest.approx(differences.mean())
        assert line["std_err"] == pytest.approx(np.sqrt((len(without) - 1) / len(without) * spread))
        assert (line["pairing"], line["baseline_alias"]) == ("same_queries", "production")
    assert found["s2", "", "recall", 1, "all"]["ci_low"] > 0
    same = found["s3", "", "recall", 1, "all"]
    assert (same["status"], same["ci_low"], same["ci_high"]) == ("same", 0.0, 0.0)


def test_rules_have_rows_and_verdicts(published: Path) -> None:
    found = rows(published)
    assert found["s2", "recall@1", "recall", 1, "all"]["verdict"] == "PASS"
    assert found["s2", "on a device", "recall", 1, "tv"]["verdict"] == "PASS"
    unseen = found["s2", "precision@1", "precision", 1, "all"]
    assert (unseen["verdict"], unseen["reason"]) == (
        "INCONCLUSIVE",
        "judged of the top 1: unknown against unknown",
    )


def test_a_baseline_that_was_published_before_gives_the_same_rows(
    spark: SparkSession, log: Path, lake: Path
) -> None:
    before = rows(lake)
    pipeline.evaluate(spark, config_of(log, lake), DAY, models=["s2"], baseline="production")
    assert rows(lake) == before


def test_what_is_compared_with_one_baseline_leaves_the_others(
    spark: SparkSession, log: Path, lake: Path, tmp_path: Path
) -> None:
    """And recording a verdict again replaces it."""
    config, before = tmp_path / "c.toml", rows(lake)
    values = settings(log, lake, gate={"rules": RULES[:2]})
    config.write_text(_toml({name: values[name] for name in ("gate", "aliases", "lake")}))
    arguments = ["gate", "s2", "-b", "s3", "-c", str(config), "--to", str(tmp_path / "v.json")]
    for _ in range(2):
        main([*arguments, "--record"])
        recorded = rows(lake, baseline="s3")
        assert {key[:2] for key in recorded} == {("s2", "recall@1"), ("s2", "on a device")}
        assert len(recorded) == 3
        assert rows(lake) == before
    written = json.loads((tmp_path / "v.json").read_text())["rules"]
    assert {row["delta"] for row in written} == {row["delta"] for row in recorded.values()}


def _toml(values: dict[str, Any]) -> str:
    gate = [
        "[[gate.rules]]\n"
        + "\n".join(f"{key} = {json.dumps(value)}" for key, value in rule.items())
        for rule in values["gate"]["rules"]
    ]
    tables = [
        f"[{name}]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in values[name].items())
        for name in ("aliases", "lake")
    ]
    return "\n".join([*gate, *tables])


@pytest.mark.parametrize(
    ("baseline", "changes", "error", "words"),
    [
        ("s9", {}, NoInputError, r"--baseline s9: no metrics of s9 are published for 2026-01-05"),
        ("s'1", {}, ConfigError, r"--baseline s'1: found .* expected a name of a model"),
        (
            "s1",
            {"gate": {"rules": [{"measure": "recall@7", "max_drop": 0.1}]}},
            ConfigError,
            r"recall@7: measure 'recall@7' is not evaluated, known are hit_rate@1",
        ),
    ],
)
def test_what_cannot_be_compared_is_said_before_anything_is_computed(
    spark: SparkSession,
    log: Path,
    lake: Path,
    baseline: str,
    changes: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    before = {path.name: DeltaTable(path).version() for path in lake.iterdir() if path.is_dir()}
    with pytest.raises(error, match=words):
        pipeline.evaluate(spark, config_of(log, lake, **changes), DAY, baseline=baseline)
    after = {path.name: DeltaTable(path).version() for path in lake.iterdir() if path.is_dir()}
    assert {name for name in after if after[name] != before[name]} == {"runs"}


class Killed(BaseException):
    """Stands for kill -9: nothing may handle it."""


def test_a_run_killed_before_its_publication_leaves_the_comparisons(
    spark: SparkSession, log: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And Spark reads the sums as they were published, as the lake without Spark does."""
    before, replace = rows(lake), Publisher._replace

    def until_metrics(self: Publisher, table: Any, found: Any, **more: Any) -> int:
        if table.name == "metrics":
            raise Killed
        return replace(self, table, found, **more)

    monkeypatch.setattr(Publisher, "_replace", until_metrics)
    changed = config_of(log, lake, metrics=["recall"], ks=[1], gate={"rules": RULES[:2]})
    with pytest.raises(Killed):
        pipeline.evaluate(spark, changed, DAY, models=["s2"], baseline="s1")
    assert rows(lake) == before
    by_spark = read.SparkTables(spark, changed.lake)
    assert len(by_spark.metric_sums(models="s2")) == len(Lake(lake).metric_sums(models="s2"))
    asked = Comparing("s2", "s1", slices=["device"])
    assert asked.of(by_spark) == asked.of(Lake(lake))


class Comparing:
    """A question that is asked of several tables."""

    def __init__(self, *models: str, **asked: Any) -> None:
        self.models, self.asked = models, asked

    def of(self, tables: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = compare(tables, *self.models, **self.asked).rows.to_pylist()
        return sorted(found, key=str)


def test_what_a_notebook_found_is_compared_without_a_lake(
    spark: SparkSession, log: Path, published: Path
) -> None:
    found = pipeline.evaluate(spark, of_values({**settings(log, published), "lake": {}}), DAY)
    asked = Comparing("s2", "s1", metrics=["recall"])
    assert asked.of(found) == asked.of(Lake(published))
