"""The error of a job that one process cannot do."""

from __future__ import annotations

from harness.errors import InputError


class NotSuited(InputError):  # noqa: N818 - the name states the problem
    """Only Spark can do this job; the message has the reason."""
