"""`ranklake gate`: whether a candidate may replace a baseline, as an exit code. Starts no JVM."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ranklake import comparison
from ranklake.cli import options
from ranklake.cli.compare import print_comparison
from ranklake.cli.configured import configured, tables
from ranklake.cli.dates import from_to
from ranklake.cli.differences import allowed, of_rules, ruled
from ranklake.cli.printing import Row, as_json
from ranklake.comparison import Comparison, Verdict
from ranklake.config import EvalConfig
from ranklake.errors import ConfigError, GateFailed, GateInconclusive, RanklakeWarning


def gate(
    candidate: Annotated[str, typer.Argument(help="The model that is new.")],
    baseline: options.Baseline,
    lake: options.LakePath = None,
    config: options.Config = None,
    settings: options.Set = None,
    dates: options.Dates = None,
    to: Annotated[Path, typer.Option("--to", help="Where the verdict is written, as JSON.")] = Path(
        "gate.json"
    ),
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="Write what the rules say into the table comparisons. Needs Spark."
        ),
    ] = False,
    output: options.OutputFormat = options.Output.TABLE,
) -> None:
    """Tell whether a model may replace another, by the rules under gate in the configuration.

    Ends with 0 where every rule passes, 4 where one fails, 6 where the data cannot tell.

    [dim]ranklake gate v43 --baseline production -c gate.toml --dates 2026-01-01..2026-01-28[/dim]
    """
    _forget(to)
    loaded = configured(config, settings)
    found = comparison.gate(
        tables(loaded, lake, "gate"),
        candidate,
        baseline,
        rules=loaded.gate,
        dates=from_to(dates),
        confidence=loaded.confidence,
        aliases=loaded.aliases,
    )
    _write(to, found)
    if record:
        _record(loaded, lake, found)
    print_comparison(found, of_rules(found), output)
    _end(found, warns=loaded.gate.on_inconclusive == "warn")


def _forget(to: Path) -> None:
    """Removes the verdict of an earlier call: none may be taken for the one of this call."""
    try:
        to.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"--to {to}: cannot be written: {error.strerror}") from error


def _write(to: Path, found: Comparison) -> None:
    """The verdict and the rows. Raises ConfigError where the file cannot be written."""
    rows = found.rows.to_pylist()
    names = ("baseline_alias", "date_from", "date_to", "n_days", "confidence")
    report: Row = {
        "verdict": found.verdict,
        "candidate": found.candidate,
        "baseline": found.baseline,
        **{name: rows[0][name] for name in names},
        "notes": found.notes,
        "rules": rows,
    }
    try:
        to.write_text(as_json(report) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--to {to}: cannot be written: {error.strerror}") from error


def _record(loaded: EvalConfig, lake: str | None, found: Comparison) -> None:
    """Writes the rows into the lake."""
    from ranklake import session
    from ranklake.pipeline.baseline import record

    place = (
        loaded.lake
        if lake is None
        else loaded.lake.model_copy(update={"path": lake, "catalog_schema": None})
    )
    config = loaded.model_copy(update={"lake": place})
    record(session.session(engine=config.engine), config, found)


def _end(found: Comparison, *, warns: bool) -> None:
    """Returns where the candidate passes, or an inconclusive verdict only warns.

    Raises GateFailed or GateInconclusive, with a line for each rule that says so.
    """
    rows = [row for row in found.rows.to_pylist() if row["role"] != "info"]
    if found.verdict is Verdict.FAIL:
        raise GateFailed(_lines(rows, Verdict.FAIL))
    lines = _lines(rows, Verdict.INCONCLUSIVE)
    if lines and not warns:
        raise GateInconclusive(lines)
    for line in lines:
        warnings.warn(line, RanklakeWarning, stacklevel=2)


def _lines(rows: Sequence[Row], verdict: Verdict) -> list[str]:
    return [_line(row) for row in rows if row["verdict"] == verdict]


def _line(row: Row) -> str:
    """A rule's verdict as a message."""
    reason = row["reason"]
    kind = "" if row["max_relative_drop"] is None else "relative_"
    if row[f"{kind}ci_low"] is not None and not reason:
        ends = f"[{row[f'{kind}ci_low']:+.4f}, {row[f'{kind}ci_high']:+.4f}]"
        reason = f"{kind.replace('_', ' ')}difference {row[f'{kind}delta']:+.4f} {ends}"
        reason += f", expected {allowed(row)}"
    return f"gate: {ruled(row)}: {row['verdict']}: {reason}"
