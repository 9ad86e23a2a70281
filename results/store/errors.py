"""The errors of stored runs and of the files made from them."""

from __future__ import annotations

from harness.errors import InputError, LabrysError


class StoreError(LabrysError):
    """A run cannot be written to or read from its place; earlier data is kept."""


class NoSuchRun(InputError):  # noqa: N818 - the name states the problem
    """A name or a path leads to no run."""


class BadRecord(InputError):  # noqa: N818 - the name states the problem
    """A file of a run has a form that this version does not write, so a report would be a guess."""
