"""A process' word about its clock becomes a range that certainly holds the truth."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import run_virtual
from harness.daemon import Daemon
from harness.declare import NoOptions
from harness.node import Node
from harness.process_clock import COARSE_S, ClockReading, LogClock, asked, http_date_s, parse_line
from harness.system import OneServiceSystem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.cluster import Cluster
    from harness.service import NodeStatus

UTC_LOG = LogClock(path="/l", pattern=r"(\S+Z) ", form="%Y-%m-%dT%H:%M:%S.%f%z", resolution_s=0.001, late_s=0.25)
EAST = LogClock(path="/l", pattern=r"(.{19}) ", form="%Y-%m-%d %H:%M:%S", resolution_s=1.0, utc_offset_s=8 * 3600)
LOCAL = LogClock(path="/l", pattern=r"(.{19}) ", form="%Y-%m-%d %H:%M:%S", resolution_s=1.0)


def read(*, least_s: float, most_s: float) -> ClockReading:
    """Returns a reading."""
    return ClockReading(least_s=least_s, most_s=most_s, source="test")


@given(st.floats(-300, 300), st.floats(0, 2), st.floats(0, 2), st.sampled_from([0.001, 1.0]))
def test_an_answer_gives_a_range_with_the_truth_in_it(
    off_s: float, there_s: float, back_s: float, step_s: float
) -> None:
    """The process reads its clock at any moment between the request and the answer, and rounds it down."""
    times = iter([1000.0, 1000.0 + there_s + back_s])
    said_s = (1000.0 + there_s + off_s) // step_s * step_s

    async def ask() -> float:
        return said_s

    reading = run_virtual(asked(ask, source="x", resolution_s=step_s, machine_s=lambda: next(times)))
    assert reading is not None
    assert reading.least_s - 1e-6 <= off_s <= reading.most_s + 1e-6


def test_no_answer_is_no_reading() -> None:
    """A process that does not answer says nothing."""

    async def ask() -> None:
        return None

    assert run_virtual(asked(ask, source="x", resolution_s=1.0)) is None


@pytest.mark.parametrize(
    ("output", "clock", "least_s"),
    [
        ("+0000\n1000.5\n1970-01-01T00:16:40.500Z INFO a: b\n", UTC_LOG, 0.0),
        ("-0330\n1000.5\n1970-01-01T00:20:00.500Z INFO a: b\n", UTC_LOG, 200.0),
        ("+0000\n1000.0\n1970-01-01 08:16:40 INFO a\n", EAST, 0.0),
        ("-0330\n1000.0\n1969-12-31 20:46:40 INFO a\n", LOCAL, 0.0),
    ],
)
def test_a_line_is_compared_with_the_time_of_its_write(output: str, clock: LogClock, least_s: float) -> None:
    """The zone is that of the line, of the description, or of the node."""
    reading = parse_line(output, clock)
    assert reading is not None
    assert reading.least_s == pytest.approx(least_s - COARSE_S)
    assert reading.most_s == pytest.approx(least_s + clock.resolution_s + clock.late_s)
    assert reading.source == "its log l"


@given(st.text(alphabet="+0123456789\n -:TZ.", max_size=80))
def test_any_other_output_is_no_reading_or_a_number(output: str) -> None:
    """The log of a system is hostile input."""
    for clock in (UTC_LOG, EAST, LOCAL):
        reading = parse_line(output, clock)
        assert reading is None or reading.least_s < reading.most_s


def test_readings_narrow_each_other() -> None:
    """Several imprecise readings leave a small range; a contradiction leaves the last one."""
    wide, late = read(least_s=-0.3, most_s=0.9), read(least_s=0.4, most_s=1.4)
    assert not wide.is_off
    assert late.narrowed(wide) == read(least_s=0.4, most_s=0.9)
    assert late.narrowed(wide).is_off
    far = read(least_s=5.0, most_s=6.0)
    assert far.narrowed(wide) == far


def test_a_reading_since_another_one_has_the_doubts_of_both() -> None:
    """A machine that is 10 s ahead itself does not count."""
    assert read(least_s=30.0, most_s=31.0).since(read(least_s=9.0, most_s=10.0)) == read(least_s=20.0, most_s=22.0)


def test_a_precise_reading_is_one_number() -> None:
    """A range is shown only if it is wide."""
    assert read(least_s=199.999, most_s=200.001).text == "+200.000 s"
    assert read(least_s=-1.0, most_s=0.5).text == "-1.0 to +0.5 s"


class Chatty(OneServiceSystem):
    """A system whose log gets a line for each status that it is asked for."""

    name = "chatty"
    role = "r"

    def __init__(self, log_clock: LogClock | None) -> None:
        nodes = (Node(name="n1", address="192.0.2.1"),)
        cluster = SimpleNamespace(nodes=nodes, remote=lambda node: f"shell of {node.name}")
        super().__init__(cast("Cluster", cluster), NoOptions(), "register")
        self.log_clock = log_clock
        self.asked = asyncio.Event()

    def daemon(self, node: Node) -> Daemon:
        """Returns the process."""
        return Daemon(
            role="r", argv=("r",), pattern="^r", ports=(), data_dir="/d", log_files=("/l",), log_clock=self.log_clock
        )

    def install(self, node: Node) -> None:
        """Does nothing."""

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Is ready."""

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Any:
        """Has no client."""
        raise NotImplementedError

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Notes the question."""
        self.asked.set()
        return ()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls of `logged`; the line comes 0.5 s after the call."""
    calls: list[Any] = []

    async def logged(remote: Any, clock: LogClock, timeout_s: float) -> ClockReading:
        calls.append((remote, clock, timeout_s))
        await asyncio.sleep(0.5)
        return read(least_s=1.0, most_s=2.0)

    monkeypatch.setattr("harness.service.logged", logged)
    return calls


def test_a_system_with_the_clock_of_a_log_tells_its_time(lines: list[Any]) -> None:
    """The default waits for a line of the log, and asks for the status meanwhile."""
    system = Chatty(UTC_LOG)

    async def work() -> tuple[ClockReading | None, bool]:
        return await system.clock(system.nodes[0], 2.0), system.asked.is_set()

    assert system.tells_time()
    assert run_virtual(work()) == (read(least_s=1.0, most_s=2.0), True)
    assert lines == [("shell of n1", UTC_LOG, 2.0)]


def test_a_system_without_any_clock_does_not_tell_its_time(lines: list[Any]) -> None:
    """Then nothing can prove that the clock of its process is another one."""
    system = Chatty(None)
    assert not system.tells_time()
    assert run_virtual(system.clock(system.nodes[0], 2.0)) is None
    assert not lines


@pytest.mark.parametrize(
    ("answer", "said_s"),
    [
        (b"HTTP/1.1 404 Not Found\r\nServer: x\r\ndate: Thu, 01 Jan 1970 00:16:40 GMT\r\n\r\n", 1000.0),
        (b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\nDate: Thu, 01 Jan 1970 00:16:40 GMT\r\n", None),
        (b"HTTP/1.1 200 OK\r\nDate: tomorrow\r\n\r\n", None),
        (b"", None),
    ],
)
def test_the_date_of_an_http_answer(answer: bytes, said_s: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the header, whatever the status is; an answer without a date says nothing."""

    async def connect(address: str, port: int) -> tuple[asyncio.StreamReader, Any]:
        reader = asyncio.StreamReader()
        reader.feed_data(answer)
        reader.feed_eof()
        return reader, SimpleNamespace(write=lambda data: None, close=lambda: None)

    monkeypatch.setattr(asyncio, "open_connection", connect)
    assert run_virtual(http_date_s("192.0.2.1", 80, 1.0)) == said_s
