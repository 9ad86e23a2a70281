"""The records of RocketMQ's brokers: what is written is read, and hostile bytes give an error and nothing else."""

from __future__ import annotations

import struct
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.kit.answers import NoAnswer
from clusters.systems.rocketmq.records import BORN_V6, COMPRESSED, STORED_V6, Record, records_in

VERSION_1, VERSION_2 = -626843481, -626843477
BODY: Final = struct.pack(">i", 4) + b"body"


def record(
    body: bytes = b"body",
    *,
    queue: int = 0,
    offset: int = 0,
    place: int = 4096,
    topic: str = "labrys",
    magic: int = VERSION_1,
    flag: int = 0,
    properties: bytes = b"k\x01v\x02",
) -> bytes:
    """A record as a broker writes it."""
    name = topic.encode()
    born, stored = (bytes(20 if flag & bit else 8) for bit in (BORN_V6, STORED_V6))
    rest = (
        struct.pack(">iiiiqqi", magic, 7, queue, 0, offset, place, flag)
        + struct.pack(">q", 1) + born + struct.pack(">q", 2) + stored + struct.pack(">iq", 0, 0)
        + struct.pack(">i", len(body)) + body
        + struct.pack(">B" if magic == VERSION_1 else ">H", len(name)) + name
        + struct.pack(">H", len(properties)) + properties
    )  # fmt: skip
    return struct.pack(">i", 4 + len(rest)) + rest


RECORDS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    body=st.binary(max_size=50),
    queue=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    place=st.integers(0, 2**63 - 1),
    topic=st.text(st.characters(codec="ascii"), max_size=20),
    magic=st.sampled_from([VERSION_1, VERSION_2]),
    flag=st.sampled_from([0, BORN_V6, STORED_V6, BORN_V6 | STORED_V6]),
    properties=st.binary(max_size=20),
)


@given(st.lists(RECORDS, max_size=4))
def test_what_a_broker_writes_is_read(some: list[dict[str, Any]]) -> None:
    """Each record has its queue, offset, topic and body, in both versions and with both sorts of addresses."""
    data = b"".join(record(**fields) for fields in some)
    names = ("queue", "offset", "topic", "body")
    assert list(records_in(data)) == [
        Record(**{name: fields[name] for name in names}, place=fields["place"], size=len(record(**fields)))
        for fields in some
    ]


@given(st.binary(max_size=300))
def test_any_bytes_are_records_or_an_error(data: bytes) -> None:
    """No bytes raise another error."""
    try:
        records = list(records_in(data))
    except NoAnswer:
        return
    assert bool(records) == bool(data)


@given(st.lists(RECORDS, min_size=1, max_size=3), st.data())
def test_damaged_records_are_records_or_an_error(some: list[dict[str, Any]], draw: st.DataObject) -> None:
    """One changed byte, or a cut, gives records of at most the same bytes, or an error."""
    data = bytearray(b"".join(record(**fields) for fields in some))
    data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    cut = bytes(data[: draw.draw(st.integers(1, len(data)))])
    try:
        records = list(records_in(cut))
    except NoAnswer:
        return
    assert sum(len(parsed.body) for parsed in records) <= len(cut)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (record()[:-1], "expected a record of"),
        (record() + b"\0", "expected a record of"),
        (struct.pack(">i", 2**31 - 1) + bytes(60), "expected a record of"),
        (struct.pack(">i", -1) + bytes(60), "expected a record of"),
        (struct.pack(">i", 0) + bytes(60), "expected a record of"),
        (record(magic=VERSION_1)[:4] + struct.pack(">i", 1) + record()[8:], "magic 1"),
        (record(flag=COMPRESSED), "not compressed"),
        (record().replace(BODY, struct.pack(">i", 2**31 - 1) + b"body"), "found a length of 2147483647"),
        (record().replace(BODY, struct.pack(">i", -5) + b"body"), "found a length of -5"),
        (record().replace(BODY, struct.pack(">i", 3) + b"body"), "expected a"),
    ],
    ids=["cut", "more", "huge", "negative", "empty", "magic", "compressed", "huge body", "negative body", "wrong body"],
)  # fmt: skip
def test_bytes_that_are_no_records(data: bytes, said: str) -> None:
    """The error says what was expected, and what came."""
    with pytest.raises(NoAnswer, match=said):
        list(records_in(data))
