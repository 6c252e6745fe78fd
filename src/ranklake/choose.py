"""Which published numbers are meant: by metric, cut-off, slice and label. No Spark."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ranklake import metrics, schemas
from ranklake.errors import ConfigError, near_miss


@dataclass(frozen=True)
class Choice:
    """What is asked of the rows of `metrics`; of what nothing is said, everything.

    metrics     names, with all their variants, or measures such as "nDCG(gain=exp2)@10"
    slices      names of slices, such as device; by default every query together
    everything  also the other populations, windows, and counts
    """

    metrics: Sequence[str] = ()
    ks: Sequence[int] = ()
    slices: Sequence[str] = ()
    labels: Sequence[str] = ()
    everything: bool = False

    def of(self, rows: pa.Table) -> pa.Table:
        """The rows that are meant. Raises ConfigError for a word that no row has."""
        every_slice = [] if self.everything else [schemas.EVERY_QUERY]
        rows = _narrowed(rows, "slice", self.slices or every_slice)
        rows = _narrowed(rows, "label", self.labels)
        rows = _of_metrics(rows, self.metrics)
        rows = _narrowed(rows, "k", self.ks)
        if self.everything:
            return rows
        return rows.filter(_is_usual(with_counts=bool(self.metrics)))


def _of_metrics(rows: pa.Table, texts: Sequence[str]) -> pa.Table:
    """The rows of the metrics, with all their variants, or of the measures. All for no text.

    Raises ConfigError for a metric or measure that no row has.
    """
    is_exact = [text for text in texts if set(text) & set("(@")]
    if not is_exact:
        return _narrowed(rows, "metric", [_canonical(name) for name in texts])
    found = [_of_measure(rows, text) for text in is_exact]
    plain = [text for text in texts if text not in is_exact]
    return pa.concat_tables([*found, *([_of_metrics(rows, plain)] if plain else [])])


def _of_measure(rows: pa.Table, text: str) -> pa.Table:
    try:
        wanted = (metrics.measure if "@" in text else metrics.metric_with_options)(text)
    except ValueError as error:
        raise ConfigError(f"--metric {error}") from error
    is_own = (pc.field("metric") == wanted.metric.name) & (pc.field("variant") == wanted.variant)
    found = rows.filter(is_own & (pc.field("k") == wanted.k) if "@" in text else is_own)
    if not found:
        raise ConfigError(f"--metric {text}: there is none")
    return found


def _canonical(name: str) -> str:
    try:
        return metrics.metric(name).name
    except KeyError:  # the lake also has counts, such as n_queries
        return name


def _narrowed(rows: pa.Table, column: str, wanted: Sequence[Any] | None) -> pa.Table:
    """The rows with one of the wanted values; all of them when none is wanted.

    Raises ConfigError for a value that no row has.
    """
    if not wanted:
        return rows
    found = sorted(pc.unique(rows[column]).to_pylist())
    known = ", ".join(map(str, found))
    unknown = [value for value in wanted if value not in found]
    if unknown:
        raise ConfigError(
            [
                f"--{column} {value}: there is none, known are {known}"
                f"{near_miss(str(value), map(str, found))}"
                for value in unknown
            ]
        )
    return rows.filter(pc.field(column).isin(list(wanted)))


def _is_usual(*, with_counts: bool) -> pc.Expression:
    """Whether a row is of the day alone, and of the population that its metric is read over."""
    name, population = pc.field("metric"), pc.field("population")
    usual = pc.scalar(False)
    for metric in metrics.METRICS:
        usual |= (name == metric.name) & (population == metric.populations[0].value)
    if with_counts:
        usual |= ~name.isin([metric.name for metric in metrics.METRICS])
    return usual & (pc.field("window_days") == 1)
