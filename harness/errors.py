"""The errors that Labrys raises on purpose, and their exit codes.

An error is a sentence for the user: what was expected, what came, where, and what to do next. Each room derives its own errors
from these classes, so that the command line can map each error to an exit code.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class ExitCode(enum.IntEnum):
    """Exit codes of the `labrys` command; the first five are Jepsen's.

    Attributes:
        meaning: When a command ends with it, for the documentation.
    """

    meaning: str

    VALID = 0, "valid, or the command succeeded, and all output was written"
    INVALID = 1, "a verdict is invalid, or a run crossed a threshold and its control node kept up"
    UNKNOWN = (
        2,
        "a verdict is unknown, or a threshold is crossed and the control node was behind; and nothing ends with 1",
    )
    BAD_ARGUMENTS = 254, "bad arguments or bad input"
    INTERNAL = 255, "an error of the tool or of the machines, or lost output"
    INTERRUPTED = 130, "Ctrl-C, SIGTERM or SIGHUP"

    def __new__(cls, value: int, meaning: str) -> Self:
        """Makes a code with its meaning."""
        made = int.__new__(cls, value)
        made._value_ = value
        made.meaning = meaning
        return made


# An interruption comes first, because then not everything ran.
_WORST_FIRST: Final = (
    ExitCode.INTERRUPTED, ExitCode.INVALID, ExitCode.INTERNAL, ExitCode.BAD_ARGUMENTS, ExitCode.UNKNOWN, ExitCode.VALID
)  # fmt: skip


def worst_code(codes: Iterable[ExitCode]) -> ExitCode:
    """Returns the worst exit code (docs/decisions/0007); that of an unknown verdict if there is none."""
    return min(codes, key=_WORST_FIRST.index, default=ExitCode.UNKNOWN)


def headline(error: str) -> str:
    """Returns the first line of an error, without the lines below it, e.g. of a log."""
    return error.partition("\n")[0]


def sentence(error: BaseException) -> str:
    """Returns the text of an error; the name of its class if it has no text."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - e.g. an integer with too many digits
        return type(error).__name__


def described(error: BaseException) -> str:
    """Returns the text of an error; with the name of its class if Labrys did not raise it on purpose."""
    return sentence(error) if isinstance(error, LabrysError) else f"{type(error).__name__}: {sentence(error)}"


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came. It counts as Ctrl-C, but the processes that this one started may not have got it."""


class LabrysError(Exception):
    """Base of all errors that Labrys raises on purpose; its message is shown unchanged.

    Another process can pass it on, whatever the arguments of its class are.
    """

    exit_code = ExitCode.INTERNAL

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns how pickle makes the error again."""
        return _again, (type(self), self.args), vars(self)


def _again(kind: type[LabrysError], words: tuple[Any, ...]) -> LabrysError:
    return kind.__new__(kind, *words)


class InputError(LabrysError):
    """An input of the user or of a foreign file is not valid; nothing was changed."""

    exit_code = ExitCode.BAD_ARGUMENTS


class InfrastructureError(LabrysError):
    """The machines, the network or a tool failed."""


class PluginError(LabrysError):
    """The code of a plug-in failed, such as that of a system of the user; the message names its place."""


class NotServing(InfrastructureError):  # noqa: N818 - a state of the nodes
    """Some nodes do not serve.

    Attributes:
        lacking: For each such node, the reason as a clause about the node, e.g. `knows no leader`.
    """

    def __init__(self, message: str, lacking: Mapping[str, str]) -> None:
        super().__init__(message)
        self.lacking = dict(lacking)


class InterruptedEarly(InfrastructureError):  # noqa: N818 - a state of the run
    """A person ended a run before its workload began, so there is no history to judge."""

    exit_code = ExitCode.INTERRUPTED


class NodeError(InfrastructureError):
    """Something failed on one node.

    Attributes:
        node: The node's name.
    """

    def __init__(self, node: str, message: str) -> None:
        super().__init__(f"{node}: {message}")
        self.node = node


class NodeUnreachable(NodeError):  # noqa: N818 - a state of the node
    """The connection to a node is lost or cannot be made, so the effect of a command there is unknown."""


class CommandFailed(NodeError):  # noqa: N818 - a state of the command
    """A command on a node ended with a status that its caller does not allow.

    Attributes:
        command: The command line.
        status: Its exit status.
        stderr: The end of its standard error.
    """

    def __init__(self, node: str, command: str, status: int, stderr: str) -> None:
        super().__init__(node, f"`{command}` ended with status {status}: {stderr.strip() or '(nothing on stderr)'}")
        self.command = command
        self.status = status
        self.stderr = stderr


class CommandTimeout(NodeError):  # noqa: N818 - a state of the command
    """A command on a node still ran at its deadline, and was ended.

    Attributes:
        command: The command line.
        timeout_s: The deadline in seconds.
    """

    def __init__(self, node: str, command: str, timeout_s: float) -> None:
        super().__init__(node, f"`{command}` was still running after {timeout_s:g} s and was ended")
        self.command = command
        self.timeout_s = timeout_s
