"""The debugger of a JVM: what answers may be no JVM, or one that lies."""

from __future__ import annotations

import socket
import struct
import threading
from typing import TYPE_CHECKING

import pytest

from nemesis import jdwp
from nemesis.errors import FaultError
from nemesis.jdwp import HANDSHAKE, Debugger

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

JOIN_S = 10
SIZES = struct.pack(">5i", 8, 8, 8, 8, 8)


@pytest.fixture
def peer() -> Iterator[Peer]:
    """Something that answers as the test says."""
    made = Peer()
    yield made
    made.close()


class Peer:
    """Sends prepared bytes after each packet that it gets; the first packet is the greeting."""

    def __init__(self) -> None:
        self.here, self._there = socket.socketpair()
        self._answers: threading.Thread | None = None

    def says(self, answers: Sequence[bytes]) -> Debugger:
        """Starts the answers, and returns a debugger that talks to it."""
        self._answers = threading.Thread(target=self._answer, args=(list(answers),), daemon=True)
        self._answers.start()
        return Debugger(self.here)

    def _answer(self, answers: list[bytes]) -> None:
        for answer in answers:
            if not self._there.recv(1 << 16):
                return
            self._there.sendall(answer)
        self._there.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Ends both sides. The answers end when this side is closed."""
        self.here.close()
        if self._answers is not None:
            self._answers.join(JOIN_S)
        self._there.close()


def answer(number: int, content: bytes = b"", *, code: int = 0) -> bytes:
    """Returns the answer to the packet with a number."""
    return struct.pack(">IIBH", 11 + len(content), number, 0x80, code) + content


def event(content: bytes) -> bytes:
    """Returns a packet with events, which the JVM sends by itself."""
    return struct.pack(">IIBBB", 11 + len(content), 77, 0, 64, 100) + content


def hit(request: int, thread: int) -> bytes:
    """Returns the event of a breakpoint."""
    return struct.pack(">BiQBQQQ", 2, request, thread, 1, 10, 20, 30)


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([b"HTTP/1.1 400 B"], "expected the greeting of a JVM's debugger, not b'HTTP/1.1 400 B'"),
        ([b"JDWP"], "the JVM ended the connection to its debugger"),
        ([HANDSHAKE, answer(1, SIZES[:-1])], "a packet that ends too early"),
        ([HANDSHAKE, answer(1, struct.pack(">5i", 8, 8, 3, 8, 8))], "its ids have .* expected 4 or 8"),
        ([HANDSHAKE, struct.pack(">IIBH", 1 << 31, 1, 0x80, 0)], "a packet of 2147483648 bytes"),
        ([HANDSHAKE, struct.pack(">IIBH", 3, 1, 0x80, 0)], "a packet of 3 bytes"),
        ([HANDSHAKE, answer(1, code=113)], "answered the command 1.7 of its debugger with the error 113"),
    ],
)
def test_what_is_no_jvm_is_refused(peer: Peer, answers: Sequence[bytes], error: str) -> None:
    """Each error says what came."""
    with pytest.raises(FaultError, match=error):
        peer.says(answers)


def test_events_between_answers_are_kept(peer: Peer) -> None:
    """A thread can come to a breakpoint before the JVM answers the command that set it."""
    both = event(struct.pack(">Bi", 1, 2) + hit(5, 100) + hit(6, 101)) + answer(2, struct.pack(">i", 6))
    debugger = peer.says([HANDSHAKE, answer(1, SIZES), both])
    line = jdwp.Line(method=jdwp.Method(of=1, id=2, name="a.B.c"), index=0, number=7)
    assert debugger.hold(line) == 6
    assert [(found.request, found.thread) for found in debugger.hits(0)] == [(5, 100), (6, 101)]


def test_the_end_of_the_jvm_ends_the_wait(peer: Peer) -> None:
    """Its last event says so."""
    debugger = peer.says([HANDSHAKE, answer(1, SIZES) + event(struct.pack(">BiBi", 0, 1, 99, 0))])
    assert debugger.hits(float("inf")) == []
    assert not debugger.alive


def test_a_count_beyond_the_packet_is_refused(peer: Peer) -> None:
    """It is not believed, so no loop runs for ever."""
    debugger = peer.says([HANDSHAKE, answer(1, SIZES), answer(2, struct.pack(">i", 2**31 - 1))])
    with pytest.raises(FaultError, match="ends too early"):
        debugger.methods(["org.example"])
