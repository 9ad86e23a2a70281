"""The outcome of an operation by the error that a node answers. Every verdict depends on this table.

Source: the table of errors in Maelstrom's doc/protocol.md. A definite error says that the operation did not happen and never
will. All others are indeterminate: those above 999, which belong to the program, and an error without an integer as its code.
A read has no effect, so it fails in any case.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import no_answer
from clusters.systems.maelstrom.vocabulary import is_code
from harness.console.plain import one_line
from harness.op import Fail, Info

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value

NO_SUCH_KEY: Final = 20
PRECONDITION_FAILED: Final = 22
MAX_TEXT: Final = 200

# The code, and whether it says that the operation did not happen.
CODES: Final[Mapping[int, tuple[str, bool]]] = MappingProxyType(
    {
        0: ("timeout", False),
        1: ("node-not-found", True),
        10: ("not-supported", True),
        11: ("temporarily-unavailable", True),
        12: ("malformed-request", True),
        13: ("crash", False),
        14: ("abort", True),
        NO_SUCH_KEY: ("key-does-not-exist", True),
        21: ("key-already-exists", True),
        PRECONDITION_FAILED: ("precondition-failed", True),
        30: ("txn-conflict", True),
    }
)
# The codes of answers of a working system.
ANSWERS: Final = ("precondition-failed", "key-does-not-exist", "key-already-exists", "txn-conflict", "abort")


def of_error(body: Mapping[str, Value], *, is_read: bool) -> Fail | Info:
    """Returns the outcome of an operation that a node answered with an error."""
    code, text = body.get("code"), one_line(str(body.get("text", "")))[:MAX_TEXT]
    known = CODES.get(code) if is_code(code) else None
    name, definite = known or (f"error-{code}" if is_code(code) else "error-without-code", False)
    error = f"{name}: {text}" if text else name
    return Fail(error) if definite else no_answer(error, is_read=is_read)
