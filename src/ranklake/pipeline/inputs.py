"""The inputs of one day, opened and audited: which rows, which models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ranklake import clean, read, schemas
from ranklake.complaints import data_errors
from ranklake.config import EvalConfig
from ranklake.errors import ContractError, NoInputError, RanklakeError
from ranklake.pipeline.needs import judges
from ranklake.pipeline.reading import keys_of, nearby_rows, rows_of_day
from ranklake.together import together

Audit = Mapping[str | None, Mapping[str, int]]
"""Counts of rows by finding, for each model version of the input (None where it has none)."""


@dataclass(frozen=True)
class Day:
    """The rows of one day by input, what the audit found, and the models that have candidates.

    served and scored map each model's published name to its name in the input. base names the input
    that says which queries there are. in_rows are the impressions as one row a query, where their
    input is nested and that can be told from the row. nearby are rows of other days, whose touches
    compete for conversions. Labels count that the log had by known_by (None: all).
    """

    rows: Mapping[str, DataFrame]
    audits: Mapping[str, Audit]
    served: Mapping[str, str]
    scored: Mapping[str, str]
    base: str
    is_nested: bool = False
    in_rows: DataFrame | None = None
    nearby: Mapping[str, DataFrame] = field(default_factory=dict)
    known_by: datetime | None = None

    @property
    def models(self) -> dict[str, str]:
        """Published name → name in the input, of all models."""
        return {**self.served, **self.scored}

    def count(self, name: str, finding: str) -> int:
        """Rows of the input with the finding, over all models."""
        return sum(counts.get(finding, 0) for counts in self.audits.get(name, {}).values())

    def has(self, name: str, finding: str) -> bool:
        """Whether the input has rows with the finding, or was not looked at for it."""
        counts = self.audits.get(name, {}).values()
        return any(of_model.get(finding, 1) for of_model in counts)

    @property
    def n_rows(self) -> int:
        """Rows of all inputs."""
        return sum(self.count(name, "n_rows") for name in self.audits)

    @property
    def n_labels(self) -> int:
        """Label events: an upper bound of the labelled queries."""
        tables = sum(self.count(name, "usable") for name in ("clicks", "conversions", "judgments"))
        on_rows = sum(
            self.count("impressions", f"labelled_{column}") for column in schemas.ROW_LABELS
        )
        return tables + on_rows


def day_of(
    sources: Mapping[str, read.Source],
    config: EvalConfig,
    day: date,
    *,
    models: Sequence[str] = (),
    known_by: datetime | None = None,
) -> Day:
    """The rows of the day and their audit: one pass over the keys of each input.

    Raises NoInputError for a day without candidates or labels, ContractError for model versions
    that cannot be published.
    """
    rows = rows_of_day(sources, config, day)
    audits = _audits(rows, config)
    served = _models(audits, "impressions", config) if "served" in config.candidates else {}
    scored = _models(audits, "scores", config) if "scored" in config.candidates else {}
    for name, models_found in (("impressions", served), ("scores", scored)):
        if name in audits and not models_found and _reads_candidates(name, config):
            _refuse_unusable(name, audits[name])
            raise read.missing_day(sources[name], day, zone=config.zone)
    _refuse_shared_names(served, scored)
    _refuse_by_rule(audits, config)
    wanted = _wanted(models, {**served, **scored}, day)
    found = Day(
        rows=rows,
        audits=audits,
        served={name: raw for name, raw in served.items() if name in wanted},
        scored={name: raw for name, raw in scored.items() if name in wanted},
        base="judgments" if "judgments" in rows and judges(config) else "impressions",
        is_nested="impressions" in rows and schemas.IS_CANDIDATE in rows["impressions"].columns,
        in_rows=_in_rows(sources, day),
        nearby=nearby_rows(sources, config, day),
        known_by=known_by,
    )
    _refuse_empty_labels(found, sources, config, day)
    return found


def _in_rows(sources: Mapping[str, read.Source], day: date) -> DataFrame | None:
    """The day's impressions, one row a query: None where they are not nested, or not dated."""
    rows = sources["impressions"].in_rows if "impressions" in sources else None
    if rows is None or "event_date" not in rows.columns:
        return None
    return rows.where(F.col("event_date") == F.lit(day))


def _reads_candidates(name: str, config: EvalConfig) -> bool:
    return {"impressions": "served", "scores": "scored"}[name] in config.candidates


def _audits(rows: Mapping[str, DataFrame], config: EvalConfig) -> dict[str, Audit]:
    shown = rows["impressions"].columns if "impressions" in rows else ()
    looks = [
        partial(_audit, name, frame, config, keys_of(name, config, impressions=shown))
        for name, frame in rows.items()
    ]
    return dict(zip(rows, together(*looks), strict=True))


def _audit(name: str, rows: DataFrame, config: EvalConfig, keys: clean.Keys) -> Audit:
    audited = clean.audited(
        rows,
        keys=keys,
        unknown_users=config.unknown_users,
        rank_by=config.rank_by,
        is_probability=config.score_is_probability,
    )
    with data_errors(name):
        found = audited.collect()
    return {
        row["model_version"]: clean.with_invalid_keys(
            {key: value for key, value in row.asDict().items() if key != "model_version"}
        )
        for row in found
    }


def _models(audits: Mapping[str, Audit], name: str, config: EvalConfig) -> dict[str, str]:
    """Published name → name in the input, of the models with a usable row."""
    found = {raw: counts for raw, counts in audits.get(name, {}).items() if counts["usable"]}
    problems: list[str] = []
    models: dict[str, str] = {}
    for raw in found:
        published = config.models.get(raw or "", raw)
        if not published:
            problems.append(
                f"{name}: column 'model_version' is {'empty' if raw == '' else 'null'} in"
                f" {found[raw]['usable']} rows; map it, for example model_version = \"'v1'\""
            )
        elif not schemas.is_model_version(published):
            problems.append(
                f"{name}: model version {published!r} does not match {schemas.MODEL_VERSION};"
                f' give it an alias: [models] "{published}" = "{_suggested(published)}"'
            )
        elif published in models:
            problems.append(
                f"{name}: models {models[published]!r} and {raw!r} would both be {published!r};"
                " give one of them another alias in [models]"
            )
        else:
            models[published] = raw or ""
    if problems:
        raise ContractError(sorted(problems))
    return dict(sorted(models.items()))


def _refuse_by_rule(audits: Mapping[str, Audit], config: EvalConfig) -> None:
    """Raises ContractError with the values that a rule takes for errors."""
    rules = config.rules
    refused = {
        "nan_score": ("nan_scores", rules.nan_scores),
        "null_score": ("null_scores", rules.null_scores),
        "negative_gain": ("negative", rules.negative),
    }
    problems = [
        f"{name}: {finding}: found {counts[finding]:,} of {counts['n_rows']:,} rows,"
        f" expected none (rules.{rule} = 'error')"
        for name, audit in audits.items()
        for counts in audit.values()
        for finding, (rule, value) in refused.items()
        if value == "error" and counts.get(finding)
    ]
    if problems:
        raise ContractError(problems)


def _refuse_unusable(name: str, audit: Audit) -> None:
    n_rows = sum(counts["n_rows"] for counts in audit.values())
    if n_rows:
        raise ContractError(
            f"{name}: none of {n_rows:,} rows has a query_id, an item_id and `where`"
        )


def _suggested(name: str) -> str:
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)
    return kept.strip("-")[:128] or "model"


def _refuse_shared_names(served: Mapping[str, str], scored: Mapping[str, str]) -> None:
    shared = sorted(set(served) & set(scored))
    if shared:
        raise ContractError(
            [
                f"scores: model version {name!r} is also served in impressions; rename one"
                for name in shared
            ]
        )


def _wanted(asked: Sequence[str], models: Mapping[str, str], day: date) -> set[str]:
    """The published names of the models asked for, by either name; all without a wish."""
    if not asked:
        return set(models)
    by_raw = {raw: name for name, raw in models.items()}
    missing = [name for name in asked if name not in models and name not in by_raw]
    if missing:
        has = ", ".join(models)
        raise NoInputError(
            [f"model {name!r} has no candidates on {day}; there are {has}" for name in missing]
        )
    return {by_raw.get(name, name) for name in asked}


def _refuse_empty_labels(
    found: Day, sources: Mapping[str, read.Source], config: EvalConfig, day: date
) -> None:
    tables = [name for name in ("clicks", "conversions", "judgments") if name in sources]
    if not tables or found.n_labels or config.allow_empty_labels:
        return
    errors: list[RanklakeError] = [
        read.missing_day(sources[name], day, zone=config.zone) for name in tables
    ]
    problems = [problem for error in errors for problem in error.problems]
    raise NoInputError(
        [*problems, "set allow_empty_labels = true if a day without any label is right"]
    )
