"""The simulated nodes whose processes run in a JVM: what joins the JVM to the world of the simulator.

The world has the network, the faults and the clients. The JVM has the threads of the processes. `Java` carries out the events
of the JVM between those of the world, in the order of their times.
"""

from __future__ import annotations

import asyncio
import heapq
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from clusters.sim.jvm import idle, pipe
from clusters.sim.jvm.steps import JavaSteps, either
from clusters.sim.streams import End
from harness.errors import InfrastructureError
from harness.randomness import stream
from harness.units import NS_PER_MS, NS_PER_S
from harness.world import Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from clusters.sim.host import Host
    from clusters.sim.machine import Machine
    from clusters.sim.streams import Foreseen
    from clusters.sim.threads import Threads
    from clusters.sim.world import Event, SimWorld
    from harness.world import Failing, Losing

STRETCH_NS: Final = 8 * NS_PER_MS
TURN_EVENTS: Final = 10_000  # the loop looks for signals in each 64th turn
MOST_EVENTS: Final = 500_000  # in a second of virtual time; runs have some hundreds
SEED_BITS: Final = 63
MOST_FORESEEN: Final = 6  # packets in a frame; the threads seldom take more before they do something


class Java:
    """The JVM in one run; a `clusters.sim.world.Companion`.

    Attributes:
        directory: The working directory of the JVM. Each node has its files in a folder with its name.
    """

    def __init__(
        self,
        world: SimWorld,
        commands: tuple[Sequence[str], Sequence[str]],
        addresses: Mapping[str, str],
        threads: Threads,
    ) -> None:
        """Begins the run in a JVM of an earlier run, or in a new one.

        Args:
            world: The world of the run.
            commands: The command lines of a JVM for a few runs, and for many; see `idle.take`.
            addresses: The name of the node with each address.
            threads: Where the threads stop.

        Raises:
            InfrastructureError: The JVM cannot be started.
        """
        world.turn_events = TURN_EVENTS
        self._jvm = idle.take(*commands)
        self.directory = self._jvm.directory
        self._world = world
        self._addresses = addresses
        self._processes: dict[str, JavaProcess] = {}
        self._accepted = 0
        self._losses: list[Lost] = []
        self._rooms: list[bool] = []
        self._second = self._events = 0
        seed = stream(world.seed, "sim/jvm").getrandbits(SEED_BITS)
        self._steps = JavaSteps(world, self._jvm)
        if world.notes_steps:
            world.steps = self._steps
        self._jvm.begin(
            seed, threads=threads, stretch_ns=STRETCH_NS, loses_power=world.loses_power, notes_steps=world.notes_steps
        )

    @property
    def next_ns(self) -> int:
        """Returns the time of the next event in the JVM."""
        return self._jvm.next_ns

    @property
    def jvm(self) -> pipe.Jvm:
        """Returns the pipe to the JVM."""
        return self._jvm

    def advance(self, until_ns: int, limit_ns: int) -> None:
        """Lets the threads run, and carries out what they do to the world.

        A round trip to the JVM costs more than most events. So it gets the packets that arrive next together with their times.
        It takes them until a thread does something to the world. The others stay in the world's queue.
        """
        queue = self._world.queue
        foreseen = self._foresee(queue, limit_ns)
        if foreseen:
            until_ns = min(queue[0][0], limit_ns) if queue else limit_ns
        now_ns, happened = self._jvm.advance(until_ns)
        self._count(len(happened))
        for event, packet in foreseen[: self._jvm.waited]:
            self._world.now_ns = event[0]
            if isinstance(packet.content, str):
                packet.receiver.open = False
                cast("JavaProcess", packet.receiver.owner).forget(packet.receiver)
        for event, packet in foreseen[self._jvm.waited :]:
            packet.sender.put_back()
            heapq.heappush(queue, event)
        if happened:
            self._world.now_ns = max(self._world.now_ns, now_ns)
            for happening in happened:
                self._carry_out(happening)

    def _count(self, events: int) -> None:
        """Counts the events of a second.

        Raises:
            InfrastructureError: They are so many that the run would not end.
        """
        second = self._world.now_ns // NS_PER_S
        self._second, self._events = second, events + (self._events if second == self._second else 0)
        if self._events > MOST_EVENTS:
            raise InfrastructureError(
                f"the processes cause more than {MOST_EVENTS:,} events in second {second} of virtual time. Code takes no time "
                "there, and each message or log line causes others at once, so the run would not end. Confirm it on real nodes"
            )

    def _foresee(self, queue: list[Event], limit_ns: int) -> Sequence[tuple[Event, Foreseen]]:
        """Takes the next events that are only packets for processes, and tells the JVM of them."""
        taken: list[tuple[Event, Foreseen]] = []
        while queue and queue[0][0] <= limit_ns and len(taken) < MOST_FORESEEN:
            at_ns, _, action, arguments = queue[0]
            sender = getattr(action, "__self__", None)
            if not isinstance(sender, End) or action != sender.ordered or sender.peer is None:
                break
            process = sender.peer.owner
            if not isinstance(process, JavaProcess) or (packet := sender.foresee(*arguments)) is None:
                break
            self._jvm.wait_until(at_ns)
            if isinstance(packet.content, str):
                self._jvm.closed(at_ns, process.name, packet.receiver.number, packet.content)
            else:
                self._jvm.data(at_ns, process.name, packet.receiver.number, packet.content)
            taken.append((heapq.heappop(queue), packet))
        return taken

    def lose_power(self, node: str, losing: Losing | None = None) -> Lost:
        """Lets a node lose what its processes wrote and did not sync. No process may run there."""
        self._jvm.lose_power(self._world.now_ns, node, losing)
        self.advance(self._world.now_ns, limit_ns=-1)  # takes no events
        return self._losses.pop()

    def fill_disk(self, node: str, *, full: bool) -> None:
        """Fills the disk of a node, or frees it again."""
        self._jvm.fill(self._world.now_ns, node, full=full)

    def disk_takes(self, node: str) -> bool:
        """Tries to write a small file on the disk of a node. Returns whether that works."""
        self._jvm.try_room(self._world.now_ns, node)
        self.advance(self._world.now_ns, limit_ns=-1)
        return self._rooms.pop()

    def fail_calls(self, node: str, key: int, failing: Failing) -> None:
        """Lets calls on the files of a node fail from now on."""
        self._jvm.fail(
            self._world.now_ns, node, key,
            call=failing.call, pattern=either(failing.pattern), nth=failing.nth, times=failing.times,
            error=os.strerror(failing.error),
        )  # fmt: skip

    def mend_calls(self, node: str, key: int) -> None:
        """Ends the rules of a key."""
        self._jvm.mend(self._world.now_ns, node, key)

    def damaged(self, node: str, path: Path) -> None:
        """Notes that a fault has changed a file of a node."""
        self._jvm.damaged(self._world.now_ns, node, str(path.relative_to(self.directory)))

    def emptied(self, node: str) -> None:
        """Notes that the files of a node are gone."""
        self._jvm.wipe(self._world.now_ns, node)

    def _carry_out(self, event: pipe.Event) -> None:
        if event.kind == pipe.LOSES:
            files, changed = event.text.split()
            self._losses.append(Lost(files=int(files), changed=int(changed), bytes=event.number))
            return
        if event.kind == pipe.TAKES:
            self._rooms.append(bool(event.number))
            return
        if event.kind == pipe.REFUSES:
            call, number, file = event.text.split("\t")
            if (on_error := self._world.machines[event.node].disk.on_error) is not None:
                on_error(event.number, call, int(number), file)
            return
        process = self._processes.get(event.node)
        if process is not None:  # else it was killed
            self._carry_out_of(process, event)

    def _carry_out_of(self, process: JavaProcess, event: pipe.Event) -> None:
        if event.kind == pipe.STEPS:
            self._steps.stands(event.number, event.text, process.go_on)
            return
        process.machine.handled += 1
        if event.kind == pipe.SENDS:
            process.send(event.number, event.data)
        elif event.kind == pipe.LOGS:
            process.machine.log(event.text)
        elif event.kind == pipe.CONNECTS:
            process.connect(event.number, event.text)
        elif event.kind == pipe.LISTENS:
            process.ports.add(event.number)
        elif event.kind == pipe.CLOSES:
            process.close(event.number)
        elif event.kind == pipe.DIES:
            process.machine.die(event.text)

    def add(self, process: JavaProcess) -> None:
        """Notes that a process runs."""
        self._processes[process.name] = process

    def remove(self, process: JavaProcess) -> None:
        """Notes that a process has ended."""
        self._processes.pop(process.name, None)

    def accept(self, address: str, port: int, of: End) -> End | None:
        """Accepts a connection at an address; returns None if nobody listens there."""
        process = self._processes.get(self._addresses.get(address, ""))
        if process is None or port not in process.ports:
            return None
        self._accepted -= 1  # the JVM counts its own connections from 1
        return process.accept(self._accepted, port, of)

    def name_at(self, address: str) -> str | None:
        """Returns the node with an address; None if there is none."""
        return self._addresses.get(address)

    def trace(self) -> tuple[int, int]:
        """Returns a digest of all decisions of the scheduler so far, and their number. It lets no time pass."""
        self._jvm.ask_trace()
        _, events = self._jvm.advance(self._world.now_ns)
        traced = next(event for event in events if event.kind == pipe.TRACES)
        return traced.number, int(traced.text)

    def close(self) -> None:
        """Ends the run, and leaves the JVM to the next one."""
        idle.give_back(self._jvm)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a process runs.

    Attributes:
        main: The class with the method `begin`, which starts it and returns a function that tells its state, or `main`.
        arguments: The arguments of `main`.
        message: Returns the message that bytes between nodes are; see `clusters.sim.streams.End`.
    """

    main: str
    arguments: Sequence[str]
    message: Callable[[bytes], object]


class JavaProcess:
    """A process in the JVM; a `clusters.sim.host.Process`, and the owner of its ends of connections.

    Attributes:
        name: The name of its node.
        machine: The node.
        ports: The ports on which it accepts connections.
    """

    def __init__(self, host: Host, java: Java, machine: Machine, program: Program) -> None:
        """Makes a process that has not started.

        Args:
            host: The host, which gives the process its seed.
            java: The JVM.
            machine: The node.
            program: What it runs.
        """
        self.name = host.name
        self.machine = machine
        self.ports: set[int] = set()
        self._host = host
        self._java = java
        self._program = program
        self._ends: dict[int, End] = {}

    def start(self) -> None:
        """Starts the process."""
        world = self.machine.world
        world.share_core()
        self._java.jvm.follow()
        self._java.add(self)
        self._java.jvm.start(
            world.now_ns, self.name, seed=self._host.random.getrandbits(SEED_BITS), main=self._program.main,
            arguments=self._program.arguments,
        )  # fmt: skip
        self.clock_set(self.machine.wall_clock)

    def receive(self, sender: str, message: object) -> None:
        """Refuses a message: these processes have connections only.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"a process in a JVM has connections, and {sender} sent it the message {message!r}")

    def killed(self) -> None:
        """Ends the process. The kernel of its node closes the connections."""
        self._java.jvm.kill(self.machine.world.now_ns, self.name)
        self._java.remove(self)
        self.ports.clear()
        ends, self._ends = self._ends, {}
        for end in ends.values():
            end.close()

    def paused(self) -> None:
        """Stops the threads. The kernel of the node goes on to receive bytes."""
        self._java.jvm.pause(self.machine.world.now_ns, self.name)

    def resumed(self) -> None:
        """Continues the threads."""
        self._java.jvm.resume(self.machine.world.now_ns, self.name)

    def go_on(self) -> None:
        """Continues the threads after they stood still, unless the process has been killed or paused since."""
        if self.machine.process is self and not self.machine.paused:
            self.resumed()

    def clock_set(self, clock: tuple[int, int, int]) -> None:
        """Sets the wall clock; see `Machine.wall_clock`."""
        self._java.jvm.set_clock(self.machine.world.now_ns, self.name, *clock)

    def connect(self, number: int, address: str) -> None:
        """Begins a connection of the process to HOST:PORT."""
        host, _, port = address.rpartition(":")
        to = self._java.name_at(host) or self.name
        end = self._ends[number] = End(
            self.machine.world, self.name, number, self, to=to, message=self._program.message
        )
        end.connect(lambda asking: self._java.accept(host, int(port), asking))

    def accept(self, number: int, port: int, of: End) -> End:
        """Accepts a connection; returns this end of it."""
        end = self._ends[number] = End(
            self.machine.world, self.name, number, self, to=of.node, message=self._program.message
        )
        self._java.jvm.accept(
            self.machine.world.now_ns,
            self.name,
            port=port,
            connection=number,
            peer=f"{of.node or 'client'}:{abs(number)}",
        )
        return end

    def send(self, number: int, data: bytes) -> None:
        """Sends bytes of the process."""
        end = self._ends.get(number)
        if end is not None:
            end.send(data)

    def close(self, number: int) -> None:
        """Closes a connection of the process."""
        end = self._ends.pop(number, None)
        if end is not None:
            end.close()

    def opened(self, end: End) -> None:
        """A connection that this process began is open."""
        if end.number > 0:
            self._java.jvm.opened(self.machine.world.now_ns, self.name, end.number)

    def arrived(self, end: End, data: bytes) -> None:
        """Bytes have arrived."""
        self._java.jvm.data(self.machine.world.now_ns, self.name, end.number, data)

    def forget(self, end: End) -> None:
        """A connection is closed, and the JVM knows it."""
        del self._ends[end.number]

    def closed(self, end: End, why: str) -> None:
        """A connection is closed."""
        if self._ends.pop(end.number, None) is not None:
            self._java.jvm.closed(self.machine.world.now_ns, self.name, end.number, why)


class ClientStream:
    """The end of a client: bytes go into an `asyncio.StreamReader`. It is also the writer of the client's connection."""

    def __init__(self, java: Java, world: SimWorld) -> None:
        self.reader = asyncio.StreamReader()
        self.transport = self
        self._java = java
        self._world = world
        self._end = End(world, None, 0, self, to=None)
        self._connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self, host: str, port: int) -> None:
        """Connects.

        Raises:
            ConnectionRefusedError: Nobody listens there.
        """
        self._end.connect(lambda asking: self._java.accept(host, port, asking))
        await self._connected

    def opened(self, end: End) -> None:  # noqa: ARG002 - it has one end
        """The connection is open."""
        self._world.fulfil(self._connected, None)

    def arrived(self, end: End, data: bytes) -> None:  # noqa: ARG002
        """Bytes have arrived."""
        self.reader.feed_data(data)
        self._world.wake()

    def closed(self, end: End, why: str) -> None:  # noqa: ARG002
        """The connection is closed."""
        self._world.fail(self._connected, ConnectionRefusedError(why))
        self.reader.feed_eof()
        self._world.wake()

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        self._end.send(data)

    async def drain(self) -> None:
        """Returns at once: the connection takes all bytes."""

    def close(self) -> None:
        """Closes the connection. The other end receives all bytes first."""
        self._end.close()

    def is_closing(self) -> bool:
        """Returns whether the connection is closed."""
        return not self._end.open

    def abort(self) -> None:
        """Closes the connection."""
        self._end.close()
