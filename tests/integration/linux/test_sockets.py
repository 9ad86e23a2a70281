"""Sockets of programs in virtual time: connections that nobody answers, windows, IPv6 and Unix sockets.

`drawn.c` compares single calls with the kernel; here several programs and nodes take part.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusters.sim.linux.building import controller
from clusters.sim.linux.driving import Controller, Parts
from harness.world import Disturbance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.integration
SECOND_NS = 1_000_000_000
PYTHON = ("/usr/bin/python3", "-I", "-S", "-c")
CUT_S = 3
BEGIN = """
import errno, os, socket, threading, time
from socket import *
def said(*words): print(*words, flush=True)
"""
SERVER = (
    BEGIN
    + """
server = create_server(("0.0.0.0", 80))
kept = []
while True:
    kept.append(server.accept()[0])
"""
)


@contextlib.contextmanager
def nodes(folder: Path) -> Iterator[Controller]:
    """Returns a run with two nodes."""
    root = folder / "root"
    root.mkdir()
    addresses = {"n1": "10.0.0.1", "n2": "10.0.0.2", "us": "10.0.0.9"}
    parts = Parts(seed=1, root=root, nodes=addresses, variables={"PATH": "/usr/bin"}, shown=[Path("/usr")])
    run = Controller(controller(lambda _: None), parts)
    try:
        yield run
    finally:
        run.stop()


def started(run: Controller, node: str, code: str) -> int:
    """Starts a program in Python. Returns its number."""
    return run.start(node, [*PYTHON, BEGIN + code], folder="/root", output=f"/root/output-{node}")


def said(run: Controller, node: str, program: int) -> list[str]:
    """Lets a program run to its end. Returns the lines that it prints."""
    while not any(event.kind == "exited" and event.id == program for event in run.wait(run.now_ns + 3600 * SECOND_NS)):
        pass
    return run.path_of(node, f"/root/output-{node}").read_text().splitlines()


CLIENT = """
c = create_connection(("10.0.0.1", 80))
{options}
time.sleep(5)
began = time.monotonic()
try:
    {action}
    said("done")
except OSError as error:
    said(errno.errorcode[error.errno], round(time.monotonic() - began))
"""
KEEP = """
c.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
for name, value in ((TCP_KEEPIDLE, 10), (TCP_KEEPINTVL, 5), (TCP_KEEPCNT, 3)):
    c.setsockopt(IPPROTO_TCP, name, value)
"""
ASK = "c.sendall(b'x'); c.recv(1)"
LIMIT = "c.setsockopt(IPPROTO_TCP, 18, 7000)"  # TCP_USER_TIMEOUT
BOTH = (("n2", "n1"), ("n1", "n2"))


@pytest.mark.parametrize(
    ("cuts", "options", "action", "heard"),
    [
        (BOTH, "", ASK, ["ETIMEDOUT 925"]),
        (BOTH[1:], "", ASK, ["ETIMEDOUT 925"]),
        (BOTH, LIMIT, ASK, ["ETIMEDOUT 7"]),
        (BOTH, "", "create_connection(('10.0.0.1', 80))", ["ETIMEDOUT 127"]),
        # The first question is 10 s after the connection, which is 5 s old then.
        (BOTH, KEEP, "c.recv(1)", ["ETIMEDOUT 20"]),
        ((), KEEP, "import select; said(select.select([c], [], [], 100)[0])", ["[]", "done"]),
    ],
    ids=["data", "only the answers are lost", "TCP_USER_TIMEOUT", "connect", "keepalive", "keepalive without a cut"],
)
def test_what_nobody_answers_times_out(
    cuts: Sequence[tuple[str, str]], options: str, action: str, heard: list[str], tmp_path: Path
) -> None:
    """The times are those of Linux: 15 and 6 retransmissions, or what the program asks for."""
    with nodes(tmp_path) as run:
        started(run, "n1", SERVER)
        run.wait(SECOND_NS)
        client = started(run, "n2", CLIENT.format(options=options, action=action))
        assert run.wait(run.now_ns + CUT_S * SECOND_NS) == []
        for source, target in cuts:
            run.cut(1, source, target)
        lines = said(run, "n2", client)
    assert lines == heard


@pytest.mark.parametrize(("cut_s", "heard"), [(700, ["805", "done"]), (850, ["ETIMEDOUT 925"])])
def test_a_cut_that_heals_in_time_loses_nothing(cut_s: int, heard: list[str], tmp_path: Path) -> None:
    """What was sent arrives with the next of the 15 retransmissions. The last one is 804.6 s after the first try."""
    with nodes(tmp_path) as run:
        started(
            run, "n1", SERVER.replace("kept.append(server.accept()[0])", "c = server.accept()[0]; c.sendall(c.recv(9))")
        )
        run.wait(SECOND_NS)
        action = "c.sendall(b'x'); assert c.recv(1) == b'x'; said(round(time.monotonic() - began))"
        client = started(run, "n2", CLIENT.format(options="", action=action))
        run.wait(run.now_ns + CUT_S * SECOND_NS)
        run.cut(1, "n2", "n1")
        run.wait(run.now_ns + cut_s * SECOND_NS)
        run.mend(1)
        assert said(run, "n2", client) == heard


ECHO = SERVER.replace(
    "kept.append(server.accept()[0])", "c = server.accept()[0]\n    while part := c.recv(9): c.sendall(part)"
)
LOST = Disturbance(lose=1.0)


def test_a_lost_segment_comes_soon_after_the_losses_end(tmp_path: Path) -> None:
    """Each retransmission meets the link of its time. The one after 1.4 s is the first after losses of 1 s."""
    with nodes(tmp_path) as run:
        started(run, "n1", ECHO)
        run.wait(SECOND_NS)
        ask = "began = time.monotonic(); c.sendall(b'x'); c.recv(1); said(round(time.monotonic() - began, 1))"
        client = started(run, "n2", CLIENT.format(options="", action=f"{ask}; {ask}"))
        run.wait(run.now_ns + 4_990_000_000)
        run.disturb(1, "n2", "n1", LOST)
        run.wait(run.now_ns + SECOND_NS)
        run.mend(1)
        assert said(run, "n2", client) == ["1.4", "0.0", "done"]


@pytest.mark.parametrize(
    ("options", "action", "heard"),
    [
        ("", ASK, "ETIMEDOUT 925"),
        (LIMIT, ASK, "ETIMEDOUT 7"),
        ("", "create_connection(('10.0.0.1', 80))", "ETIMEDOUT 127"),
    ],
    ids=["data", "TCP_USER_TIMEOUT", "connect"],
)
def test_what_is_lost_each_time_times_out(options: str, action: str, heard: str, tmp_path: Path) -> None:
    """As without an answer: after 15 and 6 retransmissions, or when the program asks for it."""
    with nodes(tmp_path) as run:
        started(run, "n1", SERVER)
        run.wait(SECOND_NS)
        client = started(run, "n2", CLIENT.format(options=options, action=action))
        run.wait(run.now_ns + CUT_S * SECOND_NS)
        run.disturb(1, "n2", "n1", LOST)
        assert said(run, "n2", client) == [heard]


READER = """
server = create_server(("0.0.0.0", 80))
server.setsockopt(SOL_SOCKET, SO_RCVBUF, {received})
c = server.accept()[0]
time.sleep(20)
count = 0
while part := c.recv(100_000):
    count += len(part)
said(count)
"""
WRITER = """
c = socket()
c.setsockopt(SOL_SOCKET, SO_SNDBUF, {sent})
c.connect(("10.0.0.1", 80))
c.setblocking(False)
count = 0
try:
    while True:
        count += c.send(b"x" * 1000)
except BlockingIOError:
    said(count)
c.setblocking(True)
began = time.monotonic()
c.sendall(b"y" * 500_000)
said(time.monotonic() - began > 19)
c.close()
"""


@pytest.mark.parametrize(("sent", "received", "room"), [(4_000, 3_000, 14_000), (60_000, 40_000, 200_000)])
def test_a_writer_waits_for_the_reader(sent: int, received: int, room: int, tmp_path: Path) -> None:
    """The buffers hold twice what the programs ask for. The rest waits until the other end reads, and all of it arrives."""
    with nodes(tmp_path) as run:
        reader = started(run, "n1", READER.format(received=received))
        run.wait(SECOND_NS)
        writer = started(run, "n2", WRITER.format(sent=sent))
        assert said(run, "n2", writer) == [str(room), "True"]
        assert said(run, "n1", reader) == [str(room + 500_000)]


def test_a_listener_of_ipv6_takes_connections_of_ipv4(tmp_path: Path) -> None:
    """A server in Go or Java listens on `::`, and sees the nodes as `::ffff:10.0.0.2`."""
    server = """
server = create_server(("::", 80), family=AF_INET6, dualstack_ipv6=True)
c, address = server.accept()
said(address[0], c.getsockname()[0], server.getsockname()[0])
c.close()
try:
    create_server(("0.0.0.0", 80), reuse_port=False)
except OSError as error:
    said(errno.errorcode[error.errno])
alone = create_server(("::1", 81), family=AF_INET6)
own = create_connection(("::1", 81))
said(own.getpeername()[0], alone.accept()[1][0])
try:
    create_connection(("127.0.0.1", 81))
except OSError as error:
    said(errno.errorcode[error.errno])
"""
    with nodes(tmp_path) as run:
        program = started(run, "n1", server)
        run.wait(SECOND_NS)
        started(run, "n2", "said(create_connection(('10.0.0.1', 80)).recv(1))")
        lines = said(run, "n1", program)
    assert lines == ["::ffff:10.0.0.2 ::ffff:10.0.0.1 ::", "EADDRINUSE", "::1 ::1", "ECONNREFUSED"]


UNIX = """
import struct
path = "/run/own.sock"
if os.fork() == 0:
    time.sleep(1)
    c = socket(AF_UNIX)
    c.connect(path)
    c.sendall(b"hello")
    said(c.recv(9), c.getpeername())
    d = socket(AF_UNIX, SOCK_DGRAM)
    d.connect("/run/datagrams")
    began = time.monotonic()
    for number in range(20):
        d.send(b"%d" % number)
    said("sent", time.monotonic() - began > 4)
    os._exit(0)
server = socket(AF_UNIX)
server.bind(path)
server.listen(1)
datagrams = socket(AF_UNIX, SOCK_DGRAM)
datagrams.bind("/run/datagrams")
c, address = server.accept()
said(c.recv(9), repr(address), struct.unpack("3i", c.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))[1:])
c.sendall(b"olleh")
time.sleep(5)
said([int(datagrams.recv(9)) for _ in range(20)] == list(range(20)), os.path.exists(path))
os.unlink(path)
os.wait()
try:
    socket(AF_UNIX).connect(path)
except FileNotFoundError:
    said("gone")
"""


def test_processes_talk_over_unix_sockets(tmp_path: Path) -> None:
    """A connect finds the file, a full queue of datagrams makes the sender wait, and the other end is known by its user."""
    with nodes(tmp_path) as run:
        lines = said(run, "n1", started(run, "n1", UNIX))
    assert sorted(lines) == sorted(["b'hello' '' (0, 0)", "b'olleh' /run/own.sock", "True True", "sent True", "gone"])


def test_the_nth_message_with_a_text_ends_a_wait(tmp_path: Path) -> None:
    """The wait ends before the message arrives. What the nodes send right after it is held for 5 ms."""
    with nodes(tmp_path) as run:
        server = started(
            run,
            "n1",
            """
end = create_server(("0.0.0.0", 80)).accept()[0]
while got := end.recv(100):
    said(got.decode(), time.monotonic_ns())
""",
        )
        run.hear(7, [("n2", "n1")], nth=2, has=b"vote")
        started(
            run,
            "n2",
            """
time.sleep(0.1)
end = create_connection(("10.0.0.1", 80))
for number in range(5):
    end.sendall(b"%s %d" % (b"vote" if number else b"hello", number))
    time.sleep(0.001 if number == 2 else 0.05)
""",
        )
        while not (events := [event for event in run.wait(run.now_ns + SECOND_NS) if event.kind == "passed"]):
            pass
        (event,) = events
        assert (event.id, event.link, event.content) == (7, ("n2", "n1"), b"vote 2")
        before = run.path_of("n1", "/root/output-n1").read_text()
        lines = said(run, "n1", server)
    assert ("vote 1" in before, "vote 2" in before) == (True, False)
    texts, times = [line.rpartition(" ")[0] for line in lines], [int(line.rpartition(" ")[2]) for line in lines]
    assert texts == ["hello 0", *(f"vote {number}" for number in range(1, 5))]
    assert times[3] - times[2] > 3 * SECOND_NS // 1000
