"""The state machine and its sessions. Because of sessions, a repeated request takes effect once (section 6.3).

A session has the name of its client, and begins with the client's first request. A client sends one request at a time, with
increasing numbers. The table of sessions has the last number of each session, and its answer. It is a part of the replicated
state: only entries change it, and snapshots contain it. Sessions never expire, because a run is short. A closed session stays
    in
the table, so that a late copy of an old request has no effect.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any, Final

from clusters.systems.sim_raft import outcomes
from clusters.systems.sim_raft.bugs import Bug
from clusters.systems.sim_raft.machines import MACHINES, Result

if TYPE_CHECKING:
    from clusters.systems.sim_raft.messages import Command, Query
    from harness.op import Value

CLOSE: Final = "close"
_CLOSED: Final = 2**62
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"))


def encoded(command: Command) -> bytes:
    """Returns a command as the body of an entry."""
    return _COMPACT.encode(command).encode()


@functools.lru_cache(maxsize=1024)
def _decoded(body: bytes) -> Any:
    """Returns the command in an entry's body. Every node applies each entry, so most bodies are decoded several times."""
    return json.loads(body)


def described(body: bytes, key: str) -> str | None:
    """Returns an entry's command as a text, e.g. `write 5`; None if it has another key or none, or is damaged."""
    try:
        _, _, f, own, value = json.loads(body)
    except (ValueError, TypeError):
        return None
    if own != key or f == CLOSE:
        return None
    return f if value is None else f"{f} {json.dumps(value)}"


class Service:
    """A state machine and its sessions."""

    def __init__(self, workload: str, bugs: frozenset[Bug]) -> None:
        self._machine = MACHINES[workload]()
        self._sessions: dict[str, list[Any]] = {}  # the last sequence number and result by name
        self._bugs = bugs

    def apply(self, index: int, body: bytes) -> Result:
        """Carries out the command in an entry, and returns its result. A repeated command returns its first result."""
        if not body:
            return Result(outcomes.OK)
        session, sequence, f, key, value = _decoded(body)
        if f == "read":  # a read through the log changes nothing, and needs no session
            return self._machine.read(f, key, value)
        last, result = self._sessions.get(session, (0, None))
        if sequence <= last and Bug.RETRY_APPLIED_TWICE not in self._bugs:
            return Result(*result) if sequence == last and result is not None else Result(outcomes.OLD_REQUEST)
        if f == CLOSE:
            self._machine.closed(session)
            self._sessions[session] = [_CLOSED, None]
            return Result(outcomes.OK)
        done = self._machine.apply(index, session, f, key, value)
        self._sessions[session] = [sequence, list(done)]
        return done

    def read(self, query: Query) -> Result:
        """Answers a query from the current state."""
        return self._machine.read(*query)

    def saved(self) -> bytes:
        """Returns the whole state for a snapshot."""
        sessions = {} if Bug.SNAPSHOT_WITHOUT_SESSIONS in self._bugs else self._sessions
        return _COMPACT.encode([self._machine.saved(), sessions]).encode()

    def load(self, body: bytes) -> None:
        """Replaces the state by that of a snapshot."""
        machine, self._sessions = json.loads(body)
        self._machine.load(machine)

    def dump(self) -> dict[str, Value]:
        """Returns a copy of the whole state, sessions included, to compare replicas."""
        state = {f"object {key}": value for key, value in self._machine.state.items()}
        sessions = {f"session {name}": sequence for name, (sequence, _) in self._sessions.items()}
        copied: dict[str, Value] = json.loads(json.dumps({**state, **sessions}))
        return copied
