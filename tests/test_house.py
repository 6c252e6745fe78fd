"""The house itself: who imports whom, how long things are, and what a lazy step never does."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
MODULES = {
    ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((SRC / "ranklake").rglob("*.py"))
}

BELOW = {"errors", "schemas", "metrics"}
STEPS = {
    "aggregate",
    "clean",
    "count",
    "estimate",
    "label",
    "measure",
    "quality",
    "rank",
    "traffic",
    "unpack",
}
MAY_IMPORT = {
    "errors": set(),
    "schemas": {"errors"},
    "metrics": {"errors", "schemas"},
    "config": BELOW,
    **dict.fromkeys(STEPS, BELOW),
    "complaints": {"errors"},
    "read": {*BELOW, "complaints", "config", "lake"},
    "together": set(),
    "write": {*BELOW, "complaints", "config", "together"},
    "run": BELOW,
    "pipeline": {
        *(*BELOW, *STEPS, "comparison", "complaints", "config", "engine", "read", "run"),
        *("together", "write"),
    },
    "lake": BELOW,
    "choose": BELOW,
    "comparison": {*BELOW, "choose", "config", "estimate", "together"},
    "engine": {"errors"},
    "session": {"engine", "errors"},
    "simulate": {"errors"},
    "notebook": {*BELOW, "config", "engine", "pipeline", "read"},  # a door, as cli is one
    "population": set(),
    "trec": {"errors"},
    "cli": {
        *(*BELOW, "choose", "comparison", "config", "lake", "notebook", "pipeline", "read"),
        *("run", "session", "simulate", "trec", "write"),
    },
    "docgen": {*BELOW, "config"},
    "__init__": {"comparison", "lake", "notebook", "pipeline"},
    "__main__": {"cli"},
}
"""Which rooms each room may import, besides itself (design.md 5)."""

WITHOUT_SPARK = (
    *("choose", "cli", "comparison", "config", "docgen", "errors", "estimate", "lake", "metrics"),
    *("population", "schemas", "together", "trec"),
)
"""What an analyst's machine imports."""

LAZY = (
    *sorted(STEPS - {"estimate"}),  # which is numpy
    "pipeline.assembled",
    "pipeline.frames",
    "pipeline.nested",
    "metrics.atoms",
    "metrics.probabilities",
    "schemas.conform",
)
ACTIONS = {
    *("cache", "checkpoint", "collect", "count", "first", "foreach", "foreachPartition", "head"),
    *("isEmpty", "localCheckpoint", "persist", "show", "tail", "take", "toArrow"),
    *("toLocalIterator", "toPandas", "write", "writeStream", "writeTo"),
}
NOWHERE = {
    *("cache", "checkpoint", "localCheckpoint", "persist", "unpersist"),  # fail on serverless
    *("_jdf", "_jvm", "_jsc", "_jsparkSession", "_sc", "rdd", "sparkContext"),  # none in Connect
    *("createOrReplaceTempView", "createTempView", "createGlobalTempView", "registerTempTable"),
    *("createOrReplaceGlobalTempView", "udf"),
}
NO_FUNCTIONS = {
    *("current_date", "current_timestamp", "localtimestamp", "monotonically_increasing_id", "now"),
    *("rand", "randn", "randstr", "shuffle", "spark_partition_id", "uniform", "uuid"),
    *("pandas_udf", "udf", "udtf"),
}
"""Functions of F whose values are others when a task is tried again, and those that run Python."""

ALLOWED = {  # their absence is handled there
    ("engine.native", "_jdf"),
    ("engine.native", "_jvm"),
    ("session.progress", "sparkContext"),
}

MAX_FUNCTION, MAX_MODULE = 40, 300


class Import(NamedTuple):
    """One imported module of the package, or another's; `is_late`: not when it is loaded."""

    module: str
    line: int
    is_late: bool


def room(module: str) -> str:
    """The room of a module: the part below the package.

    >>> room("ranklake.metrics.atoms"), room("ranklake")
    ('metrics', '__init__')
    """
    return [*module.split("."), "__init__"][1]


def imports(tree: ast.AST, *, is_late: bool = False) -> Iterator[Import]:
    """Everything imported: late are imports in a function, and those for the type checker alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, is_late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                module = whole if whole in MODULES else str(node.module)
                yield Import(module, node.lineno, is_late)
        else:
            is_typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            is_function = isinstance(node, ast.FunctionDef | ast.Lambda)
            yield from imports(node, is_late=is_late or is_typing or is_function)


def trespasses(module: str, tree: ast.AST) -> list[str]:
    """The imports that lead from the module's room into one that it must not know."""
    allowed = {*MAY_IMPORT[room(module)], room(module)}
    return [
        f"{module}:{found.line}: imports {found.module}"
        for found in imports(tree)
        if found.module.split(".")[0] == "ranklake" and room(found.module) not in allowed
    ]


def loaded_with(module: str, trees: dict[str, ast.Module]) -> set[str]:
    """Every module that is loaded when this one is; the packages around it are."""
    loaded: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in loaded:
            continue
        loaded.add(name)
        waiting += [name.rpartition(".")[0]] if "." in name else []
        if name in trees:
            waiting += [found.module for found in imports(trees[name]) if not found.is_late]
    return loaded


def too_long(module: str, source: str) -> list[str]:
    """Functions and modules over the limit, counted whole, with their docstrings.

    Of a command only the body counts: its signature is the list of its options.
    """
    n_lines = len(source.splitlines())
    found = [f"{module}: {n_lines} lines"] if n_lines > MAX_MODULE else []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0].lineno if room(module) == "cli" else node.lineno
            length = (node.end_lineno or 0) - first + 1
            if length > MAX_FUNCTION:
                found.append(f"{module}:{node.lineno}: {node.name} has {length} lines")
    return found


def uses(tree: ast.AST, names: set[str], *, of_functions: bool = False) -> list[tuple[int, str]]:
    """Where an attribute of these names is used: of F (`F.rand`), or of anything else (`x.rdd`)."""
    return [
        (node.lineno, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in names
        and (isinstance(node.value, ast.Name) and node.value.id == "F") is of_functions
    ]


def round_robins(tree: ast.AST) -> list[tuple[int, str]]:
    """Repartitions by no column: a retried task may lose or repeat rows (SPARK-23207)."""
    return [
        (node.lineno, node.func.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("repartition", "repartitionByRange")
        and len(node.args) <= 1
        and not any(_is_column(argument) for argument in node.args)
    ]


def _is_column(argument: ast.expr) -> bool:
    """Whether it reads as one: a name in quotes, F.something, or several that are unpacked."""
    if isinstance(argument, ast.Constant):
        return isinstance(argument.value, str)
    return isinstance(argument, ast.Starred) or "id='F'" in ast.dump(argument)


def unsafe(module: str, tree: ast.AST) -> list[str]:
    """What no module may do: platforms forbid it, or a retry or another session changes rows."""
    name = module.removeprefix("ranklake.")
    found = uses(tree, NOWHERE) + uses(tree, NO_FUNCTIONS, of_functions=True)
    found += round_robins(tree)
    found += [(i.line, i.module) for i in imports(tree) if i.module == "pyspark.sql.functions"]
    return [f"{module}:{line}: {what}" for line, what in found if (name, what) not in ALLOWED]


def actions(module: str, tree: ast.AST) -> list[str]:
    """What would run a job, or write."""
    return [f"{module}:{line}: {what}" for line, what in uses(tree, ACTIONS)]


def is_lazy(module: str) -> bool:
    name = module.removeprefix("ranklake.")
    return any(name == lazy or name.startswith(f"{lazy}.") for lazy in LAZY)


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {module: ast.parse(path.read_text()) for module, path in MODULES.items()}


def test_every_room_has_its_rule_and_every_rule_its_room() -> None:
    assert {room(module) for module in MODULES} == set(MAY_IMPORT)
    assert not [name for name in LAZY if not any(map(is_lazy, [f"ranklake.{name}"]))]
    assert {f"ranklake.{name}" for name in (*LAZY, *WITHOUT_SPARK)} <= set(MODULES)


def test_imports_point_one_way(trees: dict[str, ast.Module]) -> None:
    assert [line for name, tree in trees.items() for line in trespasses(name, tree)] == []


def test_jobs_know_the_command_line_only() -> None:
    paths = sorted((ROOT / "jobs").rglob("*.py"))
    found = [i.module for path in paths for i in imports(ast.parse(path.read_text()))]
    assert {room(module) for module in found if module.split(".")[0] == "ranklake"} == {"cli"}


@pytest.mark.parametrize("name", WITHOUT_SPARK)
def test_results_are_read_where_spark_is_not_installed(
    trees: dict[str, ast.Module], name: str
) -> None:
    loaded = loaded_with(f"ranklake.{name}", trees)
    assert {module for module in loaded if re.match(r"(pyspark|py4j|delta)\b", module)} == set()


def test_nothing_is_too_long() -> None:
    texts = {module: path.read_text() for module, path in MODULES.items()}
    assert [line for module, text in texts.items() for line in too_long(module, text)] == []


def test_a_step_runs_nothing(trees: dict[str, ast.Module]) -> None:
    lazy = {module: tree for module, tree in trees.items() if is_lazy(module)}
    assert [line for module, tree in lazy.items() for line in actions(module, tree)] == []


def test_nothing_depends_on_a_retry_a_jvm_or_a_view(trees: dict[str, ast.Module]) -> None:
    assert [line for module, tree in trees.items() for line in unsafe(module, tree)] == []


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("ranklake.errors", "from ranklake import schemas"),
        ("ranklake.schemas.table", "import ranklake.metrics.metric"),
        ("ranklake.metrics.catalog", "from ranklake.config import EvalConfig"),
        ("ranklake.rank", "from ranklake.label import ITEM"),
        ("ranklake.measure", "def late():\n    from ranklake import rank"),
        ("ranklake.aggregate.sums", "from ranklake.config import EvalConfig"),
        ("ranklake.cli.show", "from ranklake import rank"),
        ("ranklake.session.local", "from ranklake.config import load"),
    ],
)
def test_an_import_that_points_the_other_way_is_seen(module: str, statement: str) -> None:
    assert len(trespasses(module, ast.parse(statement))) == 1


def test_spark_behind_another_module_is_seen() -> None:
    sources = {"ranklake.lake": "from ranklake import rank", "ranklake.rank": "import pyspark.sql"}
    trees = {module: ast.parse(source) for module, source in sources.items()}
    assert "pyspark" in loaded_with("ranklake.lake", trees)
    typed = "if TYPE_CHECKING:\n    from ranklake import rank"
    late = "def needed():\n    from ranklake import rank"
    for source in (typed, late):
        assert "pyspark" not in loaded_with(
            "ranklake.lake", {**trees, "ranklake.lake": ast.parse(source)}
        )


def test_a_line_too_many_is_seen() -> None:
    function = "def f(\n    a,\n):\n" + "    a\n" * 37
    assert too_long("ranklake.rank", function) == []
    assert too_long("ranklake.rank", f"{function}    a\n") == ["ranklake.rank:1: f has 41 lines"]
    assert too_long("ranklake.cli.show", function + "    a\n" * 3) == []
    assert too_long("ranklake.cli.show", function + "    a\n" * 4) != []
    assert too_long("ranklake.rank", "a\n" * 300) == []
    assert too_long("ranklake.rank", "a\n" * 301) == ["ranklake.rank: 301 lines"]


@pytest.mark.parametrize(
    "statement",
    ["rows.count()", "rows.collect()", "rows.toArrow()", "rows.first()", "rows.write.save(p)"],
)
def test_an_action_is_seen(statement: str) -> None:
    assert len(actions("ranklake.rank", ast.parse(statement))) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "rows.cache()",
        "rows.persist()",
        "spark.sparkContext.setJobGroup(a, b)",
        "frame._jdf.queryExecution()",
        "spark._jvm.java",
        "frame.rdd.map(f)",
        "frame.createOrReplaceTempView('v')",
        "F.rand()",
        "F.monotonically_increasing_id()",
        "F.udf(f)",
        "frame.repartition(8)",
        "frame.repartition(n)",
        "frame.repartition()",
        "from pyspark.sql.functions import sum",
    ],
)
def test_what_is_unsafe_is_seen(statement: str) -> None:
    assert len(unsafe("ranklake.rank", ast.parse(statement))) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "F.count(F.lit(1))",
        "frame.repartition('query_hash')",
        "frame.repartition(*keys)",
        "frame.repartition(F.col('a'))",
        "frame.repartition(n, 'item_id')",
        "frame.coalesce(1)",
        "from pyspark.sql import functions as F",
    ],
)
def test_what_is_safe_is_not_accused(statement: str) -> None:
    tree = ast.parse(statement)
    assert unsafe("ranklake.rank", tree) + actions("ranklake.rank", tree) == []
