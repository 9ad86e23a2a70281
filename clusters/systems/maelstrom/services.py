"""The services that the harness offers the nodes. Source: Maelstrom's doc/services.md.

| service | what it is |
|---|---|
| `lin-kv` | a linearizable map |
| `seq-kv` | a sequentially consistent map: a read may see one of the last 32 states, but none before what its sender has seen |
| `lww-kv` | replicas where the last write wins; they exchange their states now and then |
| `lin-tso` | numbers from 0 on, each once |
| `timer` | Labrys' own: `{"type": "wait", "ms": 150}` gets `{"type": "wait_ok"}` after so many milliseconds |

No partition reaches a service, and its messages take as long as those between nodes. What a service chooses comes from the
seed. A share of the requests can time out (`Timeouts`). `timer` never fails, because a node has no other clock. The answer has
the `msg_id` of the request in `in_reply_to`, whatever it is; null if there is none.
"""

from __future__ import annotations

import bisect
import json
from typing import TYPE_CHECKING, Any, Final, Protocol

from clusters.pipes.links import LEAST_NS
from harness.console.documents import shown
from harness.console.plain import counted
from harness.randomness import stream
from harness.units import NS_PER_MS
from harness.verdict import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clusters.sim.world import SimWorld
    from harness.op import Value

    Body = dict[str, Any]
    Answer = tuple[Body, int]

TIMER: Final = "timer"
PART: Final = "service-timeouts"
TIMED_OUT: Final = 0
TIMEOUT_NS: Final = 100 * NS_PER_MS  # until a node learns that its request timed out
EFFECTIVE_SHARE: Final = 0.5
LATE: Final[tuple[dict[str, Any], int]] = (
    {"type": "error", "code": TIMED_OUT, "text": "the request timed out, and may have taken effect"},
    TIMEOUT_NS,
)
NOT_SUPPORTED: Final = 10
MALFORMED: Final = 12
NO_SUCH_KEY: Final = 20
PRECONDITION_FAILED: Final = 22
MAX_WAIT_MS: Final = 3_600_000.0
STATES: Final = 32  # of seq-kv
REPLICAS: Final = 5  # of lww-kv
MERGE_SHARE: Final = 0.5  # of the requests to lww-kv after which two replicas exchange their states


class RequestError(Exception):
    """A request that a service refuses.

    Attributes:
        code: The code of Maelstrom's table.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Service(Protocol):
    """A service."""

    def answer(self, sender: str, body: Body) -> Answer:
        """Returns the answer to a request of a node, without its `in_reply_to`, and the nanoseconds until it is sent.

        Raises:
            RequestError: It refuses the request.
        """
        ...


class Timer:
    """The service `timer`."""

    def answer(self, sender: str, body: Body) -> Answer:  # noqa: ARG002 - the same for all nodes
        """Answers `wait` after its time."""
        if body.get("type") != "wait":
            raise _unknown("timer", "wait", body)
        ms = body.get("ms")
        if isinstance(ms, bool) or not isinstance(ms, int | float) or not 0 <= ms <= MAX_WAIT_MS:
            raise RequestError(MALFORMED, f"wait needs ms, a number from 0 to {MAX_WAIT_MS:g}")
        return {"type": "wait_ok"}, max(LEAST_NS, int(ms * NS_PER_MS))


class LinTso:
    """The service `lin-tso`."""

    def __init__(self) -> None:
        self._next = 0

    def answer(self, sender: str, body: Body) -> Answer:  # noqa: ARG002 - the same for all nodes
        """Answers `ts` with the next number."""
        if body.get("type") != "ts":
            raise _unknown("lin-tso", "ts", body)
        self._next += 1
        return {"type": "ts_ok", "ts": self._next - 1}, 0


class KeyValue:
    """The requests of a map; this class is `lin-kv`. A subclass chooses the state that a request sees.

    Values are compared as JSON, so 1 is not true.
    """

    name = "lin-kv"

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}

    def seen(self, sender: str, key: str, *, writes: bool) -> tuple[bool, Value]:  # noqa: ARG002 - for subclasses
        """Returns whether there is the key in the state that a request sees, and its value."""
        return key in self._values, self._values.get(key)

    def write(self, sender: str, key: str, value: Value) -> None:  # noqa: ARG002 - for subclasses
        """Writes a value."""
        self._values[key] = value

    def done(self) -> None:
        """A request was answered."""

    def answer(self, sender: str, body: Body) -> Answer:
        """Answers `read`, `write` and `cas`."""
        kind = body.get("type")
        if kind not in ("read", "write", "cas"):
            raise _unknown(self.name, "read, write and cas", body)
        key = json.dumps(_member(body, "key"), sort_keys=True)
        exists, value = self.seen(sender, key, writes=kind != "read")
        if kind == "read":
            if not exists:
                raise RequestError(NO_SUCH_KEY, f"there is no key {shown(body['key'])}")
            answer = {"type": "read_ok", "value": value}
        elif kind == "write":
            self.write(sender, key, _member(body, "value"))
            answer = {"type": "write_ok"}
        else:
            self._cas(sender, key, body, exists=exists, value=value)
            answer = {"type": "cas_ok"}
        self.done()
        return answer, 0

    def _cas(self, sender: str, key: str, body: Body, *, exists: bool, value: Value) -> None:
        expected, new = _member(body, "from"), _member(body, "to")
        if not exists and body.get("create_if_not_exists") is not True:
            raise RequestError(NO_SUCH_KEY, f"there is no key {shown(body['key'])}")
        if exists and json.dumps(value, sort_keys=True) != json.dumps(expected, sort_keys=True):
            raise RequestError(PRECONDITION_FAILED, f"expected {shown(expected)}, and the value is {shown(value)}")
        self.write(sender, key, new)


class SeqKv(KeyValue):
    """The service `seq-kv`. A state has a number. A sender never sees a state before the newest one that it has seen."""

    name = "seq-kv"

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = stream(seed, "maelstrom/seq-kv")
        self._state = 0
        self._seen: dict[str, int] = {}
        self._versions: dict[str, list[tuple[int, Value]]] = {}

    def seen(self, sender: str, key: str, *, writes: bool) -> tuple[bool, Value]:
        """Draws a state for a read. A write sees the newest state."""
        oldest = max(self._seen.get(sender, 0), self._state - STATES + 1)
        at = self._state if writes else self._random.randint(oldest, self._state)
        self._seen[sender] = at
        versions = self._versions.get(key, [])
        index = bisect.bisect_right(versions, at, key=lambda version: version[0])
        return (True, versions[index - 1][1]) if index else (False, None)

    def write(self, sender: str, key: str, value: Value) -> None:
        """Makes a new state."""
        self._state += 1
        self._seen[sender] = self._state
        versions = self._versions.setdefault(key, [])
        versions.append((self._state, value))
        while len(versions) > 1 and versions[1][0] <= self._state - STATES:
            del versions[0]


class LwwKv(KeyValue):
    """The service `lww-kv`. Each request goes to a replica by chance. A Lamport clock orders the writes."""

    name = "lww-kv"

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = stream(seed, "maelstrom/lww-kv")
        self._replicas: list[dict[str, tuple[tuple[int, int], Value]]] = [{} for _ in range(REPLICAS)]
        self._clocks = [0] * REPLICAS
        self._at = 0

    def seen(self, sender: str, key: str, *, writes: bool) -> tuple[bool, Value]:  # noqa: ARG002 - as `KeyValue` has it
        """Draws a replica."""
        self._at = self._random.randrange(REPLICAS)
        stored = self._replicas[self._at].get(key)
        return (False, None) if stored is None else (True, stored[1])

    def write(self, sender: str, key: str, value: Value) -> None:  # noqa: ARG002 - as `KeyValue` has it
        """Writes to the replica that the request goes to."""
        self._clocks[self._at] += 1
        self._replicas[self._at][key] = ((self._clocks[self._at], self._at), value)

    def done(self) -> None:
        """Lets two replicas exchange their states now and then."""
        if self._random.random() < MERGE_SHARE:
            one, other = self._random.sample(range(REPLICAS), 2)
            merged = dict(self._replicas[one])
            for key, version in self._replicas[other].items():
                merged[key] = max(merged.get(key, version), version, key=lambda pair: pair[0])
            self._replicas[one], self._replicas[other] = merged, dict(merged)
            self._clocks[one] = self._clocks[other] = max(self._clocks[one], self._clocks[other])


class Timeouts:
    """Requests that get error 0, which says that they may have happened. Half of them take effect.

    Attributes:
        asked: The number of requests that could time out.
        effective: The number of those that timed out and took effect.
        lost: The number of those that timed out and had no effect.
    """

    def __init__(self, seed: int, share: float) -> None:
        """Makes them.

        Args:
            seed: The run's root seed.
            share: The share of the requests, from 0 to 1.
        """
        self.asked = self.effective = self.lost = 0
        self._share = share
        self._random = stream(seed, "maelstrom/service-timeouts")

    def hit(self, name: str) -> bool | None:
        """Draws whether a request to a service times out: None if it does not, else whether it takes effect."""
        if not self._share or name == TIMER:
            return None
        self.asked += 1
        if self._random.random() >= self._share:
            return None
        takes_effect = self._random.random() < EFFECTIVE_SHARE
        self.effective += takes_effect
        self.lost += not takes_effect
        return takes_effect

    def part(self) -> Part | None:
        """Returns the part `service-timeouts`, which says whether there were any; None if none were asked for."""
        if not self._share:
            return None
        details: dict[str, Value] = {"asked": self.asked, "took_effect": self.effective, "had_no_effect": self.lost}
        late = self.effective + self.lost
        asked = counted(self.asked, "request")
        return Part.of(
            PART,
            details,
            held=f"{late:,} of {asked} to services timed out, and {self.effective:,} of them took effect.",
            untested=None if late else f"None of {asked} to a service timed out, so the option had no effect.",
        )


class Services:
    """The services of a run.

    Attributes:
        timeouts: The requests that time out.
    """

    def __init__(self, world: SimWorld, services: Mapping[str, Service], timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self._world = world
        self._services = services

    @classmethod
    def of(cls, world: SimWorld, timeout_share: float = 0.0) -> Services:
        """Returns all services.

        Args:
            world: The world of the run.
            timeout_share: The share of the requests that time out, from 0 to 1.
        """
        seed = world.seed
        return cls(
            world,
            {
                "lin-kv": KeyValue(),
                "seq-kv": SeqKv(seed),
                "lww-kv": LwwKv(seed),
                "lin-tso": LinTso(),
                TIMER: Timer(),
            },
            Timeouts(seed, timeout_share),
        )

    def __contains__(self, name: str) -> bool:
        return name in self._services

    def ask(self, name: str, sender: str, body: Body, deliver: Callable[[str, Body], None]) -> None:
        """Takes a request. The answer goes to `deliver`, with the name of the service.

        A message to `timer` takes no time, so that its answer comes when it is due.

        Args:
            name: The name of the service.
            sender: The name of the sender: a node, or a client whose request a node hands on.
            body: The request.
            deliver: Takes the answer.
        """
        links, number = self._world.links, body.get("msg_id")

        def way_ns(source: str, target: str) -> int:
            return 0 if name == TIMER else links.delay_ns(source, target)

        def arrive() -> None:
            takes_effect = self.timeouts.hit(name)
            answer, wait_ns = LATE if takes_effect is False else self._answer(name, sender, body)
            if takes_effect is True:
                answer, wait_ns = LATE
            self._world.later(wait_ns + way_ns(name, sender), deliver, (name, {**answer, "in_reply_to": number}))

        self._world.later(way_ns(sender, name), arrive, ())

    def _answer(self, name: str, sender: str, body: Body) -> Answer:
        try:
            return self._services[name].answer(sender, body)
        except RequestError as error:
            return {"type": "error", "code": error.code, "text": str(error)}, 0


def _member(body: Body, name: str) -> Value:
    if name not in body:
        raise RequestError(MALFORMED, f'{body["type"]} needs "{name}"')
    return body[name]


def _unknown(service: str, known: str, body: Body) -> RequestError:
    return RequestError(NOT_SUPPORTED, f"{service} knows {known}, not {shown(body.get('type'))}")
