"""Many dates: where each of them stands, and those that fail among others that do not."""

from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime
from itertools import groupby

from pyspark.sql import SparkSession

from ranklake import read, schemas
from ranklake.complaints import first_line
from ranklake.config import EvalConfig
from ranklake.errors import RanklakeError
from ranklake.pipeline.fingerprints import fingerprints_of
from ranklake.pipeline.needs import check_needs
from ranklake.pipeline.publish import check_tables
from ranklake.pipeline.staleness import Standing, current, standing


def standings(
    spark: SparkSession,
    config: EvalConfig,
    *,
    first: date | None = None,
    last: date | None = None,
    label_as_of: datetime | None = None,
    now: datetime,
) -> Iterator[tuple[date, Standing]]:
    """Where each published date stands, from first to last (None: any), in order.

    Reads the tables of the lake and what there is to know of the inputs' files; writes nothing.
    """
    check_tables(spark, config, (schemas.METRICS, schemas.RUNS))
    runs = read.published_runs(spark, config.lake, first, last)
    if not runs:
        return
    sources = read.opened(spark, config.inputs.given(), slices=config.slices.columns)
    check_needs(config, sources)
    for day, of_day in groupby(runs, key=lambda run: run.day):
        those = current([*of_day])
        files = {
            known_by: fingerprints_of(sources, config, day, known_by=known_by)
            for known_by in {run.label_as_of for run in those}
        }
        pairs = [(run, files[run.label_as_of]) for run in those]
        yield day, standing(pairs, config, label_as_of=label_as_of, now=now)


def each(
    days: Iterable[date],
    run: Callable[[date], None],
    *,
    failed: Callable[[date, Exception], None],
) -> None:
    """Runs every day, also after one that failed, which is told to `failed` at once.

    Raises, at the end, the error of the first that failed, with the problems of all.
    """
    errors: dict[date, Exception] = {}
    for day in days:
        try:
            run(day)
        except Exception as error:  # raised below, when the others had their turn
            errors[day] = error
            failed(day, error)
    if errors:
        first = next(iter(errors.values()))
        problems = [line for day, error in errors.items() for line in _problems(day, error)]
        if isinstance(first, RanklakeError):
            raise type(first)(problems) from first
        first.add_note("\n".join(problems))
        raise first


def _problems(day: date, error: Exception) -> list[str]:
    if isinstance(error, RanklakeError):
        return [f"{day}: {problem}" for problem in error.problems]
    return [f"{day}: {type(error).__name__}: {first_line(error)}"]
