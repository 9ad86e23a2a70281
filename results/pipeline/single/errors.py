"""Why the job is not done in one process."""

from __future__ import annotations

from harness.errors import InputError


class NotSuited(InputError):  # noqa: N818 - says what is the case
    """Only Spark can do this job; the message says why."""
