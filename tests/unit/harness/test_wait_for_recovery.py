"""The generator of the wait for recovery: it shows both sorts of operations, also if the workload reads seldom."""

from __future__ import annotations

from itertools import count

import pytest

from harness.aftermath import READ_AFTER, _Continued
from harness.generator import Asker
from harness.op import RECOVERY_PHASE, Invocation, Op, OpType
from harness.served import CHANGE, READ, Served

READING = Invocation("read", None, "k")


class Adds:
    """A workload that never reads."""

    def __init__(self) -> None:
        self._numbers = count()

    def ask(self, asker: Asker) -> Invocation:
        """Returns an add of the next number."""
        return Invocation("add", next(self._numbers), "k")

    def update(self, event: Op) -> None:
        """Needs no events."""


def served() -> Served:
    """Returns that nothing is shown yet, of one node."""
    return Served(
        nodes=["n1"],
        quorum=1,
        reads=frozenset({"read"}),
        codes=frozenset(),
        sorts=frozenset({READ, CHANGE}),
    )


def asked(generator: _Continued) -> Invocation:
    """Returns the next operation."""
    answer = generator.ask(Asker(worker=0, process=0, node="n1", now_ns=0, workers=frozenset({0})))
    assert isinstance(answer, Invocation)
    return answer


def test_a_workload_that_reads_seldom_is_no_accusation() -> None:
    """The last read that succeeded is repeated until one succeeds again, and then no more."""
    state = served()
    generator = _Continued(Adds(), state, READING)
    first = [asked(generator) for _ in range(READ_AFTER + 1)]
    assert [invocation.f for invocation in first] == ["add"] * READ_AFTER + ["read"]
    assert {invocation.phase for invocation in first} == {RECOVERY_PHASE}
    assert [invocation.value for invocation in first[:-1]] == list(range(READ_AFTER)), "no add is lost"
    again = [asked(generator).f for _ in range(READ_AFTER + 1)]
    assert again.count("read") == 1
    for kind in (OpType.INVOKE, OpType.OK):
        state.update(Op(0, 1, kind, 0, "read", [], "k", "n1"))
    assert READ in state.succeeded
    assert "read" not in [asked(generator).f for _ in range(3 * READ_AFTER)]


@pytest.mark.parametrize("read", [None, READING])
def test_a_workload_that_reads_by_itself_goes_on(read: Invocation | None) -> None:
    """No read is repeated if the workload has its own, or if none ever succeeded."""

    class Mixed(Adds):
        def ask(self, asker: Asker) -> Invocation:
            invocation = super().ask(asker)
            assert isinstance(invocation.value, int)
            return invocation if invocation.value % READ_AFTER else Invocation("read", "its own", "k")

    generator = _Continued(Mixed() if read is not None else Adds(), served(), read)
    reads = [invocation for invocation in (asked(generator) for _ in range(5 * READ_AFTER)) if invocation.f == "read"]
    assert {invocation.value for invocation in reads} == ({"its own"} if read is not None else set())
