"""JSON with bare numbers as keys, and hostile input."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.systems.dledger import fastjson

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_legal_json_is_read_as_it_is(value: object) -> None:
    """Legal JSON stays unchanged, including texts that look like keys."""
    assert fastjson.read(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "data",
    [
        b"1e400",
        b"1.0E5",
        b'{"a":1,"a":2}',
        b"[18446744073709551616]",
        b'"\\ud800"',
        b'"\xed\xa0\x80"',
        "{}".encode("utf-16"),
    ],
)
def test_what_the_json_of_python_reads(data: bytes) -> None:
    """The value is that of `json`, also where the fast parser refuses."""
    assert fastjson.read(data) == json.loads(data)


@given(st.dictionaries(st.integers(-(2**63), 2**63), st.text(), min_size=1), st.booleans())
def test_numbers_as_keys(table: dict[int, str], spaced: bool) -> None:
    """Bare keys become texts; other texts stay unchanged."""
    comma, colon = (" , ", " : ") if spaced else (",", ":")
    inner = comma.join(f"{key}{colon}{json.dumps(value)}" for key, value in table.items())
    expected = {str(key): value for key, value in table.items()}
    assert fastjson.read(f'{{"brokerAddrs":{{{inner}}},"n":[1,2]}}'.encode()) == {"brokerAddrs": expected, "n": [1, 2]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{1:"{2:3}"}', {"1": "{2:3}"}),
        ('{1:"a\\\\",2:"b\\""}', {"1": "a\\", "2": 'b"'}),
        ('{"a":{-1:[{5:6}]}}', {"a": {"-1": [{"5": 6}]}}),
        ('{"b":1,\n 7 :{}}', {"b": 1, "7": {}}),
    ],
)
def test_numbers_as_keys_beside_hard_texts(text: str, value: object) -> None:
    """Quotes, escapes and braces inside of texts stay unchanged."""
    assert fastjson.read(text.encode()) == value


@pytest.mark.parametrize(
    "text", ["", "{1}", "{1:}", "[1:2]", '{1:"a}', "{a:1}", "{1.5:2}", "\x00", "{--1:2}", "1" * 5000]
)
def test_what_is_not_such_json(text: str) -> None:
    """It is refused."""
    with pytest.raises(ValueError, match=r"."):
        fastjson.read(text.encode())


def test_bytes_that_are_no_text() -> None:
    """These inputs are errors too."""
    with pytest.raises(ValueError, match="decode"):
        fastjson.read(b'{1:"\xff\xfe"}')


@pytest.mark.parametrize("piece", ['\\"', ",", ", ", "{1", "{1 ", '"', "\\", "1", "-", ",1 ", '"\\'])
def test_hostile_texts_take_linear_time(piece: str) -> None:
    """Large hostile inputs are errors within a short time."""
    text = ('{"' + piece * (200_000 // len(piece))).encode()
    began_s = time.process_time()
    with pytest.raises((ValueError, RecursionError)):
        fastjson.read(text)
    with pytest.raises((ValueError, RecursionError)):
        fastjson.read(b"{1:" + text[2:])
    assert time.process_time() - began_s < 3.0


def test_large_bodies_are_legal_json() -> None:
    """A large body must be legal JSON."""
    body = b'{1:"' + b"a" * fastjson.MAX_BARE_BYTES + b'"}'
    with pytest.raises(ValueError, match="property name"):
        fastjson.read(body)
    assert fastjson.read(body.replace(b"1:", b'"1":'))
