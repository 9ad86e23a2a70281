"""Foreign text on a terminal cannot control it, hide text, or forge a line of Labrys."""

from __future__ import annotations

import io
import logging
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cli
from harness.console.plain import message, name, one_line, plain
from harness.console.process import end_with
from harness.console.terminal import PlainFormatter, echo, open_console
from harness.errors import ExitCode, InputError

ESCAPE = "\x1b[2J\x1b]0;title\x07"


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_has_a_hidden_or_control_character(text: str) -> None:
    """Of these, only tab and line feed are left."""
    for shown in (plain(text), one_line(text), name(text), message(text)):
        shown.encode()
        assert not {unicodedata.category(character) for character in shown.replace("\t", "").replace("\n", "")} & {
            "Cc", "Cs", "Zl", "Zp",
        }  # fmt: skip
        assert not set("\u200b\u200e\u200f\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\ufeff") & set(shown)


@given(st.text())
def test_a_name_is_one_line_and_stays_unique(text: str) -> None:
    """Its line breaks and tabs are escaped, and its spaces stay."""
    shown = name(text, most=len(text))
    assert len(shown.splitlines()) <= 1
    assert name(text + " ", most=len(text) + 1) != shown


def test_a_long_name_is_cut_and_has_its_length() -> None:
    """Only the beginning of the name is left."""
    assert name("a" * 500_000, most=5) == "aaaaa… (500,000 characters)"


def test_later_lines_of_a_message_are_indented() -> None:
    """So a message cannot look like two."""
    assert message("a.jsonl\nlabrys: b.jsonl is valid\n  more") == "a.jsonl\n  labrys: b.jsonl is valid\n  more"


def test_all_output_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """This includes errors of click, and errors of Labrys with their notes."""
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
    """Markup and emoji have no effect, foreign escapes are shown, and the colours of Labrys stay."""
    out = io.StringIO()
    console = open_console(stderr=False, file=out, width=200, force_terminal=True, color_system="standard")
    console.print("[nemesis=bridge] [bold]x[/nosuch] :smile: \x1b[2J", style="red")
    assert out.getvalue() == ("\x1b[31m[nemesis=bridge] [bold]x[/nosuch] :smile: \\x1b[2J\x1b[0m\n")


def test_a_log_is_escaped() -> None:
    """A log may be shown on a terminal."""
    record = logging.LogRecord("a", logging.WARNING, "", 0, "said %s", (f"{ESCAPE}\nforged",), None)
    assert PlainFormatter("%(message)s").format(record) == "said \\x1b[2J\\x1b]0;title\\x07\n  forged"
