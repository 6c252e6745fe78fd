"""`ranklake trec`: TREC files in, trec_eval's three columns out, by the same code as the job."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from ranklake import trec as files
from ranklake.config import PRESETS, EvalConfig, Preset, of_values, preset, with_preset
from ranklake.errors import ConfigError, ContractError
from ranklake.metrics import JUDGMENT, SHOWN, Measure, measure, with_defaults

DEFAULTS = (
    *("AP", "Rprec", "RR", "nDCG", "R@10", "R@100", "R@1000"),
    *("P@5", "P@10", "P@20", "nDCG@5", "nDCG@10", "nDCG@20", "Success@1", "Success@10"),
)
IGNORE_REL = ("dcg", "ndcg", "rbp")
"""Metrics of grades, which trec_eval's -l does not change."""
_MODEL = "run"
Values = Mapping[str, float | None]


class Format(StrEnum):
    """How the values are printed."""

    TREC = "trec"
    JSON = "json"


def trec(
    qrels: Annotated[Path, typer.Argument(help="Judgments: query iteration document relevance.")],
    run: Annotated[Path, typer.Argument(help="The ranking: query Q0 document rank score tag.")],
    measures: Annotated[
        list[str] | None,
        typer.Option("--measure", "-m", help="A measure, such as 'nDCG(gain=exp2)@10'; repeat it."),
    ] = None,
    preset_name: Annotated[
        str, typer.Option("--preset", help=f"Whose numbers: {', '.join(PRESETS)}.")
    ] = "trec_eval",
    per_query: Annotated[
        bool, typer.Option("--per-query", "-q", help="Print every query's values too.")
    ] = False,
    complete: Annotated[
        bool,
        typer.Option("--complete", "-c", help="Judged queries that the run lacks count as 0."),
    ] = False,
    depth: Annotated[
        int | None, typer.Option("--depth", "-M", help="Documents of a query that count.")
    ] = None,
    judged_only: Annotated[
        bool, typer.Option("--judged-only", "-J", help="Leave unjudged documents out.")
    ] = False,
    rel: Annotated[
        str | None, typer.Option("--rel", "-l", help="The smallest grade that is relevant.")
    ] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="How to print.")] = Format.TREC,
) -> None:
    """Measure a TREC run against qrels, as trec_eval and others do.

    [dim]ranklake trec qrels.txt run.txt -m nDCG@10 -m 'P(rel=2)@5' -q[/dim]
    """
    chosen = preset(preset_name)
    rules = {
        **({"missing_in_run": "zero"} if complete else {}),
        **({"depth": depth} if depth is not None else {}),
        **({"unjudged": "drop"} if judged_only else {}),
    }
    config = _config(_asked(measures or DEFAULTS, rel), preset_name, rules)
    judgments = files.qrels(qrels)
    ranking = files.run(run, is_unique=config.rules.duplicates == "error")
    if not {*judgments["query_id"].to_pylist()} & {*ranking.rows["query_id"].to_pylist()}:
        raise ContractError(f"{run}: none of its queries is judged in {qrels}")
    asked = [measure(text) for text in config.measures]
    n, everyone, queries = _measured(config, chosen, judgments, ranking, asked, per_query)
    if output is Format.JSON:
        found = {"run": ranking.tag, "preset": preset_name, "n_queries": n, "all": everyone}
        typer.echo(json.dumps({**found, **({"queries": queries} if per_query else {})}, indent=2))
        return
    for query, values in queries.items():
        _print(query, values)
    typer.echo(_line("runid", "all", ranking.tag))
    typer.echo(_line("num_q", "all", str(n)))
    _print("all", everyone)


def _asked(measures: Sequence[str], rel: str | None) -> list[str]:
    """The measures' strings, with the smallest relevant grade where one is given."""
    problems, asked = [], []
    if rel is not None:
        try:
            measure(f"recall(rel={rel})")
        except ValueError:
            raise ConfigError(f"--rel: found {rel!r}, expected a number above 0") from None
    for text in measures:
        try:
            named = measure(text)
            if named.metric.served_only or named.k == SHOWN:
                raise ValueError(f"{text}: needs to know what was shown, which a run does not say")
            takes_rel = "rel" in named.metric.defaults and named.metric.name not in IGNORE_REL
            given = {"rel": rel} if rel is not None and takes_rel else {}
            asked.append(with_defaults(text, given))
        except ValueError as error:
            problems.append(f"-m {error}")
    if problems:
        raise ConfigError(problems)
    return asked


def _config(measures: Sequence[str], preset_name: str, rules: Mapping[str, Any]) -> EvalConfig:
    values = {
        "candidates": ["served"],
        "labels": [JUDGMENT],
        "metrics": [],
        "measures": list(measures),
        "rules": dict(rules),
    }
    return of_values(with_preset(values, preset_name))


def _measured(
    config: EvalConfig,
    chosen: Preset,
    judgments: pa.Table,
    ranking: files.Run,
    asked: Sequence[Measure],
    per_query: bool,
) -> tuple[int, Values, dict[str, Values]]:
    """How many queries count, the values over them, and those of each query if asked for."""
    from ranklake import session
    from ranklake.notebook import evaluate_with

    spark = session.session()
    frames = {
        "impressions": spark.createDataFrame(ranking.rows),
        "judgments": spark.createDataFrame(judgments),
    }
    found = evaluate_with(config, frames, model_version=_MODEL)
    rows = found.metrics.to_pylist()
    n = rows[0]["n_queries"]
    values = {
        (row["metric"], row["variant"], row["k"], row["population"]): row["value"] for row in rows
    }
    everyone = {
        str(m): values[m.metric.name, m.variant, m.k, _population(m, chosen)] for m in asked
    }
    if not per_query:
        return n, everyone, {}
    own = [m for m in asked if m.is_of_query]
    queries = found.per_query().orderBy("query_id").toArrow().to_pylist()
    return n, everyone, {row["query_id"]: _values(row, own, config) for row in queries}


def _values(row: Mapping[str, Any], measures: Sequence[Measure], config: EvalConfig) -> Values:
    """The query's values; one that the mean counts although undefined is what it counts as."""
    undefined = {"zero": 0.0, "one": 1.0}.get(config.rules.no_relevant)
    return {
        str(m): undefined
        if row[m.column] is None and m.metric.is_mean_over_relevant
        else row[m.column]
        for m in measures
    }


def _population(named: Measure, chosen: Preset) -> str:
    populations = named.metric.populations
    return (chosen.population if chosen.population in populations else populations[0]).value


def _print(query: str, values: Values) -> None:
    for name, value in values.items():
        typer.echo(_line(name, query, "undefined" if value is None else f"{value:.4f}"))


def _line(name: str, query: str, value: str) -> str:
    return f"{name:<22}\t{query}\t{value}"
