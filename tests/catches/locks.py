"""A lock service in memory and in virtual time, correct or with one planted bug; see `tests.catches.services`.

A lock has a lease, which ends by itself, so that a dead client does not block others for long.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.op import Fail, Ok
from tests.catches.services import Client, Service, now_s

if TYPE_CHECKING:
    from harness.node import Node
    from harness.op import Invocation, Outcome

LEASE_S = 0.5


class Bug(enum.StrEnum):
    """The planted bugs."""

    GRANTED_TWICE = "granted twice"  # a node does not see that the lock is held
    FORGOTTEN = "forgotten"  # a new leader does not know the holders
    SHORT_LEASE = "short lease"  # a lease ends much too early
    FREED_BY_ACQUIRE = "freed by a failed acquire"  # a refused client frees the lock for the next one
    TOKEN_RESET = "token reset"  # noqa: S105 - the counter of tokens begins anew
    TOKEN_REPEATED = "token repeated"  # noqa: S105 - the counter is not stored before it is used
    FOREIGN_RELEASE = "foreign release"  # any client can release


# The probability of each bug; low enough that most operations are right.
RATES = MappingProxyType(dict.fromkeys(Bug, 0.05) | {Bug.TOKEN_RESET: 0.01, Bug.FOREIGN_RELEASE: 0.5})


@dataclass(slots=True)
class _Lock:
    """One lock.

    Attributes:
        holder: The process that holds it, or held it until the lease ended; None if it was released.
        until_s: When its lease ends.
        token: The last token.
    """

    holder: int | None = None
    until_s: float = 0.0
    token: int = 0


class Locks(Service[Bug]):
    """Locks on some nodes."""

    def __init__(self, seed: int, bug: Bug | None) -> None:
        super().__init__(seed, bug, RATES)
        self._locks: dict[str | None, _Lock] = {}

    def __call__(self, process: int, node: Node) -> Client:
        """Makes a client, which sends its process with each request."""
        return _Client(self, node, process)

    async def apply(self, invocation: Invocation) -> Outcome:
        """Carries out a request."""
        lock = self._locks.setdefault(invocation.key, _Lock())
        process, token = invocation.value
        if lock.until_s < now_s():
            lock.holder = None
        if self.strikes(Bug.FORGOTTEN):
            for other in self._locks.values():
                other.holder = None
        if invocation.f == "acquire":
            return self._acquire(lock, process)
        if lock.holder != process and not (lock.holder is not None and self.strikes(Bug.FOREIGN_RELEASE)):
            return Fail("not-held")
        lock.holder = None
        return Ok(token)

    def _acquire(self, lock: _Lock, process: int) -> Outcome:
        if lock.holder is not None and not self.strikes(Bug.GRANTED_TWICE):
            if self.strikes(Bug.FREED_BY_ACQUIRE):
                lock.holder = None
            return Fail("held")
        if self.strikes(Bug.TOKEN_RESET):
            lock.token = 0
        if not self.strikes(Bug.TOKEN_REPEATED):
            lock.token += 1
        lock.holder = process
        lock.until_s = now_s() + (0.01 if self.strikes(Bug.SHORT_LEASE) else LEASE_S)
        return Ok(lock.token)


class _Client(Client):
    """A connection of one process."""

    def __init__(self, service: Locks, node: Node, process: int) -> None:
        super().__init__(service, node)
        self._process = process

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Sends a request to the service."""
        return await super().invoke(invocation._replace(value=(self._process, invocation.value)))
