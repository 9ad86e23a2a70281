"""TOML and JSON files are read within limits for sizes, nesting and numbers."""

from __future__ import annotations

import time
import tomllib
from typing import TYPE_CHECKING

import pytest

from harness.console.documents import MAX_DEPTH, MAX_TOML_BYTES, parse_json, read_bytes, read_toml
from harness.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

SOON_S = 5.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a." * 100_000 + "b = 1", "nesting of at most 16"),
        ("[" + "a." * 100_000 + "b]", "nesting of at most 16"),
        ("a = " + "[" * 100_000, "nesting of at most 16"),
        ("a = " + "{b=" * 5_000, "nesting of at most 16"),
        ("a = " + "9" * 5_000, "cannot be read as TOML"),
        ("a = 0x" + "f" * 50_000, "a: expected a whole number of at most 9223372036854775807"),
        ("[t]\na = [1, nan]", r"t\.a\[1\]: expected a finite number, found nan"),
        ("a = inf", "a: expected a finite number, found inf"),
        ("a = 1e400", "a: expected a finite number, found inf"),
        ("a = 1979-05-27", "a: expected a text, a number, true or false, found"),
        ("a = 07:32:00", "a: expected a text, a number, true or false, found"),
        ('a = "x\\u0000y"', "a: expected a text without NUL"),
        ("# " + "x" * MAX_TOML_BYTES, "expected at most 1048576 bytes, found more"),
        ('"""' * 100_000, "cannot be read as TOML"),
        ('"""' + '\\"""' * 100_000, "cannot be read as TOML"),
    ],
)
def test_toml_beyond_the_limits_is_refused_at_once(tmp_path: Path, text: str, expected: str) -> None:
    """The error names the file, and comes within seconds."""
    path = tmp_path / "file.toml"
    path.write_text(text, encoding="utf-8")
    began_s = time.process_time()
    with pytest.raises(InputError, match=rf"file\.toml.*{expected}"):
        read_toml(path)
    assert time.process_time() - began_s < SOON_S


def test_brackets_in_texts_are_not_nesting(tmp_path: Path) -> None:
    """Brackets and dots in comments and texts, and many tables and numbers, do not count as nesting."""
    text = "# [[[[[[[[[[[[[[[[[[[[\n" + "".join(
        f"[t{n}]\na.b = [1.5, 2.5, [3.5]]\n'x.{'y.' * 30}' = \"{'[' * 40}\\\"\"\nc = '''{'{' * 40}''k'''\n"
        for n in range(50)
    )
    path = tmp_path / "file.toml"
    path.write_text(text, encoding="utf-8")
    assert read_toml(path) == tomllib.loads(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" * 100_000, "is not JSON"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), f"nesting of at most {MAX_DEPTH}"),
        ("[NaN]", "NaN is not a JSON number"),
        ("[-Infinity]", "Infinity is not a JSON number"),
        ("[1e400]", "expected a finite number, found 1e400"),
        ("9" * 5_000, "is not JSON"),
    ],
)
def test_json_beyond_the_limits_is_refused(text: str, expected: str) -> None:
    """The error names the document."""
    with pytest.raises(InputError, match=rf"x\.json.*{expected}"):
        parse_json(text, "x.json")


def test_json_within_the_limits_is_read() -> None:
    """It may have the maximum nesting, and any finite number."""
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH, "x") is not None
    assert parse_json('{"a": [1.5e300, 123456789012345678901234567890]}', "x")["a"][1] > 10**29


@pytest.mark.parametrize("name", ["x" * 256, "a\0b", ".", "missing"])
def test_a_path_that_cannot_be_read_is_an_error(tmp_path: Path, name: str) -> None:
    """It is not a valid name, a folder, or a missing file."""
    with pytest.raises(InputError, match=r"cannot be read|is no path"):
        read_bytes(tmp_path / name, 10)
