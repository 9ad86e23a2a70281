"""The kinds of faults in a simulated world: effect, proof and healing."""

from __future__ import annotations

import pytest

from harness.capabilities import SIMULATED, Capabilities
from nemesis.builtin import KINDS
from nemesis.kinds import left_out
from tests.trials import TOY, trial

WITHOUT_EFFECT = {"packet-rate"}
OF_REAL_NODES = {"thread-stall"}  # `all` never has it, and `--stalls` does the same in the simulator
UNSUITED = {"leadership-transfer", "leaders-kill"}  # n1 is always the leader
NAMED = {
    "file-bitflip": "n1",
    "file-truncate": "n1",
    "fixed-kill": "n2",
    "fixed-pause": "n2",
    "fixed-loss": "n2",
    "fixed-delay": "n2",
    "partition-fixed": "n2",
    "wipe": "n1",  # the only node with a file
}


def test_kinds_without_a_simulated_effect_are_left_out_with_a_reason() -> None:
    """`all` leaves out exactly the kinds without an effect in the simulator."""
    found = left_out({"n1": Capabilities(available=frozenset({SIMULATED}))})
    assert {left.kind for left in found} == WITHOUT_EFFECT
    assert all("has no effect in the simulator" in left.reason for left in found)


@pytest.mark.parametrize("kind", sorted({kind.name for kind in KINDS} - WITHOUT_EFFECT - OF_REAL_NODES - UNSUITED))
def test_a_kind_takes_effect_and_heals(kind: str) -> None:
    """Each fault is effective, there is no error, and the system works afterwards."""
    aim = f"{kind}:{NAMED[kind]}" if kind in NAMED else kind
    found = trial(*TOY, "--nemesis", aim, "--in-turn", "--fault-on", "2-3", "--fault-off", "1-2")
    (record,) = found.result.faults
    assert record.error is None
    assert record.proof is not None
    assert record.proof.effective, record.proof.reason
    assert found.result.recovery is not None
    assert found.result.recovery.error is None


def test_a_kind_without_an_effect_is_refused_by_name() -> None:
    """Such a kind is an error before the run, with the missing effect."""
    with pytest.raises(Exception, match="packet-rate has no effect in the simulator"):
        trial(*TOY, "--nemesis", "packet-rate", "--fault-on", "1-2")


@pytest.mark.parametrize("option", ["after", "stall"])
def test_a_simulated_process_does_not_outlive_its_disk(option: str) -> None:
    """A power loss with such an option has no effect, and the error says why."""
    found = trial(*TOY, "--nemesis", "power-loss", "--fault-options", f"power-loss.{option}=1", "--fault-on", "2-3")
    assert {record.proof for record in found.result.faults} == {None}
    assert all("does not outlive its disk" in (record.error or "") for record in found.result.faults)
    assert found.result.recovery is not None
    assert found.result.recovery.error is None
