"""Ambiguous histories are refused, because two readers could differ: duplicates, collisions, impossible numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checker.decide.tables import read_table
from checker.formats.columns import ColumnReader, batches_of
from checker.formats.errors import BadHistory
from checker.formats.parquet import open_parquet, read_operations, write_operations
from checker.formats.read import read_histories
from checker.models import model
from harness.errors import InputError
from harness.event_lines import decode_object
from harness.op import Operation, OpType

if TYPE_CHECKING:
    from pathlib import Path

HEADER = '{"format":"labrys-history","version":1}\n'
EVENT = '{"index":0,"time":0,"type":"invoke","process":0,"f":"write","value":1}\n'
INVOKE = "{:index 3 :time 4 :process 0 :type :invoke :f :read :value nil}\n"
OK_EVENT = EVENT.replace("invoke", "ok").replace('"index":0', '"index":1')
OK_FORM = INVOKE.replace(":invoke", ":ok").replace(":index 3", ":index 4")
LOG = "INFO  jepsen.util - 3\t:invoke\t:read\tnil\n"
ROWS = 8191
GOOD = Operation(
    process=0,
    f="write",
    value=1,
    result=1,
    type=OpType.OK,
    start_ns=10,
    end_ns=20,
    invoke_index=0,
    complete_index=3,
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER.replace("}", ',"version":1}'), "h:1: .*the key 'version' is a duplicate"),
        (HEADER + EVENT.replace("}", ',"value":2}'), "h:2: .*the key 'value' is a duplicate"),
        (HEADER + EVENT.replace("}", ', "value" : 2}'), "h:2: .*the key 'value' is a duplicate"),
        (HEADER + EVENT.replace("}", ',"va\\u006cue":2}'), "h:2: .*the key 'value' is a duplicate"),
        (HEADER + EVENT.replace(":1}", ':{"a":1,"a":1}}'), "h:2: .*the key 'a' is a duplicate"),
        (HEADER + EVENT.replace(":1}", ':[[{"a":{"b":1,"c":2,"b":3}}]]}'), "h:2: .*the key 'b' is a duplicate"),
        (
            HEADER + EVENT.replace('"time":0', '"time":-1'),
            "h:2: expected nanoseconds .* in 'time', found '-1'; numbers go",
        ),
        (HEADER + EVENT.replace('"time":0', f'"time":{2**63}'), "h:2: expected nanoseconds .* in 'time'"),
        (HEADER + EVENT.replace('"process":0', '"process":-1'), "h:2: expected a number or 'nemesis' in 'process'"),
        (HEADER + EVENT.replace('"process":0', f'"process":{2**63}'), "h:2: expected a number or 'nemesis'"),
        (HEADER + EVENT.replace("}", ',"scheduled":-1}'), "h:2: expected nanoseconds .* or null in 'scheduled'"),
        *(
            (
                HEADER + EVENT + OK_EVENT.replace("}", f',"order":{order}}}'),
                f"h:3: expected an integer .* 'order', found '{shown}'$",
            )
            for order, shown in [
                (2**63, 2**63),
                (-(2**63) - 1, -(2**63) - 1),
                ("1.0", "1.0"),
                ("true", "True"),
                ('"7"', 7),
            ]
        ),
        (HEADER + EVENT.replace("}", ',"order":7}'), "h:2: expected 'order' on completions of clients alone, found 7"),
        (
            HEADER + EVENT.replace('"invoke"', '"info"').replace(':0,"f', ':"nemesis","f').replace("}", ',"order":7}'),
            "h:2: expected 'order' on completions of clients alone, found 7",
        ),
        (INVOKE + OK_FORM.replace("}", " :order 1.5}"), "h:2: expected an integer .* in :order, found 1.5"),
        (INVOKE + OK_FORM.replace("}", f" :order {2**63}}}"), "h:2: expected an integer .* in :order"),
        (INVOKE.replace("}", " :order 7}"), "h:1: expected :order on completions of clients alone, found 7"),
        (HEADER + EVENT + EVENT, "h:3: expected index 1, found 0"),
        (INVOKE + "{:process :nemesis :type :info :f :kill :index 3}\n", "h:2: expected an :index above 3, found 3"),
        (INVOKE + "{:process :nemesis :type :info :f :kill :time -5}\n", "h:2: expected a :time .* found -5"),
        ("{:process :nemesis :type :info :f :kill :index 3}\n" + INVOKE, "h:2: expected an :index above 3, found 3"),
        (INVOKE.replace(":process 0", ":process -1"), "h:1: expected a :process that is a number from 0 on"),
        (INVOKE.replace("nil", "{:a 1 :a 2}"), "h:1:.* the key :a is a duplicate"),
        (LOG + LOG.replace(" 3\t", " -3\t"), "h:2: expected a :process that is a number from 0 on"),
        (LOG + LOG.replace(" 3\t", " wor(ker\t"), "h:2: expected an event"),
    ],
)
def test_a_line_that_can_be_taken_in_two_ways_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The error has its line."""
    (tmp_path / "h").write_text(text)
    with pytest.raises(InputError, match=message):
        read_histories(str(tmp_path / "h"))


values = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.sampled_from([":", '":1', '\\":', "\\"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@given(
    fields=st.dictionaries(st.sampled_from(["a", "b:", '":', "\\", "é", "", "x"]), values, max_size=5), data=st.data()
)
def test_doubled_keys_are_found_and_no_others(fields: dict[str, Any], data: st.DataObject) -> None:
    """For texts with any colons, quotes and escapes, an object is read unchanged, and refused if any key is doubled."""
    ascii_only = data.draw(st.booleans())
    space = data.draw(st.sampled_from([":", " : "]))
    parts = [
        json.dumps(key, ensure_ascii=ascii_only) + space + json.dumps(value, ensure_ascii=ascii_only)
        for key, value in fields.items()
    ]
    assert decode_object(("{" + ",".join(parts) + "}").encode(errors="surrogatepass")) == fields
    if parts:
        parts.insert(data.draw(st.integers(0, len(parts))), data.draw(st.sampled_from(parts)))
        with pytest.raises(ValueError, match="is a duplicate"):
            decode_object(("{" + ",".join(parts) + "}").encode(errors="surrogatepass"))


def second(**changes: Any) -> Operation:
    """Returns an operation after `GOOD`, with changes."""
    return replace(GOOD, **{"process": 1, "invoke_index": 1, "complete_index": 4, **changes})


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (second(process=-1), "row 2: expected a number from 0 to 2^63 - 1 in column 'process', found -1"),
        (second(start_ns=-7), "row 2: expected a number from 0 to 2^63 - 1 in column 'start_ns', found -7"),
        (second(end_ns=-7), "row 2: expected a number from 0 to 2^63 - 1 in column 'end_ns', found -7"),
        (second(scheduled_ns=-7), "row 2: expected a number from 0 to 2^63 - 1 in column 'scheduled_ns', found -7"),
        (
            second(type=OpType.INFO, complete_index=None, end_ns=None, order=7),
            "row 2: expected null in column 'order' of an operation without a completion, found 7",
        ),
        (second(complete_index=3), "row 2 (event 1): complete_index 3 is that of row 1 as well"),
        (second(invoke_index=3), "row 2 (event 3): invoke_index 3 is the complete_index of row 1 as well"),
    ],
)
def test_a_row_that_contradicts_others_is_refused(tmp_path: Path, operation: Operation, message: str) -> None:
    """The error has its row. The array reader leaves it to the reader that reports it."""
    path = tmp_path / "operations.parquet"
    write_operations(path, [GOOD, operation], run="r")
    with pytest.raises(BadHistory, match=re.escape(message)):
        read_histories(str(path))
    if operation.scheduled_ns is None:  # this time decides nothing
        assert read_table(path, "h", model("register")) is None


def test_arrays_say_what_is_wrong_with_a_row(tmp_path: Path) -> None:
    """Both readers agree."""
    path = tmp_path / "operations.parquet"
    write_operations(path, [GOOD, second(process=-1)], run="r")
    with pytest.raises(BadHistory, match=r"row 2: expected a number from 0 to 2\^63 - 1 in column 'process'"):
        list(batches_of(open_parquet(path), ColumnReader("r")))


def test_indexes_may_have_gaps(tmp_path: Path) -> None:
    """Faults have indexes too, and a file may have only some of a run's operations."""
    path = tmp_path / "operations.parquet"
    write_operations(path, [GOOD, second(invoke_index=2**40, complete_index=2**62)], run="r")
    assert read_table(path, "h", model("register")) is not None
    assert read_histories(str(path))[0].events == 4


def test_a_doubled_key_in_a_value_of_parquet(tmp_path: Path) -> None:
    """It is refused with its row."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    from pyarrow import parquet  # noqa: PLC0415

    path = tmp_path / "operations.parquet"
    write_operations(path, [GOOD], run="r")
    table = parquet.read_table(path)
    index = table.schema.get_field_index("value")
    parquet.write_table(table.set_column(index, table.schema.field(index), pa.array(['{"a":1,"a":2}'])), path)
    with pytest.raises(BadHistory, match=r"row 1: .*the key 'a' is a duplicate"):
        read_histories(str(path))


@pytest.mark.parametrize("place", [0, 1, 9, -1], ids=["file", "column", "another column", "row group"])
def test_a_wrong_number_of_rows_is_refused(tmp_path: Path, place: int) -> None:
    """Such metadata, at any place, would make readers omit a row silently."""
    path = tmp_path / "operations.parquet"
    operations = (replace(GOOD, invoke_index=2 * n, complete_index=2 * n + 1) for n in range(ROWS))
    write_operations(path, operations, run="r")
    assert len(read_histories(str(path))[0].operations) == ROWS
    data = path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    counts = [match.start() for match in re.finditer(re.escape(varint(ROWS)), data[footer:])]
    at = footer + counts[place]
    path.write_bytes(data[:at] + varint(ROWS - 1) + data[at + 2 :])
    for read in (
        lambda: read_histories(str(path)),
        lambda: list(batches_of(open_parquet(path), ColumnReader("r"))),
        lambda: list(read_operations(path)),
    ):
        with pytest.raises(BadHistory, match=r"row \d+: expected 819[01] rows"):
            read()


def varint(number: int) -> bytes:
    """Returns a number in the encoding of Thrift's compact protocol."""
    zigzag = number << 1
    return bytes([zigzag & 0x7F | 0x80, zigzag >> 7])
