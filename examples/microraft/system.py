"""Registers on the Raft library MicroRaft, as released, in the simulator; see docs/guide/real-code-by-seed.md.

Run it with `labrys test --cluster sim --system examples/microraft/system.py:MicroRaft`.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from clusters.kit.answers import NotSent
from clusters.kit.jvm import compiler, maven, maven_build
from clusters.kit.waiting import wait_until_complete
from clusters.sim.jvm.system import JavaNodes, simulator
from harness.errors import LabrysError
from harness.op import ONLY_KEY, Fail, Info, Ok
from harness.service import NodeStatus, first_status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.node import Node
    from harness.op import Invocation, Outcome

VERSION = "0.7"
PORT = 7000
TIMEOUT_S = 1.0
HEAD = struct.Struct(">iB")  # the length of the content, and its kind
TEXT = 1
MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroRaftOptions:
    """It has no options."""


class MicroRaft(JavaNodes):
    """Nodes with MicroRaft in the simulator."""

    name = "microraft"
    summary = "Registers on the released library MicroRaft, in virtual time."
    Options = MicroRaftOptions
    serves: ClassVar[Mapping[str, str]] = {"register": "read, write and cas are entries of the log, and queries"}
    answers: ClassVar[Sequence[str]] = ("cas-mismatch",)
    main = "example.Node"
    reads_need_leader: ClassVar[bool] = True
    one_leader_per_term: ClassVar[str | None] = "MicroRaft implements Raft, which has at most one leader in a term"

    @classmethod
    def build(cls, options: MicroRaftOptions, say: Callable[[str], object]) -> Artifact:  # noqa: ARG003
        """Builds the node and the simulator, if the cache lacks them."""
        simulator(say)
        tools = (maven("building the node"), compiler("building the node"))
        return maven_build(
            "microraft-node", VERSION, Path(__file__).parent, "package", product="target/microraft-node.jar",
            files=("pom.xml", "src/main/**/*"), tools=tools,
        ).artifact(say)  # fmt: skip

    def versions(self) -> Mapping[str, str]:
        """Returns the version of the library."""
        return {"microraft": VERSION}

    def jars(self) -> Sequence[Path]:
        """Returns the jar of the node, with all libraries."""
        return (self.artifact.path / "microraft-node.jar",)

    def node_arguments(self, node: Node, directory: str, log_directory: str) -> Sequence[str]:  # noqa: ARG002
        """Returns the arguments of `example.Node`."""
        return (node.name, str(PORT), *(f"{other.name}={other.address}:{PORT}" for other in self.nodes))

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:  # noqa: ARG002
        """Returns a client, which looks for the leader unless it is pinned."""
        return Client(self, node, (node,) if pinned else tuple(self.nodes))

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Asks the node what it believes; returns none if no readable answer comes in time."""
        connection = Connection(self)
        try:
            async with asyncio.timeout(timeout_s):
                role, term, leader, committed = await connection.ask(node, ("status",))
            return (
                NodeStatus(
                    node=node.name, role=role, term=int(term), leader=None if leader == "-" else leader,
                    committed_index=int(committed),
                ),
            )  # fmt: skip
        except (LabrysError, OSError, EOFError, ValueError):  # a TimeoutError is an OSError
            return ()
        finally:
            connection.close()

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until all nodes follow the same leader."""
        await wait_until_complete(self, nodes, timeout_s, self._missing, system_name="MicroRaft")

    async def _missing(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        statuses = {node.name: await first_status(self, node, TIMEOUT_S) for node in nodes}
        leaders = {(status.leader, status.term) for status in statuses.values() if status is not None and status.leader}
        if len(leaders) == 1 and all(status is not None and status.leader for status in statuses.values()):
            return {}, ()
        missing = {
            name: "does not answer" if status is None else f"follows {status.leader} in term {status.term}"
            for name, status in statuses.items()
        }
        return missing, [node for node in nodes if statuses[node.name] is None]


class Connection:
    """A connection to one node at a time."""

    def __init__(self, system: MicroRaft) -> None:
        self._system = system
        self._node: Node | None = None
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, node: Node, words: Sequence[str]) -> list[str]:
        """Sends a request, and returns the answer.

        Raises:
            NotSent: No connection could be opened.
            EOFError: The connection was closed before the answer.
        """
        if self._streams is None or self._node is not node:
            self.close()
            self._node, self._streams = node, await self._system.open_stream(node.address, PORT, TIMEOUT_S)
        reader, writer = self._streams
        content = " ".join(words).encode()
        writer.write(HEAD.pack(len(content), TEXT) + content)
        length, _ = HEAD.unpack(await reader.readexactly(HEAD.size))
        return (await reader.readexactly(min(length, MOST_BYTES))).decode().split(" ")

    def close(self) -> None:
        """Closes the connection, if there is one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Client:
    """A client of registers; see `harness.client.RoutedClient`."""

    def __init__(self, system: MicroRaft, node: Node, nodes: Sequence[Node]) -> None:
        self.node = node
        self.via: str | None = None
        self._nodes = nodes
        self._at = nodes.index(node)
        self._connection = Connection(system)

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out one operation at the node that was the leader last."""
        node = self._nodes[self._at]
        self.via = node.name
        lost = Fail if invocation.f == "read" else Info
        try:
            kind, *rest = await self._connection.ask(node, _words(invocation))
        except NotSent as error:
            self._next()
            return Fail(f"not-sent: {error}")
        except (OSError, EOFError) as error:
            self._connection.close()
            self._next()
            return lost(f"no-answer: {error}")
        except asyncio.CancelledError:  # the time for the operation is over
            self._connection.close()
            self._next()
            raise
        if kind == "ok":
            value = rest[0] if rest else ""
            return Ok(int(value) if value else None) if invocation.f == "read" else Ok(invocation.value)
        if kind == "mismatch":
            return Fail(f"cas-mismatch: holds {rest[0] or None}")
        self._next()
        return (Fail if kind == "fail" else Info)(f"refused: {' '.join(rest)}")

    def _next(self) -> None:
        self._at = (self._at + 1) % len(self._nodes)

    async def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


def _words(invocation: Invocation) -> Sequence[str]:
    key, value = invocation.key or ONLY_KEY, invocation.value
    match invocation.f, value:
        case "read", _:
            return ("read", key)
        case "cas", [expected, new]:
            return ("cas", key, str(expected), str(new))
        case _:
            return ("write", key, str(value))
