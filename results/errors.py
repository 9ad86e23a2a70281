"""The errors of stored runs and of the files made from them."""

from __future__ import annotations

from harness.errors import InputError, LabrysError


class StoreError(LabrysError):
    """A run cannot be written or read where it should be; what was recorded before is kept."""


class NoSuchRun(InputError):  # noqa: N818 - says what is the case
    """The name or path that was given leads to no run."""


class BadRecord(InputError):  # noqa: N818 - says what is the case
    """A file of a run is not what this version writes, so a report would be made of guesses."""
