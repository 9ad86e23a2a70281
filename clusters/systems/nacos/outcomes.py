"""The outcome of a write by the error of a Nacos node. Every verdict depends on this table.

A node answers an error with a text. A write is `fail` only with a text that Nacos gives before the leader changes its own
state. The leader changes it first and asks the followers later, so `data publish failed` says nothing: the value is
there, and may stay. A node that is not the leader passes a write on, and puts words before the error of the leader.

Source: Nacos 0.8.0, `ApiCommands.addIP4Dom` and `onAddIP4Dom`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.kit.answers import refused_with

if TYPE_CHECKING:
    from harness.op import Fail, Info

NO_SERVICE: Final = "no-service"

# The beginning of an error to the code in the history.
WRITE_NEVER_HAPPENED: Final = {
    "dom doesn't exist: ": NO_SERVICE,
    "no leader now.": "no-leader",
    "Adding IP for dom is forbidden now.": "forbidden",
}
PASSED_ON: Final = "failed to add ip for dom, caused "
EXCEPTIONS: Final = (
    "java.lang.IllegalStateException: ",
    "java.lang.IllegalArgumentException: ",
    "java.security.AccessControlException: ",
)
MAX_MESSAGE: Final = 200


def code_of(text: str) -> str | None:
    """Returns the code of an error after which the write never happens; None for all other errors.

    Args:
        text: The error as the node sent it.
    """
    for prefix in (PASSED_ON, *EXCEPTIONS):
        text = text.removeprefix(prefix)
    return next((code for known, code in WRITE_NEVER_HAPPENED.items() if text.startswith(known)), None)


def refused(text: str, *, is_read: bool) -> Fail | Info:
    """Returns the outcome of an operation that a node answered with an error.

    Args:
        text: The error as the node sent it.
        is_read: Whether the operation is a read, which never has an effect.
    """
    return refused_with(code_of(text), text[:MAX_MESSAGE], is_read=is_read)
