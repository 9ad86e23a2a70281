"""`labrys test --cluster sim`: the same seed gives the same bytes, and a planted bug is found."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusters.sim.world import SimWorld
from commands.options.subjects import placed
from commands.run.confirming import Confirmation, confirmation
from harness.errors import InputError
from harness.verdict import Verdict
from tests.by_seed import EXAMPLE
from tests.examples import DEFAULT, PIPED, SIMULATED
from tests.trials import TOY, settled_by, trial, trials

if TYPE_CHECKING:
    from collections.abc import Sequence

RUN = Path("store/a-test/20261129T120000.000Z")
SCRIPT = """
import sys
from pathlib import Path
from harness.history import HistoryWriter
from tests.trials import trial
history = HistoryWriter(Path(sys.argv[1]), {"seed": "7"})
found = trial(*sys.argv[2:], seed=7, history=history)
history.close()
print(found.outcome.verdict, [record.proof.reason for record in found.result.faults if record.proof])
"""
FAULTS = (
    "--nemesis",
    "kill,pause,partition-leader,packet-loss,clock-strobe",
    "--fault-on",
    "1-3",
    "--fault-off",
    "1-2",
)


def _bytes(path: Path, words: Sequence[str], hash_seed: str) -> tuple[str, bytes]:
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), *words],
        check=True, capture_output=True, text=True, cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return finished.stdout, path.read_bytes()


@pytest.mark.parametrize("system", ["tests.toy_register:ToyRegisters", SIMULATED])
def test_the_same_seed_gives_the_same_bytes(system: str, tmp_path: Path) -> None:
    """Two processes with different hash seeds write the same history.jsonl, byte for byte, and the same proofs."""
    words = (*TOY, "--time-limit", "20", *FAULTS, "--system", system)
    one, other = (_bytes(tmp_path / f"{seed}.jsonl", words, seed) for seed in ("1", "2"))
    assert one == other
    assert len(one[1].splitlines()) > 500


def test_another_seed_gives_another_history() -> None:
    """The seed determines the operations and the network."""
    one, other = trials(*TOY, seeds=range(1, 3))
    assert one.operations != other.operations


def _worlds() -> int:
    return sum(isinstance(thing, SimWorld) for thing in gc.get_objects())


def test_many_runs_need_no_more_memory_than_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The collector is off during a run, but the worlds of earlier runs go after a while."""
    monkeypatch.setattr("commands.run.trial.COLLECT_ALL_EVERY", 4)
    gc.collect()
    before = _worlds()
    for _ in trials(*TOY, "--time-limit", "2", seeds=range(1, 25)):
        assert _worlds() - before <= 12


def test_a_planted_bug_is_found() -> None:
    """The system acknowledges writes before it syncs them, so a power loss of n1 loses them."""
    power = ("--nemesis", "power-loss:n1", "--fault-on", "1-2", "--fault-off", "1-2")
    assert trial(*TOY, *power).outcome.invalid == ()
    result = trial(*TOY, *power, "--forgets")
    assert result.outcome.verdict is Verdict.INVALID
    assert "linearizable" in result.outcome.invalid


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--cluster", "sim", "--system", PIPED, "--workload", "echo"),
            "runs as programs with pipes only: give --cluster pipes, not --cluster sim",
        ),
        (("--cluster", "pipes", "--system", EXAMPLE), "does not run as programs with pipes: it runs on machines"),
        (("--system", "tests.toy_register:ToyRegisters"), "runs in the simulator only: give --cluster sim"),
        ((*TOY, "--inventory", str(Path(__file__))), "needs --cluster ssh, and this is --cluster sim"),
    ],
)
def test_a_system_in_the_wrong_place_is_refused(words: Sequence[str], sentence: str) -> None:
    """The error names the right cluster, or the systems for this one."""
    with pytest.raises(InputError, match=sentence):
        trial(*words)


def test_software_for_real_nodes_has_a_command_for_them() -> None:
    """A simulated run of it names the same test on local nodes; a system that is only simulated has none."""
    with settled_by("--cluster", "sim", "--system", DEFAULT, "--nodes", "3", "--seed", "7") as settled:
        assert confirmation(settled, RUN) == Confirmation(line="labrys test --seed 7 --nodes 3", changes=[])
        assert placed(settled.options).type.simulated
    with settled_by(*TOY) as settled:
        assert confirmation(settled, RUN) is None


def test_a_confirmation_changes_what_real_nodes_cannot_do_and_says_so() -> None:
    """Real nodes show no messages, and a fault of 30 ms cannot be proved there. Longer faults get a longer workload."""
    faults = (
        "--nemesis",
        "kill,pause",
        "--fault-on",
        "0.03-0.4,pause=0.5-3",
        "--fault-quiet",
        "1-3",
        "--fault-wait",
        "0.2",
    )
    simulated = ("--cluster", "sim", "--system", DEFAULT, "--nodes", "3", "--seed", "7", "--time-limit", "4.7")
    with settled_by(*simulated, *faults) as settled:
        real = confirmation(settled, RUN)
    assert real is not None
    assert real.line == (
        "labrys test --seed 7 --nodes 3 --nemesis kill,pause --fault-on 1,pause=1-3 --fault-quiet 1-3 --time-limit 6"
    )
    assert [sentence.partition(" in place")[0].partition(",")[0] for sentence in real.changes] == [
        "It has no --fault-wait",
        "It has --fault-on 1",
        "It has --time-limit 6",
    ]
    with settled_by(*real.line.split()[2:]) as again:
        assert again.plan().faults


def test_a_confirmation_of_a_plan_from_a_file_is_a_replay(tmp_path: Path) -> None:
    """Options draw no plan from a file, so the run is replayed on local nodes, which changes its plan."""
    fault = {"kind": "kill", "target": ["n1"], "start_s": 2, "end_s": 2.2}
    plan = tmp_path / "plan.json"
    head = {"format": "labrys-plan", "version": 3, "nodes": ["n1", "n2", "n3"], "time_limit_s": 20}
    plan.write_text(json.dumps({**head, "faults": [fault]}), encoding="utf-8")
    simulated = ("--cluster", "sim", "--system", DEFAULT, "--nodes", "3", "--plan", str(plan))
    with settled_by(*simulated) as settled:
        real = confirmation(settled, RUN)
    assert real is not None
    assert real.line == f"labrys replay {RUN} --cluster local"
    (sentence,) = real.changes
    assert sentence.startswith("1 of 1 faults last 1 s, and later ones begin later: ")
    plan.write_text(json.dumps({**head, "faults": [fault | {"end_s": 5}]}), encoding="utf-8")
    with settled_by(*simulated) as settled:
        real = confirmation(settled, RUN)
    assert real is not None
    assert real.changes == ()
    assert f"--plan {plan}" in real.line


def test_an_applied_index_that_goes_back_is_invalid() -> None:
    """The watch sees it between two polls, and the part names the node."""
    run = trial(*TOY, "--system", "tests.toy_register:Forgetting")
    (part,) = [part for part in run.outcome.parts if part.name == "raft-invariants"]
    assert part.verdict is Verdict.INVALID
    assert part.reason.startswith("The applied index of n1 went back from ")
    assert part.reason.endswith(" and no fault was on the node. An applied entry stays applied.")
    assert run.outcome.verdict is Verdict.INVALID


def test_a_node_that_serves_no_clients_is_listed() -> None:
    """The final reads are valid if each key was read through some node; the part says how many were at each."""
    run = trial(*TOY, "--system", "tests.toy_register:Witnesses")
    (part,) = [part for part in run.outcome.parts if part.name == "final-reads"]
    assert part.verdict is Verdict.VALID
    assert re.search(r"through n1, n2, n3 \(0 of \d+ keys\), n4, n5\.", part.reason), part.reason


def test_a_status_that_raises_ends_the_polling() -> None:
    """The run goes on, and says so."""
    run = trial(*TOY, "--system", "tests.toy_register:Raising")
    assert [problem for problem in run.result.problems if "watching the nodes ended early" in problem]
    assert max(sighting.last_ns for sighting in run.result.sightings) <= 4_000_000_000
