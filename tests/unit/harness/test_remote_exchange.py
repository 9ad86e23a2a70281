"""A command's exchange over a channel ends for a reason that is told apart, and gives every byte or an error."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import paramiko
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.remote import exchange as module
from harness.remote.exchange import exchange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Channel:
    """A channel whose other side sends what it was told to; closing it ends every wait, as paramiko's does."""

    def __init__(
        self,
        *,
        out: Sequence[bytes] = (),
        err: Sequence[bytes] = (),
        status: int | None = 0,
        window: int = 1 << 20,
        held: bool = False,
        refuses: bool = False,
    ) -> None:
        self._streams: tuple[Iterator[bytes], Iterator[bytes]] = (iter(out), iter(err))
        self._status = status
        self._window = window
        self._held = held
        self._refuses = refuses
        self._closed = threading.Event()
        self.received = b""
        self.ended_input = False
        self.command = ""

    def settimeout(self, timeout_s: float) -> None:
        """Takes any."""

    def exec_command(self, command: str) -> None:
        """Starts the command, or refuses, or does neither until it is closed."""
        if self._refuses:
            raise paramiko.SSHException("Channel closed.")
        self.command = command

    def _receive(self, stream: int) -> bytes:
        chunk = next(self._streams[stream], b"")
        if not chunk and (self._held or self._status is None) and not self._closed.wait(0.001):
            raise TimeoutError
        return b"" if self._closed.is_set() else chunk

    def recv(self, _: int) -> bytes:
        """Gives the next chunk of output, nothing at its end."""
        return self._receive(0)

    def recv_stderr(self, _: int) -> bytes:
        """Likewise, of errors."""
        return self._receive(1)

    def send(self, content: bytes) -> int:
        """Takes as much as the window allows."""
        taken = content[: self._window]
        self.received += taken
        return len(taken)

    def shutdown_write(self) -> None:
        """Ends the input."""
        self.ended_input = True

    def exit_status_ready(self) -> bool:
        """Says whether the command has ended."""
        return self._status is not None

    def recv_exit_status(self) -> int:
        """Waits for the end of the command, or of the channel."""
        if self._status is None:
            self._closed.wait()
            return -1
        return self._status

    def close(self) -> None:
        """Ends everything."""
        self._closed.set()


def run(channel: Channel, *, stdin: bytes = b"", limit_s: float = 5.0) -> module.Exchange:
    """Runs a command on the channel."""
    return exchange(channel, "command", stdin=stdin, limit_s=limit_s)  # type: ignore[arg-type]  # what it uses of a channel


@given(
    st.lists(st.binary(min_size=1)),
    st.lists(st.binary(min_size=1)),
    st.integers(0, 255),
    st.binary(),
    st.integers(1, 7),
)
def test_every_byte_arrives(out: list[bytes], err: list[bytes], status: int, stdin: bytes, window: int) -> None:
    """Output, errors, input and status arrive whole, in whatever pieces they travel."""
    channel = Channel(out=out, err=err, status=status, window=window)
    done = run(channel, stdin=stdin)

    assert (done.stdout, done.stderr, done.status) == (b"".join(out), b"".join(err), status)
    assert (channel.received, channel.ended_input) == (stdin, True)
    assert not any((done.expired, done.held, done.flooded))


def test_the_limit_ends_a_command_that_does_not() -> None:
    """A command without an end is given up at the limit, with what it had written."""
    done = run(Channel(out=[b"some"], status=None), limit_s=0.05)

    assert (done.expired, done.status, done.stdout) == (True, -1, b"some")


def test_output_that_somebody_else_holds_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that ended while its output stays open is told from one that runs on."""
    monkeypatch.setattr(module, "HELD_S", 0.0)
    done = run(Channel(out=[b"some"], held=True))

    assert (done.held, done.status, done.expired) == (True, 0, False)


def test_a_flood_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """More output than may be kept ends the exchange, and is not kept."""
    monkeypatch.setattr(module, "MAX_OUTPUT_BYTES", 10)
    done = run(Channel(err=[b"1234567"] * 100, status=None))

    assert done.flooded
    assert len(done.stderr) <= 10


def test_a_refusal_is_the_callers() -> None:
    """What goes wrong before the limit is raised, not turned into a result."""
    with pytest.raises(paramiko.SSHException):
        run(Channel(refuses=True))
