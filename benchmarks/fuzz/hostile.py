"""A system whose code misbehaves as a number says: the fuzzer copies this file, and runs it in the simulator.

Each method behaves well, or in one of the ways below. A client answers some operations in odd ways. So one number stands for
one hostile system, and repeats it. It needs nothing but Labrys.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from clusters.sim.system import SimNodes
from harness.declare import option
from harness.errors import InfrastructureError, InputError
from harness.op import Fail, Info, Ok
from harness.service import NodeStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.node import Node
    from harness.op import Invocation

MISBEHAVES = 0.06  # of the methods
ODD = 0.3  # of the answers of a client that misbehaves


class UnreadableError(Exception):
    """An exception whose text raises one."""

    def __str__(self) -> str:
        raise ValueError("no text")


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


VALUES: Sequence[Callable[[], Any]] = (
    lambda: "\ud800", lambda: "\ud83d\ude00", lambda: "x" * (2 << 20), lambda: "x" * (17 << 20), lambda: "\x1b[2J</script>",
    lambda: 10**4200, lambda: 10**5000, lambda: -(2**63) - 1, lambda: 1e308, lambda: math.nan, lambda: -math.inf, lambda: True,
    lambda: 1.0, lambda: None, lambda: (1, 2), lambda: {1, 2}, lambda: b"x", object, lambda: {1: 2, "1": 3}, lambda: {"": {}},
    lambda: {(1, 2): 3}, lambda: _nested(128), lambda: _nested(129), lambda: _nested(5000), _cycle, lambda: list(range(3)),
    lambda: [[0, 1], [1, "a"]], lambda: {"#inst": "x", "\ud800": 1}, lambda: -1, lambda: "5", lambda: [None], lambda: [[]],
)  # fmt: skip
TEXTS: Sequence[Any] = (
    "",
    "code",
    "code: \ud800",
    "a\nb\x00\u2028",
    "<script>",
    "x" * (1 << 20),
    None,
    5,
    b"x",
    "\x1b[2J",
)
ORDERS: Sequence[Any] = (None, 0, -1, 2**63 - 1, 2**70, "5", True, 1.5, [])
ERRORS: Sequence[Callable[[], BaseException]] = (
    lambda: ValueError("boom \x1b[31m\ud800"), lambda: SystemExit(0), lambda: SystemExit("bye"), asyncio.CancelledError,
    GeneratorExit, TimeoutError, MemoryError, UnreadableError, lambda: InputError("odd input"), StopIteration,
    lambda: InfrastructureError("\ud800"), lambda: ExceptionGroup("g", [ValueError("1")]), RecursionError, StopAsyncIteration,
    lambda: OSError(28, "No space left on device"), lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), EOFError,
)  # fmt: skip
HOOKS: Sequence[str] = (
    "install", "start", "kill", "stop", "wipe", "until_ready", "statuses", "replica", "lead", "log_files", "versions", "close",
    "own_parts", "fatal_log_patterns", "process_states", "client", "daemon", "node_state", "invoke", "invoke", "invoke",
)  # fmt: skip
ODD_VALUES: Sequence[str] = ("until_ready", "close")  # what the others return is the type checker's to find


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileOptions:
    """The options of the hostile system."""

    number: int = option(0, "The number that says how the system misbehaves.", low=0, high=2**53)


class Idle:
    """The process of a node, which does nothing."""

    def start(self) -> None:
        """Starts."""

    def receive(self, sender: str, message: Any) -> None:
        """Ignores a message."""


class Client:
    """Answers from memory, or in an odd way."""

    def __init__(self, system: Hostile, node: Node) -> None:
        self.node = node
        self._system = system

    async def invoke(self, invocation: Invocation) -> Any:
        """Carries out an operation."""
        await asyncio.sleep(0.01)
        rng = self._system.rng
        if "invoke" in self._system.odd and rng.random() < ODD:
            return await self._odd(invocation, rng)
        state, key, value = self._system.state, (invocation.key, "v"), invocation.value
        if invocation.f in {"write", "enqueue", "append", "add"}:
            state[key] = value
            return Ok(value)
        return Ok(state.get(key)) if invocation.f == "read" else Fail("code")

    async def _odd(self, invocation: Invocation, rng: random.Random) -> Any:
        choice = rng.randrange(8)
        if choice == 0:
            made = rng.choice(ERRORS)
            raise made()
        if choice == 1:
            return rng.choice((Fail, Info))(rng.choice(TEXTS))
        if choice == 2:
            return rng.choice((None, "ok", Ok, 5, invocation))
        if choice == 3:
            await _deaf()
        if choice == 4 and isinstance(invocation.value, list):
            invocation.value.clear()
        return Ok(rng.choice(VALUES)(), order=rng.choice(ORDERS) if choice == 5 else None)

    async def close(self) -> None:
        """Closes."""
        await self._system.later("close")


async def _deaf() -> NoReturn:
    """Ignores each cancellation."""
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            continue


class Hostile(SimNodes):
    """A system that misbehaves."""

    name = "hostile"
    summary = "Misbehaves."
    Options = HostileOptions
    serves: ClassVar[Mapping[str, str]] = MappingProxyType(
        dict.fromkeys(("register", "set", "counter", "log", "queue", "lock"), "from memory")
    )
    answers = ("code",)

    def __init__(self, cluster: Any, options: HostileOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self.rng = random.Random(options.number)
        self.odd = {
            hook for hook in HOOKS if self.rng.random() < MISBEHAVES or hook == HOOKS[options.number % len(HOOKS)]
        }
        self.state: dict[Any, Any] = {}

    def misbehaves(self, hook: str) -> Any:
        """Raises, returns an odd value, or returns `NotImplemented` if the method behaves well."""
        if hook not in self.odd or self.rng.random() < 0.5:
            return NotImplemented
        choice = self.rng.randrange(4)
        if choice == 0:
            sys.exit(0)
        if choice == 1 and hook in ODD_VALUES:
            return self.rng.choice(VALUES)()
        made = self.rng.choice(ERRORS)
        raise made()

    async def later(self, hook: str) -> Any:
        """Does the same, or hangs for ever."""
        if hook in self.odd and self.rng.random() < 0.2:
            await _deaf()
        return self.misbehaves(hook)

    def factory(self, node: Node) -> Any:  # noqa: ARG002 - the same on all nodes
        """Returns the function that makes the process of a node."""
        return lambda _host: Idle()

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Any:  # noqa: ARG002 - all are alike
        """Returns a client."""
        behaviour = self.misbehaves("client")
        return Client(self, node) if behaviour is NotImplemented else behaviour

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:  # noqa: ARG002 - it is ready at once
        """Is ready."""
        await self.later("until_ready")

    async def statuses(self, node: Node, timeout_s: float) -> Any:  # noqa: ARG002 - it answers at once
        """Returns a status."""
        behaviour = await self.later("statuses")
        return (NodeStatus(node=node.name, role="leader"),) if behaviour is NotImplemented else behaviour


def _guarded(name: str) -> Any:
    """Returns a method that does what the base class does, or misbehaves."""
    good = getattr(SimNodes, name)

    def method(self: Hostile, *words: Any, **named: Any) -> Any:
        behaviour = self.misbehaves(name)
        return good(self, *words, **named) if behaviour is NotImplemented else behaviour

    def later(self: Hostile, *words: Any, **named: Any) -> Any:
        async def work() -> Any:
            behaviour = await self.later(name)
            return await good(self, *words, **named) if behaviour is NotImplemented else behaviour

        return work()

    return later if asyncio.iscoroutinefunction(good) else method


for _name in HOOKS:
    if _name not in {"close", "invoke", "client", "until_ready", "statuses"}:
        setattr(Hostile, _name, _guarded(_name))
