"""The event loop of a simulation of Linux programs: its connections are those of the controller, its time is virtual.

Clients use `asyncio.open_connection`, or a library on asyncio, as on real nodes. No socket of this machine is opened.
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING, Any, Final, TypeVar

from clusters.sim.linux.programs import Pipes, Program
from harness.children import OWN
from harness.clock import VirtualLoop
from harness.units import NS_PER_S

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Mapping

    from clusters.sim.linux.driving import Controller, Event
    from clusters.sim.linux.world import LinuxWorld

T = TypeVar("T")

HOST: Final = "control"  # the name of this process as a node
ERRORS: Final = "/var/log/programs.log"  # what the programs of this node write to their standard error


class Connections:
    """The connections of this process to programs, by the numbers of the controller."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._opening: dict[int, asyncio.Future[int]] = {}
        self._open: dict[int, Transport] = {}

    async def connect(self, address: str, port: int) -> int:
        """Connects, and returns the number of the connection.

        Raises:
            OSError: Nothing listens there, or nobody answered for long.
        """
        number = self._controller.connect(address, port)
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._opening[number] = future
        try:
            return await future
        except asyncio.CancelledError:
            self._controller.close(number)
            raise
        finally:
            self._opening.pop(number, None)

    def use(self, number: int, address: tuple[str, int], protocol: asyncio.BaseProtocol) -> Transport:
        """Gives a connection that is open to a protocol."""
        transport = self._open[number] = Transport(self._controller, number, address, protocol, self._open)
        asyncio.get_running_loop().call_soon(protocol.connection_made, transport)
        return transport

    def take(self, event: Event) -> bool:
        """Tells the owner of a connection of its event. Returns whether somebody has to act on it."""
        future = self._opening.get(event.id)
        if future is not None and not future.done():
            if event.kind == "connected":
                future.set_result(event.id)
                return True
            if event.kind == "failed":
                future.set_exception(OSError(event.number, os.strerror(event.number)))
                return True
        transport = self._open.get(event.id)
        if transport is None:
            return False
        transport.take(event)
        return True


class Transport(asyncio.Transport):
    """A connection to a program, for a protocol of asyncio. What is written is on its way at once."""

    def __init__(
        self,
        controller: Controller,
        number: int,
        address: tuple[str, int],
        protocol: asyncio.BaseProtocol,
        open_ones: dict[int, Transport],
    ) -> None:
        super().__init__({"peername": address})
        self._controller = controller
        self._number = number
        self._protocol = protocol
        self._open = open_ones
        self._loop = asyncio.get_running_loop()
        self._is_closing = False
        self._waiting: list[Event] | None = None  # what came while reading was paused

    def take(self, event: Event) -> None:
        """Tells the protocol of an event."""
        if self._waiting is not None:
            self._waiting.append(event)
        else:
            self._loop.call_soon(self._tell, event)

    def _tell(self, event: Event) -> None:
        protocol = self._protocol
        if self._is_closing or not isinstance(protocol, asyncio.Protocol):
            return
        if event.kind == "bytes":
            protocol.data_received(event.content)
        elif event.kind == "reset":
            self._end(ConnectionResetError("the connection was reset"))
        elif not protocol.eof_received():
            self.close()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends bytes."""
        if not self._is_closing:
            self._controller.send(self._number, bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Sends several bytes as one."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """Returns True."""
        return True

    def write_eof(self) -> None:
        """Sends no more, and goes on to receive."""
        if not self._is_closing:
            self._controller.finish(self._number)

    def get_write_buffer_size(self) -> int:
        """Returns 0: the network has taken everything."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Does nothing: there is no buffer."""

    def pause_reading(self) -> None:
        """Keeps what comes until `resume_reading`."""
        if self._waiting is None:
            self._waiting = []

    def resume_reading(self) -> None:
        """Tells the protocol of what came meanwhile."""
        waiting, self._waiting = self._waiting, None
        for event in waiting or ():
            self._loop.call_soon(self._tell, event)

    def is_reading(self) -> bool:
        """Returns whether the protocol hears of what comes."""
        return self._waiting is None and not self._is_closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Gives the connection to another protocol."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Returns the protocol."""
        return self._protocol

    def is_closing(self) -> bool:
        """Returns whether the connection ends."""
        return self._is_closing

    def close(self) -> None:
        """Closes the connection."""
        self._end(None)

    def abort(self) -> None:
        """Closes the connection."""
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._open.pop(self._number, None)
            self._controller.close(self._number)
            self._loop.call_soon(self._protocol.connection_lost, error)


class LinuxLoop(VirtualLoop):
    """A loop in virtual time whose connections go to the programs of a world."""

    def __init__(self, world: LinuxWorld) -> None:
        super().__init__(world)
        self._world = world
        # Libraries that open a socket themselves connect it by `sock_connect`. It stands for the connection from then on.
        self._connected: dict[socket.socket, tuple[int, tuple[str, int]]] = {}

    def run_in_executor(  # type: ignore[override]  # the base class has variadic generics
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Runs `func` at once. If it lets programs run, the time of the loop is then that which they have reached."""
        future = super().run_in_executor(executor, func, *args)
        self.reach(self._world.now_ns / NS_PER_S)
        return future

    async def create_connection(  # type: ignore[override]  # the base class has overloads
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        sock: socket.socket | None = None,
        **others: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connects to a program; see `asyncio.loop.create_connection`.

        Raises:
            OSError: Nothing listens there, or nobody answered for long.
            NotImplementedError: The connection is to be encrypted.
        """
        if others.get("ssl"):
            raise NotImplementedError("a connection with TLS to a program in virtual time")
        if sock is None:
            address = (str(host), int(port or 0))
            number = await self._world.connections.connect(*address)
        else:
            number, address = self._connected.pop(sock)
            sock.close()
        protocol = protocol_factory()
        transport = self._world.connections.use(number, address, protocol)
        await asyncio.sleep(0)  # the protocol hears of its connection first
        return transport, protocol

    async def subprocess_exec(  # type: ignore[override]  # the base class has more options
        self,
        protocol_factory: Callable[[], asyncio.SubprocessProtocol],
        program: Any,
        *arguments: Any,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        env: Mapping[str, str] | None = None,
        **others: Any,
    ) -> tuple[asyncio.SubprocessTransport, asyncio.SubprocessProtocol]:
        """Starts a program of the simulation on the node of this process; see `asyncio.loop.subprocess_exec`.

        Its standard input and output are pipes. What it writes to its standard error is in `ERRORS` of this node. It gets those
        variables that this process lacks or has with another value.

        Raises:
            NotImplementedError: An option cannot be had in virtual time.
        """
        given = sorted(name for name, value in others.items() if value)
        if (stdin, stdout) != (PIPE, PIPE) or stderr not in {None, DEVNULL} or given:
            raise NotImplementedError(
                "expected a program in virtual time with pipes for its standard input and output, none for its standard error, "
                f"and no other options; found {given or (stdin, stdout, stderr)}"
            )
        variables = {
            name: value for name, value in (env or {}).items() if os.environ.get(name) != value and name != OWN
        }
        # The mark says that it is no process of a system, which would have to end with the system.
        words = [
            "/usr/bin/env",
            f"{OWN}=1",
            *(f"{name}={value}" for name, value in variables.items()),
            program,
            *arguments,
        ]
        number, connection = self._world.controller.talk(HOST, list(map(str, words)), folder="/", output=ERRORS)
        protocol = protocol_factory()
        started = Program(self._world.controller, number, protocol)
        self._world.started[number] = started
        started.pipe = self._world.connections.use(connection, (HOST, 0), Pipes(started))
        protocol.connection_made(started)
        await asyncio.sleep(0)
        return started, protocol

    async def subprocess_shell(  # type: ignore[override]  # the base class has more options
        self, protocol_factory: Callable[[], asyncio.SubprocessProtocol], cmd: str | bytes, **options: Any
    ) -> tuple[asyncio.SubprocessTransport, asyncio.SubprocessProtocol]:
        """Starts a shell of the simulation with a command line; see `subprocess_exec`."""
        line = cmd if isinstance(cmd, str) else os.fsdecode(cmd)
        return await self.subprocess_exec(protocol_factory, "/bin/sh", "-c", line, **options)

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Connects to a program in place of a socket; see `asyncio.loop.sock_connect`.

        Raises:
            OSError: Nothing listens there, or nobody answered for long.
        """
        host, port = address[:2]
        self._connected[sock] = await self._world.connections.connect(host, port), (host, port)
