"""Runs one command on one SSH channel, with limits on time and output.

Fabric's own runner polls, and sends standard input at one character every 10 ms. It joins all output so far at each chunk,
which takes quadratic time, and has no time limit while it waits for the node. So this module drives the channel itself. One
thread reads standard output, one reads standard error, and one sends standard input. At the deadline, a timer closes the
channel, which ends all of them.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import paramiko

CHUNK_BYTES = 65536
MAX_OUTPUT_BYTES = 32 * 1024 * 1024
LOOK_S = 0.5
HELD_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The result of a command.

    Attributes:
        status: Its exit status; -1 if there is none.
        stdout: Its standard output.
        stderr: Its standard error.
        expired: Whether the channel was closed at the deadline.
        held: Whether the command ended, but another process holds its output open.
        flooded: Whether the output exceeded the limit.
    """

    status: int
    stdout: bytes
    stderr: bytes
    expired: bool
    held: bool
    flooded: bool


class _Pump:
    """Reads one stream of a channel to its end."""

    def __init__(self, channel: paramiko.Channel, receive: Callable[[int], bytes]) -> None:
        self._channel = channel
        self._receive = receive
        self._chunks: list[bytes] = []
        self._size = 0
        self.held = False
        self.flooded = False

    def run(self) -> None:
        silent_since_s: float | None = None
        while True:
            try:
                chunk = self._receive(CHUNK_BYTES)
            except TimeoutError:
                # The output of an ended command ends, unless a process that it started has inherited it.
                if self._channel.exit_status_ready():
                    silent_since_s = silent_since_s or time.monotonic()
                    if time.monotonic() - silent_since_s >= HELD_S:
                        self.held = True
                        return
                continue
            if not chunk:
                return
            silent_since_s = None
            self._size += len(chunk)
            if self._size > MAX_OUTPUT_BYTES:
                self.flooded = True
                self._channel.close()
                return
            self._chunks.append(chunk)

    def content(self) -> bytes:
        return b"".join(self._chunks)


def exchange(channel: paramiko.Channel, command: str, *, stdin: bytes, limit_s: float) -> Exchange:
    """Runs a command on a fresh channel, and closes the channel.

    Args:
        channel: An unused session.
        command: A command line for the node's login shell.
        stdin: All of its standard input.
        limit_s: The time after which the channel is closed in any case.

    Raises:
        paramiko.SSHException, OSError, EOFError: The connection is lost, or the node refuses, before the time is over.
    """
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        channel.close()

    channel.settimeout(LOOK_S)
    out, err = _Pump(channel, channel.recv), _Pump(channel, channel.recv_stderr)
    helpers = [threading.Thread(target=err.run, name="ssh-stderr", daemon=True)]
    watchdog = threading.Timer(limit_s, expire)
    watchdog.daemon = True
    watchdog.start()
    try:
        try:
            channel.exec_command(command)
            if not stdin:
                channel.shutdown_write()
        except Exception:
            if not expired.is_set():
                raise
            return Exchange(status=-1, stdout=b"", stderr=b"", expired=True, held=False, flooded=False)
        if stdin:
            helpers.append(threading.Thread(target=_feed, args=(channel, stdin), name="ssh-stdin", daemon=True))
        for helper in helpers:
            helper.start()
        out.run()
        helpers[0].join()
        is_held = out.held or err.held
        status = channel.recv_exit_status()
    finally:
        watchdog.cancel()
        channel.close()
    for helper in helpers:
        helper.join()
    return Exchange(
        status=status,
        stdout=out.content(),
        stderr=err.content(),
        expired=expired.is_set() and status == -1,
        held=is_held,
        flooded=out.flooded or err.flooded,
    )


def _feed(channel: paramiko.Channel, content: bytes) -> None:
    # The command or the connection may end before the whole input is read; the status shows which.
    rest = memoryview(content)
    with contextlib.suppress(OSError, EOFError):
        while rest:
            try:
                sent = channel.send(rest[:CHUNK_BYTES].tobytes())
            except TimeoutError:
                continue
            if sent == 0:
                return
            rest = rest[sent:]
        channel.shutdown_write()
