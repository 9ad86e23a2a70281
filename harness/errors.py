"""Every error that Labrys raises on purpose, and the exit code it ends with.

An error is a sentence for the person who has to act: what was expected, what came, where, and what to do next. Each room
derives its own errors from the classes here, so that the command line can map any of them to one exit code.
"""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """Exit codes of the `labrys` command; the first five are Jepsen's."""

    VALID = 0
    INVALID = 1
    UNKNOWN = 2
    BAD_ARGUMENTS = 254
    INTERNAL = 255
    INTERRUPTED = 130


def headline(error: str) -> str:
    """Returns the sentence of an error without what stands below it, such as the lines of a log."""
    return error.partition("\n")[0]


def sentence(error: BaseException) -> str:
    """Returns what an error says; its kind, if it cannot say anything."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - e.g. of an integer with too many digits
        return type(error).__name__


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came: the same as Ctrl-C, but perhaps to this process alone, and not to those that it started."""


class LabrysError(Exception):
    """Base of all errors that Labrys raises on purpose; the message is meant to be shown as it is."""

    exit_code = ExitCode.INTERNAL


class InputError(LabrysError):
    """What the user or a foreign file gave cannot be used; nothing was changed."""

    exit_code = ExitCode.BAD_ARGUMENTS


class InfrastructureError(LabrysError):
    """The machines, the network or the tools below Labrys do not do what a run needs."""


class InterruptedEarly(InfrastructureError):  # noqa: N818 - says what happened to the run
    """A person ended a run before its workload began, so there is nothing to judge."""


class NodeError(InfrastructureError):
    """Something failed on one node.

    Attributes:
        node: The node's name.
    """

    def __init__(self, node: str, message: str) -> None:
        super().__init__(f"{node}: {message}")
        self.node = node


class NodeUnreachable(NodeError):  # noqa: N818 - a state of the node, and named so in logs
    """The connection to a node is lost or cannot be made, so what a command did there is not known."""


class CommandFailed(NodeError):  # noqa: N818 - says what happened to the command
    """A command ran on a node and ended with a status that its caller did not allow.

    Attributes:
        command: The command line as it was sent.
        status: Its exit status.
        stderr: The end of what it wrote to standard error.
    """

    def __init__(self, node: str, command: str, status: int, stderr: str) -> None:
        super().__init__(node, f"`{command}` ended with status {status}: {stderr.strip() or '(nothing on stderr)'}")
        self.command = command
        self.status = status
        self.stderr = stderr


class CommandTimeout(NodeError):  # noqa: N818 - says what happened to the command
    """A command on a node was still running at its deadline and was ended there.

    Attributes:
        command: The command line as it was sent.
        timeout_s: The deadline in seconds.
    """

    def __init__(self, node: str, command: str, timeout_s: float) -> None:
        super().__init__(node, f"`{command}` was still running after {timeout_s:g} s and was ended")
        self.command = command
        self.timeout_s = timeout_s
