"""One attempt at a day, be it evaluated or measured again: how it begins, and how it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime

from pyspark.sql import SparkSession

from ranklake.config import EvalConfig, config_hash, is_mature, labels_as_of
from ranklake.engine import engine_of
from ranklake.errors import DataLimitExceeded
from ranklake.pipeline.publish import Publisher
from ranklake.run import Listener, Run


def attempt(
    spark: SparkSession,
    config: EvalConfig,
    day: date,
    listener: Listener,
    *,
    label_as_of: datetime | None = None,
) -> Run:
    """A new run, of which only the day, the configuration and the age of its labels are known."""
    known_by = label_as_of or labels_as_of(config, day)
    return Run(
        day=day,
        evaluation=config.evaluation,
        config=config.model_dump_json(by_alias=True),
        config_hash=config_hash(config),
        spark_version=spark.version,
        engine=engine_of(spark),
        listener=listener,
        label_as_of=known_by,
        is_mature=is_mature(config, day, known_by=known_by, now=datetime.now(UTC)),
    )


@contextmanager
def failures_recorded(spark: SparkSession, config: EvalConfig, run: Run) -> Iterator[None]:
    """Whatever fails inside leaves a FAILED row in the lake, if there is one, and is raised.

    A run whose data are beyond a limit has its row by then: REJECTED.
    """
    try:
        yield
    except DataLimitExceeded:
        raise
    except Exception as error:
        if config.lake.is_given:
            Publisher(spark, config, run).record_failure(error)
        raise
