"""The services that the harness offers the nodes: `timer`, so far.

A service answers a message after the latency of a message to a client. Partitions do not reach it, and it never fails.

`timer` is Labrys' own. `{"type": "wait", "ms": 150}` gets the answer `{"type": "wait_ok"}` after so many milliseconds. A node
without threads can have timers with it, and in virtual time they take no real time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from harness.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clusters.sim.world import SimWorld

    Body = dict[str, Any]

MALFORMED: Final = 12
NOT_SUPPORTED: Final = 10
MAX_WAIT_MS: Final = 3_600_000.0


class Service(Protocol):
    """A service."""

    def answer(self, sender: str, body: Body) -> tuple[Body, int]:
        """Returns the answer to a request of a node, without its `in_reply_to`, and the nanoseconds until it is sent."""
        ...


class Timer:
    """The service `timer`."""

    def answer(self, sender: str, body: Body) -> tuple[Body, int]:  # noqa: ARG002 - the same for all nodes
        """Answers `wait` after its time."""
        if body["type"] != "wait":
            return error(NOT_SUPPORTED, f"timer knows wait, not {body['type']}"), 0
        ms = body.get("ms")
        if isinstance(ms, bool) or not isinstance(ms, int | float) or not 0 <= ms <= MAX_WAIT_MS:
            return error(MALFORMED, f"wait needs ms, a number from 0 to {MAX_WAIT_MS:g}"), 0
        return {"type": "wait_ok"}, int(ms * NS_PER_MS)


class Services:
    """The services of a run."""

    def __init__(self, world: SimWorld, services: Mapping[str, Service]) -> None:
        self._world = world
        self._services = services

    def __contains__(self, name: str) -> bool:
        return name in self._services

    def ask(self, name: str, sender: str, body: Body, deliver: Callable[[str, Body], None]) -> None:
        """Takes a request of a node. The answer goes to `deliver`, with the name of the service."""
        links = self._world.links

        def arrive() -> None:
            answer, wait_ns = self._services[name].answer(sender, body)
            number = body.get("msg_id")
            if number is not None:
                self._world.later(wait_ns + links.near_ns(), deliver, (name, {**answer, "in_reply_to": number}))

        self._world.later(links.near_ns(), arrive, ())


def error(code: int, text: str) -> Body:
    """Returns the body of an error."""
    return {"type": "error", "code": code, "text": text}
