"""A lake of two models that ranked the same queries: what it publishes is summed here, in numpy."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from lakes import created, recorded, replaced

from ranklake import schemas

Array = npt.NDArray[np.float64]
DAYS = tuple(date(2026, 1, day) for day in range(1, 8))
BASELINE, CANDIDATE = "v1", "v2"
N_BUCKETS = 50
K = 10
DEFINITION = "0123456789abcdef"
RECALL = ("recall", K, "with_relevant")


class Queries(NamedTuple):
    """A day's queries with a relevant item: `values` is their recall, by model."""

    buckets: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]
    devices: npt.NDArray[np.str_]
    values: Mapping[str, Array]


def queries(day: date, *, lift: float = 0.05, n: int = 3_000) -> Queries:
    """Of users with a taste of their own; the candidate is `lift` better, but on tablets worse."""
    rng = np.random.default_rng(day.toordinal())
    tastes = np.random.default_rng(7).normal(0.6, 0.15, 400)
    users = rng.integers(0, 400, n)
    devices = rng.choice(["mobile", "desktop", "tablet"], n, p=[0.6, 0.3, 0.1])
    lifts = np.where(devices == "tablet", -2 * lift, lift)
    luck = rng.normal(0, 0.1, n)
    values = {
        model: np.clip(tastes[users] + luck + rng.normal(0, 0.05, n) + added, 0, 1)
        for model, added in ((BASELINE, 0.0), (CANDIDATE, lifts))
    }
    return Queries(users % N_BUCKETS, rng.integers(1, 2**62, n), devices, values)


def published(
    path: Path,
    days: Mapping[date, Queries],
    *,
    models: Sequence[str] = (BASELINE, CANDIDATE),
    run_id: str = "",
    **known: Any,
) -> Path:
    """The lake, now with these days of the models; `known` are columns of every row of metrics."""
    if not (path / "runs").exists():
        created(path)
    for day, found in days.items():
        for model in models:
            _publish(path, day, model, found, run_id or f"run-{day}-{model}", known)
    return path


def _publish(
    path: Path, day: date, model: str, found: Queries, run_id: str, known: Mapping[str, Any]
) -> None:
    own = {"model_version": model, "label": "click", "definition_hash": DEFINITION, **known}
    rows = [
        {**own, **key, **sums}
        for value in ("all", *np.unique(found.devices))
        for key, sums in _sums(found, model, value)
    ]
    metrics = [
        {
            **{name: row[name] for name in row if name not in ("num", "den", "fingerprint")},
            "label_as_of": datetime(2026, 1, 31, tzinfo=UTC),
            "is_mature": True,
            "window_days": 1,
            "value": sum(row["num"]) / sum(row["den"]),
            "status": "ok",
            **known,
        }
        for row in rows
    ]
    sums_known = {*schemas.METRIC_SUMS.names}
    only = [{name: row[name] for name in row if name in sums_known} for row in rows]
    key = {"run_id": run_id, "day": day, "models": [model]}
    versions = {
        "metric_sums": replaced(path, schemas.METRIC_SUMS, only, **key),
        "metrics": replaced(path, schemas.METRICS, metrics, **key),
    }
    recorded(path, run_id, day=day, models=[model], versions=versions, detail="none")


def _sums(found: Queries, model: str, device: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The rows of one slice value: their key, and their arrays."""
    of = np.ones(len(found.ids), dtype=bool) if device == "all" else found.devices == device
    place = {"slice": "all" if device == "all" else "device", "slice_value": device}
    counts = np.bincount(found.buckets[of], minlength=N_BUCKETS).astype(float)
    totals = np.bincount(found.buckets[of], found.values[model][of], minlength=N_BUCKETS)
    hashes = np.zeros(N_BUCKETS, dtype=np.int64)
    np.bitwise_xor.at(hashes, found.buckets[of], found.ids[of])
    arrays = {
        ("n_queries", 0, "all"): (counts, counts, hashes),
        ("n_queries", 0, "with_relevant"): (counts, counts, None),
        ("hit_rate", K, "with_relevant"): (counts, counts, None),
        ("n_candidates", 0, "all"): (20 * counts, counts, None),
        RECALL: (totals, counts, None),
    }
    return [
        (
            {**place, "metric": metric, "k": k, "population": population},
            {"num": num, "den": den, "fingerprint": hashed},
        )
        for (metric, k, population), (num, den, hashed) in arrays.items()
    ]


def paired(days: Sequence[Queries], device: str = "all") -> tuple[float, float, float, float]:
    """Both models' mean recall, their difference and its standard error.

    The error is that of a mean of ratios over clusters, written out with a loop: each time one
    bucket is left out of the queries themselves.
    """
    of = [np.ones(len(q.ids), dtype=bool) if device == "all" else q.devices == device for q in days]
    buckets = np.concatenate([q.buckets[is_in] for q, is_in in zip(days, of, strict=True)])
    one, other = (
        np.concatenate([q.values[model][is_in] for q, is_in in zip(days, of, strict=True)])
        for model in (CANDIDATE, BASELINE)
    )
    without = np.array(
        [
            one[buckets != bucket].mean() - other[buckets != bucket].mean()
            for bucket in np.unique(buckets)
        ]
    )
    n = len(without)
    error = float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    return float(one.mean()), float(other.mean()), float(one.mean() - other.mean()), error
