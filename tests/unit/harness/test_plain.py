"""Foreign text on a terminal: nothing steers it, nothing hides in it, nothing forges a line of ours."""

from __future__ import annotations

import io
import logging
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cli
from harness.errors import ExitCode, InputError
from harness.plain import message, name, one_line, plain
from harness.process import end_with
from harness.terminal import PlainFormatter, echo, open_console

ESCAPE = "\x1b[2J\x1b]0;title\x07"


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_has_a_character_that_steers_or_hides(text: str) -> None:
    """Of controls only tab and line feed are left, and no surrogate, override of direction or separator of lines."""
    for shown in (plain(text), one_line(text), name(text), message(text)):
        shown.encode()
        assert not {unicodedata.category(character) for character in shown.replace("\t", "").replace("\n", "")} & {
            "Cc", "Cs", "Zl", "Zp",
        }  # fmt: skip
        assert not set("\u200b\u200e\u200f\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\ufeff") & set(shown)


@given(st.text())
def test_a_name_has_one_line_and_tells_other_names_apart(text: str) -> None:
    """Line breaks and tabs of a name are shown, and its spaces are kept."""
    shown = name(text, most=len(text))
    assert len(shown.splitlines()) <= 1
    assert name(text + " ", most=len(text) + 1) != shown


def test_a_long_name_is_cut_and_its_length_said() -> None:
    """However long it is, little of it is shown."""
    assert name("a" * 500_000, most=5) == "aaaaa… (500,000 characters)"


def test_a_message_cannot_look_like_two() -> None:
    """What follows a line break in an error is indented."""
    assert message("a.jsonl\nlabrys: b.jsonl is valid\n  more") == "a.jsonl\n  labrys: b.jsonl is valid\n  more"


def test_what_is_written_is_escaped_at_the_exit(capsys: pytest.CaptureFixture[str]) -> None:
    """Output, errors of click, errors of ours with their notes."""
    echo(ESCAPE)
    echo(f"a\u202eb{ESCAPE}", err=True)
    error = InputError(f"no {ESCAPE}\u202e\nlabrys: forged")
    error.add_note(f"note {ESCAPE}")

    def fail() -> int:
        raise error

    with pytest.raises(SystemExit):
        end_with(fail)
    assert cli.invoke(["check", f"--nosuch{ESCAPE}\u202e"]) == ExitCode.BAD_ARGUMENTS
    out, err = capsys.readouterr()
    assert out == "\\x1b[2J\\x1b]0;title\\x07\n"
    assert not {"\x1b", "\x07", "\u202e"} & set(err)
    assert "\n  labrys: forged\n" in err
    assert "note \\x1b[2J" in err


def test_a_console_shows_strings_as_they_are() -> None:
    """No markup, no emoji; escapes are shown, and our own colours stay."""
    out = io.StringIO()
    console = open_console(stderr=False, file=out, width=200, force_terminal=True, color_system="standard")
    console.print("[nemesis=bridge] [bold]x[/nosuch] :smile: \x1b[2J", style="red")
    assert out.getvalue() == ("\x1b[31m[nemesis=bridge] [bold]x[/nosuch] :smile: \\x1b[2J\x1b[0m\n")


def test_a_log_is_escaped() -> None:
    """A log is read on a terminal too; no message can look like two."""
    record = logging.LogRecord("a", logging.WARNING, "", 0, "said %s", (f"{ESCAPE}\nforged",), None)
    assert PlainFormatter("%(message)s").format(record) == "said \\x1b[2J\\x1b]0;title\\x07\n  forged"
