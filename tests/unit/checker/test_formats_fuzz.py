"""For any bytes, the readers return a history or an error with the reason. They never fail in another way, and never hang."""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checker.decide.tables import read_table
from checker.formats.parquet import write_operations
from checker.formats.read import read_histories
from checker.models import model
from harness.errors import InputError
from harness.op import Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Iterator

EDN = b"""[{:index 0, :time 10, :type :invoke, :process 0, :f :write, :value 1}
 {:index 1, :time 11, :type :invoke, :process 1, :f :cas, :value [1 "a\\n\\u0041"]}
 {:index 2, :time 12, :type :ok, :process 0, :f :write, :value 1}
 #jepsen.history.Op{:index 3, :time 13, :type :info, :process :nemesis, :f :start, :value #{1 2.5 \\a}}
 {:index 4, :time 14, :type :fail, :process 1, :f :cas, :value [1 "a\\n\\u0041"], :error [:x "y"]}]
"""
JSONL = b"""{"format":"labrys-history","version":1}
{"index":0,"time":1,"type":"invoke","process":0,"f":"write","value":5,"key":"a","node":"n1","scheduled":0}
{"index":1,"time":2,"type":"info","process":"nemesis","f":"start-kill","value":{"fault":1,"targets":["n1"]}}
{"index":2,"time":3,"type":"ok","process":0,"f":"write","value":5,"key":"a","node":"n1","error":null,"phase":"final"}
"""
CONSOLE = (
    b"INFO  jepsen.util - 0\t:invoke\t:cas\t[0 3]\nINFO  jepsen.util - :nemesis\t:info\t:start\tnil\n"
    b"INFO  jepsen.util - 0\t:info\t:cas\t:timed-out\nINFO  jepsen.util - 1\t:invoke\t:read\tnil\n"
)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Returns a small file of Labrys's own."""
    path = tmp_path_factory.mktemp("fuzz") / "operations.parquet"
    rows = (
        Operation(
            process=number % 3,
            f="cas",
            value=[number, "x"],
            result=None if number % 2 else [number],
            type=OpType.OK,
            start_ns=number,
            end_ns=number + 1,
            invoke_index=2 * number,
            complete_index=2 * number + 1,
            key=str(number % 2),
        )
        for number in range(40)
    )
    write_operations(path, rows, run="r")
    return path.read_bytes()


def feed(content: bytes, *, keyed: bool | None = None) -> None:
    """Reads content through standard input. An `InputError` is allowed."""
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(InputError):
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        read_histories("-", keyed=keyed)


PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"(",
    b'"',
    b"\\",
    b":",
    b"#_",
    b"#{",
    b"nil",
    b"\n",
    b"\0",
    b"\xff",
    b"-1",
    b"1e999",
    b"NaN",
]


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Returns the content with a few places removed, doubled or overwritten."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(len(data) - 1, 0)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        data[start:end] = draw(
            st.one_of(
                st.sampled_from(PIECES),
                st.binary(max_size=6),
                st.just(bytes(data[start:end]) * 2),
                st.sampled_from(content.split()),
            )
        )
    return bytes(data)


@settings(max_examples=150)
@given(data=st.data())
@pytest.mark.parametrize("content", [EDN, JSONL, CONSOLE, gzip.compress(EDN)], ids=["edn", "jsonl", "console", "gzip"])
def test_damaged_histories(content: bytes, data: st.DataObject) -> None:
    """A history with a part missing, doubled or replaced."""
    feed(data.draw(damaged(content)), keyed=data.draw(st.sampled_from([None, True, False])))


@settings(max_examples=200)
@given(data=st.data())
def test_damaged_tables(parquet: bytes, data: st.DataObject) -> None:
    """A Parquet file with broken bytes."""
    feed(data.draw(damaged(parquet)))


@settings(max_examples=100)
@given(data=st.data())
def test_damaged_tables_as_arrays(
    tmp_path_factory: pytest.TempPathFactory, parquet: bytes, data: st.DataObject
) -> None:
    """The path of long histories: arrays, none, or an error with the reason."""
    path = tmp_path_factory.mktemp("arrays") / "operations.parquet"
    path.write_bytes(data.draw(damaged(parquet)))
    with contextlib.suppress(InputError):
        read_table(path, "damaged", model("cas-register"))


@settings(max_examples=300)
@given(
    start=st.sampled_from([b"", b"[", b"{", b'{"', b"INFO ", b"PAR1", b"\x1f\x8b", b"; "]), rest=st.binary(max_size=60)
)
def test_any_bytes(start: bytes, rest: bytes) -> None:
    """Any bytes."""
    feed(start + rest)


def _lines() -> Iterator[bytes]:
    yield b"{:process 0 :type :invoke :f :read :value nil}\n" * 2
    yield b'{:process 0 :type :invoke :f :read :value "' + b"\\" * 500_001
    yield b"[" + b"; x\n" * 200_000
    yield b"," * 1_000_000 + b"[]"
    yield b"[" + b" " * 3_000_000 + b"]"
    yield b"#_" * 200_000
    yield b'"' * 300_001
    yield b"\\" * 300_001
    yield b"{:a " * 200_000
    yield b"INFO  jepsen.util - " + b"\t" * 1_000_000
    yield b"INFO  jepsen.util - 1 " + b":" * 1_000_000
    yield b'{"format":"labrys-history","version":1}\n' + b"{" * 900_000 + b"\n"
    yield b'{"format":"labrys-history","version":1}\n' + b"1" * 2_000_000
    yield gzip.compress(b"\0" * 50_000_000, mtime=0)  # the time would be part of the test's name


@pytest.mark.timeout(60)
@pytest.mark.parametrize("content", list(_lines()), ids=lambda content: repr(content[:20]))
def test_hostile_texts_take_no_time(content: bytes) -> None:
    """Long repetitions that make a careless pattern backtrack."""
    feed(content)
