"""Programs that libfaketime cannot reach, by their binary.

libfaketime replaces functions of the C library, and the dynamic loader puts it into a process. A program that is linked
statically has no loader. A Go program asks the kernel for the time without the C library, even if it is linked to it: its clock
stays right while the library is in its memory. The Go linker leaves a note in the binary, and the compiler a mark in its data
(`debug/buildinfo` of Go reads it).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEAD_BYTES = 16_384
_ELF = b"\x7fELF"
_INTERPRETER, _NOTE = 3, 4
_MARK = "Go buildinf:"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Where an ELF file of 32 or 64 bits has its fields, in bytes, and the struct format of a place or a size."""

    word: str
    table: int
    entry_size: int
    entries: int
    offset: int
    size: int


_LAYOUTS = {
    1: _Layout(word="I", table=28, entry_size=42, entries=44, offset=4, size=16),
    2: _Layout(word="Q", table=32, entry_size=54, entries=56, offset=8, size=32),
}
_ENDIANS = {1: "<", 2: ">"}


def looking_at(path: str) -> str:
    """Returns a shell command that prints the head of a program in hexadecimal digits, and whether it has the mark of Go.

    Args:
        path: The program, as a word of the shell.
    """
    return (
        f"head -c {HEAD_BYTES} {path} | od -An -v -tx1 | tr -d ' \\n'; echo; "
        f"LC_ALL=C grep -qaF '{_MARK}' {path} && echo marked || echo unmarked"
    )


def unreachable(output: str) -> str | None:
    """Returns why libfaketime cannot reach a program, as the end of a sentence; None if nothing is known against it.

    Args:
        output: The output of `looking_at`.
    """
    digits, _, mark = output.partition("\n")
    try:
        head = bytes.fromhex(digits.strip())
    except ValueError:
        return None
    if not head.startswith(_ELF):
        return None
    try:
        segments = _segments(head)
    except (struct.error, KeyError, IndexError):
        return None
    notes = [head[at : at + size] for kind, at, size in segments if kind == _NOTE]
    if mark.strip() == "marked" or any(map(_has_go_note, notes)):
        return "is a Go program, which reads the clock without the C library"
    if all(kind != _INTERPRETER for kind, _, _ in segments):
        return "is linked statically, so no library can be loaded into it"
    return None


def _segments(head: bytes) -> list[tuple[int, int, int]]:
    """Returns the type, the offset and the size of each segment in the program headers of an ELF file."""
    layout, endian = _LAYOUTS[head[4]], _ENDIANS[head[5]]

    def number(form: str, at: int) -> int:
        return int(struct.unpack_from(endian + form, head, at)[0])

    table, entry_size = number(layout.word, layout.table), number("H", layout.entry_size)
    places = [table + index * entry_size for index in range(number("H", layout.entries))]
    return [
        (number("I", at), number(layout.word, at + layout.offset), number(layout.word, at + layout.size))
        for at in places
    ]


def _has_go_note(notes: bytes) -> bool:
    """Returns whether the note of Go's linker is the first one of a segment with notes."""
    return len(notes) >= 16 and notes[12:16] == b"Go\0\0"  # after the sizes of name and content, and the type
