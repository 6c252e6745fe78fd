"""Whether a published date still says what a run of it would say now. Plain Python.

gone     an input's files of the date are no longer there: a run would know less than it did
stale    a run would say something else, or nobody knows
waiting  its labels are not complete, and will be later: until then it is not run again
fresh    a run would say the same
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from ranklake.config import EvalConfig, labels_as_of, matures_at
from ranklake.pipeline.fingerprints import LABELS, Fingerprints
from ranklake.read import NO_FILES, PublishedRun

Kind = Literal["gone", "stale", "waiting", "fresh"]
_ORDER: Sequence[Kind] = ("gone", "stale", "waiting", "fresh")
"""What is said of a date whose runs differ: the first."""


@dataclass(frozen=True)
class Standing:
    """What becomes of a published date, and why."""

    kind: Kind
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}" if self.reason else self.kind


def standing(
    runs: Iterable[tuple[PublishedRun, Mapping[str, Fingerprints]]],
    config: EvalConfig,
    *,
    label_as_of: datetime | None = None,
    now: datetime,
) -> Standing:
    """Where a date stands, by its current runs: each with the files that it would read now.

    `label_as_of` is what a run would be given; None: what the configuration says.
    """
    found = [_of_run(run, files, config, label_as_of, now) for run, files in runs]
    kind = min((one.kind for one in found), key=_ORDER.index)
    reasons = dict.fromkeys(one.reason for one in found if one.kind == kind)
    return Standing(kind, "; ".join(reasons))


def current(runs: Sequence[PublishedRun]) -> list[PublishedRun]:
    """The runs of one day that running it again would replace.

    What is older than a run of all models is of models that the log no longer has.
    """
    of_all = [
        run.started_at
        for run in runs
        if run.started_at and run.inputs is not None and "selected" not in run.inputs
    ]
    newest = max(of_all, default=None)
    return [
        run for run in runs if newest is None or run.started_at is None or run.started_at >= newest
    ]


def _of_run(
    run: PublishedRun,
    files: Mapping[str, Fingerprints],
    config: EvalConfig,
    label_as_of: datetime | None,
    now: datetime,
) -> Standing:
    if run.inputs is None:
        return Standing("stale", f"runs does not say what run {run.run_id} read")
    stored = run.inputs
    gone = [name for name, parts in files.items() if _is_gone(stored.get(name, {}), parts)]
    if gone:
        return Standing("gone", f"the files of {', '.join(gone)} are no longer there")
    due = _complete_at(run, config, label_as_of)
    is_waiting = due is not None and now < due
    reasons = [*_changes(stored, files, without_labels=is_waiting)]
    if due and not is_waiting:
        reasons.insert(0, f"immature: labels that came until {_said(due)} count now")
    if reasons:
        return Standing("stale", "; ".join(reasons))
    if due and is_waiting:
        return Standing("waiting", f"until {_said(due)}, when its labels are known")
    return Standing("fresh")


def _complete_at(
    run: PublishedRun, config: EvalConfig, label_as_of: datetime | None
) -> datetime | None:
    """The instant from which a run has every label that it can have; None: this one has them."""
    asked, matures = label_as_of or labels_as_of(config, run.day), matures_at(config, run.day)
    if run.is_mature is not False or matures is None:
        return None
    if asked is None or asked >= matures:
        return asked or matures  # until then late ones may arrive
    # Labels that came later do not count, however long one waits.
    return None if asked == run.label_as_of else asked


def _is_gone(stored: Mapping[str, Any], parts: Fingerprints) -> bool:
    """Whether the input had rows of the day, and now has no file that could hold any."""
    had_files = stored.get("n_rows", 0) > 0 and stored.get("fingerprint") != NO_FILES
    return had_files and parts["fingerprint"] == NO_FILES


def _changes(
    stored: Mapping[str, Any], files: Mapping[str, Fingerprints], *, without_labels: bool
) -> Iterator[str]:
    """What differs from what the run read, or may; without what is waited for, if that is meant."""
    changed = []
    for name, parts in files.items():
        for part, now in parts.items():
            if without_labels and (name in LABELS or part == "nearby"):
                continue
            before = stored.get(name, {}).get(part)
            what = f"{name} of nearby days" if part == "nearby" else name
            if before is None:
                yield f"{what}: its run recorded no fingerprint"
            elif now is None:
                yield f"{what}: whether its files changed cannot be told"
            elif before != now:
                changed.append(what)
    if changed:
        yield f"input changed: {', '.join(changed)}"


def _said(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
