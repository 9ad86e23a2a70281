"""The exchange of a command over a channel gives every byte or an error, and the reason of its end."""

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
    """A channel with given output; closing it ends every wait, as with paramiko."""

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
        """Does nothing."""

    def exec_command(self, command: str) -> None:
        """Starts the command, or refuses."""
        if self._refuses:
            raise paramiko.SSHException("Channel closed.")
        self.command = command

    def _receive(self, stream: int) -> bytes:
        chunk = next(self._streams[stream], b"")
        if not chunk and (self._held or self._status is None) and not self._closed.wait(0.001):
            raise TimeoutError
        return b"" if self._closed.is_set() else chunk

    def recv(self, _: int) -> bytes:
        """Returns the next chunk of standard output; empty at its end."""
        return self._receive(0)

    def recv_stderr(self, _: int) -> bytes:
        """Returns the next chunk of standard error; empty at its end."""
        return self._receive(1)

    def send(self, content: bytes) -> int:
        """Takes as many bytes as the window allows."""
        taken = content[: self._window]
        self.received += taken
        return len(taken)

    def shutdown_write(self) -> None:
        """Ends the input."""
        self.ended_input = True

    def exit_status_ready(self) -> bool:
        """Returns whether the command has ended."""
        return self._status is not None

    def recv_exit_status(self) -> int:
        """Waits for the end of the command, or of the channel."""
        if self._status is None:
            self._closed.wait()
            return -1
        return self._status

    def close(self) -> None:
        """Ends all waits."""
        self._closed.set()


def run(channel: Channel, *, stdin: bytes = b"", limit_s: float = 5.0) -> module.Exchange:
    """Runs a command on the channel."""
    return exchange(channel, "command", stdin=stdin, limit_s=limit_s)  # type: ignore[arg-type]  # it has the used methods of a channel


@given(
    st.lists(st.binary(min_size=1)),
    st.lists(st.binary(min_size=1)),
    st.integers(0, 255),
    st.binary(),
    st.integers(1, 7),
)
def test_every_byte_arrives(out: list[bytes], err: list[bytes], status: int, stdin: bytes, window: int) -> None:
    """Standard output, standard error, input and status are complete, with any sizes of chunks."""
    channel = Channel(out=out, err=err, status=status, window=window)
    done = run(channel, stdin=stdin)

    assert (done.stdout, done.stderr, done.status) == (b"".join(out), b"".join(err), status)
    assert (channel.received, channel.ended_input) == (stdin, True)
    assert not any((done.expired, done.held, done.flooded))


def test_the_time_limit_ends_a_command() -> None:
    """The result has the output so far."""
    done = run(Channel(out=[b"some"], status=None), limit_s=0.05)

    assert (done.expired, done.status, done.stdout) == (True, -1, b"some")


def test_output_that_another_process_holds_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ended, and its output stays open."""
    monkeypatch.setattr(module, "HELD_S", 0.0)
    done = run(Channel(out=[b"some"], held=True))

    assert (done.held, done.status, done.expired) == (True, 0, False)


def test_too_much_output_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the exchange."""
    monkeypatch.setattr(module, "MAX_OUTPUT_BYTES", 10)
    done = run(Channel(err=[b"1234567"] * 100, status=None))

    assert done.flooded
    assert len(done.stderr) <= 10


def test_a_refusal_is_raised() -> None:
    """An error before the time limit is not turned into a result."""
    with pytest.raises(paramiko.SSHException):
        run(Channel(refuses=True))
