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


class CheckFailed(LabrysError):  # noqa: N818 - the name states the problem
    """An unexpected error while one history was read or decided; the history has no verdict."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"the check failed: {type(error).__name__}: {sentence(error)}")


class CertificateError(LabrysError):
    """The order of a valid history is not a linearization: the checker contradicts itself."""


class Disagreement(LabrysError):  # noqa: N818 - the name states the problem
    """Two algorithms disagree about one history, so at least one of them is wrong.

    Attributes:
        operations: The history, for a bug report.
        conventions: The conventions of the check; empty if they are unknown.
    """

    def __init__(self, message: str, operations: Sequence[Operation]) -> None:
        super().__init__(
            f"{message}. This is a bug of the checker: please report it with the history ({len(operations)} operations)."
        )
        self.operations = tuple(operations)
        self.conventions: Mapping[str, str] = {}


class Unsuited(Exception):  # noqa: N818 - not an error: the caller uses objects
    """Arrays cannot represent these operations."""
