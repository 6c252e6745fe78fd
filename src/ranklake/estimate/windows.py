"""Days and other parts of a log, added bucket by bucket: a user keeps its bucket in all of them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ranklake.errors import ConfigError
from ranklake.estimate.series import SUMS, matrix
from ranklake.metrics import spelled

KEYS = ("model_version", "slice", "slice_value", "label", "population", "metric", "variant", "k")

_Key = tuple[Any, ...]
_HASHES = "fingerprint"
_OF_SOME = tuple(name for name in SUMS if name not in ("num", "den"))
"""Columns of sums that are null in most rows."""


def added(parts: Iterable[pa.Table], *, keys: Sequence[str] = KEYS) -> pa.Table:
    """The rows of metric_sums of all parts, those of one key added: one row a key.

    A part has a key once; where it lacks a key it adds nothing. Parts are looked at one by one, and
    not kept. Without any part there are no rows. Raises ConfigError where one key has two
    definitions, or where the numbers of buckets differ, with both.
    """
    total = _Total(keys)
    for part in parts:
        total.add(part)
    return total.table()


class _Total:
    """What has been added up so far: a place for every key."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = keys
        self._places: dict[_Key, int] = {}
        self._hashes: list[str] = []
        self._num = self._den = np.zeros((0, 0))
        self._of_some: dict[str, dict[int, npt.NDArray[Any]]] = {name: {} for name in _OF_SOME}

    def add(self, part: pa.Table) -> None:
        """Adds one part's rows."""
        if not part.num_rows:
            return
        num, den = matrix(part["num"]), matrix(part["den"])
        at = self._places_of(part)
        self._grow(num.shape[1])
        self._num[at] += num
        self._den[at] += den
        for name in {*_OF_SOME} & {*part.column_names}:
            self._add_some(name, part[name], at)

    def _add_some(self, name: str, column: pa.ChunkedArray, at: npt.NDArray[np.int64]) -> None:
        """Adds what only some rows have; hashes of queries are added bit by bit."""
        rows = np.flatnonzero(column.is_valid().to_numpy())
        total, plus = self._of_some[name], np.bitwise_xor if name == _HASHES else np.add
        for place, more in zip(at[rows].tolist(), matrix(column.take(rows)), strict=True):
            total[place] = plus(total[place], more) if place in total else more

    def _places_of(self, part: pa.Table) -> Any:
        """The place of every row; new keys get new ones."""
        columns = [part[name].to_pylist() for name in (*self._keys, "definition_hash")]
        places, problems = [], []
        for *values, definition in zip(*columns, strict=True):
            key = tuple(values)
            place = self._places.setdefault(key, len(self._places))
            if place == len(self._hashes):
                self._hashes.append(definition)
            elif definition != self._hashes[place]:
                problems.append(self._redefined(key, self._hashes[place], definition))
            places.append(place)
        if problems:
            raise ConfigError(problems)
        return np.array(places, dtype=np.int64)

    def _redefined(self, key: _Key, one: str, other: str) -> str:
        row = dict(zip(self._keys, key, strict=True))
        what = spelled(row["metric"], row["variant"], row["k"])
        return (
            f"{what} of {row['label']}, {row['slice']} {row['slice_value']}: found definitions"
            f" {one} and {other}, expected one: numbers that mean different things are not added"
        )

    def _grow(self, n_buckets: int) -> None:
        """Makes room for all places."""
        before = self._num.shape[1]
        if before not in (0, n_buckets):
            raise ConfigError(
                f"metric_sums: found {before} and {n_buckets} buckets, expected as many on all days"
            )
        n_new = len(self._places) - len(self._num)
        if n_new or not before:
            self._num, self._den = (_longer(a, n_new, n_buckets) for a in (self._num, self._den))

    def table(self) -> pa.Table:
        """The rows of metric_sums."""
        if not self._places:
            return _EMPTY.empty_table()
        keys = map(_key_column, self._keys, zip(*self._places, strict=True))
        return pa.table(
            {
                **dict(zip(self._keys, keys, strict=True)),
                **{"num": _lists(self._num), "den": _lists(self._den)},
                **{name: self._lists_of_some(name) for name in _OF_SOME},
                "definition_hash": pa.array(self._hashes, pa.string()),
            }
        )

    def _lists_of_some(self, name: str) -> pa.Array:
        """Null where no part has one."""
        n_buckets = self._num.shape[1]
        found = [self._of_some[name].get(place) for place in range(len(self._places))]
        ends = np.cumsum([0, *(0 if array is None else n_buckets for array in found)])
        there = [array for array in found if array is not None]
        none = np.zeros(0, dtype=np.int64 if name == _HASHES else np.float64)
        return pa.ListArray.from_arrays(
            pa.array(ends, pa.int32()),
            pa.array(np.concatenate([none, *there])),
            mask=pa.array([array is None for array in found], pa.bool_()),
        )


_EMPTY = pa.schema(
    {
        **{name: pa.int32() if name == "k" else pa.string() for name in KEYS},
        **{name: pa.list_(pa.int64() if name == _HASHES else pa.float64()) for name in SUMS},
        "definition_hash": pa.string(),
    }
)


def _key_column(name: str, values: Sequence[Any]) -> pa.Array:
    return pa.array(values, pa.int32() if name == "k" else pa.string())


def _longer(array: Any, n_new: int, n_buckets: int) -> Any:
    more = np.zeros((n_new, n_buckets), dtype=array.dtype)
    return np.concatenate([array.reshape(len(array), n_buckets), more])


def _lists(array: npt.NDArray[Any]) -> pa.Array:
    """A column of lists of the rows."""
    n_rows, n_buckets = array.shape
    offsets = pa.array(np.arange(n_rows + 1, dtype=np.int32) * n_buckets)
    return pa.ListArray.from_arrays(offsets, pa.array(array.reshape(-1)))
