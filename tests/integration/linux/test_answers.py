"""Programs answer some calls themselves, without a stop: all that they do is the same as if each of these calls stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.sim.linux.building import controller
from tests.integration.linux.test_controller import compiled, simulated

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("word", "preempt", "stalls"),
    [("alone", 0.0, 0.0), ("alone", 0.02, 0.0), ("wait", 0.02, 5.0), ("alone", 0.3, 50.0)],
)
def test_a_call_that_a_program_answers_is_as_one_that_stops(
    tmp_path: Path, word: str, preempt: float, stalls: float
) -> None:
    """Results, times, registers, the bytes below the stack pointer and the digest are the same; also after fork and exec."""
    program = compiled("answers.c", tmp_path)
    words = [str(program), word]
    runs = [
        simulated(
            controller(lambda _: None),
            tmp_path,
            words,
            shown=[program],
            preempt=preempt,
            stalls=stalls,
            all_stop=all_stop,
        )
        for all_stop in (False, True)
    ]
    (printed, code, ended), (expected, _, stopped) = runs
    assert code == 0
    assert printed.splitlines()[-1].startswith("signals ")
    assert printed.splitlines() == expected.splitlines()
    assert ended.digest == stopped.digest
    assert ended.trace == stopped.trace
    assert ended.calls == stopped.calls
    apart = {"stops", "answered"}
    assert {name: ended.figures[name] for name in ended.figures.keys() - apart} == {
        name: stopped.figures[name] for name in stopped.figures.keys() - apart
    }
    assert ended.figures["loops"] > 0
    assert stopped.figures["answered"] == 0
    assert ended.figures["answered"] > 5000
    assert ended.figures["stops"] + ended.figures["answered"] == stopped.figures["stops"]
