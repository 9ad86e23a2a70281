"""jRaft's request for a leadership transfer, as jRaft's own command line client sends it.

Controllers have no request for it. But each has a server of jRaft on its own port, which accepts the requests of jRaft's
`CliService`. They are protobuf messages in frames of SOFABolt. The frames are, big-endian:

| request | response |
|---|---|
| protocol (1), type 1, command 1 (2 bytes), version 1 | protocol (1), type 0, command 2 (2 bytes), version |
| id (4), codec (1), timeout in ms (4) | id (4), codec (1), status (2) |
| lengths of class (2), header (2) and content (4) | the same |
| class name, header, content | the same |

Source: jraft-core 1.3.14, `CliRequests`, `TransferLeaderRequestProcessor` and `RpcRequests.ErrorResponse`; bolt 1.6.4,
`RpcCommandDecoder`.
"""

from __future__ import annotations

import asyncio
import struct

from clusters.kit.answers import NoAnswer, NotSent

TRANSFER = b"com.alipay.sofa.jraft.rpc.CliRequests$TransferLeaderRequest"
REQUEST = struct.Struct(">BBHBIBIHHI")
RESPONSE = struct.Struct(">BBHBIBHHHI")
PROTOCOL, ASKS, ANSWERS, COMMAND, REPLY, VERSION, ID, CODEC = 1, 1, 0, 1, 2, 1, 1, 1
DONE = 0
MAX_BYTES = 64 * 1024
GROUP_FIELD, LEADER_FIELD, TO_FIELD = 1, 2, 3
CODE_FIELD = 1
MORE = 0x80  # this bit is set in every byte of a varint but the last


async def transfer(host: str, port: int, *, group: str, to: str, timeout_s: float) -> int:
    """Requests that a leader transfers its leadership. The leader answers before the other node leads.

    Args:
        host: The address of the leader.
        port: The leader's port of jRaft.
        group: The name of the group.
        to: The next leader's address and port of jRaft, `host:port`.
        timeout_s: Time limit in seconds.

    Returns:
        The code of jRaft; 0: the leader has begun the transfer.

    Raises:
        NotSent: The node did not accept a connection.
        NoAnswer: No answer came, or a bad one.
    """
    where = f"{host}:{port}"
    try:
        async with asyncio.timeout(timeout_s):
            try:
                reader, writer = await asyncio.open_connection(host, port)
            except OSError as error:
                raise NotSent(f"{where} refused a connection: {error.strerror or error}") from error
            try:
                writer.write(_request(group, f"{host}:{port}", to, timeout_s))
                await writer.drain()
                return await _code(reader, where)
            finally:
                writer.close()
    except TimeoutError as error:
        raise NoAnswer(f"{where} did not answer in {timeout_s:g} s") from error
    except (OSError, asyncio.IncompleteReadError) as error:
        raise NoAnswer(f"{where} closed the connection before it answered") from error


def _request(group: str, leader: str, to: str, timeout_s: float) -> bytes:
    content = _text(GROUP_FIELD, group) + _text(LEADER_FIELD, leader) + _text(TO_FIELD, to)
    head = REQUEST.pack(
        PROTOCOL, ASKS, COMMAND, VERSION, ID, CODEC, int(timeout_s * 1000), len(TRANSFER), 0, len(content)
    )
    return head + TRANSFER + content


async def _code(reader: asyncio.StreamReader, where: str) -> int:
    """Reads an answer, and returns the code of its `ErrorResponse`; 0 without this field."""
    *head, status, name_length, header_length, length = RESPONSE.unpack(await reader.readexactly(RESPONSE.size))
    if head[:3] != [PROTOCOL, ANSWERS, REPLY] or name_length + header_length + length > MAX_BYTES:
        raise NoAnswer(f"{where}: expected an answer of SOFABolt, got {head}")
    await reader.readexactly(name_length + header_length)
    content = await reader.readexactly(length)
    if status != DONE:
        raise NoAnswer(f"{where}: expected the status 0 of SOFABolt, got {status}")
    if not content:
        return 0
    if content[0] != CODE_FIELD << 3:
        raise NoAnswer(f"{where}: expected a code, got {content[:40]!r}")
    return _varint(content[1:], where)


def _text(number: int, text: str) -> bytes:
    """Returns a protobuf field with a text of at most 16,383 bytes."""
    data = text.encode()
    length = bytes([len(data)]) if len(data) < MORE else bytes([MORE | len(data) % MORE, len(data) // MORE])
    return bytes([number << 3 | 2]) + length + data


def _varint(data: bytes, where: str) -> int:
    value = 0
    for index, byte in enumerate(data[:10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < MORE:
            return value
    raise NoAnswer(f"{where}: expected a number, got {data[:40]!r}")
