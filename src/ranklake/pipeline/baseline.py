"""A run's models against a baseline: of the same run, or published before."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from ranklake import comparison, read, schemas, write
from ranklake.comparison import Comparison, Tables
from ranklake.comparison.held import Found, Held
from ranklake.config import EvalConfig
from ranklake.errors import ConfigError, NoInputError
from ranklake.pipeline.publish import same_question
from ranklake.run import Run
from ranklake.schemas import Wanted


@dataclass(frozen=True)
class Baseline:
    """The model that a run's others are compared with.

    asked  its name, or an alias of the configuration
    model  the name that it is
    """

    asked: str
    model: str
    tables: Tables

    @classmethod
    def of(cls, asked: str, spark: SparkSession, config: EvalConfig) -> "Baseline":
        """Raises ConfigError for a name that none can have, and for rules of what is not asked."""
        model = config.aliases.get(asked, asked)
        problems = [*_problems(config)]
        if not schemas.is_model_version(model):
            problems.append(f"--baseline {asked}: found {model!r}, expected a name of a model")
        if problems:
            raise ConfigError(problems)
        return cls(asked, model, read.tables_of(spark, config.lake))

    def check(self, run: Run) -> None:
        """Raises, before anything is computed, where there is nothing to compare with.

        NoInputError where neither the run nor the lake has the baseline on the day, ConfigError
        where its labels are of another age.
        """
        if self.model in run.models:
            return
        columns = ("label_as_of",)
        found = self.tables.metrics(dates=run.day, models=self.model, columns=columns)
        if not len(found):
            raise NoInputError(
                f"--baseline {self.asked}: no metrics of {self.model} are published for {run.day};"
                " evaluate it first"
            )
        ages = {*pc.unique(found["label_as_of"]).to_pylist()}
        if ages != {run.label_as_of}:
            known = ", ".join(str(age or "any time") for age in ages)
            raise ConfigError(
                f"--baseline {self.asked}: found labels known by {known}, expected the same for"
                f" both models, {run.label_as_of or 'any time'}; evaluate it again"
            )

    def compared(self, found: Found, config: EvalConfig) -> list[Comparison]:
        """Each other model of the run against it, on every slice; and what the rules say.

        Raises ConfigError where the published baseline's numbers mean something else.
        """
        models = pc.unique(found.metrics["model_version"]).to_pylist()
        others = None if self.model in models else self._published(found)
        held = Held(found, others)
        slices = pc.unique(found.metrics["slice"]).to_pylist()
        return [
            comparison.compare(
                held,
                model,
                self.asked,
                dates=found.day,
                slices=slices,
                rules=config.gate,
                confidence=config.confidence,
                aliases=config.aliases,
            )
            for model in sorted(models)
            if model != self.model
        ]

    def _published(self, found: Found) -> Mapping[str, pa.Table]:
        asked: Wanted = {"dates": found.day, "models": self.model}
        return {
            "metrics": self.tables.metrics(**asked),
            "metric_sums": self.tables.metric_sums(**asked),
            "quality": self.tables.quality(**asked),
        }


def _problems(config: EvalConfig) -> Iterator[str]:
    """A sentence for each rule of what the run would not publish."""
    measures = {str(measure) for measure in config.asked}
    slices = {schemas.EVERY_QUERY, *(",".join(group) for group in config.slices.groups)}
    for rule in config.gate.rules:
        found = {
            "measure": (str(rule.measured), measures),
            "slice": (rule.slice, slices),
            "label": (rule.label or config.labels[0], {*config.labels}),
        }
        for kind, (word, known) in found.items():
            if word not in known:
                yield (
                    f"gate.rules: {rule.title}: {kind} {word!r} is not evaluated, known are"
                    f" {', '.join(sorted(known))}"
                )


def record(spark: SparkSession, config: EvalConfig, found: Comparison) -> int:
    """Writes what the rules said into comparisons; returns the table's Delta version.

    Replaces what they said before of the same models over the same days; nothing else.
    """
    rows = found.rows.filter(pc.field("rule") != "")
    return write.replace_little(
        spark,
        rows,
        config.lake,
        schemas.COMPARISONS,
        day=rows["date_to"][0].as_py(),
        models=[found.candidate],
        run_id=found.run_id,
        within=(*same_question(found), ("rule", "<>", "")),
    )
