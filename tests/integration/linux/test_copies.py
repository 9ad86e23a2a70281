"""A copy of running programs goes on as the run itself would: it has the same ids, memory, files, locks and descriptors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusters.sim.linux.building import controller
from clusters.sim.linux.driving import Controller, Parts
from clusters.sim.linux.seen import JVM_WORK
from commands.run.copying import attempts
from commands.run.trial import attempt
from harness.errors import InfrastructureError, InputError
from tests.by_seed import EXAMPLE
from tests.integration.linux.test_controller import NODES, compiled, java_program
from tests.trials import settled_by

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commands.run.trial import Trial

pytestmark = pytest.mark.integration

SECOND_NS = 1_000_000_000
RUNNING = tuple(NODES)[:-1]  # the last node is that of this process
START_S, END_S = 1, 7  # when the programs are copied, and when they have ended
SEEDS = (5, 6, 5)


class Run:
    """A run of one program on each node."""

    def __init__(self, folder: Path, words: Sequence[str], shown: Sequence[Path]) -> None:
        self._root = folder
        folder.mkdir()
        parts = Parts(
            seed=1,
            root=folder,
            nodes=NODES,
            variables={"PATH": "/usr/bin:/bin"},
            shown=[Path("/usr"), *shown],
            preempt=0.02,
        )
        self.controller = Controller(controller(lambda _: None), parts)
        for node in RUNNING:
            self.controller.start(node, words, folder="/root", output="/root/output")
        self._pass(START_S)

    def _pass(self, until_s: int) -> None:
        while self.controller.now_ns < until_s * SECOND_NS:
            self.controller.wait(until_s * SECOND_NS)

    def go_on(self, seed: int) -> tuple[str, str]:
        """Goes on by a seed to the end. Returns what the program on the first node has printed, and the digest."""
        self.controller.reseed(seed)
        self.controller.now_ns = START_S * SECOND_NS
        self._pass(END_S)
        printed = self.controller.path_of(RUNNING[0], "/root/output").read_text()
        return printed, self.controller.figures().digest


@pytest.fixture(params=["c", "java"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[list[str], list[Path]]:
    """Returns the command line of a program, and what it must see."""
    if request.param == "c":
        path = compiled("copied.c", tmp_path)
        return [str(path)], [path]
    words, shown = java_program("Waits", ["objects"], JVM_WORK, tmp_path)
    return words, shown


def test_a_copy_goes_on_as_the_run_itself(tmp_path: Path, program: tuple[list[str], list[Path]]) -> None:
    """With the same seed, also after another copy has changed, removed and locked files, and has made a process."""
    itself = Run(tmp_path / "itself", *program)
    try:
        expected = itself.go_on(SEEDS[0])
    finally:
        itself.controller.stop()
    copied = Run(tmp_path / "copies", *program)
    try:
        copied.controller.become_originals()
        copies = []
        for seed in SEEDS:
            copied.controller.copy()
            copies.append(copied.go_on(seed))
            copied.controller.back()
    finally:
        copied.controller.stop()
    first, other, again = copies
    assert first == expected
    assert again == expected
    assert other[1] != expected[1]
    assert len(expected[0].splitlines()) > 0


def test_a_program_with_a_child_is_not_copied(tmp_path: Path) -> None:
    """The error names both."""
    run = Run(tmp_path / "run", ["/usr/bin/dash", "-c", "sleep 5 & wait"], [])
    try:
        with pytest.raises(InfrastructureError, match="dash on n1 has a child"):
            run.controller.become_originals()
    finally:
        run.controller.stop()


def test_runs_in_copies_are_those_of_their_seeds() -> None:
    """A run that starts its nodes itself, and is told their seed, has the same execution, operations and verdict.

    A run whose faults do not fit into its time is refused, and the next one goes on.
    """
    words = ("--cluster", "sim", "--system", EXAMPLE, "--nodes", "3", "--time-limit", "10", "--rate", "5")
    faults = ("--nemesis", "kill,power-loss", "--fault-quiet", "1-2", "--fault-on", "1-3", "--fault-off", "0.5-1")

    def told(_: int, attempt: Callable[[], Trial]) -> tuple[str, int, str]:
        try:
            trial = attempt()
        except InputError as error:
            return str(error), 0, ""
        execution = trial.result.execution
        assert execution is not None
        return execution.digest, len(trial.operations), str(trial.outcome.verdict)

    with settled_by(*words, *faults, "--seed", "1", "--start-seed", "9") as settled:
        runs = [settled.seeded(1), settled.having({"time_limit": 2.0}), settled.seeded(3)]
        copies = list(attempts(settled, runs, told))
        assert copies[2] == told(2, lambda: attempt(runs[2]))
    assert "does not fit into 2 s" in copies[1][0]
    assert copies[0][0] != copies[2][0]
