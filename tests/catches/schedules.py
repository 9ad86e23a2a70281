"""Schedules that are written by hand, each of which shows a planted bug of a simulated system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from enum import StrEnum

CORRECT = "none"  # the version without a bug


class Schedule(NamedTuple):
    """A schedule of the messages to one version of a system.

    Attributes:
        run: Carries it out with a bug; returns what it sees at the end.
        right: The end of the correct version.
        wrong: The end with the bug.
    """

    run: Callable[[Any], Any]
    right: Any
    wrong: Any


def assert_shows(schedules: Mapping[Any, Schedule], bug: StrEnum) -> None:
    """Asserts that the same messages in the same order have another end with the bug than in the correct version."""
    schedule = schedules[bug]
    assert schedule.run(type(bug)(CORRECT)) == schedule.right
    assert schedule.run(bug) == schedule.wrong


def assert_each(schedules: Mapping[Any, Schedule], bugs: type[StrEnum], table: Mapping[Any, object]) -> None:
    """Asserts that each bug has a schedule and a description."""
    assert {*schedules} == {*table} == {*bugs} - {bugs(CORRECT)}
