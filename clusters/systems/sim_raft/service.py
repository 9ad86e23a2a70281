"""The state machine behind sessions, so that a request which a client repeats takes effect once (section 6.3).

A session is named by its client, and begins with the client's first request. A client has one request at a time, with a
number that grows. The table has the last number of each session and its answer. It is a part of the replicated state: entries
alone change it, and snapshots have it. Sessions never expire, because a run is short. One that its client closed stays in the
table, so that a late copy of an old request finds it closed.
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
ONLY_KEY: Final = "only"  # where a workload has one object and no keys


def encoded(command: Command) -> bytes:
    """Returns a command as the body of an entry."""
    return _COMPACT.encode(command).encode()


@functools.lru_cache(maxsize=1024)
def _decoded(body: bytes) -> Any:
    """Returns the command in an entry's body. Each node applies each entry, so most bodies are read several times."""
    return json.loads(body)


def described(body: bytes, key: str) -> str | None:
    """Returns what an entry does, e.g. `write 5`; None if it is about another key, about none, or damaged."""
    try:
        _, _, f, own, value = json.loads(body)
    except (ValueError, TypeError):
        return None
    if own != key or f == CLOSE:
        return None
    return f if value is None else f"{f} {json.dumps(value)}"


class Service:
    """A state machine and its sessions."""

    def __init__(self, workload: str, bug: Bug) -> None:
        self._machine = MACHINES[workload]()
        self._sessions: dict[str, list[Any]] = {}  # name to sequence number and result
        self._bug = bug

    def apply(self, index: int, body: bytes) -> Result:
        """Carries out the command in an entry, unless its session has done so before; returns its result either way."""
        if not body:
            return Result(outcomes.OK)
        session, sequence, f, key, value = _decoded(body)
        if f == "read":  # a read that takes the way through the log changes nothing, and needs no session
            return self._machine.read(f, key, value)
        last, result = self._sessions.get(session, (0, None))
        if sequence <= last and self._bug is not Bug.RETRY_APPLIED_TWICE:
            return Result(*result) if sequence == last and result is not None else Result(outcomes.OLD_REQUEST)
        if f == CLOSE:
            self._machine.closed(session)
            self._sessions[session] = [_CLOSED, None]
            return Result(outcomes.OK)
        done = self._machine.apply(index, session, f, key, value)
        self._sessions[session] = [sequence, list(done)]
        return done

    def read(self, query: Query) -> Result:
        """Answers a query from the state as it is."""
        return self._machine.read(*query)

    def saved(self) -> bytes:
        """Returns the whole state for a snapshot."""
        sessions = {} if self._bug is Bug.SNAPSHOT_WITHOUT_SESSIONS else self._sessions
        return _COMPACT.encode([self._machine.saved(), sessions]).encode()

    def load(self, body: bytes) -> None:
        """Takes the state of a snapshot."""
        machine, self._sessions = json.loads(body)
        self._machine.load(machine)

    def dump(self) -> dict[str, Value]:
        """Returns a copy of the whole state, sessions included, to compare replicas."""
        state = {f"object {key}": value for key, value in self._machine.state.items()}
        sessions = {f"session {name}": sequence for name, (sequence, _) in self._sessions.items()}
        copied: dict[str, Value] = json.loads(json.dumps({**state, **sessions}))
        return copied
