"""A small key-value server in C, Go or Java as a system under test; see docs/guide/own-binary-by-seed.md.

Run it with `labrys test --cluster sim --nodes 1 --system examples/own_binary/system.py:OwnBinary`.
"""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from harness.builds import Build
from harness.daemon import Daemon
from harness.declare import Needs, option
from harness.errors import InfrastructureError
from harness.op import ONLY_KEY, Fail, Info, Ok
from harness.promise import Promise
from harness.system import OneServiceSystem
from harness.traits import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.node import Node
    from harness.op import Invocation, Outcome

PORT = 7000
DATA_DIR = "/var/lib/labrys/kv"
LOG = "/var/log/labrys/kv/kv.log"
CONNECT_S = 1.0
POLL_S = 0.1


class Language(enum.StrEnum):
    """The language of the server."""

    C = "c"
    GO = "go"
    JAVA = "java"


class Bug(enum.StrEnum):
    """A bug that the server has on purpose."""

    NONE = "none"
    NO_SYNC = "no-sync"
    ANSWER_BEFORE_SYNC = "answer-before-sync"
    CAS_IN_TWO_STEPS = "cas-in-two-steps"


CC = Program(name="cc", package="gcc", purpose="building kv.c", version_arguments=("--version",), build_only=True)
GO = Program(name="go", package="golang-go", purpose="building kv.go", version_arguments=("version",), build_only=True)
JAVAC = Program(
    name="javac", package="openjdk-17-jdk-headless", purpose="building Kv.java", version_arguments=("--version",), build_only=True
)
BUILDS: Mapping[Language, Build] = {
    language: Build(
        name=f"kv-{language}", version="1", sources=Path(__file__).parent, files=(source,), command=command,
        product=product, tools=(tool,),
    )
    for language, source, command, product, tool in (
        (Language.C, "kv.c", ("cc", "-O1", "-pthread", "-o", "kv", "kv.c"), "kv", CC),
        (Language.GO, "kv.go", ("go", "build", "-o", "kv", "kv.go"), "kv", GO),
        (Language.JAVA, "Kv.java", ("javac", "-d", "classes", "Kv.java"), "classes", JAVAC),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBinaryOptions:
    """The options of the server."""

    language: Language = option(Language.C, "The language of the server.")
    program: Path | None = option(None, "A server that is built already; then nothing is built.")
    bug: Bug = option(
        Bug.NONE,
        "The planted bug.",
        needs={bug: Needs(faults=("power-loss",)) for bug in (Bug.NO_SYNC, Bug.ANSWER_BEFORE_SYNC)},
    )


class OwnBinary(OneServiceSystem):
    """The server on one node."""

    name = "own-binary"
    summary = "A small key-value server in C, Go or Java."
    Options = OwnBinaryOptions
    role = "kv"
    serves: ClassVar[Mapping[str, str]] = {"register": "read, write and cas are lines"}
    answers = ("cas-mismatch",)

    @classmethod
    def build(cls, options: OwnBinaryOptions, say: Callable[[str], object]) -> Artifact:
        """Builds the program, if the cache lacks it; one that is there is only copied into it."""
        made = options.program
        if made is None:
            return BUILDS[options.language].artifact(say)
        return Build(
            name="kv-own", version="1", sources=made.parent, files=(made.name,), command=("true",), product=made.name
        ).artifact(say)

    @classmethod
    def promises(cls, options: OwnBinaryOptions) -> Mapping[str, Promise]:  # noqa: ARG003
        """Returns what the server promises."""
        sentence = "Operations are linearizable, and an acknowledged write survives a loss of power."
        return {"register": Promise(sentence=sentence, source="docs/guide/own-binary-by-seed.md")}

    def install(self, node: Node) -> None:
        """Copies the program to the node."""
        self.artifact.install(self.cluster.remote(node))

    def daemon(self, node: Node) -> Daemon:  # noqa: ARG002
        """Returns the process of the node."""
        there, made = self.artifact.there, self.options.program
        is_java = made is None and self.options.language is Language.JAVA
        name = "kv" if made is None else made.name
        program = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", there, "Kv"] if is_java else [f"{there}/{name}"]
        return Daemon(
            role=self.role,
            argv=[*program, str(PORT), DATA_DIR, str(self.options.bug)],
            pattern=rf"^{' '.join(program)} {PORT}",
            ports=[PORT],
            data_dir=DATA_DIR,
            log_files=[LOG],
        )

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until each node accepts a connection."""
        for node in nodes:
            await until_accepts(node, timeout_s)

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:  # noqa: ARG002
        """Returns the client of a process."""
        return Client(node)


class Client:
    """One connection, which is opened when it is needed; see `harness.client.Client`."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out one operation."""
        lost = Fail if invocation.f == "read" else Info
        try:
            if self._streams is None:
                async with asyncio.timeout(CONNECT_S):
                    self._streams = await asyncio.open_connection(self.node.address, PORT)
        except OSError as error:  # nothing was sent; a TimeoutError is an OSError
            return Fail(f"not-connected: {error}")
        reader, writer = self._streams
        try:
            writer.write(f"{' '.join(words(invocation))}\n".encode())
            answer = (await reader.readline()).decode()
        except (OSError, ValueError) as error:
            await self.close()
            return lost(f"no-answer: {error}")
        except asyncio.CancelledError:  # the time for the operation is over
            await self.close()
            raise
        if not answer.endswith("\n"):
            await self.close()
            return lost("no-answer: the connection was closed")
        return self.outcome(invocation, answer.strip())

    def outcome(self, invocation: Invocation, answer: str) -> Outcome:
        """Returns what an answer says."""
        kind, _, value = answer.partition(" ")
        if kind == "ok":
            return Ok(None if value == "-" else int(value)) if invocation.f == "read" else Ok(invocation.value)
        return Fail(f"cas-mismatch: holds {value}") if kind == "no" else Info(f"unknown-answer: {answer}")

    async def close(self) -> None:
        """Closes the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def words(invocation: Invocation) -> list[str]:
    """Returns the words of a request."""
    values = invocation.value if invocation.f == "cas" else [] if invocation.value is None else [invocation.value]
    return [invocation.f, invocation.key or ONLY_KEY, *map(str, values)]


async def until_accepts(node: Node, timeout_s: float) -> None:
    """Waits until a node accepts a connection."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    while not await accepts(node):
        if loop.time() > deadline_s:
            raise InfrastructureError(f"{node.name} did not accept a connection on port {PORT} in {timeout_s:g} s")
        await asyncio.sleep(POLL_S)


async def accepts(node: Node) -> bool:
    """Returns whether a node accepts a connection."""
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(node.address, PORT)
    except OSError:
        return False
    writer.close()
    return True
