"""Labrys knows the programs that libfaketime cannot reach by their binary."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.binaries import looking_at, unreachable

INTERPRETER, LOADED, NOTE = 3, 1, 4
GO = struct.pack("<III4s8s", 4, 8, 4, b"Go\0\0", b"build-id")
GNU = struct.pack("<III4s8s", 4, 8, 3, b"GNU\0", b"build-id")


def elf(*kinds: int, bits: int = 64, note: bytes = GNU) -> bytes:
    """Returns an ELF file with segments of these types; each has the content of a note."""
    wide = bits == 64
    head = struct.pack("<4sBB10x", b"\x7fELF", 2 if wide else 1, 1)
    start = 64 if wide else 52
    size = 56 if wide else 32
    content = start + size * len(kinds)
    if wide:
        head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, start, 0, 0, 64, size, len(kinds), 0, 0, 0)
        table = [struct.pack("<IIQQQQQQ", kind, 4, content, 0, 0, len(note), 0, 4) for kind in kinds]
    else:
        head += struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0, start, 0, 0, 52, size, len(kinds), 0, 0, 0)
        table = [struct.pack("<8I", kind, content, 0, 0, len(note), 0, 4, 4) for kind in kinds]
    return head + b"".join(table) + note


def look(content: bytes, *, marked: bool = False) -> str | None:
    """Returns what a look at a program says."""
    return unreachable(f"{content.hex()}\n{'marked' if marked else 'unmarked'}\n")


@pytest.mark.parametrize("bits", [32, 64])
def test_a_go_program_is_known_even_with_a_loader(bits: int) -> None:
    """The note of Go's linker, or the mark of Go in the data, tells it: the C library does not."""
    assert "is a Go program" in str(look(elf(INTERPRETER, LOADED, NOTE, bits=bits, note=GO)))
    assert "is a Go program" in str(look(elf(INTERPRETER, LOADED, bits=bits), marked=True))
    assert "is a Go program" in str(look(elf(LOADED, NOTE, bits=bits, note=GO)))


@pytest.mark.parametrize("bits", [32, 64])
def test_a_static_program_is_known(bits: int) -> None:
    """It has no loader."""
    assert "is linked statically" in str(look(elf(LOADED, NOTE, bits=bits)))


@pytest.mark.parametrize("bits", [32, 64])
def test_nothing_is_said_against_other_programs(bits: int) -> None:
    """A program with a loader can be reached; a script may be anything, even with the words of Go in it."""
    assert look(elf(INTERPRETER, LOADED, NOTE, bits=bits)) is None
    assert look(b"#!/bin/sh\nexec server # Go buildinf:\n", marked=True) is None
    assert unreachable("") is None


@given(st.binary(max_size=200), st.booleans())
def test_a_damaged_program_is_no_error(content: bytes, marked: bool) -> None:
    """A truncated or strange file gives an answer."""
    look(content, marked=marked)
    look(b"\x7fELF\x02\x01" + content, marked=marked)


@pytest.mark.skipif(shutil.which("od") is None or not Path("/proc/self/exe").exists(), reason="needs Linux")
def test_a_look_at_a_real_program() -> None:
    """Python's interpreter has a loader, and is no Go program."""
    for path in ("/proc/self/exe", sys.executable):
        done = subprocess.run(["sh", "-c", looking_at(path)], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("7f454c46")
        assert done.stdout.endswith("unmarked\n")
        assert unreachable(done.stdout) is None
