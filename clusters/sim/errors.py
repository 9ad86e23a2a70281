"""Errors of simulated systems: those that a client meets instead of an answer, and one that ends the run."""

from __future__ import annotations

from harness.errors import LabrysError


class Refused(LabrysError):  # noqa: N818 - a state of the node, and named so in histories
    """No process listens on the node. The request had no effect, and will have none."""


class Broken(LabrysError):  # noqa: N818 - likewise
    """The process died before it answered. It is unknown whether the request had an effect."""


class TooManyEvents(LabrysError):  # noqa: N818 - named like the others
    """The messages or timers of the simulated system multiply without end."""
