"""A small key-value server in C whose registers are in a mapped file; see `examples/own_binary/system.py`."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from examples.own_binary.system import CC, PORT, Client, until_accepts
from harness.builds import Build
from harness.daemon import Daemon
from harness.declare import Needs, option
from harness.promise import Promise
from harness.system import OneServiceSystem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.node import Node

DATA_DIR = "/var/lib/labrys/mapped"
LOG = "/var/log/labrys/mapped/mapped.log"


class Bug(enum.StrEnum):
    """A bug that the server has on purpose."""

    NONE = "none"
    NO_MSYNC = "no-msync"
    ANSWER_BEFORE_MSYNC = "answer-before-msync"
    ASYNCHRONOUS_MSYNC = "asynchronous-msync"
    SYNC_FILE_RANGE = "sync-file-range"
    MSYNC_AGAIN = "msync-again"
    UNREADABLE_IS_NEW = "unreadable-is-new"


NEEDED: Mapping[Bug, Sequence[str]] = {
    Bug.MSYNC_AGAIN: ("disk-error", "power-loss"),
    Bug.UNREADABLE_IS_NEW: ("disk-error",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedOptions:
    """The options of the server."""

    bug: Bug = option(
        Bug.NONE,
        "The planted bug.",
        needs={bug: Needs(faults=NEEDED.get(bug, ("power-loss",))) for bug in Bug if bug is not Bug.NONE},
    )


class Mapped(OneServiceSystem):
    """The server on one node."""

    name = "mapped"
    summary = "A small key-value server in C with a mapped file."
    Options = MappedOptions
    role = "mapped"
    serves: ClassVar[Mapping[str, str]] = {"register": "read, write and cas are lines"}
    answers = ("cas-mismatch",)

    @classmethod
    def promises(cls, options: MappedOptions) -> Mapping[str, Promise]:
        """Returns what the server promises."""
        sentence = "Operations are linearizable, and an acknowledged write survives a loss of power."
        return {"register": Promise(sentence=sentence, source="tests/catches/mapped/mapped.c")}

    @classmethod
    def build(cls, options: MappedOptions, say: Callable[[str], object]) -> Artifact:
        """Builds the program, if the cache lacks it."""
        return Build(
            name="mapped",
            version="1",
            sources=Path(__file__).parent,
            files=("mapped.c",),
            command=("cc", "-O1", "-pthread", "-o", "mapped", "mapped.c"),
            product="mapped",
            tools=(CC,),
        ).artifact(say)

    def install(self, node: Node) -> None:
        """Copies the program to the node."""
        self.artifact.install(self.cluster.remote(node))

    def daemon(self, node: Node) -> Daemon:
        """Returns the process of the node."""
        program = f"{self.artifact.there}/mapped"
        return Daemon(
            role=self.role,
            argv=[program, str(PORT), DATA_DIR, str(self.options.bug)],
            pattern=rf"^{program} {PORT}",
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
