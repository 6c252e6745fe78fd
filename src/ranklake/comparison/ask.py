"""Questions to published tables: is the candidate better, and may it replace the baseline?"""

from collections.abc import Mapping, Sequence

from ranklake.choose import Choice
from ranklake.comparison.compared import DEFAULT_CONFIDENCE, Comparison, Question, compared
from ranklake.comparison.held import Found, Held
from ranklake.comparison.published import Span, day_of, sides
from ranklake.comparison.tables import Tables
from ranklake.config import Gate, of_values
from ranklake.errors import ConfigError
from ranklake.schemas import Day


def compare(
    tables: Tables | Found,
    candidate: str,
    baseline: str,
    *,
    dates: Day | tuple[Day, Day] | None = None,
    metrics: Sequence[str] = (),
    ks: Sequence[int] = (),
    slices: Sequence[str] = (),
    labels: Sequence[str] = (),
    rules: Gate | Sequence[Mapping[str, object]] = (),
    confidence: float = DEFAULT_CONFIDENCE,
    aliases: Mapping[str, str] | None = None,
) -> Comparison:
    """How much better the candidate is: one row a series, with the interval of the difference.

    tables    a Lake, spark_lake(...), or what evaluate(...) found of several models
    dates     a day, or the first and the last one; None: the newest that both models have
    metrics   names, with all their variants, or measures such as "recall@10"; none: all, likewise
              ks, slices (none: all queries together) and labels
    rules     of a gate: one row a rule and series follows
    aliases   names for models, such as {"production": "v42"}

    Raises NoInputError where the models have no such day in common, and ConfigError for a name that
    is not published, or where the models' numbers do not mean the same, with every reason.
    """
    choice = Choice(metrics, ks, slices, labels)
    return _asked(tables, (candidate, baseline), dates, choice, _gate(rules), confidence, aliases)


def gate(
    tables: Tables | Found,
    candidate: str,
    baseline: str,
    *,
    rules: Gate | Sequence[Mapping[str, object]],
    dates: Day | tuple[Day, Day] | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    aliases: Mapping[str, str] | None = None,
) -> Comparison:
    """Whether the candidate may replace the baseline: one row a rule and series, and a verdict.

        gate(Lake("lake"), "v43", "v42", rules=[{"measure": "recall@10", "max_drop": 0.002}])

    The keys of a rule are those of [[gate.rules]] in the configuration. `dates`, `aliases` and the
    errors are as in `compare`; ConfigError also where there is no rule.
    """
    asked = _gate(rules)
    if not asked.rules:
        raise ConfigError("gate.rules: found none, expected what the candidate may not lose")
    return _asked(tables, (candidate, baseline), dates, None, asked, confidence, aliases)


def _gate(rules: Gate | Sequence[Mapping[str, object]]) -> Gate:
    return rules if isinstance(rules, Gate) else of_values({"gate": {"rules": [*rules]}}).gate


def _asked(
    tables: Tables | Found,
    models: tuple[str, str],
    dates: Day | tuple[Day, Day] | None,
    choice: Choice | None,
    rules: Gate,
    confidence: float,
    aliases: Mapping[str, str] | None,
) -> Comparison:
    candidate, baseline = ((aliases or {}).get(model, model) for model in models)
    if candidate == baseline:
        raise ConfigError(f"baseline: found {baseline}, which is the candidate, expected another")
    held = tables.snapshot() if isinstance(tables, Tables) else Held(tables)
    found = sides(held, candidate, baseline, span=_span(dates), choice=choice, rules=rules.rules)
    return compared(
        found.candidate,
        found.baseline,
        Question(found.wanted, rules, confidence, found.derived),
        alias=models[1] if models[1] != baseline else None,
        left_out=found.left_out,
    )


def _span(dates: Day | tuple[Day, Day] | None) -> Span | None:
    if dates is None:
        return None
    first, last = dates if isinstance(dates, tuple) else (dates, dates)
    return Span(day_of(first), day_of(last))
