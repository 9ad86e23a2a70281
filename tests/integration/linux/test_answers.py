"""Programs answer some calls themselves, without a stop: all that they do is the same as if each of these calls stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.sim.linux.building import controller
from tests.integration.linux.test_controller import compiled, simulated
from tests.integration.linux.test_systems import SHORT, invoked

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
    assert stopped.figures["answered"] == 0
    assert ended.figures["answered"] > 5000
    assert ended.figures["stops"] + ended.figures["answered"] == stopped.figures["stops"]


@pytest.mark.parametrize(
    ("words", "least"),
    [
        (("--system", "redis", "--nemesis", "kill,partition-random-halves"), 0.001),
        (("--system", "etcd", "--nemesis", "kill,partition-random-halves"), 0.2),
        (("--system", "zookeeper", "--nemesis", "kill"), 0.1),
        pytest.param(
            ("--system", "dledger", "--carrier", "programs", "--nemesis", "pause", "--stalls", "3"), 0.1,
            marks=pytest.mark.night,
        ),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else None,
)  # fmt: skip
def test_systems_do_the_same_with_calls_that_do_not_stop(words: tuple[str, ...], least: float, tmp_path: Path) -> None:
    """The digests and the histories are equal, and programs answer at least this share of the calls."""
    runs = [invoked(tmp_path, *words, *SHORT, "--seed", "3", *more)[1] for more in ((), ("--all-stop",))]
    ended, stopped = (results["execution"] for results in runs)
    assert (ended["digest"], ended["trace"]) == (stopped["digest"], stopped["trace"])
    first, second = (path.read_bytes() for path in sorted(tmp_path.glob("*/2*/history.jsonl")))
    assert first == second
    assert stopped["figures"]["answered"] == 0
    assert ended["figures"]["answered"] > least * ended["figures"]["calls"]
