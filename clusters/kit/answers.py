"""What a client knows of a request without a usable answer, for all systems."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.errors import LabrysError
from harness.op import Fail, Info

if TYPE_CHECKING:
    from harness.op import Value

UNSUPPORTED: Final = "unsupported"
PAUSE_S: Final = 0.1  # after a request that could not be sent, or was refused


class NotSent(LabrysError):  # noqa: N818 - as it reads in `except`
    """The node did not accept a connection, so it did not get the request."""


class NoAnswer(LabrysError):  # noqa: N818
    """The request may have arrived, and no usable answer came."""


class Refused(LabrysError):  # noqa: N818
    """The system answered with an error.

    Attributes:
        code: What names the kind of the error, as the table of outcomes of the system has it.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class RefusedByCode(LabrysError):  # noqa: N818
    """The system answered with an error that is a number.

    Attributes:
        code: The number.
    """

    def __init__(self, code: int) -> None:
        super().__init__(f"error {code}")
        self.code = code


class NotDone(LabrysError):  # noqa: N818 - as it reads in `except`
    """The operation certainly has no effect.

    Attributes:
        code: The code of the error in the history, e.g. `conflict`.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class InDoubt(NotDone):
    """A part of the operation may have an effect, so it counts as a change whatever it is."""


def worded(code: str, text: str) -> str:
    """Returns the error of an operation as a history has it: a code, and what the system said of it."""
    return f"{code}: {text}" if text else code


def no_answer(error: str, *, is_read: bool) -> Fail | Info:
    """Returns the outcome of an operation without a usable answer: `Fail` for a read, which has no effect, else `Info`."""
    return Fail(error) if is_read else Info(error)


def unsupported(f: str, value: Value) -> Fail:
    """Returns the outcome of an operation that the client does not have."""
    return Fail(f"{UNSUPPORTED}: {f} of {str(value)[:100]}")
