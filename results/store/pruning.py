"""Chooses the runs of stores that a person no longer needs, and removes their folders.

A run that is not valid is a find or a question, so it stays unless the caller asks for it too. The newest run of each test
stays in any case, since `latest` names it. So do a run that is still going on, a run with its smallest version, which
`labrys shrink` found, and what the caller needs, such as the runs of open causes. Nothing outside the stores is removed: a
folder below one that is a link does not count as a run. A store may grow meanwhile: what comes or ends later stays.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Final

from harness.verdict import Verdict
from results.store.errors import StoreError
from results.store.store import summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from results.store.store import Run, Store

_STAMP_LENGTH: Final = len("20260729T101112")

NEWEST: Final = "among the newest of its test"
YOUNG: Final = "too young"
RUNNING: Final = "still running"
SHRUNK: Final = "with a smaller version of itself"
NOT_VALID: Final = "not valid"
FITS: Final = "within the size"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which runs go. A run goes by age and number if it is both older and not among the newest of its test.

    Attributes:
        older_than_s: The least age of a run that goes by age, in seconds; 0: any age; None: none goes by age.
        keep: The number of the newest runs of each test that stay, at least 1.
        any_verdict: Whether runs that are not valid go, too.
        keep_bytes: The most bytes of the stores: of the runs that are left, the oldest go until this is kept; None: no limit.
    """

    older_than_s: float | None = 0.0
    keep: int = 1
    any_verdict: bool = False
    keep_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Doomed:
    """A run that goes.

    Attributes:
        run: The run.
        valid: Its verdict, as `results.json` has it; None if it has none.
        size: The bytes of its files.
    """

    run: Run
    valid: bool | str | None
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a rule does to stores.

    Attributes:
        goes: The runs that go, the newest first.
        kept: The number of runs that stay, by the reason.
        size: The bytes of the stores now; None if the rule has no limit of them.
    """

    goes: Sequence[Doomed]
    kept: Mapping[str, int] = field(default_factory=Counter)
    size: int | None = None


def planned(
    stores: Sequence[Store], rule: Rule, now: datetime, needed: Callable[[], Mapping[Path, str]] = dict
) -> Plan:
    """Returns what a rule does.

    Args:
        stores: The stores. The newest run of a test is that of all of them.
        rule: The rule.
        now: The present time, in UTC.
        needed: Reads the stores, and returns the resolved folders of runs that stay in any case, with the reason. It is called
            only if a run would go.
    """
    runs = _newest_first(run for store in stores for run in store.runs())
    why_kept = {run.path: _why_kept(run) for run in runs}
    newer: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    oldest = "" if rule.older_than_s is None else f"{now - timedelta(seconds=rule.older_than_s):%Y%m%dT%H%M%S}"
    old: list[Doomed] = []
    others: list[Doomed] = []
    for run in runs:
        newer[run.test_name] += 1
        why = NEWEST if newer[run.test_name] <= max(1, rule.keep) else why_kept[run.path]
        valid = None if why else summarize(run).valid
        if not why and not rule.any_verdict and Verdict.from_json(valid) is not Verdict.VALID:
            why = NOT_VALID
        is_old = not why and run.stamp[:_STAMP_LENGTH] <= oldest
        if why or (not is_old and rule.keep_bytes is None):
            kept[why or YOUNG] += 1
        else:
            (old if is_old else others).append(Doomed(run=run, valid=valid, size=_size(run.path)))
    reasons = cache(needed)
    goes = _spare(old, reasons, kept)
    if rule.keep_bytes is None:
        return Plan(goes=goes, kept=kept)
    size = sum(_size(store.root) for store in stores)
    left = size - sum(run.size for run in goes)
    if left > rule.keep_bytes:
        others = _spare(others, reasons, kept)
    while others and left > rule.keep_bytes:
        left -= others[-1].size
        goes.append(others.pop())
    kept[FITS] += len(others)
    return Plan(goes=sorted(goes, key=_age, reverse=True), kept=+kept, size=size)


def _spare(runs: Sequence[Doomed], needed: Callable[[], Mapping[Path, str]], kept: Counter[str]) -> list[Doomed]:
    """Returns the runs that nobody needs, and counts the others by the reason."""
    spare: list[Doomed] = []
    for doomed in runs:
        if why := needed().get(doomed.run.path.resolve(), ""):
            kept[why] += 1
        else:
            spare.append(doomed)
    return spare


def _age(doomed: Doomed) -> tuple[str, str]:
    return doomed.run.stamp, doomed.run.test_name


def _newest_first(runs: Iterable[Run]) -> list[Run]:
    once = {run.path.resolve(): run for run in runs}
    return sorted(once.values(), key=lambda run: (run.stamp[:_STAMP_LENGTH], run.stamp, run.test_name), reverse=True)


def _why_kept(run: Run) -> str:
    """Returns why a run stays by itself; empty if it may go."""
    if run.is_running():
        return RUNNING
    return SHRUNK if os.path.lexists(run.shrunk_json) else ""


def remove(run: Run) -> str:
    """Removes the folder of a run. It follows no link.

    Returns:
        Why the run stays after all: since the rule chose it, someone began to use it. Empty if it went.

    Raises:
        StoreError: A file cannot be removed; a second call tries again.
    """
    if why := _why_kept(run):
        return why
    try:
        shutil.rmtree(run.path)
    except FileNotFoundError:
        if run.path.exists():
            return remove(run)  # another process removes it, too
    except OSError as error:
        raise StoreError(f"{run.path} could not be removed: {error.strerror or error}") from error
    return ""


def _size(folder: Path) -> int:
    """Returns the bytes of the files in a folder, without those behind links."""
    size = 0
    for path, _, files in os.walk(folder):
        for name in files:
            try:
                size += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 - os.walk gives texts
            except OSError:
                continue  # it went meanwhile
    return size
