"""Two executions are compared second by second, and what changed around them is named."""

from __future__ import annotations

import dataclasses

import pytest

from commands.run.executions import Earlier, changed, where
from harness.world import Execution

ONE = Execution(
    digest="0" * 32,
    controller="c" * 64,
    kernel="6.1",
    processor="some",
    figures={"time": 3_500_000_000},
    trace="aaaaaaaabbbbbbbbcccccccc",
)


@pytest.mark.parametrize(
    ("trace", "place"),
    [
        ("00000000bbbbbbbbcccccccc", "equal for 0 s of virtual time, and different before 1 s"),
        ("aaaaaaaabbbbbbbb00000000", "equal for 2 s of virtual time, and different before 3 s"),
        ("aaaaaaaa", "equal for 1 s of virtual time, and different later; they end at 3.500 s and 3.500 s"),
        (
            "aaaaaaaabbbbbbbbcccccccc",
            "equal for 3 s of virtual time, and different later; they end at 3.500 s and 3.500 s",
        ),
        ("", "nobody can say where, because one of them has no digests of its seconds"),
    ],
)
def test_the_second_of_the_first_difference(trace: str, place: str) -> None:
    """It is the first one whose digests differ; a run of an earlier version has none."""
    assert where(ONE, dataclasses.replace(ONE, digest="1" * 32, trace=trace)) == place


def test_what_changed_around_two_executions() -> None:
    """The controller, the kernel, the processor, and each version."""
    earlier = Earlier(label="x", seed=1, execution=ONE, versions={"db": "3.5", "python": "3.11", "gone": "1"})
    assert changed(earlier, ONE, earlier.versions) == []
    now = dataclasses.replace(ONE, controller="d" * 64, kernel="6.2\x1b[31m", processor="other")
    assert changed(earlier, now, {"db": "3.6", "python": "3.11"}) == [
        "Labrys has another controller",
        "the kernel was 6.1, and is 6.2\\x1b[31m",
        "the processor was some, and is other",
        "the version of db was 3.5, and is 3.6",
        "the version of gone was 1, and is none",
    ]
