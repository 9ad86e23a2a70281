"""Errors of the checker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import InputError, LabrysError, sentence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Operation


class ModelError(InputError):
    """An operation, an initial state or an option does not fit the model."""


class KernelError(LabrysError):
    """The native part of the checker failed; the history has no verdict."""


class CheckFailed(LabrysError):  # noqa: N818 - says what happened to the check
    """Something that nobody foresaw went wrong while one history was read or decided; it has no verdict."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"the check failed: {type(error).__name__}: {sentence(error)}")


class CertificateError(LabrysError):
    """An order that was given for a linearization is none: the checker contradicts itself."""


class Disagreement(LabrysError):  # noqa: N818 - it names what happened
    """Two algorithms do not agree about one history, so at least one of them is wrong.

    Attributes:
        operations: The history, for a report of the bug.
        conventions: How it was judged; empty if that is not known.
    """

    def __init__(self, message: str, operations: Sequence[Operation]) -> None:
        super().__init__(
            f"{message}. This is a bug of the checker: please report it with the history ({len(operations)} operations)."
        )
        self.operations = tuple(operations)
        self.conventions: Mapping[str, str] = {}
