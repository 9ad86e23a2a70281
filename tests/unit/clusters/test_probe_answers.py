"""A capability is available only if its probe worked, for any answer of the node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.capabilities import probe
from harness import capabilities as cap
from harness.errors import NodeError
from harness.remote import Remote, Result


class Answering:
    """A shell on a node that answers the probe with a text."""

    node = "n1"

    def __init__(self, stdout: str, *, status: int = 0, stderr: str = "") -> None:
        self._result = Result(node="n1", command="probe", status=status, stdout=stdout, stderr=stderr)

    def run(self, command: str, **_: object) -> Result:
        """Answers."""
        return self._result


def answer(statuses: dict[str, int], said: str = "it said\tso") -> Remote:
    """A node whose probes end with these statuses."""
    return Answering("".join(f"{name}\t{status}\t{said}\n" for name, status in statuses.items()))  # type: ignore[return-value]  # only `run` is called


@given(st.fixed_dictionaries({name: st.sampled_from([0, 1, 2, 127, 255]) for name in cap.PROBED}), st.booleans())
def test_available_is_what_ended_with_0(statuses: dict[str, int], own_clock: bool) -> None:
    """A capability is available if and only if its probe ended with 0; a shared clock never is."""
    can = probe(answer(statuses), own_clock=own_clock)

    expected = {name for name, status in statuses.items() if status == 0} - (set() if own_clock else {cap.CLOCK})
    assert can.available == expected
    assert set(can.missing) == set(cap.NAMES) - expected  # the switch too: these nodes are no local ones
    assert all(can.missing.values())


def test_a_probe_that_says_nothing_has_its_status_for_a_reason() -> None:
    """A failure without output has its status as the reason."""
    statuses = dict.fromkeys(cap.PROBED, 0) | {cap.TBF: 2}
    assert probe(answer(statuses, ""), own_clock=True, no_switch="").missing == {cap.TBF: "status 2"}


@pytest.mark.parametrize("lacking", [cap.ROOT, cap.TBF])
def test_an_answer_that_lacks_something_is_an_error(lacking: str) -> None:
    """An interrupted probe is an error with the node and the unknown capabilities."""
    statuses = {name: 0 for name in cap.PROBED if name != lacking}
    with pytest.raises(NodeError, match=f"n1: .* gave no answer for {lacking}"):
        probe(answer(statuses), own_clock=True)


def test_a_node_where_nothing_runs_as_root_can_do_nothing() -> None:
    """If sudo refuses, every capability is missing for that reason."""
    remote: Remote = Answering("", status=1, stderr="sudo: a password is required\n")  # type: ignore[assignment]  # only `run` is called
    can = probe(remote, own_clock=True)

    assert not can.available
    assert set(can.missing) == set(cap.NAMES)
    assert "a password is required" in can.missing[cap.ROOT]
