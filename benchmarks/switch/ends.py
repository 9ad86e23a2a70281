"""The two ends of a measurement between nodes: `serve` answers, and the others measure. Each prints one number.

- `stream ADDRESS SECONDS`: megabits in a second over one TCP connection
- `turns ADDRESS SECONDS`: the median time of a round trip of 64 bytes, in microseconds
"""

from __future__ import annotations

import socket
import socketserver
import statistics
import sys
import time

PORT = 9500
SMALL, LARGE = 64, 1 << 18
TIMEOUT_S = 60.0


class Answer(socketserver.BaseRequestHandler):
    """Returns small messages, and takes all bytes of a stream."""

    def handle(self) -> None:
        """Serves one connection; its first byte says which kind it is."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        kind = self.request.recv(1)
        while chunk := self.request.recv(LARGE):
            if kind == b"t":
                self.request.sendall(chunk)
        if kind == b"s":
            self.request.sendall(b".")


class Server(socketserver.ThreadingTCPServer):
    """Serves until it is killed."""

    allow_reuse_address = True
    daemon_threads = True


def stream(address: str, seconds: float) -> float:
    """Returns the megabits in a second that reach the other end."""
    chunk = bytes(LARGE)
    with socket.create_connection((address, PORT), TIMEOUT_S) as end:
        end.sendall(b"s")
        began_s, sent = time.perf_counter(), 0
        while time.perf_counter() < began_s + seconds:
            end.sendall(chunk)
            sent += LARGE
        end.shutdown(socket.SHUT_WR)
        end.recv(1)  # all has arrived
        return sent * 8 / 1e6 / (time.perf_counter() - began_s)


def turns(address: str, seconds: float) -> float:
    """Returns the median time of a round trip, in microseconds."""
    message = bytes(SMALL)
    with socket.create_connection((address, PORT), TIMEOUT_S) as end:
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end.sendall(b"t")
        times_us: list[float] = []
        ends_s = time.perf_counter() + seconds
        while (began_s := time.perf_counter()) < ends_s:
            end.sendall(message)
            left = SMALL
            while left:
                left -= len(end.recv(left))
            times_us.append((time.perf_counter() - began_s) * 1e6)
    return statistics.median(times_us)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        Server(("0.0.0.0", PORT), Answer).serve_forever()
    print((stream if sys.argv[1] == "stream" else turns)(sys.argv[2], float(sys.argv[3])))
