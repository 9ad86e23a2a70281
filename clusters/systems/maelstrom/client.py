"""The client of a program that speaks Maelstrom's protocol: one request of one operation at a time, to its own node."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from clusters.kit.answers import no_answer, unsupported
from clusters.sim.errors import Broken, Refused
from clusters.systems.maelstrom.node import Ask, Refusal
from clusters.systems.maelstrom.outcomes import NO_SUCH_KEY, of_error
from clusters.systems.maelstrom.vocabulary import READS, VERBS, Unfit
from harness.op import Fail, Ok

if TYPE_CHECKING:
    from clusters.sim.system import Connection
    from clusters.systems.maelstrom.vocabulary import Body, Verb
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value


class MaelstromClient:
    """A `harness.client.Client`.

    Attributes:
        node: Its node.
    """

    def __init__(self, *, connection: Connection, node: Node, workload: str) -> None:
        self.node = node
        self._connection = connection
        self._workload = workload

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out one operation of the workload."""
        verb = VERBS[self._workload].get(invocation.f)
        if verb is None:
            return unsupported(invocation.f, invocation.value)
        if self._workload == "kafka" and invocation.f == "read":
            return await self._read(verb, invocation)
        return await self._once(verb, invocation)

    async def _read(self, verb: Verb, invocation: Invocation) -> Outcome:
        """Reads an offset or a range of offsets by polls. A poll may bring few messages; others follow until one is empty."""
        value = invocation.value
        first, last = value if isinstance(value, list) else (value, value)
        entries: list[Value] = []
        while first <= last:
            outcome = await self._once(verb, invocation._replace(value=first))
            if not isinstance(outcome, Ok):
                return outcome
            entries += [entry for entry in outcome.value if entry[0] <= last]
            first = max((entry[0] for entry in outcome.value), default=last) + 1
        if isinstance(value, list):
            return Ok(entries)
        return Ok(next((entry[1] for entry in entries if entry[0] == value), None))

    async def _once(self, verb: Verb, invocation: Invocation) -> Outcome:
        """Sends one request, and returns the outcome of its answer."""
        is_read = invocation.f in READS
        ask = Ask(verb.request(invocation), partial(verb.check, invocation))
        try:
            body = await self._connection.ask(self.node.name, ask)
        except Refused as error:
            return Fail(f"not-connected: {error}")
        except Broken as error:
            return no_answer(f"no-answer: {error}", is_read=is_read)
        return self._outcome(verb, invocation, body)

    def _outcome(self, verb: Verb, invocation: Invocation, body: Body | Refusal) -> Outcome:
        """Returns the outcome of an operation from the answer of the node."""
        is_read = invocation.f in READS
        if isinstance(body, Refusal):
            return Fail(f"not-ready: {self.node.name} has not answered init")
        if body.get("type") == "error":
            if is_read and body.get("code") == NO_SUCH_KEY and self._workload == "lin-kv":
                return Ok(None)
            return of_error(body, is_read=is_read)
        try:
            verb.check(invocation, body)
            return Ok(verb.result(invocation, body))
        except Unfit as error:
            return no_answer(f"unfit-answer: {error}", is_read=is_read)

    async def close(self) -> None:
        """Does nothing: there is no connection."""
