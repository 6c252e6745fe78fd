"""The engine that executes the plans: how Comet is asked for, missed and seen."""

import subprocess
import sys
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pyspark
import pytest
from pyspark.errors import AnalysisException

from ranklake import Lake, engine, evaluate, simulate
from ranklake.cli import main
from ranklake.config import of_values
from ranklake.engine import Coverage, running
from ranklake.engine.native import coverage
from ranklake.errors import ConfigError, RanklakeWarning
from ranklake.session import jars, local, memory, session
from ranklake.session.java import Java, supported_java

DAY = date(2026, 1, 1)
WITH_COMET = {**engine.SETTINGS, "spark.memory.offHeap.size": "1g"}


def supplied(settings: dict[str, str], version: str = "4.1.3") -> SimpleNamespace:
    """A session with these settings, as far as the engine is concerned."""
    return SimpleNamespace(conf=dict(settings), version=version)


# which one runs


def test_a_session_with_all_of_comets_settings_runs_on_it():
    assert engine.engine_of(supplied(WITH_COMET)) == "comet"
    beside_another = {**WITH_COMET, "spark.plugins": f"a.B,{engine.SETTINGS['spark.plugins']}"}
    assert engine.engine_of(supplied(beside_another)) == "comet"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.plugins", ""),
        ("spark.shuffle.manager", "sort"),
        ("spark.memory.offHeap.enabled", "false"),
        ("spark.comet.enabled", "false"),
        ("spark.comet.exec.enabled", "false"),
    ],
)
def test_a_session_that_lacks_one_of_them_runs_on_the_jvm(key, value):
    lacks_one = supplied({**WITH_COMET, key: value})
    assert engine.engine_of(lacks_one) == "jvm"
    (phrase,) = running.lacking(lacks_one)
    assert phrase.startswith(f"{key} is {value!r}, expected ")


def test_a_session_that_does_not_tell_its_settings_runs_on_the_jvm():
    def refuse(key: str, default: str) -> str:
        raise AnalysisException("[CONFIG_NOT_AVAILABLE]")

    assert engine.engine_of(SimpleNamespace(conf=SimpleNamespace(get=refuse))) == "jvm"


def test_the_tests_own_session_runs_on_the_jvm(spark):
    assert engine.engine_of(spark) == "jvm"


# what is missing


def test_a_supplied_session_without_comet_is_left_alone_and_the_flags_are_told():
    without = supplied({"spark.plugins": ""})
    with pytest.warns(RanklakeWarning) as warned:
        engine.warn_unless_running(without, "comet")
    (sentence,) = [str(warning.message) for warning in warned]
    assert "spark.plugins is '', expected org.apache.spark.CometPlugin" in sentence
    assert "the JVM executes the plans instead" in sentence
    assert f"--packages {engine.comet_package('4.1.3')}" in sentence
    assert all(f"--conf {key}={value}" in sentence for key, value in engine.SETTINGS.items())
    assert without.conf == {"spark.plugins": ""}


def test_a_supplied_session_of_a_spark_without_a_build_is_not_told_flags():
    with pytest.warns(RanklakeWarning, match=r"found Spark 4\.2\.0, has builds for 4\.1 only"):
        engine.warn_unless_running(supplied({}, version="4.2.0"), "comet")


def test_nothing_is_said_where_the_engine_runs_or_the_jvm_was_asked_for():
    engine.warn_unless_running(supplied(WITH_COMET), "comet")
    engine.warn_unless_running(supplied({}), "jvm")


def test_the_session_that_is_there_is_returned_with_one_warning(spark):
    before = spark.conf.getAll
    with pytest.warns(RanklakeWarning, match="this session lacks it") as warned:
        assert session(engine="comet") is spark
    assert len(warned) == 1
    assert spark.conf.getAll == before


def test_the_notebooks_frames_decide_the_engine(spark):
    shown = spark.createDataFrame(
        [("q", "a", 1.0)], "query_id string, item_id string, score double"
    )
    clicked = shown.select("query_id", "item_id")
    with pytest.warns(RanklakeWarning, match="this session lacks it"):
        found = evaluate(shown, clicked, engine="comet", measures=["RR@1"])
    values = {(r["metric"], r["population"]): r["value"] for r in found.metrics.to_pylist()}
    assert values["rr", "all"] == 1.0


# the session on this machine


def test_the_total_is_divided_and_stays_the_total(monkeypatch):
    monkeypatch.setenv("RANKLAKE_DRIVER_MEMORY", "2g")
    settings = local.settings([Path("/delta.jar")], Path("/w"), comet=Path("/comet.jar"))
    heap, off_heap = settings["spark.driver.memory"], settings["spark.memory.offHeap.size"]
    assert (heap, off_heap) == memory.heap_and_off_heap("2g") == ("819m", "1229m")
    assert 819 + 1229 == 2 * 1024


def test_comets_settings_come_with_its_jar_only(monkeypatch):
    monkeypatch.setenv("RANKLAKE_DRIVER_MEMORY", "2g")
    plain = local.settings([Path("/delta.jar")], Path("/w"))
    with_comet = local.settings([Path("/delta.jar")], Path("/w"), comet=Path("/comet.jar"))
    assert plain["spark.jars"] == "/delta.jar"
    assert plain["spark.driver.memory"] == "2g"
    assert not {*engine.SETTINGS, "spark.driver.extraClassPath"} & {*plain}
    assert with_comet["spark.jars"] == "/delta.jar,/comet.jar"
    assert with_comet["spark.driver.extraClassPath"] == "/comet.jar"
    assert engine.engine_of(supplied(with_comet)) == "comet"


@pytest.mark.parametrize("version", ["4.0.1", "4.2.0"])
def test_a_spark_without_a_build_falls_back_to_the_jvm(monkeypatch, tmp_path, version):
    monkeypatch.setattr(local.pyspark, "__version__", version)
    with pytest.warns(RanklakeWarning, match=f"found Spark {version}, has builds for 4.1 only"):
        assert local.comet_or_warning(Java(tmp_path, 17)) is None


def test_a_jar_that_cannot_be_had_falls_back_to_the_jvm(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKLAKE_CACHE", str(tmp_path))
    monkeypatch.setattr(local.pyspark, "__version__", "4.1.3")
    monkeypatch.setattr(jars, "_resolve", lambda *arguments: None)
    with pytest.warns(RanklakeWarning) as warned:
        assert local.comet_or_warning(Java(tmp_path, 17)) is None
    (sentence,) = [str(warning.message) for warning in warned]
    assert (
        "org.apache.datafusion:comet-spark-spark4.1_2.13:1.2.0 could not be downloaded" in sentence
    )
    assert "python -m ranklake.session --engine comet" in sentence
    assert "the JVM executes the plans instead" in sentence


def test_a_jvm_that_began_without_the_jar_cannot_take_it_up(spark, monkeypatch, tmp_path):
    monkeypatch.setattr(local, "comet_jar", lambda *arguments: tmp_path / "comet.jar")
    with pytest.warns(RanklakeWarning, match="began with a JVM without it.*start a new process"):
        assert local.comet_or_warning(Java(tmp_path, 17)) is None


@pytest.mark.filterwarnings("default")
def test_the_command_line_says_a_warning_as_a_sentence(spark, capsys):
    with pytest.raises(SystemExit):  # there are no inputs
        main(["check", "--set", "engine=comet"])
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("warning: engine: comet was asked for, but this session lacks it (")


def test_an_engine_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="engine: found 'photon', expected 'jvm' or 'comet'"):
        of_values({"engine": "photon"})


# the plan

EXPLAINED = """\
CometNativeColumnarToRow
+- CometUnion
   :- CometProject
   :  +-  CometSparkColumnarToColumnar [COMET: Unsupported file format Parquet]
   :     +-  Scan parquet  [COMET: Unsupported file format Parquet]
   +- CometColumnarToRow
      +-  SortAggregate [COMET: SortAggregate is not supported, nor [this]]
         :- ReusedExchange
         +- Window

Comet accelerated 3 out of 6 eligible operators (50%). Final plan contains 2 transitions.
"""


def test_the_nodes_that_are_not_native_are_told_with_comets_reasons():
    assert coverage(EXPLAINED) == Coverage(
        n_native=3,  # the union, the projection, and a hand-over that is not at the top
        scans=("Scan parquet",),
        foreign=("SortAggregate (SortAggregate is not supported, nor [this])", "Window"),
    )


def test_a_scan_that_is_not_handed_over_is_not_native():
    explained = "Project [COMET: its input is not native]\n+-  Scan csv  [COMET: csv]\n"
    assert coverage(explained).foreign == ("Project (its input is not native)", "Scan csv (csv)")
    assert coverage(explained).scans == ()


def test_a_session_without_comet_or_without_a_jvm_does_not_tell(spark):
    assert engine.coverage_of(spark.range(1)) is None
    assert engine.coverage_of(SimpleNamespace(sparkSession=SimpleNamespace())) is None


# the numbers

COMMANDS = """
import sys
from ranklake.cli import main
for command in ("init", "check", "evaluate"):
    main([command, *sys.argv[1:], *([] if command == "init" else ["--date", "2026-01-01"])])
"""


@pytest.fixture(scope="module")
def log(spark, tmp_path_factory) -> Path:
    """A small log of two models, in Delta tables."""
    directory = tmp_path_factory.mktemp("engine") / "log"
    small = simulate.Simulation.of_rows(
        3000,
        n_dates=1,
        n_items_per_query=10,
        seed=7,
        first_date=DAY,
        models=simulate.rising_models(["v1", "v2"]),
    )
    simulate.generate(spark, small, str(directory), format="delta", layout="scattered")
    return directory


def arguments(log: Path, lake: Path, name: str) -> list[str]:
    settings = {
        "engine": name,
        "lake.path": lake,
        "inputs.impressions.path": log / "impressions",
        "inputs.clicks.path": log / "clicks",
        "measures": "['AP', 'auc', 'nDCG(gain=exp2)@10']",
        "slices.columns": "['device']",
    }
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def published(lake: Path) -> dict[tuple, float]:
    """Every number in metrics that is not null, by its series and column."""
    key = ("model_version", "label", "metric", "variant", "k", "population", "slice", "slice_value")
    numbers = ("value", "std_err", "ci_low", "ci_high", "num", "den", "n_queries", "n_clusters")
    return {
        (*(row[name] for name in key), number): row[number]
        for row in Lake(lake).metrics().to_pylist()
        for number in numbers
        if row[number] is not None
    }


def skip_without_comet() -> None:
    try:
        jars.comet_jar(pyspark.__version__, supported_java())
    except ConfigError as error:
        pytest.skip(f"no Comet to compare with: {error}")


def test_comet_publishes_the_numbers_of_the_jvm(spark, log, tmp_path):
    skip_without_comet()
    # Another engine needs another JVM, and so another process.
    given = arguments(log, tmp_path / "comet", "comet")
    ran = subprocess.run(
        [sys.executable, "-c", COMMANDS, *given], capture_output=True, text=True, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    assert "warning" not in ran.stderr
    assert "INFO" not in ran.stderr
    assert "2026-01-01: engine: comet, every node is native (" in ran.stdout
    for command in ("init", "evaluate"):
        date_of = ["--date", str(DAY)] if command == "evaluate" else []
        main([command, *arguments(log, tmp_path / "jvm", "jvm"), *date_of, "--quiet"])
    values = {name: published(tmp_path / name) for name in ("jvm", "comet")}
    assert len(values["jvm"]) > 100
    assert values["comet"] == pytest.approx(values["jvm"], rel=1e-12, abs=1e-12)
    engines = {name: set(Lake(tmp_path / name).runs()["engine"].to_pylist()) for name in values}
    assert engines == {"jvm": {"jvm"}, "comet": {"comet"}}
