"""`python -m ranklake.docgen`: writes docs/reference.md from the code and conf/base.toml.

With --check it writes nothing, and ends with 1 when the page is stale. Run it in the repository.
"""

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from ranklake import config, errors, metrics, schemas

PAGE = Path("docs/reference.md")

_INTRODUCTION = """\
# Reference

Written by `make docs` from the code and `conf/base.toml`: change those, not this page.
"""
_METRICS = """\
h = relevant candidates within the first k; G = the relevant items of the query; n = its candidates.
Every metric is a ratio of two sums, which are kept a bucket of users each. *Mean over* names the
populations that are published, the usual one first; undefined values add 0 to the numerator.
"""
_MEASURES = """\
A measure is a metric with options at a cut-off: `recall@10`, `P(rel=2)@5`,
`nDCG(gain=exp2,ideal=candidates)@10`, `AP` (no cut-off), `ctr@shown` (the query's own `n_slots`).
Its column in `query_metrics` is the same without brackets: `ap_denom_min_k_rel_at_20`. The first
value of an option is its default, which the canonical string leaves out.
"""
_INPUTS = """\
What the mapping at the door has to deliver (`inputs.<input>.columns`). A column without an entry is
taken from the input's column of the same name, and is left out where there is none.
"""
_LAKE = """\
Delta tables, partitioned by `event_date` and `model_version`.
"""
_CONFIGURATION = """\
Keys of the TOML files. The inputs have the same keys, named here for `impressions`.
"""
_EXIT_CODES = """\
What a scheduler sees, and what to do.
"""
_TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def reference(base_toml: str) -> str:
    """The page, with the meanings of the configuration's keys from the comments of base.toml."""
    parts = [
        _INTRODUCTION,
        "## Metrics\n",
        _METRICS,
        _metrics_table(),
        _MEASURES,
        _options_table(),
        "## Inputs\n",
        _INPUTS,
        *(part for table in schemas.INPUTS for part in _table_section(table)),
        "## Tables\n",
        _LAKE,
        *(part for table in schemas.LAKE for part in _table_section(table)),
        "## Configuration\n",
        _CONFIGURATION,
        _configuration_table(meanings(base_toml)),
        "## Exit codes\n",
        _EXIT_CODES,
        _exit_codes_table(),
    ]
    return "\n".join(parts)


def meanings(base_toml: str) -> dict[str, str]:
    """The comment above each key and section of a TOML file, by the key's full name.

    >>> meanings("# What it is.\\n[lake]\\n# A directory.\\n#path = 'lake'")
    {'lake': 'What it is.', 'lake.path': 'A directory.'}
    """
    found: dict[str, str] = {}
    section, comment = "", []
    for line in base_toml.splitlines():
        if line.startswith("# "):
            comment.append(line.removeprefix("# "))
            continue
        header = re.match(r"#?\[{1,2}([\w.]+)\]", line)
        key = re.match(r"#?(\w+) = ", line)
        if header:
            section = header[1]
        name = section if header else f"{section}.{key[1]}".removeprefix(".") if key else ""
        if name and comment:
            found[name] = " ".join(comment)
        comment = []
    return found


def main(arguments: Sequence[str]) -> int:
    """Writes or checks the page; returns the exit code."""
    page = reference(config.BASE.read_text(encoding="utf-8"))
    if "--check" not in arguments:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page:
        return 0
    print(f"{PAGE}: is not what the code says, expected the output of: make docs", file=sys.stderr)
    return 1


def _metrics_table() -> str:
    header = ("name", "aliases", "formula", "null when", "mean over", "range", "reads as", "source")
    rows = [
        (
            f"`{m.name}`",
            ", ".join(m.aliases),
            m.formula,
            m.null_when,
            _mean_over(m),
            "0 … 1" if math.isfinite(m.upper) else "0 or more",
            m.reads_as,
            m.source,
        )
        for m in metrics.METRICS
    ]
    return _markdown(header, rows)


def _options_table() -> str:
    """One row per option and meaning, with the metrics that have it."""
    owners: dict[metrics.Option, list[str]] = {}
    for metric in metrics.METRICS:
        for option in metric.options:
            owners.setdefault(option, []).append(f"`{metric.name}`")
    rows = [
        (f"`{option.name}`", option.default, option.values, option.meaning, ", ".join(names))
        for option, names in owners.items()
    ]
    return _markdown(("option", "default", "values", "meaning", "of"), rows)


def _mean_over(metric: metrics.Metric) -> str:
    if metric.denominator is not metrics.Denominator.QUERIES:
        return f"{metric.denominator.value} (ratio of sums)"
    return "; ".join(population.in_words for population in metric.populations)


def _table_section(table: schemas.Table) -> Iterator[str]:
    yield f"### {table.name}\n\nOne row is {table.one_row}.\n"
    header = ("column", "type", "required", "meaning")
    yield _markdown(
        header,
        [
            (f"`{c.name}`", f"`{c.type}`", "yes" if c.required else "", c.meaning)
            for c in table.columns
        ],
    )


def _configuration_table(meaning: dict[str, str]) -> str:
    rows = [
        (f"`{key}`", kind, default, meaning.get(key, ""))
        for key, kind, default in _keys(config.EvalConfig)
    ]
    return _markdown(("key", "type", "default", "meaning"), rows)


def _keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Each key's full name, type and default, of lists of tables too; of the inputs the first."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        inner = _plain(field.annotation)
        table = get_args(inner)[0] if get_origin(inner) is tuple else inner
        if isinstance(table, type) and issubclass(table, BaseModel):
            yield from _keys(table, f"{key}.")
        else:
            default = None if field.is_required() else field.default
            yield key, _type_name(inner), _default(default)
        if model is config.Inputs:
            return


def _plain(annotation: Any) -> Any:
    """The annotation without `Annotated` and `| None` around it."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return _plain(get_args(annotation)[0])
    return annotation


def _type_name(annotation: Any) -> str:
    plain = _plain(annotation)
    arguments = get_args(plain)
    if get_origin(plain) is Literal:
        return " or ".join(f'"{value}"' for value in arguments)
    if isinstance(plain, type) and issubclass(plain, StrEnum):
        return " or ".join(f'"{value.value}"' for value in plain)
    if get_origin(plain) is tuple:
        return f"list of {_type_name(arguments[0])}"
    if get_origin(plain) is dict:
        return f"table of {_type_name(arguments[1])}"
    return _TYPES[plain]


def _default(value: Any) -> str:
    return "" if value is None else f"`{json.dumps(value)}`"


def _exit_codes_table() -> str:
    classes = sorted(errors.RanklakeError.__subclasses__(), key=lambda error: error.exit_code)
    rows = [(str(e.exit_code), e.__name__, (e.__doc__ or "").rstrip(".")) for e in classes]
    others = [
        ("0", "", "Success"),
        ("1", "", "A fault of ranklake or of its surroundings: report it"),
    ]
    return _markdown(("code", "error", "meaning"), [*others, *rows])


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    escaped = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in escaped)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
