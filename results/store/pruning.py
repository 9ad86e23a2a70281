"""Chooses the runs of a store that a person no longer needs, and removes their folders.

A run that is not valid is a find or a question, so it stays unless the caller asks for it too. The newest run of each test
stays in any case, since `latest` names it. So do a run that is still going on, and a run with its smallest version, which
`labrys shrink` found. Nothing outside the store is removed: a folder below it that is a link does not count as a run.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from harness.verdict import Verdict
from results.store.errors import StoreError
from results.store.store import summarize

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from results.store.store import Run, Store

_STAMP_LENGTH: Final = len("20260729T101112")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Which runs go. A run goes if it is both older and not among the newest of its test.

    Attributes:
        older_than_s: The least age of a run that goes, in seconds; 0: any age.
        keep: The number of the newest runs of each test that stay, at least 1.
        any_verdict: Whether runs that are not valid go, too.
    """

    older_than_s: float = 0.0
    keep: int = 1
    any_verdict: bool = False


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


def doomed(store: Store, rule: Rule, now: datetime) -> Iterator[Doomed]:
    """Yields the runs of a store that go by a rule, the newest first.

    Args:
        store: The store.
        rule: The rule.
        now: The present time, in UTC.
    """
    newer: Counter[str] = Counter()
    oldest = f"{now - timedelta(seconds=rule.older_than_s):%Y%m%dT%H%M%S}"
    for run in store.runs():
        newer[run.test_name] += 1
        if newer[run.test_name] <= max(1, rule.keep) or run.stamp[:_STAMP_LENGTH] > oldest or run.is_running():
            continue
        if os.path.lexists(run.shrunk_json):
            continue
        valid = summarize(run).valid
        if rule.any_verdict or Verdict.from_json(valid) is Verdict.VALID:
            yield Doomed(run=run, valid=valid, size=_size(run.path))


def remove(run: Run) -> None:
    """Removes the folder of a run. It follows no link.

    Raises:
        StoreError: A file cannot be removed; a second call tries again.
    """
    try:
        shutil.rmtree(run.path)
    except OSError as error:
        raise StoreError(f"{run.path} could not be removed: {error.strerror or error}") from error


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
