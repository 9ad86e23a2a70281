"""The model finds planted mistakes of a controller, and accepts a correct controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from checker.linearizable import linearizability
from clusters.systems.rocketmq.tests.catches.controllers import MISTAKES, MISTAKES_OF_MEMBERS, Controller, request
from clusters.systems.rocketmq.workloads.broker_ids import BrokerIdWorkload
from clusters.systems.rocketmq.workloads.elections import ElectOptions, ElectWorkload
from clusters.systems.rocketmq.workloads.members import ControllerWorkload, SyncStateSetWorkload
from clusters.systems.rocketmq.workloads.model import BrokerGroup
from harness.combinators import limit
from harness.history import pair
from harness.load import ClosedLoop
from harness.op import Invocation
from harness.randomness import stream
from harness.testing import simulate
from harness.verdict import Verdict
from harness.workload import Observed

if TYPE_CHECKING:
    from clusters.systems.rocketmq.workloads.groups import GroupWorkload
    from harness.generator import Asker
    from harness.verdict import Part

WORKERS = 4


def mixed(controller: Controller, seed: int, count: int = 200) -> Part:
    """The verdict on requests of all kinds to two groups."""
    draws = [stream(seed, f"worker/{number}") for number in range(WORKERS)]

    def next_operation(asker: Asker) -> Invocation:
        key = f"k{draws[asker.worker].randrange(2)}"
        f, argument = request(draws[asker.worker], controller.group(key))
        return Invocation(f, argument, key)

    history = simulate(
        limit(count, next_operation), load=ClosedLoop(concurrency=WORKERS), respond=controller, seed=seed
    )
    return linearizability(BrokerGroup(), pair(history))[0]


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("seed", range(2))
def test_a_mistake_is_found(mistake: str, seed: int) -> None:
    """Each mistake that shows in an answer makes the run invalid, with an explanation."""
    controller = Controller(mistake, seed)
    part = mixed(controller, seed)
    assert controller.made
    assert part.verdict is Verdict.INVALID
    assert "answers" in part.reason


@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_right_controller_is_not_accused(seed: int, lossy: bool) -> None:
    """A correct controller is valid, also with lost answers."""
    assert mixed(Controller(None, seed, lossy=lossy), seed).verdict is Verdict.VALID


def parts_of(workload: GroupWorkload[Any], controller: Controller, seed: int, count: int = 200) -> dict[str, Part]:
    """The parts of a run of a workload."""
    generator = limit(count, workload.generator(seed=seed, streams=WORKERS))
    history = simulate(generator, load=ClosedLoop(concurrency=WORKERS), respond=controller, seed=seed)
    return {part.name: part for part in workload.check(pair(history), Observed())}


@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_broker_ids_of_a_right_controller(seed: int, lossy: bool) -> None:
    """All parts are valid, with given and contended ids."""
    parts = parts_of(BrokerIdWorkload(), Controller(None, seed, lossy=lossy), seed)
    assert {name: part.verdict for name, part in parts.items()} == dict.fromkeys(
        ("linearizable", "one-owner", "contended"), Verdict.VALID
    )


@pytest.mark.parametrize("seed", range(2))
def test_two_owners_of_an_id(seed: int) -> None:
    """The model finds the mistakes, and so does the rule without a search."""
    parts = parts_of(BrokerIdWorkload(), Controller("two owners", seed), seed)
    assert parts["linearizable"].verdict is parts["one-owner"].verdict is Verdict.INVALID


@pytest.mark.parametrize("seed", range(2))
def test_a_stale_next_id(seed: int) -> None:
    """Only the model finds this mistake."""
    parts = parts_of(BrokerIdWorkload(), Controller("stale read", seed), seed)
    assert parts["linearizable"].verdict is Verdict.INVALID
    assert parts["one-owner"].verdict is Verdict.VALID


@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_elections_of_a_right_controller(seed: int, lossy: bool) -> None:
    """All parts are valid, with won and lost elections."""
    parts = parts_of(ElectWorkload(), Controller(None, seed, lossy=lossy), seed)
    assert {name: part.verdict for name, part in parts.items()} == dict.fromkeys(
        ("linearizable", "one-master", "master-in-sync", "epochs-grow", "stood"), Verdict.VALID
    )


@pytest.mark.parametrize("mistake", ["dead replica elected", "refused write applied", "stale read"])
@pytest.mark.parametrize("seed", range(2))
def test_mistakes_of_elections(mistake: str, seed: int) -> None:
    """These mistakes show without heartbeats."""
    assert parts_of(ElectWorkload(), Controller(mistake, seed), seed)["linearizable"].verdict is Verdict.INVALID


MEMBERS = [SyncStateSetWorkload, ControllerWorkload]


@pytest.mark.parametrize("workload", MEMBERS)
@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_members_of_a_right_controller(workload: type[GroupWorkload[Any]], seed: int, lossy: bool) -> None:
    """A correct controller is valid, for any brokers that it regards as dead and any elections of its own."""
    parts = parts_of(workload(), Controller(None, seed, lossy=lossy, restless=True), seed)
    assert {name: part.verdict for name, part in parts.items()} == dict.fromkeys(
        ("linearizable", "one-master", "master-in-sync", "epochs-grow", "altered"), Verdict.VALID
    )


# The rules without a search that also find a mistake.
RULES = {"master dropped": "master-in-sync", "stale read": "epochs-grow", "epoch reused": "one-master"}


@pytest.mark.parametrize("workload", MEMBERS)
@pytest.mark.parametrize("mistake", MISTAKES_OF_MEMBERS)
def test_mistakes_with_members(workload: type[GroupWorkload[Any]], mistake: str) -> None:
    """The model finds each mistake, although liveness is uncertain; so does the rule for it."""
    controller = Controller(mistake, 1, restless=True)
    parts = parts_of(workload(), controller, 1, count=400)
    assert controller.made
    assert parts["linearizable"].verdict is Verdict.INVALID
    if mistake in RULES:
        assert parts[RULES[mistake]].verdict is Verdict.INVALID


@pytest.mark.parametrize("lossy", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_elections_with_heartbeats(seed: int, lossy: bool) -> None:
    """With living brokers, a correct controller is valid, and the epochs grow."""
    workload = ElectWorkload(ElectOptions(heartbeat_share=0.2))
    parts = parts_of(workload, Controller(None, seed, lossy=lossy, restless=True), seed)
    assert {part.verdict for part in parts.values()} == {Verdict.VALID}
    assert parts["one-master"].details["epochs"] > parts["stood"].details["won"]
