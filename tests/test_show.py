import csv
import io
import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import typer
from lakes import DAY, created, replaced
from typer.testing import CliRunner

from ranklake import schemas
from ranklake.cli.show import show
from ranklake.errors import ConfigError, NoInputError, RanklakeError

NEXT_DAY = date(2026, 1, 2)
WIDE = 200

app = typer.Typer()
app.command()(show)


def row(**named: Any) -> dict[str, Any]:
    """recall@10 of v1 over all queries; unless it is named otherwise."""
    return {
        "model_version": "v1",
        "slice": "all",
        "slice_value": "all",
        "label": "click",
        "population": "with_relevant",
        "metric": "recall",
        "k": 10,
        "window_days": 1,
        "value": 0.4286,
        "ci_low": 0.419,
        "ci_high": 0.43824,
        "n_queries": 35_064,
        "n_defined": 9_120,
        "status": "ok",
        **named,
    }


def lake_of(path: Path, *rows: Mapping[str, Any], day: date = DAY) -> Path:
    """A lake whose metrics of the day are the rows."""
    lake = path if (path / "metrics").exists() else created(path)
    models = sorted({row["model_version"] for row in rows})
    replaced(lake, schemas.METRICS, rows, run_id="r1", day=day, models=models)
    return lake


def shown(lake: Path, *arguments: str, width: int = WIDE) -> str:
    """What show prints for the lake. Raises what the command raises."""
    result = CliRunner().invoke(
        app, ["--lake", str(lake), *arguments], env={"COLUMNS": str(width), "NO_COLOR": "1"}
    )
    if result.exception:
        raise result.exception
    return result.output


def cells(output: str) -> list[list[str]]:
    """The lines of the printed tables as their cells, which two blanks separate."""
    return [
        [cell.strip() for cell in line.split("  ") if cell.strip()] for line in output.splitlines()
    ]


def records(lake: Path, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shown(lake, *arguments, "--output", "json"))
    return found


def test_a_value_stands_with_its_interval_its_queries_and_its_sentence(tmp_path: Path) -> None:
    lines = cells(shown(lake_of(tmp_path, row())))
    assert ["event_date 2026-01-01, label click"] in lines
    assert ["metric", "v1", "queries / defined"] in lines
    assert ["recall@10", "0.4286 [0.4190, 0.4382]", "35,064 / 9,120"] in lines
    assert [
        "recall@10 of v1: of a query's relevant items, on average 42.9 % are in the top 10."
    ] in lines


def test_models_stand_side_by_side(tmp_path: Path) -> None:
    other = row(model_version="v2", value=0.5, ci_low=0.49, ci_high=0.51)
    lines = cells(shown(lake_of(tmp_path, row(), other, row(model_version="v2", k=5))))
    assert ["metric", "v1", "queries / defined", "v2", "queries / defined"] in lines
    assert [
        "recall@10",
        *("0.4286 [0.4190, 0.4382]", "35,064 / 9,120"),
        *("0.5000 [0.4900, 0.5100]", "35,064 / 9,120"),
    ] in lines


def test_models_stand_below_each_other_on_a_narrow_terminal(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, row(), row(model_version="v2", value=0.5))
    lines = cells(shown(lake, width=70))
    assert ["metric", "v1", "queries / defined"] in lines
    assert ["metric", "v2", "queries / defined"] in lines
    assert max(len(line) for line in shown(lake, width=30).splitlines()) <= 30


def test_too_little_data_is_said_and_has_no_interval(tmp_path: Path) -> None:
    little = row(status="insufficient", ci_low=None, ci_high=None)
    undefined = row(k=5, value=None, status="insufficient", ci_low=None, ci_high=None)
    lines = cells(shown(lake_of(tmp_path, little, undefined)))
    assert ["recall@10", "0.4286 insufficient", "35,064 / 9,120"] in lines
    assert ["recall@5", "undefined", "35,064 / 9,120"] in lines


def test_each_metric_is_shown_over_the_population_it_is_read_over(tmp_path: Path) -> None:
    lake = lake_of(
        tmp_path,
        row(value=0.1),
        row(population="all", value=0.2),
        row(metric="precision", value=0.3),
        row(metric="precision", population="all", value=0.4),
        row(metric="n_relevant", population="all", k=0, value=1.5),
        row(window_days=7, value=0.5),
        row(slice="device", slice_value="mobile", value=0.6),
    )
    assert [(r["metric"], r["value"]) for r in records(lake)] == [
        ("recall", 0.1),
        ("precision", 0.4),
    ]
    assert {r["value"] for r in records(lake, "--all")} == {0.1, 0.2, 0.3, 0.4, 1.5, 0.5, 0.6}
    assert [r["value"] for r in records(lake, "--metric", "n_relevant")] == [1.5]


def test_lines_stand_in_the_order_of_the_catalogue_and_of_k(tmp_path: Path) -> None:
    lake = lake_of(
        tmp_path,
        row(metric="ndcg", k=10),
        row(metric="ndcg", k=5),
        row(metric="recall", k=10),
        row(metric="r_precision", k=0),
        row(metric="recall", k=5),
    )
    names = [line[0] for line in cells(shown(lake)) if len(line) == 3 and line[0] != "metric"]
    assert names == ["recall@5", "recall@10", "ndcg@5", "ndcg@10", "r_precision"]


def test_the_newest_day_is_shown_unless_days_are_named(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, row(value=0.1))
    lake_of(tmp_path, row(value=0.2), day=NEXT_DAY)
    assert [r["event_date"] for r in records(lake)] == ["2026-01-02"]
    assert [r["event_date"] for r in records(lake, "--date", "2026-01-01")] == ["2026-01-01"]
    lines = cells(shown(lake, "--date", "2026-01-02", "--date", "2026-01-01"))
    assert [line[:2] for line in lines if line[-1:] == ["35,064 / 9,120"]] == [
        ["2026-01-01", "recall@10"],
        ["2026-01-02", "recall@10"],
    ]


def test_the_newest_day_of_a_model_is_shown_when_it_is_named(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, row(), row(model_version="v2"))
    lake_of(tmp_path, row(model_version="v2"), day=NEXT_DAY)
    found = records(lake, "--model-version", "v1")
    assert [(r["event_date"], r["model_version"]) for r in found] == [("2026-01-01", "v1")]


def test_options_narrow_the_rows(tmp_path: Path) -> None:
    lake = lake_of(
        tmp_path,
        row(value=0.1),
        row(k=5, value=0.2),
        row(metric="ndcg", value=0.3),
        row(label="conversion", value=0.4),
        row(slice="device", slice_value="[red]", value=0.5),
    )
    assert [r["value"] for r in records(lake, "--k", "5")] == [0.2]
    assert [r["value"] for r in records(lake, "--metric", "nDCG")] == [0.3]
    assert [r["value"] for r in records(lake, "--label", "conversion")] == [0.4]
    assert [r["value"] for r in records(lake, "--slice", "device")] == [0.5]
    assert "slice device, slice_value [red]" in shown(lake, "--slice", "device")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--metric", "recal"),
            "--metric recal: there is none, known are recall; did you mean 'recall'?",
        ),
        (("--k", "7"), "--k 7: there is none, known are 10"),
        (
            ("--slice", "devise"),
            "--slice devise: there is none, known are all, device; did you mean 'device'?",
        ),
        (("--label", "buy"), "--label buy: there is none, known are click"),
        (("--date", "2026-1-1"), "--date 2026-1-1: Invalid isoformat string: '2026-1-1'"),
    ],
)
def test_a_value_that_is_not_there_is_an_error_with_those_that_are(
    tmp_path: Path, arguments: tuple[str, str], problem: str
) -> None:
    lake = lake_of(tmp_path, row(), row(slice="device", slice_value="tv"))
    with pytest.raises(ConfigError) as raised:
        shown(lake, *arguments)
    assert str(raised.value).startswith(problem)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("--date", "2026-01-02"), "no metrics are published for 2026-01-02"),
        (("--model-version", "v9"), "no metrics are published for v9"),
        (
            ("--date", "2026-01-01", "--date", "2026-01-02"),
            "no metrics are published for 2026-01-02",
        ),
    ],
)
def test_a_day_or_model_without_metrics_is_missing_input(
    tmp_path: Path, arguments: tuple[str, ...], found: str
) -> None:
    with pytest.raises(NoInputError, match=found):
        shown(lake_of(tmp_path, row()), *arguments)


def test_an_empty_lake_is_missing_input(tmp_path: Path) -> None:
    with pytest.raises(NoInputError, match="no metrics are published yet"):
        shown(created(tmp_path))


def test_json_has_every_column_and_null_for_null(tmp_path: Path) -> None:
    (found,) = records(lake_of(tmp_path, row(value=None, ci_low=None)))
    assert list(found) == [*schemas.METRICS.names]
    assert found["event_date"] == "2026-01-01"
    assert found["value"] is None
    assert found["ci_high"] == 0.43824


def test_csv_has_every_column_and_nothing_for_null(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, row(ci_low=None), row(k=5))
    output = shown(lake, "--output", "csv")
    found = list(csv.DictReader(io.StringIO(output)))
    assert output.endswith("\n")
    assert [r["k"] for r in found] == ["5", "10"]
    assert found[1]["event_date"] == "2026-01-01"
    assert (found[1]["value"], found[1]["ci_low"]) == ("0.4286", "")


def test_markdown_is_the_table_for_a_pull_request(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, row(slice="a", slice_value="x|y"), row(slice="a", slice_value="z"))
    assert shown(lake, "--slice", "a", "--output", "markdown").splitlines() == [
        "**event_date 2026-01-01, label click, slice a**",
        "",
        "| slice_value | metric | v1 | queries / defined |",
        "| --- | --- | --- | --- |",
        "| x\\|y | recall@10 | 0.4286 [0.4190, 0.4382] | 35,064 / 9,120 |",
        "| z | recall@10 | 0.4286 [0.4190, 0.4382] | 35,064 / 9,120 |",
        "",
        "recall@10 of v1: of a query's relevant items, on average 42.9 % are in the top 10.",
    ]


def test_the_lake_of_the_configuration_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where no conf/base.toml lies
    lake_of(tmp_path / "lake", row())
    result = CliRunner().invoke(app, ["--set", "lake.path=lake", "--output", "json"])
    assert json.loads(result.output)[0]["value"] == 0.4286


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        (
            "lake.catalog_schema=prod.ads",
            "lake.catalog_schema: show reads a directory, not a catalog; on Spark say:"
            " SELECT * FROM `prod`.`ads`.`metrics` WHERE slice = 'all'"
            " AND event_date = (SELECT max(event_date) FROM `prod`.`ads`.`metrics`)",
        ),
        ("zone=UTC", "lake: give --lake, or lake.path in the configuration"),
    ],
)
def test_a_configuration_without_a_directory_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["--set", setting])
    assert isinstance(result.exception, RanklakeError)
    assert (result.exception.exit_code, str(result.exception)) == (2, problem)


def test_a_variant_or_a_cut_off_is_asked_for_by_its_measure_string(tmp_path: Path) -> None:
    lake = lake_of(
        tmp_path,
        row(metric="ndcg", variant=""),
        row(metric="ndcg", variant="gain=exp2"),
        row(metric="ndcg", variant="gain=exp2", k=5),
    )
    both = shown(lake, "--metric", "nDCG(gain=exp2)")
    assert "ndcg(gain=exp2)@10" in both
    assert "ndcg(gain=exp2)@5" in both
    assert "ndcg@10" not in both
    assert "@10" not in shown(lake, "--metric", "nDCG(gain=exp2)@5").split("of v1")[0]
    with pytest.raises(ConfigError, match=r"ndcg\(gain=binary\)@5: there is none"):
        shown(lake, "--metric", "ndcg(gain=binary)@5")


def test_a_measure_without_a_cut_off_is_read_over_the_whole_list(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, row(metric="ap", variant="", k=0))
    assert "missed ones as 0" in shown(lake)
    assert "of the whole list" in shown(lake)
