"""Configuration: files are layered, and all that is wrong is said at once, in plain words."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from ranklake.config import EvalConfig, Inputs, config_hash, load, of_values
from ranklake.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]
CONF = ROOT / "conf"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes TOML files into an empty directory, which is the working directory: no base.toml."""
    monkeypatch.chdir(tmp_path)

    def toml(text: str, name: str = "my.toml") -> Path:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")
        return Path(name)

    return toml


def problems(*files: Path, settings: tuple[str, ...] = ()) -> list[str]:
    """What the ConfigError says, one line a problem; its exit code is 2."""
    with pytest.raises(ConfigError) as caught:
        load(files, settings)
    assert caught.value.exit_code == 2
    return list(caught.value.problems)


# the files of the repository


def test_base_toml_says_what_the_code_says(write: Write) -> None:
    assert load([CONF / "base.toml"]) == EvalConfig()
    assert config_hash(load([CONF / "base.toml"])) == config_hash(load())


def test_base_toml_mentions_every_key() -> None:
    text = (CONF / "base.toml").read_text(encoding="utf-8")
    everything = tomllib.loads(re.sub(r"(?m)^#(?! )", "", text))
    assert {*_keys_of(EvalConfig)} - {*_paths(everything)} == set()


def test_base_toml_has_no_key_that_is_not_known(write: Write) -> None:
    text = (CONF / "base.toml").read_text(encoding="utf-8")
    found = problems(write(re.sub(r"(?m)^#(?! )", "", text)))
    assert [p for p in found if "unknown" in p] == []


def test_every_key_of_base_toml_has_a_comment() -> None:
    lines = (CONF / "base.toml").read_text(encoding="utf-8").splitlines()
    examples = ("gains", "slices.values", "models", "aliases")
    section = ""
    for above, line in pairwise(lines):
        if header := re.match(r"#?\[(.+)\]", line):
            section = header[1]
        elif re.match(r"#?\w+ = ", line) and section not in examples:
            assert above.startswith("# "), line


def test_the_demo_evaluates_two_labels_of_a_delta_log(write: Write) -> None:
    config = load([CONF / "local.toml"])
    assert config.evaluation == "demo"
    assert config.lake.path == "demo/lake"
    assert {name: given.path for name, given in config.inputs.given().items()} == {
        "impressions": "demo/log/impressions",
        "clicks": "demo/log/clicks",
        "conversions": "demo/log/conversions",
    }
    assert {given.format for given in config.inputs.given().values()} == {"delta"}
    assert config.slices.groups == (
        ("device",),
        ("placement",),
        ("country",),
        ("device", "country"),
    )
    assert config.labels == ("click", "conversion")
    assert config.ks == (1, 3, 5, 10)
    assert config.unknown_users == ("", "0")


def test_the_production_example_reads_and_writes_a_catalog(write: Write) -> None:
    config = load([CONF / "prod.toml"])
    assert config.lake.sql_name("metrics") == "`analytics`.`ranking`.`ads_feed_metrics`"
    assert all(given.table for given in config.inputs.given().values())
    assert config.gains_of("engaged") == {"click": 1.0, "conversion": 5.0}
    assert config.models["models:/feed_ctr/42"] == "feed-ctr-42"


def _keys_of(model: type[BaseModel], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every key of the model; of the five inputs, which are alike, the impressions."""
    for name, field in model.model_fields.items():
        path = (*at, field.alias or name)
        options = (field.annotation, *get_args(field.annotation))
        inner = [o for o in options if isinstance(o, type) and issubclass(o, BaseModel)]
        if model is not Inputs or name == "impressions":
            yield from _keys_of(inner[0], path) if inner else [path]


def _paths(values: dict[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        yield (*at, key)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict):
                yield from _paths(inner, (*at, key))


# layers


def test_without_any_file_the_defaults_hold(write: Write) -> None:
    assert load() == EvalConfig()


def test_base_toml_is_read_first_where_it_exists(write: Write) -> None:
    write('evaluation = "ours"\nn_buckets = 100', "conf/base.toml")
    config = load([write("n_buckets = 200")])
    assert (config.evaluation, config.n_buckets) == ("ours", 200)


def test_later_files_win_and_settings_win_over_files(write: Write) -> None:
    files = [
        write("n_buckets = 100\nconfidence = 0.9", "a.toml"),
        write("n_buckets = 200", "b.toml"),
    ]
    config = load(files, ["n_buckets=300"])
    assert (config.n_buckets, config.confidence) == (300, 0.9)


def test_tables_are_merged_and_lists_are_replaced(write: Write) -> None:
    one = write('ks = [1, 5]\n[lake]\npath = "a"\nprefix = "p_"', "a.toml")
    two = write('ks = [3]\n[lake]\npath = "b"', "b.toml")
    config = load([one, two])
    assert config.ks == (3,)
    assert (config.lake.path, config.lake.prefix) == ("b", "p_")


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("n_buckets=100", "n_buckets", 100),
        ("confidence = 0.9", "confidence", 0.9),
        ("unique_key=true", "unique_key", True),
        ("ks=[1, 2]", "ks", (1, 2)),
        ("zone=Europe/Berlin", "zone", "Europe/Berlin"),
        ('zone="Europe/Berlin"', "zone", "Europe/Berlin"),
        ('models."models:/ctr/42"=ctr-42', "models", {"models:/ctr/42": "ctr-42"}),
    ],
)
def test_a_setting_is_toml_or_else_text(write: Write, setting: str, key: str, value: Any) -> None:
    assert getattr(load(settings=[setting]), key) == value


def test_a_setting_may_hold_an_equals_sign(write: Write) -> None:
    config = load(settings=["inputs.clicks.path=clicks", "inputs.clicks.where=kind = 'click'"])
    assert config.inputs.clicks is not None
    assert config.inputs.clicks.where == "kind = 'click'"


def test_a_setting_reaches_into_tables_of_files(write: Write) -> None:
    config = load([write('[slices]\ncolumns = ["device"]')], ["slices.max_values=20"])
    assert (config.slices.columns, config.slices.max_values) == (("device",), 20)


@pytest.mark.parametrize("setting", ["n_buckets", "=5", ".a=5", "a..b=5"])
def test_a_setting_without_key_or_value_is_refused(write: Write, setting: str) -> None:
    (problem,) = problems(settings=(setting,))
    assert problem.startswith("--set ")
    assert "expected a.b=value" in problem


def test_metrics_are_known_by_their_aliases(write: Write) -> None:
    assert load(settings=['metrics=["R", "MAP", "nDCG"]']).metrics == ("recall", "ap", "ndcg")


def test_equal_configurations_have_equal_hashes_wherever_they_come_from(write: Write) -> None:
    assert config_hash(load([write("ks = [1, 2]")])) == config_hash(load(settings=["ks=[1,2]"]))
    assert config_hash(load()) != config_hash(load(settings=["n_buckets=100"]))


def test_values_from_python_are_checked_like_files(write: Write) -> None:
    config = of_values({"ks": (5, 10), "metrics": ["R"], "lake": {"path": Path("lake")}})
    assert (config.ks, config.metrics, config.lake.path) == ((5, 10), ("recall",), "lake")
    with pytest.raises(ConfigError) as caught:
        of_values({"ks": (0, 5), "labels": ("buy",), "metric": ["recall"]})
    assert [line.split(":")[1] for line in caught.value.problems] == [
        " ks[0]",
        " metric",
        " labels",
    ]
    assert caught.value.problems[0] == "configuration: ks[0]: found 0, expected at least 1"


# files that cannot be read


def test_all_files_that_cannot_be_read_are_named(write: Write) -> None:
    broken = write("ks = [", "broken.toml")
    latin = Path("latin.toml")
    latin.write_bytes(b'evaluation = "caf\xe9"')
    found = problems(Path("none.toml"), broken, latin, settings=("x",))
    assert [line.split(":")[0] for line in found] == [
        "none.toml",
        "broken.toml",
        "latin.toml",
        "--set x",
    ]
    assert found[0] == "none.toml: there is no such file"
    assert "not valid TOML" in found[1]


# values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n_buckets = 49", "n_buckets: found 49, expected at least 50"),
        ("n_buckets = 20000", "n_buckets: found 20000, expected at most 10000"),
        ('n_buckets = "400"', "n_buckets: found '400', expected a whole number"),
        ("n_buckets = 400.5", "n_buckets: found 400.5, expected a whole number"),
        ("confidence = 95", "confidence: found 95, expected less than 1.0"),
        ("confidence = 0.5", "confidence: found 0.5, expected more than 0.5"),
        ("confidence = true", "confidence: found true, expected a number"),
        ('unique_key = "yes"', "unique_key: found 'yes', expected true or false"),
        ("ks = [5, 0]", "ks[1]: found 0, expected at least 1"),
        ("ks = [1, 5, 5]", "ks: 5 is listed more than once"),
        ("ks = []", "ks: found [], expected at least 1 item"),
        ("ks = 5", "ks: found 5, expected a list, such as [1, 5]"),
        ("labels = []", "labels: found [], expected at least 1 item"),
        ('rank_by = "postion"', "rank_by: found 'postion', expected 'score' or 'position'"),
        ('metrics = ["R", "recall"]', "metrics: recall is listed more than once"),
        ("lake = 5", "lake: found 5, expected a table"),
        ("models = 5", "models: found 5, expected a table"),
        (
            "evaluation = 2026-01-31",
            "evaluation: found '2026-01-31',"
            " expected letters, digits and _, no digit first, 64 at most",
        ),
        (
            'zone = "America/Sao_Paolo"',
            "zone: found 'America/Sao_Paolo', expected an IANA time zone;"
            " did you mean 'America/Sao_Paulo'?",
        ),
        (
            "gains.click = { clik = 1.0, click = 1.0 }",
            "gains.click.clik: found 'clik',"
            " expected one of click, conversion, conversion_value, judgment; did you mean 'click'?",
        ),
        (
            "gains.click = { click = -1.0 }",
            "gains.click.click: found -1.0, expected at least 0.0",
        ),
        (
            "gains.click = { click = 0.0 }",
            "gains.click: no event is worth anything, expected a gain above 0",
        ),
        (
            "gains.click = { click = inf }",
            "gains.click.click: found Infinity, expected a finite number",
        ),
        (
            'labels = ["buy"]',
            "labels: 'buy' has no gains,"
            " expected some such as gains.buy = { click = 1.0, conversion = 5.0 }",
        ),
        (
            'labels = ["buy"]\nitem_clusters = "item_id"',
            "labels: 'buy' has no gains,"
            " expected some such as gains.buy = { click = 1.0, conversion = 5.0 }",
        ),
        (
            'labels = ["click", "judgment"]',
            "labels: judgments and log events cannot be labels of one evaluation",
        ),
        (
            'lake = { path = "lake", catalog_schema = "a.b" }',
            "lake: found path and catalog_schema, expected one of them",
        ),
        (
            'lake = { catalog_schema = "a.b; drop table c" }',
            "lake.catalog_schema: found 'a.b; drop table c', expected schema or catalog.schema",
        ),
        (
            'models."m:/1" = "ctr 1"',
            "models.\"m:/1\": found 'ctr 1',"
            " expected an alias that matches [A-Za-z0-9][A-Za-z0-9._-]{0,127}",
        ),
    ],
)
def test_a_wrong_value_is_one_line_with_place_found_and_expected(
    write: Write, text: str, expected: str
) -> None:
    assert problems(write(text)) == [f"my.toml: {expected}"]


def test_a_cut_off_that_is_wrong_does_not_make_the_list_too_short(write: Write) -> None:
    assert problems(write("ks = [0]")) == ["my.toml: ks[0]: found 0, expected at least 1"]


def test_two_models_cannot_share_an_alias(write: Write) -> None:
    assert problems(write('[models]\na = "x"\nb = "x"')) == [
        "my.toml: models.a: 'x' is the alias of another model too",
        "my.toml: models.b: 'x' is the alias of another model too",
    ]


def test_an_unknown_metric_names_the_known_ones_and_the_nearest(write: Write) -> None:
    (problem,) = problems(write('metrics = ["recal"]'))
    assert problem.startswith("my.toml: metrics[0]: unknown metric 'recal', known are recall, ")
    assert problem.endswith("; did you mean 'recall'?")


# unknown keys


def test_an_unknown_key_names_its_file_the_known_keys_and_the_nearest(write: Write) -> None:
    write("ks = [1]", "conf/base.toml")
    one, two = write("confidense = 0.9", "a.toml"), write('[lake]\npth = "x"', "b.toml")
    lake, top = sorted(problems(one, two), key=lambda line: line.startswith("a.toml"))
    assert lake == (
        "b.toml: lake.pth: unknown key, known are path, catalog_schema, prefix;"
        " did you mean 'path'?"
    )
    assert top.startswith("a.toml: confidense: unknown key, known are evaluation, ")
    assert top.endswith("; did you mean 'confidence'?")


def test_an_unknown_key_of_a_rule_names_those_of_rules(write: Write) -> None:
    rule = '[[gate.rules]]\nmeasure = "recall@10"\nmax_drop = 0.1\nmaxdrop = 1'
    (problem,) = problems(write(rule))
    assert "maxdrop: unknown key, known are " in problem
    assert problem.endswith("; did you mean 'max_drop'?")


def test_a_key_that_slipped_into_a_section_is_sent_back(write: Write) -> None:
    (problem,) = problems(write('[lake]\npath = "lake"\nks = [1]'))
    assert problem.endswith("; 'ks' belongs above the first [section]")


def test_the_schema_of_an_input_is_known_by_its_written_name(write: Write) -> None:
    (problem,) = problems(write('inputs.clicks = { path = "x", declared_schem = "a INT" }'))
    assert "schema" in problem.split("known are ")[1].split(";")[0].split(", ")


def test_the_layer_that_said_it_last_is_named(write: Write) -> None:
    one, two = write("n_buckets = 100", "a.toml"), write("n_buckets = 1", "b.toml")
    assert problems(one, two)[0].startswith("b.toml: n_buckets: ")
    assert problems(one, settings=("n_buckets=2",))[0].startswith("--set: n_buckets: ")


# slices


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'columns = ["bad-name"]',
            "columns: found 'bad-name', expected letters, digits and _, no digit first, 64 at most",
        ),
        (
            'columns = ["user_id"]',
            "columns: 'user_id' is a name of ranklake's own, expected another",
        ),
        ('columns = ["Score"]', "columns: 'Score' is a name of ranklake's own, expected another"),
        ('columns = ["all"]', "columns: 'all' is a name of ranklake's own, expected another"),
        (
            'columns = ["recall_at_10"]',
            "columns: 'recall_at_10' is a name of ranklake's own, expected another",
        ),
        ('columns = ["device", "device"]', "columns: device is listed more than once"),
        (
            'columns = ["device", "country"]\ncrosses = [["device", "contry"]]',
            "crosses: found ['device', 'contry'],"
            " 'contry' is not one of slices.columns (device, country); did you mean 'country'?",
        ),
        (
            'columns = ["device"]\ncrosses = [["device"]]',
            "crosses: found ['device'], expected two or more different columns",
        ),
        (
            'columns = ["device"]\ncrosses = [["device", "device"]]',
            "crosses: found ['device', 'device'], expected two or more different columns",
        ),
        (
            'values = { device = ["tv"] }',
            "values.device: 'device' is not one of slices.columns (empty)",
        ),
        (
            'columns = ["device"]\nvalues = { device = ["tv", "__other__"] }',
            "values.device: '__other__' is ranklake's own, expected another value",
        ),
        (
            'columns = ["device"]\nvalues = { device = ["tv", "tv"] }',
            "values.device: tv is listed more than once",
        ),
        ("max_values = 0", "max_values: found 0, expected at least 1"),
    ],
)
def test_an_impossible_slice_is_refused(write: Write, text: str, expected: str) -> None:
    assert problems(write(f"[slices]\n{text}")) == [f"my.toml: slices.{expected}"]


def test_slices_that_differ_in_case_only_are_one_for_spark(write: Write) -> None:
    found = problems(write('[slices]\ncolumns = ["device", "Device"]'))
    assert len(found) == 2
    assert all(line.endswith("differs from another one in case only") for line in found)


# inputs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('format = "delta"', ": found no place, expected path or table"),
        ('path = "a"\ntable = "b"', ": found path and table, expected one of them"),
        (
            'path = "a"\nformat = "csv"',
            ".format: csv has no types, expected a schema beside it:"
            ' schema = "query_id STRING, score DOUBLE"',
        ),
        (
            'path = "a"\nformat = "parquet"\nversion = 3',
            ".version: only delta has versions, found format 'parquet'",
        ),
        ('path = "a"\nversion = -1', ".version: found -1, expected at least 0"),
        (
            'path = "a"\ncolumns = { itemid = "ad" }',
            ".columns.itemid: unknown column, known are query_id, item_id, impression_id,"
            " event_date, click_ts, user_id, advertiser_id, ingest_ts; did you mean 'item_id'?",
        ),
        (
            'path = "a"\ncolumns = { item_id = 5 }',
            ".columns.item_id: found 5, expected text in quotes",
        ),
    ],
)
def test_an_impossible_input_is_refused(write: Write, text: str, expected: str) -> None:
    assert problems(write(f"[inputs.clicks]\n{text}")) == [f"my.toml: inputs.clicks{expected}"]


def test_a_slice_may_be_mapped(write: Write) -> None:
    mapped = (
        '[slices]\ncolumns = ["device"]\n[inputs.impressions]\npath = "a"\ncolumns.device = "ua"'
    )
    assert load([write(mapped)]).slices.columns == ("device",)


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "fs.s3a.secret.key",
        "sasToken",
        "fs.azure.account.key.x.dfs.core.windows.net",
        "awsAccessKeyId",
    ],
)
def test_credentials_are_refused_and_not_repeated(write: Write, key: str) -> None:
    text = f'[inputs.clicks]\npath = "a"\noptions = {{ "{key}" = "hunter2" }}'
    (problem,) = problems(write(text))
    assert "looks like a credential, expected in the environment or in Spark's own" in problem
    assert key in problem
    assert "hunter2" not in problem


def test_a_credential_of_a_wrong_type_is_not_repeated(write: Write) -> None:
    (problem,) = problems(write('[inputs.clicks]\npath = "a"\noptions = { password = 31337 }'))
    assert "31337" not in problem


@pytest.mark.parametrize("where", ["lake", "inputs.clicks"])
def test_credentials_in_a_uri_are_refused(write: Write, where: str) -> None:
    (problem,) = problems(write(f'[{where}]\npath = "s3a://id:hunter2@bucket/x"'))
    assert problem.startswith(f"my.toml: {where}.path: holds a credential")
    assert "hunter2" not in problem


def test_a_container_before_an_at_sign_is_no_credential(write: Write) -> None:
    path = "abfss://logs@account.dfs.core.windows.net/clicks"
    assert load(settings=[f"inputs.clicks.path={path}"]).inputs.clicks is not None


def test_options_of_a_reader_are_no_credentials(write: Write) -> None:
    options = '{ header = "true", sep = ";", timestampFormat = "yyyy" }'
    csv = 'path = "a"\nformat = "csv"\nschema = "item_id STRING"'
    text = f"[inputs.clicks]\n{csv}\noptions = {options}"
    assert load([write(text)]).inputs.clicks is not None


# all at once


def test_problems_of_single_keys_do_not_hide_those_that_span_several(write: Write) -> None:
    text = """
        labels = ["click", "buy"]
        ks = [0]
        confidense = 0.9
        [slices]
        columns = ["device"]
        crosses = [["device", "country"]]
        [models]
        a = "x y"
        [inputs.clicks]
        path = "a"
        format = "csv"
        columns = { itemid = "ad" }
        [inputs.impresions]
        path = "b"
    """
    found = [line.split(": ")[1] for line in problems(write(text))]
    assert sorted(found) == [
        "confidense",
        "inputs.clicks.columns.itemid",
        "inputs.clicks.format",
        "inputs.impresions",
        "ks[0]",
        "labels",
        "models.a",
        "slices.crosses",
    ]


def test_one_wrong_value_is_one_line_though_others_depend_on_it(write: Write) -> None:
    assert len(problems(write("gains.click = { clik = 1.0 }"))) == 1
    assert len(problems(write('[inputs.clicks]\npth = "a"'))) == 1
    assert len(problems(write("[slices]\ncrosses = [[5]]"))) == 1


def test_the_configuration_survives_its_own_json(write: Write) -> None:
    config = load([CONF / "prod.toml"])
    again = EvalConfig.model_validate_json(config.model_dump_json(by_alias=True))
    assert again == config
    assert json.loads(config.model_dump_json())["evaluation"] == "ads_feed"


# measures and rules


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('metrics = ["recall@5"]', "has a cut-off of its own, expected it in `measures`"),
        ('measures = ["precision"]', "precision needs a cut-off, such as precision@10"),
        ('measures = ["AP@5", "map@5"]', "ap@5 is listed more than once"),
        ("metrics = []", "found nothing to measure, expected metrics or measures"),
        ('measures = ["log_loss"]', "score_is_probability: found false, expected true"),
        ('measures = ["cvr@5"]', "labels: cvr is of conversions and clicks, expected both"),
        (
            'measures = ["calibration"]\nscore_is_probability = true\nrank_by = "position"',
            "rank_by: found 'position', expected 'score'",
        ),
        (
            'measures = ["calibration"]\nscore_is_probability = true\nrules = {depth = 5}',
            "rules.depth: found a depth, expected none",
        ),
        (
            'measures = ["log_loss"]\nscore_is_probability = true\nrules = {nan_scores = "first"}',
            "rules.nan_scores: found 'first', expected another",
        ),
        (
            'rank_by = "position"\nrules = {null_scores = "drop"}',
            "rules.null_scores: found 'drop', expected",
        ),
        ('rules = {tie_break = "random"}', "found 'random', expected item_id_desc"),
        (
            'candidates = ["scored"]\nrules = {tie_break = "column:position"}',
            "rules.tie_break: found column:position, which scored candidates do not have",
        ),
        ('rules = {duplicates = "keep", tie_break = "column:tie_key"}', "found a column, expected"),
        ('rules = {duplicates = "keep"}\nmeasures = ["auc"]', "expected another where ties"),
        (
            'rules = {duplicates = "error"}\nunique_key = true',
            "unique_key: found true, expected false",
        ),
        ("rules = {depth = 0}", "rules.depth: found 0, expected at least 1"),
    ],
)
def test_an_impossible_measure_or_rule_is_refused(write: Write, text: str, expected: str) -> None:
    assert [problem for problem in problems(write(text)) if expected in problem]
