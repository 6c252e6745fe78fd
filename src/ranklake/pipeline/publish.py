"""Which table is written when: publication is one commit of `metrics`, and the manifest is last."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from functools import partial
from typing import TypedDict

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ranklake import schemas, write
from ranklake.comparison import Comparison
from ranklake.config import EvalConfig
from ranklake.errors import ConfigError
from ranklake.metrics import Measure
from ranklake.run import Run
from ranklake.together import together


def lake_tables(config: EvalConfig) -> tuple[schemas.Table, ...]:
    """The tables of the evaluation; query_metrics has its slices and metrics as columns."""
    return tuple(
        detail_table(config) if table is schemas.QUERY_METRICS else table for table in schemas.LAKE
    )


def detail_table(config: EvalConfig) -> schemas.Table:
    """query_metrics with the columns of the evaluation's slices and measures."""
    of_slices = [
        schemas.Column(name, "STRING", "a slice of the queries") for name in config.slices.columns
    ]
    of_metrics = [schemas.Column(m.column, "DOUBLE", _meaning(m)) for m in config.per_query]
    extras = [
        column for column in schemas.QUERY_EXTRA_COLUMNS if column.name in config.query_extras
    ]
    return schemas.QUERY_METRICS.plus([*of_slices, *extras, *of_metrics])


def _meaning(measure: Measure) -> str:
    """What a column of query_metrics means; a variant says that it is one."""
    formula = f"{measure.metric.formula}; null: {measure.metric.null_when}"
    return f"{measure}: by default {formula}" if measure.options else formula


def check_tables(spark: SparkSession, config: EvalConfig, tables: Sequence[schemas.Table]) -> None:
    """Raises ConfigError when a table is not there, or lacks a column that the run writes."""
    problems = []
    looks = [partial(write.columns_of, spark, config.lake, table) for table in tables]
    for table, found in zip(tables, together(*looks), strict=True):
        if found is None:
            problems.append(
                f"{config.lake.sql_name(table.name)}: there is no such table; run: ranklake init"
            )
            continue
        missing = [name for name in table.names if name not in found]
        if missing:
            problems.append(f"{table.name}: no column {', '.join(missing)}; run: ranklake init")
    if problems:
        raise ConfigError(problems)


def same_question(found: Comparison) -> write.Within:
    """What tells its rows from those of another baseline, or of other days."""
    first = found.rows["date_from"][0].as_py()
    return (("baseline_version", "=", found.baseline), ("date_from", "=", first))


class _Partitions(TypedDict):
    day: date
    models: list[str]
    run_id: str


class Publisher:
    """Writes one run's rows into its partitions, and remembers the versions in the run."""

    def __init__(self, spark: SparkSession, config: EvalConfig, run: Run) -> None:
        self._spark, self._config, self._run = spark, config, run

    def detail(self, per_query: DataFrame, values: pa.Table) -> DataFrame:
        """Replaces the run's partitions of query_metrics; returns their rows as committed.

        `values` turns the rows' slice_id into the values of their slices.
        """
        named = self._spark.createDataFrame(values)
        rows = per_query.join(F.broadcast(named), on=["slice_id"], how="left")
        table = detail_table(self._config)
        version = self._replace(table, rows.hint("rebalance", "model_version"))
        return self._committed(table, version).withColumn("n_retrieved", F.size("hit_ranks"))

    def clear_detail(self) -> None:
        """Empties the run's partitions of query_metrics: a run without detail leaves no old one."""
        table = detail_table(self._config)
        self.replace(table, schemas.arrow_schema(table).empty_table())

    def replace(self, table: schemas.Table, rows: pa.Table) -> None:
        """Replaces the run's partitions of the table by rows made on the driver."""
        self._replace(table, rows)

    def compared(self, comparisons: Sequence[Comparison]) -> None:
        """Replaces the comparisons with the same baseline over the same days, and no other."""
        if comparisons:
            rows = pa.concat_tables([found.rows for found in comparisons])
            self._replace(schemas.COMPARISONS, rows, within=same_question(comparisons[0]))

    def rejected(self, rows: DataFrame) -> None:
        """Replaces the run's partitions of rejected."""
        self._replace(schemas.REJECTED, rows.coalesce(1))

    def publish(
        self,
        metric_sums: pa.Table,
        quality: pa.Table,
        metrics: pa.Table,
        comparisons: Sequence[Comparison] = (),
    ) -> None:
        """Writes what the run found: the commit of `metrics` is the publication."""
        together(
            partial(self.replace, schemas.METRIC_SUMS, metric_sums),
            partial(self.replace, schemas.QUALITY, quality),
            partial(self.compared, comparisons),
        )
        self.replace(schemas.METRICS, metrics)
        self.record("SUCCESS")

    def reject(self, quality: pa.Table, problems: Sequence[str]) -> None:
        """Writes why nothing is published: no table that holds numbers is touched."""
        self.replace(schemas.QUALITY, quality)
        self.record("REJECTED", message="\n".join(problems))

    def record(self, status: str, *, message: str | None = None) -> None:
        """Appends the run's rows to the manifest."""
        rows = self._run.rows(status, message=message)
        write.append(self._spark, rows, self._config.lake, schemas.RUNS, run_id=self._run.run_id)

    def record_failure(self, error: Exception) -> None:
        """Appends a FAILED row; a lake that cannot take it must not hide the error itself."""
        first_lines = str(error).strip().split("\n")[:20]
        with suppress(Exception):
            self.record("FAILED", message=f"{type(error).__name__}: " + "\n".join(first_lines))

    def _replace(
        self, table: schemas.Table, rows: DataFrame | pa.Table, *, within: write.Within = ()
    ) -> int:
        run, lake = self._run, self._config.lake
        partitions = _Partitions(day=run.day, models=list(run.models), run_id=run.run_id)
        if isinstance(rows, pa.Table):
            version = write.replace_little(
                self._spark, rows, lake, table, **partitions, within=within
            )
        else:
            version = write.replace_partitions(rows, lake, table, **partitions)
        run.table_versions[table.name] = version
        return version

    def _committed(self, table: schemas.Table, version: int) -> DataFrame:
        """The run's partitions of the table, whatever other runs commit in the meantime."""
        rows = self._spark.read.option("versionAsOf", version).table(
            self._config.lake.sql_name(table.name)
        )
        is_own = (F.col("event_date") == F.lit(self._run.day)) & F.col("model_version").isin(
            [*self._run.models]
        )
        return rows.where(is_own)
