"""The outcome of a write by the error of a Nacos node. Every verdict depends on this table.

A node answers an error with a text. A write is `fail` only with a text that Nacos gives before the leader changes its own
state. The leader changes it first and asks the followers later, so `data publish failed` says nothing: the value is
there, and may stay. A node that is not the leader passes a write on, and puts words before the error of the leader.

Source: Nacos 0.8.0, `ApiCommands.addIP4Dom` and `onAddIP4Dom`.
"""

from __future__ import annotations

from typing import Final

NO_SERVICE: Final = "no-service"
ABSENT: Final = "dom doesn't exist: "

# The beginning of an error to the code in the history.
WRITE_NEVER_HAPPENED: Final = {
    ABSENT: NO_SERVICE,
    "no leader now.": "no-leader",
    "Adding IP for dom is forbidden now.": "forbidden",
}
PASSED_ON: Final = "failed to add ip for dom, caused "
EXCEPTIONS: Final = (
    "java.lang.IllegalStateException: ",
    "java.lang.IllegalArgumentException: ",
    "java.security.AccessControlException: ",
)
OTHER: Final = ""


def code_of(text: str) -> str:
    """Returns the beginning by which the table knows an error; empty if it does not know it.

    Args:
        text: The error as the node sent it.
    """
    for prefix in (PASSED_ON, *EXCEPTIONS):
        text = text.removeprefix(prefix)
    return next((known for known in WRITE_NEVER_HAPPENED if text.startswith(known)), OTHER)
