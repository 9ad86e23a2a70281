"""What a client knows of a request without a usable answer, for all systems."""

from __future__ import annotations

from harness.errors import LabrysError
from harness.op import Fail, Info


class NotSent(LabrysError):  # noqa: N818 - as it reads in `except`
    """The node did not accept a connection, so it did not get the request."""


class NoAnswer(LabrysError):  # noqa: N818
    """The request may have arrived, and no usable answer came."""


def no_answer(error: str, *, is_read: bool) -> Fail | Info:
    """Returns the outcome of an operation without a usable answer: `Fail` for a read, which has no effect, else `Info`."""
    return Fail(error) if is_read else Info(error)
