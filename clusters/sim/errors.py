"""Errors that a client of a simulated system meets instead of an answer."""

from __future__ import annotations

from harness.errors import LabrysError


class Refused(LabrysError):  # noqa: N818 - a state of the node, and named so in histories
    """No process listens on the node. The request had no effect, and will have none."""


class Broken(LabrysError):  # noqa: N818 - likewise
    """The process died before it answered. It is unknown whether the request had an effect."""
