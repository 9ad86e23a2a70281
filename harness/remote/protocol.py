"""The contract of a remote shell.

Every command has a deadline, and at the deadline the remote process is ended too, not only the wait for it. Commands run
as root (through sudo where the login is not root). Every error names the node, the command, its status and its stderr. A
lost connection is `NodeUnreachable`, never a failed command: what the command did is then unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a command left.

    Attributes:
        node: Where it ran.
        command: The command line as given.
        status: Its exit status; 128 + N if signal N ended it.
        stdout: What it wrote, decoded as UTF-8 with replacement.
        stderr: Likewise.
    """

    node: str
    command: str
    status: int
    stdout: str
    stderr: str


class Remote(Protocol):
    """A shell on one node. Safe to use from several threads at once.

    Attributes:
        node: The node's name.
    """

    node: str

    def run(
        self, command: str, *, timeout_s: float = DEFAULT_TIMEOUT_S, check: bool = True, stdin: str | None = None
    ) -> Result:
        """Runs a command line in the node's POSIX shell, as root.

        A process that must outlive the command needs its own session (`setsid`), and redirected output.

        Args:
            command: A shell command line; quote arguments with `shlex.quote`.
            timeout_s: After this the remote process group is killed.
            check: Whether a status other than 0 raises.
            stdin: Text for standard input; none means an empty input.

        Raises:
            CommandFailed: `check` is set and the status is not 0.
            CommandTimeout: The deadline passed.
            NodeUnreachable: The connection is lost or cannot be made.
            NodeError: Its output is more than can be kept, or held open by a process that it started.
        """
        ...

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copies a local file to the absolute path `remote`, replacing it in one step (temporary file and rename)."""
        ...

    def write(self, remote: str, content: str, *, mode: int = 0o644) -> None:
        """Writes a text file on the node, replacing it in one step."""
        ...

    def get(self, remote: str, local: Path) -> None:
        """Copies a file of the node to the local path; of a file that grows, at least what it had at the beginning.

        Raises:
            FileNotFoundError: The node has no such file.
            InfrastructureError: The local file cannot be written.
        """
        ...

    def close(self) -> None:
        """Closes the connection. A later call opens it again."""
        ...
