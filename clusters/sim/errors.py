"""What a client of a simulated system meets where there is no answer."""

from __future__ import annotations

from harness.errors import LabrysError


class Refused(LabrysError):  # noqa: N818 - a state of the node, and named so in histories
    """Nobody took the request: no process listens there. It had no effect, and will have none."""


class Broken(LabrysError):  # noqa: N818 - likewise
    """The process died while it had the request, so nobody knows whether it had an effect."""
