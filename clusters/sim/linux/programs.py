"""The programs that this process starts in a simulation of Linux programs, as asyncio knows them."""

from __future__ import annotations

import asyncio
import os
from signal import SIGKILL, SIGTERM
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusters.sim.linux.driving import Controller


class Pipes(asyncio.Protocol):
    """The standard input and output of a program: both are one connection."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def data_received(self, data: bytes) -> None:
        """Gives the output of the program to who started it."""
        self._program.protocol.pipe_data_received(1, data)

    def eof_received(self) -> bool:
        """The program writes no more; its input stays open. Returns True."""
        self._program.protocol.pipe_connection_lost(1, None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The program takes no more."""
        self._program.protocol.pipe_connection_lost(0, exc)


class Program(asyncio.SubprocessTransport):
    """A program of the simulation that this process has started, for `asyncio.create_subprocess_exec`.

    Attributes:
        protocol: Who hears of what it writes, and of its end.
        pipe: Its standard input and output.
    """

    def __init__(self, controller: Controller, number: int, protocol: asyncio.SubprocessProtocol) -> None:
        super().__init__()
        self._controller = controller
        self._number = number
        self.protocol = protocol
        self.pipe: asyncio.Transport
        self._is_closed = False
        self._status: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def ended(self, status: int) -> None:
        """Tells the protocol of its end. Its last output may come later.

        Args:
            status: As waitpid returns it.
        """
        self._status.set_result(os.waitstatus_to_exitcode(status))
        asyncio.get_running_loop().call_soon(self.protocol.process_exited)

    def get_pid(self) -> int:
        """Returns the number of the program in the simulation."""
        return self._number

    def get_returncode(self) -> int | None:
        """Returns its status; None while it runs."""
        return self._status.result() if self._status.done() else None

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        """Returns its standard input (0) and output (1)."""
        return self.pipe if fd in {0, 1} else None

    async def _wait(self) -> int:
        """Waits for its end, and returns its status: `asyncio.subprocess.Process.wait` calls it."""
        return await asyncio.shield(self._status)

    def send_signal(self, signal: int) -> None:
        """Kills it.

        Raises:
            NotImplementedError: It is another signal than SIGKILL.
        """
        if signal != SIGKILL:
            raise NotImplementedError(f"signal {signal} for a program in virtual time, which gets SIGKILL only")
        self.kill()

    def terminate(self) -> None:
        """Raises `NotImplementedError`, as `send_signal` does."""
        self.send_signal(SIGTERM)

    def kill(self) -> None:
        """Kills it and its descendants. Does nothing if it has ended."""
        self._controller.kill(self._number)

    def is_closing(self) -> bool:
        """Returns whether it is closed."""
        return self._is_closed

    def close(self) -> None:
        """Kills it, and closes its pipes: a protocol calls it after its end and its last output."""
        if not self._is_closed:
            self._is_closed = True
            if not self._status.done():
                self.kill()
            self.pipe.close()
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)
