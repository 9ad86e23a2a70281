"""A node's program: the messages on its stdin and stdout, and the checks of each message that it writes.

Source: Maelstrom's doc/protocol.md. A message is a line: a JSON object with `src`, `dest` and `body`. The body has a `type`,
and may have `msg_id` and `in_reply_to`.
"""

from __future__ import annotations

import functools
import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from clusters.pipes.program import Program
from clusters.sim.host import Reply, Request
from clusters.systems.maelstrom import violations as v
from clusters.systems.maelstrom.vocabulary import Unfit
from harness.console.documents import parse_json, shown
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clusters.pipes.program import Launch
    from clusters.pipes.pump import Pump
    from clusters.sim.host import Host
    from clusters.sim.machine import Machine
    from clusters.systems.maelstrom.services import Services
    from clusters.systems.maelstrom.vocabulary import Body

HARNESS: Final = "c0"  # the client that sends `init` and `topology`
INIT: Final = 1
TOPOLOGY: Final = 2
MAX_TYPES: Final = 1000
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,59}")
_compact: Final = json.JSONEncoder(separators=(",", ":")).encode  # `json.dumps` would make an encoder for each message
MAX_ANSWERED: Final = 100_000  # answered requests that a node remembers, to tell a second answer from an unasked one


@dataclass(frozen=True, slots=True)
class Ask:
    """The body of a client's request.

    Attributes:
        body: The members of the message's body, without `msg_id`.
        check: Checks an answer; raises `Unfit`.
    """

    body: Body
    check: Callable[[Body], None]


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer of the harness in place of a node that has not answered `init`."""


class MaelstromNode(Program):
    """A node.

    Attributes:
        ready: Whether it has answered `init` and, if there is one, `topology`.
    """

    def __init__(
        self,
        host: Host,
        machine: Machine,
        pump: Pump,
        launch: Launch,
        *,
        topology: Mapping[str, Sequence[str]] | None,
        services: Services,
        ledger: v.Ledger,
    ) -> None:
        """Makes a node that has not started; see `Program`.

        Args:
            host: Its host.
            machine: Its machine.
            pump: Moves the bytes of its pipes.
            launch: How it starts.
            topology: The neighbours of each node, if the workload has a topology.
            services: The services that it can ask.
            ledger: Takes its violations.
        """
        super().__init__(host, machine, pump, launch)
        self.ready = False
        self._topology = topology
        self._services = services
        self._ledger = ledger
        self._open: dict[tuple[str, int], Callable[[Body], None]] = {}
        self._answered: OrderedDict[tuple[str, int], None] = OrderedDict()

    def began(self) -> None:
        """Sends `init`."""
        body = {"type": "init", "node_id": self.host.name, "node_ids": list(self.host.peers)}
        self._ask(HARNESS, INIT, body, self._initialised)

    def _initialised(self, body: Body) -> None:
        if body["type"] != "init_ok":
            raise Unfit(f"the answer to init has the type {shown(body['type'])}, not init_ok")
        if self._topology is None:
            self.ready = True
        else:
            self._ask(HARNESS, TOPOLOGY, {"type": "topology", "topology": self._topology}, self._placed)

    def _placed(self, body: Body) -> None:
        if body["type"] != "topology_ok":
            raise Unfit(f"the answer to topology has the type {shown(body['type'])}, not topology_ok")
        self.ready = True

    def receive(self, sender: str, message: object) -> None:
        """Gives a message of a node, or a request of a client, to the program."""
        if isinstance(message, Request):
            ask: Ask = message.body
            if self.ready:
                self._ask(sender, message.id, ask.body, ask.check)
            else:
                self.host.send(sender, Reply(message.id, Refusal()))
        else:
            self.write(_encoded(sender, self.host.name, message))

    def _ask(self, client: str, number: int, body: Body, check: Callable[[Body], None]) -> None:
        self._open[client, number] = check
        self.write(_encoded(client, self.host.name, {**body, "msg_id": number}))

    def said(self, line: bytes) -> None:
        """Checks a message of the program, and sends it."""
        self._ledger.checked += 1
        try:
            dest, body = _parsed(line, self.host.name)
        except InputError as error:
            kind = v.FOREIGN if isinstance(error, _ForeignError) else v.MALFORMED
            self._note(kind, f"wrote what is no message: {error}", line)
            return
        number = body.get("in_reply_to")
        if dest in self.host.peers or dest in self._services:
            self._early(line)
            if dest in self._services:
                self._services.ask(dest, self.host.name, body, self._served)
            else:
                self._ledger.between += 1
                self.host.send(dest, _typed(body))
        elif number is not None:
            self._answer(dest, number, body, line)
        else:
            self._note(v.NOWHERE, f"sent a message to {shown(dest)}, which is no node and no service", line)

    def _served(self, service: str, body: Body) -> None:
        """The answer of a service has arrived."""
        if self.machine.process is self:  # not one that started after a kill
            self.machine.arrive(service, body)

    def _inits(self) -> bool:
        return (HARNESS, INIT) in self._open

    def _early(self, line: bytes) -> None:
        if self._inits():
            self._note(v.EARLY, "sent a message before it answered init", line)

    def _answer(self, client: str, number: int, body: Body, line: bytes) -> None:
        key = (client, number)
        check = self._open.pop(key, None)
        if check is None:
            if key in self._answered:
                self._note(v.TWICE, f"answered message {number} of {shown(client, quoted=False)} again", line)
            else:
                self._note(
                    v.UNASKED, f"answered message {number} of {shown(client, quoted=False)}, which was never sent", line
                )
            return
        self._answered[key] = None
        if len(self._answered) > MAX_ANSWERED:
            self._answered.popitem(last=False)
        if client != HARNESS:
            self._early(line)
        try:
            check(body)
        except Unfit as error:
            self._note(v.UNFIT, f"gave an answer that does not fit: {error}", line)
        if client != HARNESS:
            self.host.send(client, Reply(number, body))

    def ended(self, how: str) -> None:
        """Notes the crash, with the last lines of stderr."""
        self.ready = False
        last = " | ".join(self.tail)
        why = f"{how}; its stderr ends with: {last}" if last else f"{how}, and wrote nothing to stderr"
        self._note(v.CRASH, why, "", line_number=False)

    def killed(self) -> None:
        """Ends the program."""
        self.ready = False
        super().killed()

    def _note(self, kind: str, why: str, line: bytes | str, *, line_number: bool = True) -> None:
        self._ledger.note(
            kind,
            self.host.name,
            time_ns=self.machine.world.now_ns,
            line=self.lines if line_number else None,
            why=why,
            message=line,
        )


@functools.lru_cache(maxsize=MAX_TYPES)
def _class_of(name: str) -> type[dict[str, Any]]:
    return type(name, (dict,), {})


def _typed(body: Body) -> Body:
    """Returns the body as an object whose class has the name of its type; see `clusters.sim.rarity`."""
    name = body["type"]
    return _class_of(name)(body) if NAME.fullmatch(name) else body


class _ForeignError(InputError):
    """The sender of a message is another one than the node that wrote it."""


def _encoded(source: str, target: str, body: object) -> bytes:
    return _compact({"src": source, "dest": target, "body": body}).encode()


def _parsed(line: bytes, node: str) -> tuple[str, dict[str, Any]]:
    """Returns the receiver and the body of a message.

    Raises:
        InputError: It is no message of this node.
    """
    message = parse_json(line, "the line")
    if not isinstance(message, dict):
        raise InputError(f"expected a JSON object, not {shown(message)}")
    dest, body = message.get("dest"), message.get("body")
    if not isinstance(dest, str):
        raise InputError('it has no text "dest"')
    if not isinstance(body, dict) or not isinstance(body.get("type"), str):
        raise InputError('it has no object "body" with a text "type"')
    for name in ("msg_id", "in_reply_to"):
        if (
            name in body
            and body[name] is not None
            and (not isinstance(body[name], int) or isinstance(body[name], bool))
        ):
            raise InputError(f'"{name}" is not an integer, but {shown(body[name])}')
    if message.get("src") != node:
        raise _ForeignError(f'its "src" is {shown(message.get("src"))}, not {node}')
    return dest, body
