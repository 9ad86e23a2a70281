"""Remoting: real frames over loopback, and hostile answers without a network."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from typing import TYPE_CHECKING, Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.kit.answers import NoAnswer, NotSent
from clusters.systems.dledger.remoting import MAX_FRAME_BYTES, MAX_HEADER_BYTES, Connection
from tests.unit.clusters.remoting_script import HEAD, answer, frame, scripted

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from clusters.systems.dledger.remoting import Answer

HOST = "127.0.0.1"


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs a test's coroutine, for at most ten seconds."""

    async def bounded() -> None:
        async with asyncio.timeout(10):
            await main

    asyncio.run(bounded())


def echo(header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
    """Answers with the request's body."""
    return answer(header["opaque"], {"asked": body})


async def read_answer(data: bytes) -> Answer:
    """The result of a first request whose answer is these bytes and the end of the stream."""
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    writer = MagicMock(spec=asyncio.StreamWriter)
    writer.is_closing.return_value = False
    connection = Connection(reader, writer, "n1:1")
    asyncio.get_running_loop().call_soon(reader.feed_eof)
    async with asyncio.timeout(10):
        return await connection.call(1, {}, extension={})


def test_a_request_has_the_servers_form() -> None:
    """The header is that of the protocol, with the request's type, and the body is the given JSON object."""

    async def main() -> None:
        async with scripted(echo) as node:
            connection = await Connection.open(HOST, node.port, 1)
            got = await connection.call(59999, {"group": "g", "key": "é"}, extension={"requestTypeCode": "1"})
            assert (got.status, got.remark) == (200, "")
            assert got.body == {"asked": {"group": "g", "key": "é"}}
            header, _ = node.requests[0]
            opaque = header.pop("opaque")
            assert isinstance(opaque, int)
            assert header == {
                "code": 59999,
                "language": "PYTHON",
                "version": 0,
                "flag": 0,
                "extFields": {"requestTypeCode": "1"},
            }
            await connection.close()

    run(main())


def test_one_connection_serves_many_calls() -> None:
    """Successive calls use one connection, with different numbers."""

    async def main() -> None:
        async with scripted(echo) as node:
            connection = await Connection.open(HOST, node.port, 1)
            for number in range(20):
                assert (await connection.call(1, {"n": number}, extension={})).body == {"asked": {"n": number}}
            assert node.connections == 1
            assert len({header["opaque"] for header, _ in node.requests}) == 20
            await connection.close()

    run(main())


def test_an_answer_may_come_in_pieces() -> None:
    """A frame is read whole, even if it arrives in parts."""

    async def main() -> None:
        async def piecewise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(HEAD.size)
            for byte in answer(1, {"value": 5}):
                writer.write(bytes([byte]))
                await writer.drain()
            writer.close()

        server = await asyncio.start_server(piecewise, HOST, 0)
        connection = await Connection.open(HOST, server.sockets[0].getsockname()[1], 1)
        assert (await connection.call(1, {}, extension={})).body == {"value": 5}
        await connection.close()
        server.close()

    run(main())


def test_an_answer_without_a_body() -> None:
    """The remoting layer's own answers have a remark and no body."""

    async def main() -> None:
        got = await read_answer(answer(1, status=1, remark="java.lang.NullPointerException"))
        assert (got.status, got.remark, got.body) == (1, "java.lang.NullPointerException", {})

    run(main())


def test_nobody_there_is_not_sent() -> None:
    """A refused connection certainly had no effect."""

    async def main() -> None:
        with socket.socket() as free:
            free.bind((HOST, 0))
            with pytest.raises(NotSent, match="refused a connection"):
                await Connection.open(HOST, free.getsockname()[1], 1)

    run(main())


def test_a_connection_that_is_not_accepted_in_time_is_not_sent() -> None:
    """If packets vanish, the deadline ends the attempt."""

    async def main() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio, "open_connection", lambda *_: asyncio.sleep(60))
            with pytest.raises(NotSent, match=r"did not accept a connection in 0\.05 s"):
                await Connection.open(HOST, 1, 0.05)

    run(main())


def test_a_connection_that_was_closed_before_is_not_sent() -> None:
    """A request over a connection that the other side has closed is not sent."""

    async def main() -> None:
        async with scripted(lambda _header, _body: None) as node:
            connection = await Connection.open(HOST, node.port, 1)
            with pytest.raises(NoAnswer, match="closed the connection before it answered") as raised:
                await connection.call(1, {}, extension={})
            assert not isinstance(raised.value, NotSent)
            assert connection.closed
            with pytest.raises(NotSent):
                await connection.call(1, {}, extension={})
            assert len(node.requests) == 1

    run(main())


def test_a_cancelled_call_closes_the_connection() -> None:
    """A late answer is not mistaken for the answer to the next request."""

    async def main() -> None:
        async with scripted(echo) as node:
            node.hang = True
            connection = await Connection.open(HOST, node.port, 1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await connection.call(1, {}, extension={})
            assert connection.closed

    run(main())


DEEP = b'{"a":' * 100_000
HOSTILE = {
    "a frame of zero bytes": b"\0\0\0\0",
    "a frame too large for any server": (MAX_FRAME_BYTES + 1).to_bytes(4, "big"),
    "a frame of four gigabytes": b"\xff\xff\xff\xff",
    "a header longer than its frame": HEAD.pack(10, 7) + b"{}    ",
    "a header longer than any": frame(b"{}" + b" " * MAX_HEADER_BYTES),
    "a header in another encoding": frame(b"{}", encoding=1),
    "a header that is not JSON": frame(b"hello"),
    "a header that is not UTF-8": frame(b"\xff\xfe{}"),
    "a header that is no object": frame(b"[]"),
    "a header without anything": frame(b"{}"),
    "a header without a code": frame(b'{"opaque":1}'),
    "a code that is text": frame(b'{"opaque":1,"code":"200"}'),
    "another request's answer": answer(2, {}),
    "a number as text": frame(b'{"opaque":"1","code":200}'),
    "a body that is not JSON": frame(b'{"opaque":1,"code":200}', b"{"),
    "a body that is no object": frame(b'{"opaque":1,"code":200}', b"7"),
    "a body as deep as the sea": frame(b'{"opaque":1,"code":200}', DEEP),
    "an endless number": frame(b'{"opaque":1,"code":200}', b'{"v":' + b"9" * 100_000 + b"}"),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_answers_are_bad_answers(data: bytes) -> None:
    """A violation of the protocol is a typed error at once, without reading more."""

    async def main() -> None:
        with pytest.raises(NoAnswer):
            await read_answer(data)

    run(main())


@pytest.mark.parametrize("length", [0, 1, 4, 7, 8, 20])
def test_an_answer_that_ends_early_is_no_answer(length: int) -> None:
    """After the end of the stream in the middle of a frame, the effect of the request is unknown."""

    async def main() -> None:
        with pytest.raises(NoAnswer, match="closed the connection before it answered"):
            await read_answer(answer(1, {"value": 1})[:length])

    run(main())


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_a_typed_error(data: bytes) -> None:
    """Random bytes only ever cause a remoting error."""

    async def main() -> None:
        with pytest.raises(NoAnswer):
            await read_answer(data)

    run(main())


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=5), st.integers(0, 65535))
def test_every_proper_answer_is_read(body: dict[str, Any], status: int) -> None:
    """Any JSON object as body arrives unchanged."""

    async def main() -> None:
        got = await read_answer(answer(1, body, status=status))
        assert (got.status, got.body) == (status, json.loads(json.dumps(body)))

    run(main())


@pytest.mark.parametrize("window", [1, 4, 100])
def test_many_calls_are_in_flight_and_not_too_many(window: int) -> None:
    """Up to `window` requests are in flight; each answer comes with the position of its request."""

    async def main() -> None:
        frames: list[bytes] = []
        widest = 0

        def last_first(header: Mapping[str, Any], body: Mapping[str, Any]) -> bytes:
            nonlocal widest
            frames.append(echo(header, body))
            widest = max(widest, len(frames))
            if len(frames) < min(window, 20) and body["n"] < 19:
                return b""
            back = b"".join(reversed(frames))
            frames.clear()
            return back

        async with scripted(last_first) as node:
            connection = await Connection.open(HOST, node.port, 1)
            taken: dict[int, int] = {}

            def take(number: int, got: Answer) -> bool:
                taken[number] = got.body["asked"]["n"]
                return True

            bodies = ({"n": number} for number in range(20))
            await connection.call_many(7, bodies, window=window, timeout_s=1, take=take)
            assert taken == {number: number for number in range(20)}
            assert widest == min(window, 20)
            await connection.close()

    run(main())


def test_no_more_calls_after_one_that_is_the_last() -> None:
    """The requests in flight are still answered, and the connection stays usable."""

    async def main() -> None:
        async with scripted(echo) as node:
            connection = await Connection.open(HOST, node.port, 1)
            taken: list[int] = []

            def take(number: int, _answer: Answer) -> bool:
                taken.append(number)
                return number < 5

            bodies = ({"n": number} for number in itertools.count())
            await connection.call_many(7, bodies, window=4, timeout_s=1, take=take)
            assert taken[:6] == [0, 1, 2, 3, 4, 5]
            assert len(taken) == len(node.requests) <= 5 + 4 + 1
            assert (await connection.call(1, {"n": -1}, extension={})).body == {"asked": {"n": -1}}
            await connection.close()

    run(main())


def test_an_answer_to_nobodys_request_ends_many_calls() -> None:
    """It may be a late answer to another request, so the connection is closed."""

    async def main() -> None:
        async with scripted(lambda _header, body: answer(77, body)) as node:
            connection = await Connection.open(HOST, node.port, 1)
            with pytest.raises(NoAnswer, match="answered request 77, which is not in flight"):
                await connection.call_many(7, [{}], window=1, timeout_s=1, take=lambda _place, _answer: True)
            assert connection.closed
            with pytest.raises(NotSent):
                await connection.call_many(7, [{}], window=1, timeout_s=1, take=lambda _place, _answer: True)

    run(main())


def test_an_answer_has_the_fields_of_its_header() -> None:
    """And a body with bare numbers as keys is read; a request may have a list for a body, or none."""

    async def main() -> None:
        def script(header: Mapping[str, Any], body: Any) -> bytes:
            said = {"code": 0, "opaque": header["opaque"], "flag": 1, "extFields": {"nextBrokerId": "7"}}
            return frame(json.dumps(said).encode(), b'{"asked":%s,"of":{1:"a"}}' % json.dumps(body).encode())

        async with scripted(script) as node:
            connection = await Connection.open(HOST, node.port, 1)
            answered = await connection.call(1006, ["b0"], extension={"brokerName": "b0"})
            assert answered.extension == {"nextBrokerId": "7"}
            assert answered.body == {"asked": ["b0"], "of": {"1": "a"}}
            assert (await connection.call(1012, None, extension={})).body["asked"] is None
            assert node.requests[0][0]["extFields"] == {"brokerName": "b0"}
            await connection.close()

    run(main())


@pytest.mark.parametrize("fields", ["[1]", '"a"', '{"a":1}', "7"])
def test_fields_that_are_no_map_of_texts(fields: str) -> None:
    """Such fields make a bad answer."""
    header = f'{{"code":0,"opaque":1,"extFields":{fields}}}'.encode()
    with pytest.raises(NoAnswer, match="extFields"):
        asyncio.run(read_answer(frame(header)))
