"""A small server in C, Go, Java or Python that loses data with a planted bug; see durable.c."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from clusters.systems.maelstrom.workloads.ids import UniqueIdsWorkload
from examples.own_binary import system as own
from examples.own_binary.system import CC, GO, JAVAC, PORT, until_accepts
from harness.builds import Build
from harness.daemon import Daemon
from harness.declare import Needs, option
from harness.op import Ok
from harness.promise import Promise
from harness.system import OneServiceSystem
from harness.traits import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.node import Node
    from harness.op import Invocation, Outcome

DATA_DIR = "/var/lib/labrys/durable"
LOG = "/var/log/labrys/durable/durable.log"
VOTES = UniqueIdsWorkload.name
PYTHON = "/usr/bin/python3"


class Language(enum.StrEnum):
    """The language of the server."""

    C = "c"
    GO = "go"
    JAVA = "java"
    PYTHON = "python"


class Bug(enum.StrEnum):
    """A bug that the server has on purpose."""

    NONE = "none"
    ACKNOWLEDGED_BEFORE_SYNC = "acknowledged-before-sync"
    TORN_TAIL = "torn-tail"
    LOST_RENAME = "lost-rename"
    VOTE_BEFORE_STORE = "vote-before-store"


COMPILERS: Mapping[Language, tuple[Sequence[str], str, str, Program]] = {
    Language.C: (("cc", "-O1", "-pthread", "-o", "durable", "durable.c"), "durable.c", "durable", CC),
    Language.GO: (("go", "build", "-o", "durable", "durable.go"), "durable.go", "durable", GO),
    Language.JAVA: (("javac", "-d", "classes", "Durable.java"), "Durable.java", "classes", JAVAC),
    Language.PYTHON: (
        (PYTHON, "-m", "py_compile", "durable.py"), "durable.py", "durable.py",
        Program(name=PYTHON, package="python3", purpose="carrying out durable.py", version_arguments=("--version",)),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableOptions:
    """The options of the server."""

    language: Language = option(Language.C, "The language of the server.")
    bug: Bug = option(
        Bug.NONE,
        "The planted bug.",
        needs={bug: Needs(faults=("power-loss",)) for bug in Bug if bug is not Bug.NONE},
    )


class Durable(OneServiceSystem):
    """The server on one node."""

    name = "durable"
    summary = "A small server with a log of registers and a stored term."
    Options = DurableOptions
    role = "durable"
    serves: ClassVar[Mapping[str, str]] = {
        "register": "read, write and cas are lines",
        VOTES: "generate is the line vote",
    }
    answers = ("cas-mismatch",)

    @classmethod
    def promises(cls, options: DurableOptions) -> Mapping[str, Promise]:
        """Returns what the server promises."""
        source = "tests/catches/durable/durable.c"
        return {
            "register": Promise(sentence="Operations are linearizable, also after a loss of power.", source=source),
            VOTES: Promise(sentence="No term has two votes, also after a loss of power.", source=source),
        }

    @classmethod
    def build(cls, options: DurableOptions, say: Callable[[str], object]) -> Artifact:
        """Builds the program, if the cache lacks it."""
        command, source, product, tool = COMPILERS[options.language]
        return Build(
            name=f"durable-{options.language}", version="1", sources=Path(__file__).parent, files=(source,), command=command,
            product=product, tools=(tool,),
        ).artifact(say)  # fmt: skip

    def install(self, node: Node) -> None:
        """Copies the program to the node."""
        self.artifact.install(self.cluster.remote(node))

    def daemon(self, node: Node) -> Daemon:
        """Returns the process of the node."""
        there = self.artifact.there
        program = {
            Language.JAVA: ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", there, "Durable"],
            Language.PYTHON: [PYTHON, f"{there}/durable.py"],
        }.get(self.options.language, [f"{there}/durable"])
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

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Returns the client of a process."""
        return Client(node)


class Client(own.Client):
    """One connection; a vote answers its term."""

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out one operation."""
        return await super().invoke(invocation._replace(f="vote") if invocation.f == "generate" else invocation)

    def outcome(self, invocation: Invocation, answer: str) -> Outcome:
        """Returns what an answer says."""
        if invocation.f == "vote" and answer.startswith("ok "):
            return Ok(int(answer.removeprefix("ok ")))
        return super().outcome(invocation, answer)
