"""Jepsen's test.jepsen is read as the history.edn beside it, and damage is refused with its place."""

from __future__ import annotations

import io
import struct
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from checker.edn.values import EdnMap, EdnSet, Keyword, Tagged, ratio
from checker.formats.errors import BadHistory
from checker.formats.fressian import FressianReader
from checker.formats.read import History, read_source
from checker.formats.readers import EDN, JEPSEN_FILE, events_of
from checker.formats.source import Source
from harness.errors import InputError
from tests.unit.checker.jepsen_blocks import Entry, Name, Op, Reference, block, block_file, fressian, of_blocks

DAMAGES = 400
ENCODED = Path(__file__).parents[2] / "data/jepsen-blocks"
OPS = [
    Op(0, 5, "invoke", 0, "write", 3),
    Op(1, 6, "info", Name("nemesis"), "start", {Name("isolated"): {"n1": {"n2", "n3"}}}),
    Op(2, 2**40, "ok", 0, "write", 3, {Name("node"): "n1"}),
    Op(3, 2**40, "invoke", 1, "cas", [3, 4]),
    Op(4, 2**41, "info", 1, "cas", [3, 4], {Name("error"): [Name("timeout"), "5 s"]}),
    Op(5, 2**41, "invoke", 70_000, "read", None),
    Op(6, 2**41, "ok", 70_000, "read", 4),
]


def read(data: bytes, *, transactions: str | None = None) -> History:
    """Reads a file."""
    with closing(Source("h", io.BytesIO(data))) as source:
        [history] = read_source(source, transactions=transactions)
    return history


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_the_events_of_all_chunks_are_read(chunk: int) -> None:
    """Indexes, times, faults, errors and further members are those of the operations."""
    history = read(block_file(OPS, chunk=chunk, more={Name("nodes"): ["n1"], Name("start-time"): 1.5}))
    assert (history.format, history.events, history.timed, history.keyed) == (JEPSEN_FILE, 7, True, False)
    first, second, third = history.operations
    assert (first.value, first.invoke_index, first.complete_index, first.end_ns) == (3, 0, 2, 2**40)
    assert (second.value, str(second.type), second.error) == ([3, 4], "info", "timeout: 5 s")
    assert (third.process, third.value, third.result) == (70_000, None, 4)


def test_the_file_of_fressians_own_encoder_is_the_history_beside_it() -> None:
    """`encode.clj` wrote both with the libraries that Jepsen uses: each kind of value, and a test with members of each kind."""
    histories = []
    for name, found_format in (("encoded.jepsen", JEPSEN_FILE), ("encoded.edn", EDN)):
        with (
            (ENCODED / name).open("rb") as file,
            closing(Source("h", file)) as source,
            events_of(found_format, source, keyed=False) as events,
        ):
            histories.append(list(events))
    assert len(histories[0]) == 83
    assert histories[0] == histories[1]


def test_a_file_of_the_first_version_has_maps() -> None:
    """Its events are one value, maps without indexes."""
    events = [
        {Name("type"): Name(kind), Name("process"): 0, Name("f"): Name("read"), Name("value"): value, Name("time"): 7}
        for kind, value in (("invoke", None), ("ok", 2))
    ]
    [operation] = read(block_file(events, version=0)).operations
    assert (operation.f, operation.result, operation.invoke_index, operation.start_ns) == ("read", 2, 0, 7)


def test_entries_are_independent_keys() -> None:
    """The value of an operation that is a map's entry is a tuple; an entry elsewhere is a vector."""
    ops = [Op(0, 1, "invoke", 0, "write", Entry("x", [Entry(1, 2)])), Op(1, 2, "ok", 0, "write", Entry("x", [[1, 2]]))]
    history = read(block_file(ops))
    assert [(op.key, op.value, op.result) for op in history.operations] == [("x", [[1, 2]], [[1, 2]])]


def test_transactions_have_their_softer_rules() -> None:
    """A completion without an invoke is read as in the other formats."""
    ops = [Op(0, 1, "ok", 0, "txn", [[Name("append"), "x", 1], [Name("r"), "x", [1]]])]
    history = read(block_file(ops), transactions="list-append")
    assert (history.lacks, history.operations[0].value) == (("realtime",), [["append", "x", 1], ["r", "x", None]])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        *((number, number) for bits in range(70) for number in (2**bits - 1, 2**bits, -(2**bits), -(2**bits) - 1)),
        (0.0, 0.0),
        (1.0, 1.0),
        (-2.5, -2.5),
        ("", ""),
        ("a\u00e9\u20ac\U0001f600", "a\u00e9\u20ac\U0001f600"),
        ("\U0001f600" * 30_000, "\U0001f600" * 30_000),
        (Name("a/b"), Keyword("a/b")),
        ([], ()),
        (list(range(9)), tuple(range(9))),
        ({Name("a"): [1, {"b"}]}, EdnMap([(Keyword("a"), (1, EdnSet(["b"])))])),
        (set(), EdnSet()),
    ],
)
def test_values_of_fressian(value: Any, expected: Any) -> None:
    """Each value of an independent writer comes back, in any mixture of values."""
    reader = FressianReader(fressian([Name("a"), value], value))
    assert reader.value() == (Keyword("a"), expected)
    assert reader.value() == expected
    assert not reader.has_more


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xc8" + fressian(1_767_225_600_000), Tagged("inst", "2026-01-01T00:00:00.000-00:00")),
        (b"\xc3\xd9\x10" + bytes(range(16)), Tagged("uuid", "00010203-0405-0607-0809-0a0b0c0d0e0f")),
        (b"\xed\x01\x02\xfd", (1, 2)),
        (b"\xb0\x02\x05\x06", (5, 6)),
        (b"\xef\xde" + b"atom" + b"\x01\x07", 7),
        (b"\xef\xdf" + b"other" + b"\x02\x07\x08", Tagged("other", (7, 8))),
        (b"\xd2\x01\x02", Tagged("bytes", "0102")),
        (b"\xdd\xed\xa0\x80", "\ud800"),
        (b"\xe5\xcd\xe5\x01", ((1,),)),
        (b"\xe6\xc4\xdd" + b"a+b" + b"\x07", (Tagged("regex", "a+b"), 7)),
        (b"\xe6\xc5\xdd" + b"x:y" + b"\x07", (Tagged("uri", "x:y"), 7)),
        (b"\xef\xdf" + b"ratio" + b"\x02\xc6\xd1\x01\xc6\xd1\x03", ratio(1, 3)),
        (b"\xef\xdf" + b"ratio" + b"\x02\x01\x03", ratio(1, 3)),
    ],
)
def test_rare_values_of_fressian(data: bytes, expected: Any) -> None:
    """Codes that the writer of the tests does not use; a value with an unknown tag keeps it."""
    assert FressianReader(data).value() == expected


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "expected 1 more bytes, found 0"),
        (b"\xe5" * 200 + b"\x00", "nested at most 128 deep"),
        (b"\xec" * 2000, "expected an integer"),
        (b"\xcd\xe5\x80", "expected a stored value, found none with the number 0"),
        (b"\x85", "expected a stored value"),
        (b"\xa3", "expected a known tag"),
        (b"\xf8\x00", "expected 8 more bytes, found 1"),
        (b"\xe3\x7f\xff\xff\xff\xff\xff\xff", "expected a length that fits into 8 bytes"),
        (b"\xdc\xff\xff", "can't decode"),
        (b"\xca\xf7\x05", "expected the name of a keyword, found 5"),
        (b"\xc0\xe5\x01", "expected a value for the key"),
        (b"\xc0\xe8\x01\x02\x01\x03", "duplicate"),
        (b"\xcf\xcf\xcf\xcf", "expected the code of a value in Fressian, found 0xcf"),
        (b"\xc3\xd1\x00", "expected 16 bytes of a UUID, found 1"),
        (b"\xef\xdf" + b"ratio" + b"\x02\xdb\x31\x03", "expected two integers of a ratio, found '1' and 3"),
        (b"\xef\xdf" + b"ratio" + b"\x02\x01\xff", "expected a positive denominator, found -1"),
    ],
)
def test_what_is_no_fressian_is_refused(data: bytes, problem: str) -> None:
    """With a sentence and a place, whatever the bytes are."""
    with pytest.raises(ValueError, match=problem):
        FressianReader(data).value()


def test_values_that_come_again_are_bounded() -> None:
    """Each of 31 lists has the one before twice: so many values in 128 bytes are refused at once."""
    data = b"\xcd\xe6\x01\x02"
    for index in range(31):
        data += b"\xcd\xe6" + bytes([0x80 + index]) * 2
    reader = FressianReader(data)
    with pytest.raises(ValueError, match="expected values that come again to mean at most 64 values for each byte"):
        list(iter(reader.value, None))


def test_each_damaged_bit_is_refused_or_unread() -> None:
    """A changed, missing or further byte gives the same history, or an error; never another history, never a traceback."""
    whole = block_file(OPS, chunk=3)
    expected = list(read(whole).operations)
    random = Random(5)
    refused = 0
    for _ in range(DAMAGES):
        data = bytearray(whole)
        at = random.randrange(len(data))
        match random.randrange(3):
            case 0:
                data[at] ^= 1 << random.randrange(8)
            case 1:
                del data[at : at + random.randint(1, 40)]
            case _:
                del data[at:]
        try:
            operations = list(read(bytes(data)).operations)
        except InputError:
            refused += 1
        else:
            assert operations == expected
    assert refused > DAMAGES / 2


HISTORY = {1: block(2, fressian([]))}
TEST = block(2, fressian({Name("history"): Reference(1)}))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"JEPSEN", "expected 18 bytes of the header of the file at byte 0, but the file has 6 bytes"),
        (b"JEPSEN" + struct.pack(">iq", 2, 18), "expected JEPSEN and a version of"),
        (b"JEPSEN" + struct.pack(">iq", 1, 0), "the file has no index"),
        (b"JEPSEN" + struct.pack(">iq", 1, 1 << 60), "bytes of the header of the index"),
        (of_blocks({2: TEST}, root=2), "expected a block of the index, found a reference to 1"),
        (of_blocks({2: block(2, fressian({}))}, root=2), "expected :history in the test"),
        (of_blocks({2: block(2, fressian(5))}, root=2), "expected the map of the test in block 2, found 5"),
        (of_blocks({1: block(9, b""), 2: TEST}, root=2), "expected the events in block 1, found the kind 9"),
        (of_blocks({1: block(2, fressian(5)), 2: TEST}, root=2), "expected the events in block 1, found 5"),
        (of_blocks({1: block(4, fressian(5)), 2: TEST}, root=2), "h:1: expected the map of an event, found 5"),
        (of_blocks({1: block(4, b"\xe8"), 2: TEST}, root=2), "block 1: expected 1 more bytes"),
        (
            of_blocks({1: block(5, struct.pack(">qqi", 1, 0, 1)), 2: TEST}, root=2),
            "found a second reference to block 1",
        ),
        (of_blocks({1: block(5, struct.pack(">qqi", 1, 4, 3)), 2: TEST}, root=2), "to begin with event 0"),
        (of_blocks({1: block(5, struct.pack(">q", 7)), 2: TEST}, root=2), "expected 7 events in block 1, found 0"),
        (of_blocks({2: block(3, struct.pack(">i", 2) + fressian({}))}, root=2), "second reference to block 2"),
        (of_blocks(HISTORY | {2: TEST}, root=2), "found no event in it"),
        (of_blocks({1: block(2, fressian(None)), 2: TEST}, root=2), "found no event in it"),
    ],
)
def test_what_is_no_file_of_blocks_is_refused(data: bytes, problem: str) -> None:
    """With a sentence that says which block is wrong."""
    with pytest.raises(BadHistory, match=problem):
        read(data)


def test_a_test_may_continue_in_other_blocks() -> None:
    """A map of the test in parts is read up to its history."""
    first = block(3, struct.pack(">i", 5) + fressian({Name("name"): "t"}))
    rest = block(3, struct.pack(">i", 0) + fressian({Name("history"): Reference(1)}))
    ops = block(4, fressian(*OPS))
    assert len(read(of_blocks({1: ops, 2: first, 5: rest}, root=2)).operations) == 3
