"""The state machines of the simulated Raft, and the sessions."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.systems.sim_raft import outcomes
from clusters.systems.sim_raft.machines import MACHINES, Result
from clusters.systems.sim_raft.messages import Command, Query
from clusters.systems.sim_raft.service import CLOSE, Service, encoded
from harness.op import Fail, Info

# For each workload: commands of one client with code and value, and then the result of a read.
SCRIPTS: dict[str, tuple[list[tuple[str, Any, str, Any]], Any, Any]] = {
    "register": (
        [
            ("write", 3, "ok", 3),
            ("cas", [3, 4], "ok", [3, 4]),
            ("cas", [3, 5], "cas-mismatch", 4),
            ("cas", [None, 5], "cas-mismatch", 4),
            ("fly", 5, "unsupported", None),
        ],
        None,
        4,
    ),
    "set": ([("add", 7, "ok", 7), ("add", 5, "ok", 5), ("add", 7, "ok", 7)], None, [7, 5]),
    "log": ([("append", 7, "ok", 0), ("append", 5, "ok", 1), ("append", 7, "ok", 2)], [1, 9], [[1, 5], [2, 7]]),
    "counter": ([("add", 7, "ok", 7), ("add", -9, "ok", -9)], None, -2),
}


@pytest.mark.parametrize("workload", SCRIPTS)
def test_a_machine_does_what_its_commands_say(workload: str) -> None:
    """The order of a change is the index of its entry; the order of a read is that of the last change."""
    commands, asked, read = SCRIPTS[workload]
    service = Service(workload, frozenset())
    last = 0
    for number, (f, value, code, answer) in enumerate(commands, 1):
        result = service.apply(number * 10, encoded(Command("c", number, f, "k", value)))
        last = number * 10 if code == outcomes.OK else last
        assert result == Result(code, answer, number * 10 if code == outcomes.OK else None)
    assert service.read(Query("read", "k", asked)) == Result(outcomes.OK, read, last)


@pytest.mark.parametrize("workload", MACHINES)
def test_what_was_never_touched_is_there(workload: str) -> None:
    """An object before its first change has the order 0."""
    answer = Service(workload, frozenset()).read(Query("read", "k", 3 if workload == "log" else None))
    assert answer.order == 0
    assert answer.value == {"set": [], "counter": 0}.get(workload)


def test_a_lock_is_its_holders() -> None:
    """Only one client can acquire it; its holder can release it, and closing the holder's session frees it."""
    service = Service("lock", frozenset())

    def asked(index: int, session: str, sequence: int, f: str, value: Any = None) -> tuple[str, Any]:
        return service.apply(index, encoded(Command(session, sequence, f, "k", value)))[:2]

    assert asked(1, "a", 1, "acquire") == ("ok", 1)
    assert asked(2, "a", 2, "acquire") == ("lock-held", None)
    assert asked(3, "b", 1, "acquire") == ("lock-held", None)
    assert asked(4, "b", 2, "release", 1) == ("not-holder", None)
    assert asked(5, "a", 3, "release", 9) == ("not-holder", None)
    assert asked(6, "a", 4, "release", 1) == ("ok", 1)
    assert asked(7, "b", 3, "acquire") == ("ok", 7)
    assert asked(8, "b", 4, CLOSE) == ("ok", None)
    assert asked(9, "b", 3, "acquire") == ("old-request", None)
    assert asked(10, "a", 5, "acquire") == ("ok", 10)


def test_a_repeated_request_gets_its_first_answer() -> None:
    """A request takes effect once, for any copies in the log. A copy of an older request does not get the newer answer."""
    service = Service("counter", frozenset())
    first = encoded(Command("c", 1, "add", "k", 5))
    assert service.apply(1, first) == Result("ok", 5, 1)
    assert service.apply(2, first) == Result("ok", 5, 1)
    assert service.apply(3, encoded(Command("c", 2, "add", "k", 1))) == Result("ok", 1, 3)
    assert service.apply(4, first) == Result("old-request")
    assert service.read(Query("read", "k", None)) == Result("ok", 6, 3)


@pytest.mark.parametrize("workload", MACHINES)
def test_a_snapshot_has_the_whole_state(workload: str) -> None:
    """A replica from a snapshot has the same objects, orders and sessions."""
    commands = SCRIPTS[workload][0] if workload in SCRIPTS else [("acquire", None, "ok", 1)]
    service, other = Service(workload, frozenset()), Service(workload, frozenset())
    bodies = [encoded(Command("c", number, f, "k", value)) for number, (f, value, _, _) in enumerate(commands, 1)]
    for number, body in enumerate(bodies, 1):
        service.apply(number, body)
    other.load(service.saved())
    assert other.dump() == service.dump()
    assert other.apply(99, bodies[-1]) == service.apply(99, bodies[-1])
    assert other.saved() == service.saved()


def test_a_leaders_first_entry_changes_nothing() -> None:
    """A leader's first entry has no body, and changes nothing."""
    service = Service("register", frozenset())
    before = service.saved()
    assert service.apply(1, b"") == Result("ok")
    assert service.saved() == before


def test_a_fail_is_certain() -> None:
    """A command is a fail only with a code from before the log, or with the state machine's own answer."""
    certain = {code for code, kind in outcomes.OUTCOMES.items() if kind is Fail}
    assert certain == {*outcomes.ANSWERS, *outcomes.REFUSED, outcomes.UNSUPPORTED}
    assert outcomes.outcome("of no table", "", is_read=False) == Info("of no table")
    assert outcomes.outcome("leadership-lost", "", is_read=True) == Fail("leadership-lost")
    assert outcomes.outcome("not-leader", "n3 leads", is_read=False) == Fail("not-leader: n3 leads")
