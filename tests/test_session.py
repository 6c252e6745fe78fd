import os
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ranklake.errors import ConfigError
from ranklake.session import (
    jars,
    java,
    local,
    memory,
    session,
    stop,
    task_progress,
    trust,
    versions,
)
from ranklake.session.java import Java

GIB = 1024**3


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Each test fills a cache of its own, except where it needs the shared session."""
    if "spark" not in request.fixturenames:
        monkeypatch.setenv("RANKLAKE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def only_these_javas(monkeypatch: pytest.MonkeyPatch):
    """Hide the machine's own Java: only JAVA_HOME and the PATH of the test count."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(java, "USUAL_PLACES", ())
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)


def fake_java(home: Path, specification: str) -> Path:
    """An executable that describes itself as a Java of that version, and echoes other calls."""
    return executable(
        home / "bin" / "java",
        f"""\
if [ "$1" = -XshowSettings:properties ]; then
  echo '    java.home = {home}' >&2
  echo '    java.specification.version = {specification}' >&2
else
  for argument do echo "$argument"; done
fi
""",
    )


def executable(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{body}")
    path.chmod(0o755)
    return path


# versions


@pytest.mark.parametrize("version", ["4.0.1", "4.1.3", "4.2.0"])
def test_a_tested_pyspark_is_accepted(version):
    assert versions.check_installed(version) == version


@pytest.mark.parametrize("version", ["3.5.7", "4.0.0", "4.2.1", "4.10.0"])
def test_another_pyspark_is_refused_with_found_and_expected(version):
    with pytest.raises(ConfigError, match=rf"found {version}, expected 4\.0\.1 to 4\.2\.0"):
        versions.check_installed(version)


@pytest.mark.parametrize("version", ["4.0.0", "4.1.3", "4.2.7", "4.1.0.dev1"])
def test_a_platform_may_supply_any_patch_of_4_0_to_4_2(version):
    assert versions.check_supplied(version) == version


@pytest.mark.parametrize("version", ["3.5.7", "4.3.0", "5.0.0"])
def test_a_supplied_session_of_another_spark_is_refused(version):
    with pytest.raises(ConfigError, match=f"found Spark {version}, expected 4.0.0 to 4.2.x"):
        versions.check_supplied(version)


# Java


@pytest.mark.parametrize("version", [17, 21])
def test_a_supported_java_home_is_used(tmp_path, monkeypatch, only_these_javas, version):
    fake_java(tmp_path, str(version))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.supported_java() == Java(tmp_path, version)


def test_an_unsupported_java_home_gives_way_to_the_path(tmp_path, monkeypatch, only_these_javas):
    fake_java(tmp_path / "new", "25")
    fake_java(tmp_path / "right", "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    monkeypatch.setenv("PATH", str(tmp_path / "right" / "bin"))
    assert java.supported_java() == Java(tmp_path / "right", 17)


def test_only_unsupported_javas_are_named(tmp_path, monkeypatch, only_these_javas):
    fake_java(tmp_path / "new", "25")
    fake_java(tmp_path / "old", "1.8")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    monkeypatch.setenv("PATH", str(tmp_path / "old" / "bin"))
    with pytest.raises(ConfigError) as refused:
        java.supported_java()
    assert f"found 25 ({tmp_path / 'new'}), 8 ({tmp_path / 'old'})" in str(refused.value)
    assert "expected 17 or 21" in str(refused.value)


def test_without_java_the_error_says_what_to_run(only_these_javas):
    with pytest.raises(ConfigError, match=r"found none.*pip install 'ranklake\[java\]'"):
        java.supported_java()


def test_a_version_managers_shim_leads_to_the_real_home(tmp_path):
    real = fake_java(tmp_path / "real", "17")
    shim = executable(tmp_path / "shims" / "java", f'exec {real} "$@"\n')
    assert java.inspected(shim) == Java(tmp_path / "real", 17)


def test_what_is_not_java_is_passed_over(tmp_path):
    assert java.inspected(tmp_path / "missing") is None
    assert java.inspected(executable(tmp_path / "broken" / "java", "exit 1\n")) is None


def test_the_launcher_drops_only_the_incubator_module(tmp_path):
    home = tmp_path / "a home with spaces"
    fake_java(home, "17")
    launcher = java.launcher_home(Java(home, 17)) / "bin" / "java"
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "Main"]
    answer = subprocess.run([launcher, *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["-Xmx1g", "-Dx=a b", "Main"]


# JARs


def fake_spark(home: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A spark-submit that stands in for Ivy; the body finds Ivy's directory in $ivy."""
    find_ivy = 'for argument do case "$argument" in *.ivy=*) ivy="${argument##*=}";; esac; done\n'
    executable(home / "bin" / "spark-submit", find_ivy + body)
    monkeypatch.setattr(jars, "spark_home", lambda: home)


def test_jars_are_fetched_once_and_without_ivys_remains(tmp_path, monkeypatch):
    fake_spark(
        tmp_path,
        monkeypatch,
        f"""\
echo call >> {tmp_path}/calls
mkdir -p "$ivy/jars"
touch "$ivy/jars/io.delta_delta-spark_4.1_2.13-4.4.0.jar"
touch "$ivy/jars/io.delta_delta-storage-4.4.0.jar"
touch "$ivy/jars/org.example_other-1.0.jar"
""",
    )
    first = jars.delta_jars("4.1.3", Java(tmp_path, 17))
    second = jars.delta_jars("4.1.2", Java(tmp_path, 17))
    names = ["io.delta_delta-spark_4.1_2.13-4.4.0.jar", "io.delta_delta-storage-4.4.0.jar"]
    assert [jar.name for jar in first] == names
    assert first == second
    assert (tmp_path / "calls").read_text() == "call\n"
    assert [path for path in first[0].parents[1].iterdir() if path.name.startswith("fetch")] == []


def test_jars_that_cannot_be_fetched_say_what_to_run(tmp_path, monkeypatch, capfd):
    fake_spark(tmp_path, monkeypatch, "echo 'UNRESOLVED DEPENDENCIES' >&2; exit 1\n")
    with pytest.raises(ConfigError) as failed:
        jars.delta_jars("4.1.3", Java(tmp_path, 17))
    log = tmp_path / "cache" / "jars" / "delta-4.4.0-spark-4.1.log"
    assert "io.delta:delta-spark_4.1_2.13:4.4.0 could not be downloaded" in str(failed.value)
    assert "python -m ranklake.session" in str(failed.value)
    assert str(log) in str(failed.value)
    assert log.read_text() == "UNRESOLVED DEPENDENCIES\n" * 2
    assert capfd.readouterr() == ("", "")


def test_a_java_that_distrusts_the_network_is_given_the_machines_authorities(tmp_path, monkeypatch):
    fake_spark(
        tmp_path,
        monkeypatch,
        """\
case "$*" in *trustStore=*) ;; *) exit 1;; esac
mkdir -p "$ivy/jars"
touch "$ivy/jars/delta-spark.jar" "$ivy/jars/delta-storage.jar"
""",
    )
    assert len(jars.delta_jars("4.1.3", Java(tmp_path, 17))) == 2


def test_authorities_come_from_the_environment_once_each(tmp_path, monkeypatch):
    company, public = (ssl.DER_cert_to_PEM_cert(text) for text in (b"company", b"public"))
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(f"# ours\n{company}\n# everyone's\n{public}{company}")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    monkeypatch.setenv("PIP_CERT", str(bundle))
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
    monkeypatch.setattr(trust, "_SYSTEM_BUNDLES", ())
    assert trust.certificates() == [b"company", b"public"]


def test_two_starts_at_once_fetch_once(tmp_path, monkeypatch):
    fake_spark(
        tmp_path,
        monkeypatch,
        f"""\
echo call >> {tmp_path}/calls
/bin/sleep 0.3
mkdir -p "$ivy/jars"
touch "$ivy/jars/delta-spark.jar" "$ivy/jars/delta-storage.jar"
""",
    )
    found: list[int] = []
    starts = [
        threading.Thread(
            target=lambda: found.append(len(jars.delta_jars("4.1.3", Java(tmp_path, 17))))
        )
        for _ in range(2)
    ]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    assert found == [2, 2]
    assert (tmp_path / "calls").read_text() == "call\n"


def test_a_cache_that_cannot_be_made_names_the_variable(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("RANKLAKE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(ConfigError, match="set RANKLAKE_CACHE"):
        jars.delta_jars("4.1.3", Java(tmp_path, 17))


# memory


def limited_to(root: Path, groups: str, limits: dict[str, str]) -> Path:
    """A file system root with /proc/self/cgroup and limits below /sys/fs/cgroup."""
    for name, text in {"proc/self/cgroup": groups, **limits}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def a_large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANKLAKE_DRIVER_MEMORY", raising=False)
    monkeypatch.setattr(memory, "_physical_memory", lambda: 256 * GIB)


def test_a_large_machine_is_not_filled(tmp_path, a_large_machine):
    assert memory.driver_memory(tmp_path) == "16384m"


def test_a_container_counts_half_of_its_own_limit(tmp_path, a_large_machine):
    root = limited_to(tmp_path, "0::/\n", {"sys/fs/cgroup/memory.max": f"{6 * GIB}\n"})
    assert memory.driver_memory(root) == "3072m"


def test_the_tightest_group_around_the_process_counts(tmp_path, a_large_machine):
    limits = {
        "sys/fs/cgroup/memory.max": "max\n",
        "sys/fs/cgroup/batch/memory.max": f"{4 * GIB}\n",
        "sys/fs/cgroup/batch/job/memory.max": f"{8 * GIB}\n",
    }
    root = limited_to(tmp_path, "0::/batch/job\n", limits)
    assert memory.driver_memory(root) == "2048m"


def test_a_version_1_group_counts(tmp_path, a_large_machine):
    limits = {"sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{10 * GIB}\n"}
    root = limited_to(tmp_path, "5:cpu,cpuacct:/job\n4:memory:/job\n", limits)
    assert memory.driver_memory(root) == "5120m"


def test_the_environment_decides_the_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKLAKE_DRIVER_MEMORY", "1500m")
    assert memory.driver_memory(tmp_path) == "1500m"


@pytest.mark.parametrize("wrong", ["3", "0g", "3 g", "lots"])
def test_a_memory_that_is_no_size_is_refused(monkeypatch, wrong):
    monkeypatch.setenv("RANKLAKE_DRIVER_MEMORY", wrong)
    with pytest.raises(ConfigError, match=f"found '{wrong}', expected for example 3g"):
        memory.driver_memory()


# the session


def test_the_jvms_environment_is_not_left_behind(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/before")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    with local._environment(JAVA_HOME="/inside", SPARK_LOCAL_IP="127.0.0.1"):
        assert os.environ["JAVA_HOME"] == "/inside"
    assert os.environ["JAVA_HOME"] == "/before"
    assert "SPARK_LOCAL_IP" not in os.environ


def test_a_ready_session_is_returned_and_nothing_in_it_is_changed(spark):
    before = spark.conf.getAll
    assert session(app_name="another name") is spark
    assert spark.conf.getAll == before


def test_another_thread_gets_the_same_session(spark):
    before = spark.conf.getAll
    found: list[SparkSession] = []
    other = threading.Thread(target=lambda: found.append(session(app_name="another name")))
    other.start()
    other.join()
    assert found[0].sparkContext is spark.sparkContext
    assert spark.conf.getAll == before


def test_only_a_session_started_here_is_stopped():
    stopped: list[str] = []
    supplied = SimpleNamespace(conf={}, stop=lambda: stopped.append("supplied"))
    own = SimpleNamespace(conf={local.STARTED_HERE: "true"}, stop=lambda: stopped.append("own"))
    stop(supplied)
    stop(own)
    assert stopped == ["own"]


def test_a_local_session_reads_what_it_wrote_to_delta(spark, tmp_path):
    table = str(tmp_path / "table")
    spark.range(3).write.format("delta").save(table)
    assert spark.read.format("delta").load(table).count() == 3


def test_a_session_installs_the_conversion_of_delta_errors(spark):
    assert "delta.exceptions.captured" in sys.modules


def test_a_client_without_delta_still_gets_its_session(spark, monkeypatch):
    monkeypatch.setitem(sys.modules, "delta.exceptions", None)
    assert session() is spark


def test_a_local_session_works_in_utc_and_leaves_no_warehouse(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert not Path("spark-warehouse").exists()


def test_a_file_of_a_few_megabytes_is_read_by_all_cores(spark, tmp_path):
    numbers = np.random.default_rng(1).random(4_000_000)  # 32 MB, which cannot be compressed
    pq.write_table(pa.table({"x": numbers}), tmp_path / "x.parquet", row_group_size=100_000)
    # By Spark's defaults two cores would read it in two parts, and four in four.
    assert spark.read.parquet(str(tmp_path)).rdd.getNumPartitions() >= 8


# progress


def running(*stages: tuple[int, int] | None) -> SimpleNamespace:
    """A session whose active stages have these (tasks done, tasks in all); None: just ended."""
    infos = [s and SimpleNamespace(numCompletedTasks=s[0], numTasks=s[1]) for s in stages]
    tracker = SimpleNamespace(
        getActiveStageIds=lambda: range(len(infos)), getStageInfo=lambda stage: infos[stage]
    )
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def test_progress_adds_the_active_stages():
    assert task_progress(running((3, 8), None, (1, 4))) == (3 + 1, 8 + 4)


def test_progress_is_none_between_stages():
    assert task_progress(running(None)) is None
    assert task_progress(running()) is None


def test_progress_is_none_where_spark_has_no_tracker():
    connect = SimpleNamespace()
    assert task_progress(connect) is None


def test_progress_asks_a_real_session(spark):
    assert task_progress(spark) is None
