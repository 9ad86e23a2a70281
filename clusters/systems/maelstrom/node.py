"""A node's program: the messages on its stdin and stdout, and the checks of each message that it writes.

Source: Maelstrom's doc/protocol.md, and what its network lets pass (`clusters.systems.maelstrom.violations`). A message is a
line: a JSON object with `src`, `dest` and `body`. A body between nodes is any object. Requests have a `type` and a `msg_id`,
and answers a `type` and `in_reply_to`.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from clusters.pipes.program import Program
from clusters.sim.host import Reply, Request
from clusters.systems.maelstrom import violations as v
from clusters.systems.maelstrom.clients import Asked, Missing
from clusters.systems.maelstrom.vocabulary import Other, Unfit, is_code
from harness.console.documents import parse_json, shown
from harness.errors import InputError
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clusters.pipes.program import Launch
    from clusters.pipes.pump import Pump
    from clusters.sim.host import Host
    from clusters.sim.machine import Machine
    from clusters.systems.maelstrom.clients import Clients
    from clusters.systems.maelstrom.services import Services
    from clusters.systems.maelstrom.vocabulary import Body

HARNESS: Final = "c0"  # the client that sends `init` and `topology`
INIT: Final = 1
TOPOLOGY: Final = 2
NO_INIT: Final = "did not answer init with init_ok"
MAX_TYPES: Final = 1000
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,59}")
_compact: Final = json.JSONEncoder(separators=(",", ":")).encode  # `json.dumps` would make an encoder for each message


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


@dataclass(frozen=True, slots=True)
class HandedOn:
    """A message of a node with the name of another sender.

    Attributes:
        source: That name.
        body: The body.
    """

    source: str
    body: Body


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
        clients: Clients,
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
            clients: The clients, with the requests of all nodes.
            ledger: Takes its violations.
        """
        super().__init__(host, machine, pump, launch)
        self.ready = False
        self._topology = topology
        self._services = services
        self._clients = clients
        self._ledger = ledger
        # What the harness has asked and the program has not answered, by its number: `init`, then `topology`.
        self._due: dict[int, Callable[[Body], None]] = {}
        self._told: set[int] = set()  # the numbers of what the harness has asked
        self._initialised_once = False
        self._how = ""  # how it ended by itself
        self._began_ns = self._ended_ns = 0

    @property
    def lacks(self) -> str:
        """Returns what the program has not done to be ready, as a clause without its name; empty if it is ready."""
        if self.ready:
            return ""
        if self._how:
            when = f"{(self._ended_ns - self._began_ns) / NS_PER_S:.1f} s after its start"
            since = "after" if self._initialised_once else "before"
            return f"{self._how}, {when} and {since} it had answered init with init_ok"
        if self.child is None:
            return "was killed and does not run"
        return "answered init, but not topology with topology_ok" if self._initialised_once else NO_INIT

    def began(self) -> None:
        """Sends `init`."""
        self._began_ns = self.machine.world.now_ns
        body = {"type": "init", "node_id": self.host.name, "node_ids": list(self.host.peers)}
        self._tell(INIT, body, self._initialised)

    def _initialised(self, body: Body) -> None:
        if body.get("type") != "init_ok":
            raise Unfit(f"the answer to init has the type {shown(body.get('type'))}, not init_ok")
        self._initialised_once = True
        if self._topology is None:
            self.ready = True
        else:
            self._tell(TOPOLOGY, {"type": "topology", "topology": self._topology}, self._placed)

    def _placed(self, body: Body) -> None:
        if body.get("type") != "topology_ok":
            raise Unfit(f"the answer to topology has the type {shown(body.get('type'))}, not topology_ok")
        self.ready = True

    def _tell(self, number: int, body: Body, check: Callable[[Body], None]) -> None:
        self._due[number] = check
        self._told.add(number)
        self.write(_encoded(HARNESS, self.host.name, {**body, "msg_id": number}))

    def receive(self, sender: str, message: object) -> None:
        """Gives a message of a node, or a request of a client, to the program."""
        if isinstance(message, Request):
            ask: Ask = message.body
            if self.ready:
                self._clients.ask(sender, Asked(self.host.name, message.id, ask.check))
                self.write(_encoded(sender, self.host.name, {**ask.body, "msg_id": message.id}))
            else:
                self.host.send(sender, Reply(message.id, Refusal()))
        elif isinstance(message, HandedOn):
            self.write(_encoded(message.source, self.host.name, message.body))
        else:
            self.write(_encoded(sender, self.host.name, message))

    def said(self, line: bytes) -> None:
        """Checks a message of the program, and sends it."""
        self._ledger.checked += 1
        try:
            source, dest, body = _parsed(line)
        except InputError as error:
            self._note(v.MALFORMED, f"wrote what is no message: {error}", line)
            return
        if not self._exists(source):
            self._note(v.NOBODY, f'wrote a message with the "src" {shown(source)}, which nobody has', line)
            return
        if source != self.host.name:
            self._note(v.FOREIGN, f'wrote a message with the "src" {shown(source)}, not its own name', line)
        if INIT in self._due and not (dest == HARNESS and body.get("in_reply_to") == INIT):
            self._note(v.EARLY, "sent a message before it answered init", line)
        if dest in self._services:
            self._services.ask(dest, source, body, functools.partial(self._served, source))
        elif dest in self.host.peers:
            self._ledger.between += 1
            self.host.send(dest, _typed(body) if source == self.host.name else HandedOn(source, body))
        elif self._exists(dest):
            self._answer(dest, body, line)
        else:
            self._note(v.NOWHERE, f"sent a message to {shown(dest)}, which is no node, no service and no client", line)

    def _exists(self, name: str) -> bool:
        return name in self.host.peers or name == HARNESS or name in self._clients.names or name in self._services

    def _served(self, asker: str, service: str, body: Body) -> None:
        """The answer of a service has arrived for this node, or for the sender whose name was in the request."""
        if asker == self.host.name:
            if self.machine.process is self:  # not one that started after a kill
                self.machine.arrive(service, body)
        elif asker in self.host.peers:
            self.machine.world.machines[asker].arrive(service, body)
        elif asker in self._clients.names:
            self._answer(asker, body, _encoded(service, asker, body))

    def _answer(self, client: str, body: Body, line: bytes) -> None:
        """The program, or a service, sent a message to a client."""
        number = body.get("in_reply_to")
        asked = self._asked_by_harness(number) if client == HARNESS else self._clients.take(client, number)
        of = f"message {shown(number)} of {shown(client, quoted=False)}"
        if asked is Missing.ANSWERED:
            self._note(v.TWICE, f"answered {of} again", line)
            return
        if asked is Missing.UNASKED:
            why = f"sent {shown(client, quoted=False)} a message that answers nothing"
            self._note(v.UNASKED, why if number is None else f"answered {of}, which was never sent", line)
            return
        try:
            asked.check(body)
        except Unfit as error:
            self._note(
                v.OTHER if isinstance(error, Other) else v.UNFIT, f"gave an answer that does not fit: {error}", line
            )
        else:
            if body["type"] == "error" and not is_code(body.get("code")):
                self._note(v.CODELESS, f'answered {of} with an error without an integer "code"', line)
        if client != HARNESS:
            self.machine.world.machines[asked.node].answer(client, Reply(asked.number, body))

    def _asked_by_harness(self, number: object) -> Asked | Missing:
        """Returns the request of the harness that an answer belongs to."""
        if not isinstance(number, int) or isinstance(number, bool):
            return Missing.UNASKED
        check = self._due.pop(number, None)
        if check is None:
            return Missing.ANSWERED if number in self._told else Missing.UNASKED
        return Asked(self.host.name, number, check)

    def ended(self, how: str) -> None:
        """Notes the crash, with the last lines of stderr."""
        self.ready = False
        self._how, self._ended_ns = how, self.machine.world.now_ns
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
    name = body.get("type")
    return _class_of(name)(body) if isinstance(name, str) and NAME.fullmatch(name) else body


def _encoded(source: str, target: str, body: object) -> bytes:
    return _compact({"src": source, "dest": target, "body": body}).encode()


def _parsed(line: bytes) -> tuple[str, str, dict[str, Any]]:
    """Returns the sender, the receiver and the body of a message.

    Raises:
        InputError: It is no message.
    """
    message = parse_json(line, "the line")
    if not isinstance(message, dict):
        raise InputError(f"expected a JSON object, not {shown(message)}")
    source, dest, body = message.get("src"), message.get("dest"), message.get("body")
    if not isinstance(source, str):
        raise InputError('it has no text "src"')
    if not isinstance(dest, str):
        raise InputError('it has no text "dest"')
    if not isinstance(body, dict):
        raise InputError('it has no object "body"')
    return source, dest, body
