"""`labrys crash` enumerates what a disk may have at each step, and visits each such state once."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import cli
from commands.crash.states import CrashState, enumerate_states, in_order, of_recovery, with_stalls
from harness.errors import InputError
from harness.units import NS_PER_MS, NS_PER_S, NS_PER_US
from harness.world import DiskStep, DiskSteps, Losing, Unsynced
from tests.examples import SIMULATED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("without_plots")
NEVER_NS = 10**18


def step(
    number: int, call: str = "write", *, unsynced: Sequence[int] = (), names: Sequence[int] = (), others: int = 0
) -> DiskStep:
    """Returns a step of n1 after which these changes are not durable; `names` are those of names among them."""
    changes = tuple(Unsynced(number=each, names=each in names, file="log") for each in unsynced)
    return DiskStep(node="n1", number=number, time_ns=number, call=call, file="log", unsynced=changes, others=others)


def states(*steps: DiskStep, most: int = 100, before: int = 0, one: bool = True) -> list[CrashState]:
    """Returns the states of some steps."""
    found = enumerate_states(DiskSteps(noted=steps, before=before), until_ns=NEVER_NS, most=most, one=one)
    return [*found.states]


def lost(*, of: Sequence[CrashState], nth: int) -> set[frozenset[int] | None]:
    """Returns what is lost in the states of a step that are not torn."""
    return {state.losing.changes for state in of if state.nth == nth and not state.losing.torn}


def test_one_write_is_lost_there_or_torn() -> None:
    """The three states of a write that no sync has made durable."""
    losings = [state.losing for state in states(step(1, unsynced=[1]))]
    assert losings == [Losing(changes=frozenset()), Losing(), Losing(changes=frozenset(), torn=True)]


def test_a_sync_changes_nothing_that_a_write_did_not() -> None:
    """After a sync, the disk has what the write alone can leave, and nothing happened elsewhere between the two."""
    write, sync = step(1, unsynced=[1]), step(2, "sync")
    assert {state.nth for state in states(write, sync)} == {1}
    later = step(2, "sync", others=1)
    assert [state.nth for state in states(write, later)].count(2) == 1


def test_two_writes_may_reach_the_disk_in_any_order() -> None:
    """Each is lost alone, and both are."""
    two = states(step(1, unsynced=[1]), step(2, unsynced=[1, 2], others=1))
    assert lost(of=two, nth=2) == {frozenset(), None, frozenset({1}), frozenset({2})}


def test_names_are_lost_from_the_end() -> None:
    """A journal has no change of names without those before it; contents are apart from it."""
    renamed = step(3, "rename", unsynced=[1, 2, 3], names=[1, 3])
    created, written = step(1, "create", unsynced=[1], names=[1]), step(2, unsynced=[1, 2], names=[1])
    found = lost(of=states(created, written, renamed, before=2), nth=1)
    assert frozenset({3}) not in found  # the creation alone
    assert frozenset({1, 3}) in found  # all names, and not the content
    assert frozenset({2}) in found  # the content alone


def test_states_that_are_the_same_are_merged() -> None:
    """The loss of the second write leaves what the first one left, if nothing happened elsewhere."""
    first, second = step(1, unsynced=[1]), step(2, unsynced=[1, 2])
    found = enumerate_states(DiskSteps(noted=(first, second)), until_ns=NEVER_NS, most=100)
    assert frozenset({1}) not in lost(of=found.states, nth=2)
    assert found.merged
    assert not found.left_out


def test_the_content_of_each_file_is_lost_alone() -> None:
    """Names, and contents of other files, are there."""
    named = step(4, unsynced=[1, 2, 3, 4], names=[1])
    vote = replace(named.unsynced[2], file="vote")
    mixed = replace(named, unsynced=(*named.unsynced[:2], vote, named.unsynced[3]))
    found = states(step(1, "create"), step(2), step(3), mixed, before=3)
    assert frozenset({2}) in lost(of=found, nth=1)
    words = {state.losing.changes: state.words for state in found}
    assert words[frozenset({1, 3})] == "changes of log are lost"


def test_the_moment_before_a_sync_is_a_state_if_something_happened_since_the_write() -> None:
    """It has its own numbers, and what the sync is of can still be lost."""
    write, before, after = step(1, unsynced=[1]), step(2, "syncing", unsynced=[1]), step(3, "sync")
    assert {state.step.call for state in states(write, before, after)} == {"write"}
    answered = replace(before, others=1)
    found = [state for state in states(write, answered, replace(after, others=1)) if state.step.call == "syncing"]
    assert [(state.nth, state.losing.changes) for state in found][:2] == [(1, frozenset()), (1, None)]


def test_only_steps_of_one_kind_are_visited() -> None:
    """The others keep their numbers."""
    other = replace(step(2, "sync", others=1), file="data/vote")
    found = enumerate_states(DiskSteps(noted=(step(1), other)), until_ns=NEVER_NS, most=9, at=("sync", "vote"))
    assert [state.nth for state in found.states] == [2]
    assert [each.file for each in found.steps] == ["data/vote"]


def test_states_of_another_kind_come_before_a_second_one() -> None:
    """Numbers in names of files, and the nodes, make no other kind."""
    same = [replace(step(number, "create", others=number), file=f"log.{number}00a") for number in range(1, 6)]
    rare = replace(step(6, "remove", others=6), file="vote")
    order = in_order(states(*same, rare, most=1), 7)
    assert {state.step.call for state in order[:2]} == {"create", "remove"}
    assert len(order) == 6


def test_a_limit_leaves_states_out_and_says_how_many() -> None:
    """The first states of each step are those that show most defects."""
    many = step(9, unsynced=range(1, 10))
    found = enumerate_states(DiskSteps(noted=(many,)), until_ns=NEVER_NS, most=3)
    assert [state.rank for state in found.states] == [0, 1, 2]
    assert found.left_out == len(states(many)) - 3


def test_steps_before_the_workload_and_after_its_limit_do_not_count() -> None:
    """Their changes can still be lost."""
    steps = DiskSteps(noted=(step(1, unsynced=[1]), step(2, unsynced=[1, 2]), step(3, unsynced=[1, 2, 3])), before=1)
    found = enumerate_states(steps, until_ns=3, most=100)
    assert [each.number for each in found.steps] == [2]
    assert {state.nth for state in found.states} == {1}
    assert frozenset({2}) in lost(of=found.states, nth=1)


def test_several_nodes_lose_the_same() -> None:
    """Nothing, all, or the end of the last write."""
    found = states(step(2, unsynced=[1, 2]), one=False)
    assert lost(of=found, nth=1) == {frozenset(), None}


def test_the_steps_of_a_recovery_are_those_after_the_restart() -> None:
    """Of the nodes that lost power, within the limit; the starts before the loss are told to the trigger."""
    (first,) = states(step(10))
    noted = [step(10), step(30, unsynced=[30]), step(35, "sync", others=1), step(60)]
    other = replace(step(31), node="n2")
    steps = DiskSteps(noted=(*noted[:2], other, *noted[2:]), starts=(("n1", 5), ("n2", 7), ("n1", 30)))
    found = of_recovery(first, steps, nodes=["n1"], within_ns=20, most=1, one=True)
    assert [(each.node, each.number) for each in found.steps] == [("n1", 30), ("n1", 35)]
    assert {(state.nth, state.starts) for state in found.states} == {(1, 2), (2, 2)}
    assert all(state.losses == [first, state] for state in found.states)


def test_a_node_that_does_not_start_again_has_no_recovery() -> None:
    """Nothing is to visit."""
    (first,) = states(step(10))
    found = of_recovery(first, DiskSteps(noted=(step(10),)), nodes=["n1"], within_ns=20, most=1, one=True)
    assert not found.states


def test_each_try_of_a_state_has_another_stall_before_its_step() -> None:
    """The seed draws them. The step keeps its number among those of its file, because a stall moves the others."""
    made = [replace(step(number, "sync"), time_ns=number * NS_PER_S, others=number) for number in (1, 2, 3)]
    other = replace(made[1], file="vote")
    found = states(made[0], other, made[2], most=1)
    assert [(state.nth, state.of_file) for state in found] == [(1, 1), (2, 1), (3, 2)]
    drawn = with_stalls(found, length_ms=300, tries=20, since_ns=NS_PER_S // 2, seed=5)
    assert drawn == with_stalls(found, length_ms=300, tries=20, since_ns=NS_PER_S // 2, seed=5)
    assert drawn != with_stalls(found, length_ms=300, tries=20, since_ns=NS_PER_S // 2, seed=6)
    assert len({(state.step.number, state.stall) for state in drawn}) == 60
    stalls = [(state.step.time_ns, state.stall) for state in drawn if state.stall is not None]
    assert len(stalls) == 60
    begun_ns = [time_ns - NS_PER_S // 2 - stall.after_us * NS_PER_US for time_ns, stall in stalls]
    assert all(0 <= before_ns <= 150 * NS_PER_MS for before_ns in begun_ns)
    assert max(begun_ns) > 100 * NS_PER_MS > 50 * NS_PER_MS > min(begun_ns)
    assert {stall.length_ms for _, stall in stalls} == {300}


def crash(store: Path, *options: str) -> tuple[int, str]:
    """Runs the command on a simulated system. Returns the exit code and the output."""
    arguments = ["crash", "--system", SIMULATED, "--nodes", "3", "--seed", "5", "--time-limit", "3.5", "--rate", "2"]
    done = CliRunner().invoke(cli.labrys, [*arguments, "--jobs", "1", "--store", str(store), *options])
    return done.exit_code, done.output


def test_the_correct_form_survives_each_state(tmp_path: Path) -> None:
    """A majority keeps what it has acknowledged, whichever node loses its power at whichever step.

    Most of these runs have no operation in 0.1 s, so a loss lasts until some have begun, or else most would be unknown.
    """
    code, output = crash(tmp_path, "--states", "2", "--down", "0.1")
    ((valid, unknown),) = re.findall(r"0 invalid, (\d+) valid, (\d+) unknown", output)
    assert int(valid) > int(unknown), output
    assert "not visited" not in output
    assert code == 0, output


def test_an_acknowledgement_before_the_sync_is_found(tmp_path: Path) -> None:
    """All nodes lose power between the answer and the sync; the find is an ordinary run of the store."""
    code, output = crash(tmp_path, "--bug", "acknowledged-before-fsync", "--hit", "all", "--states", "2")
    assert code == 1, output
    assert "linearizable" in output
    (plan,) = (tmp_path / "crashes").iterdir()
    assert '"disk-step"' in plan.read_text()
    assert list(tmp_path.glob(f"{SIMULATED}-*/*/results.json"))


def test_the_correct_form_survives_a_second_loss_in_the_recovery(tmp_path: Path) -> None:
    """The runs of the recoveries are visited after those of the first loss."""
    code, output = crash(
        tmp_path, "--states", "1", "--depth", "2", "--recovery", "0.01", "--down", "0.2", "--time-limit", "2.6"
    )
    assert "recovery " in output
    assert "0 invalid" in output
    assert "not visited" not in output
    assert code == 0, output


def test_the_steps_of_a_run_of_the_store_are_visited(tmp_path: Path) -> None:
    """With its faults and its options; other options beside it are refused."""
    words = f"test --cluster sim --system {SIMULATED} --nodes 3 --seed 5 --time-limit 4 --rate 2 --nemesis kill --fault-on 0.5"
    CliRunner().invoke(cli.labrys, [*words.split(), "--fault-quiet", "0.5-1", "--store", str(tmp_path)])
    of_run = ["crash", "--of", "latest", "--store", str(tmp_path), "--states", "1", "--jobs", "1"]
    done = CliRunner().invoke(cli.labrys, of_run)
    assert "0 invalid" in done.output, done.output
    assert "not visited" not in done.output
    refused = CliRunner().invoke(cli.labrys, [*of_run, "--rate", "3"])
    assert isinstance(refused.exception, InputError)
    assert "--rate" in str(refused.exception)


def test_a_kind_of_steps_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    """The error says which there are."""
    done = CliRunner().invoke(cli.labrys, ["crash", "--at", "sink:*.wal", "--store", str(tmp_path)])
    assert isinstance(done.exception, InputError)
    assert "'sink' is no kind of steps" in str(done.exception)


def test_a_system_without_programs_has_no_threads_that_stall(tmp_path: Path) -> None:
    """The error comes before the first visit."""
    done = CliRunner().invoke(cli.labrys, ["crash", "--stall-ms", "100", "--jobs", "1", "--store", str(tmp_path)])
    assert isinstance(done.exception, InputError)
    assert "only programs in virtual time have such stalls" in str(done.exception)
    done = CliRunner().invoke(cli.labrys, ["crash", "--tries", "2", "--store", str(tmp_path)])
    assert "it needs --stall-ms" in str(done.exception)


def test_real_nodes_are_refused(tmp_path: Path) -> None:
    """Labrys owns no step of their disks."""
    done = CliRunner().invoke(cli.labrys, ["crash", "--cluster", "local", "--store", str(tmp_path)])
    assert isinstance(done.exception, InputError)
    assert "labrys crash needs the simulator" in str(done.exception)
