"""What can go wrong with the Spark job, as sentences for the person who started it."""

from __future__ import annotations

from harness.errors import InfrastructureError, InputError


class NoSpark(InfrastructureError):  # noqa: N818 - says what is the case
    """Spark, or something that it needs, is not installed or does not start."""


class JobFailed(InfrastructureError):  # noqa: N818 - says what is the case
    """Spark gave up; the message has its own first words."""


class BadInput(InputError):  # noqa: N818 - says what is the case
    """A path holds nothing that the job can read, or something that it must not guess about."""


class BadOutput(InputError):  # noqa: N818 - says what is the case
    """The output folder holds something else, or something of a version that this one does not know."""


class RowsRefused(InputError):  # noqa: N818 - says what is the case
    """Rows went to quarantine, and the user asked for none of that (`--strict`)."""
