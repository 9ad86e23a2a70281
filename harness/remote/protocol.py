"""The interface of a remote shell.

Each command has a deadline, which also ends the remote process. Commands run as root, through sudo if the login is not root. An
error names the node, the command, its status and its stderr. A lost connection is `NodeUnreachable` and never a failed command,
because the effect of the command is then unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a command.

    Attributes:
        node: The name of the node.
        command: The command line.
        status: Its exit status; 128 + N if signal N ended it.
        stdout: Its standard output, decoded as UTF-8 with replacement.
        stderr: Its standard error, likewise.
    """

    node: str
    command: str
    status: int
    stdout: str
    stderr: str


class Channel(Protocol):
    """A connection to a TCP port of a node. Not for several threads."""

    def sendall(self, data: bytes, /) -> None:
        """Sends all bytes. Raises OSError, e.g. TimeoutError."""

    def recv(self, size: int, /) -> bytes:
        """Returns some bytes; none at the end. Raises TimeoutError."""

    def settimeout(self, timeout_s: float, /) -> None:
        """Sets the time limit of both."""

    def close(self) -> None:
        """Ends the connection."""


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
            timeout_s: The time after which the remote process group is killed.
            check: Whether a status other than 0 raises.
            stdin: The text of standard input; None for an empty input.

        Raises:
            CommandFailed: `check` is set and the status is not 0.
            CommandTimeout: The deadline passed.
            NodeUnreachable: The connection is lost or cannot be made.
            NodeError: Its output is too large, or a process that it started holds its output open.
        """
        ...

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copies a local file to the absolute path `remote`, and replaces that in one step (temporary file and rename)."""
        ...

    def write(self, remote: str, content: str, *, mode: int = 0o644) -> None:
        """Writes a text file on the node, and replaces it in one step."""
        ...

    def get(self, remote: str, local: Path) -> None:
        """Copies a file of the node to the local path; of a growing file, at least the content at the beginning.

        Raises:
            FileNotFoundError: The node has no such file.
            InfrastructureError: The local file cannot be written.
        """
        ...

    def dial(self, port: int) -> Channel:
        """Connects to a TCP port of the node's loopback interface, through the SSH connection.

        Raises:
            NodeError: Nothing listens there, or sshd forwards no connection.
            NodeUnreachable: The SSH connection is lost or cannot be made.
        """
        ...

    def close(self) -> None:
        """Closes the connection. A later call opens it again."""
        ...
