"""Foreign text made fit to be shown: on a terminal, which obeys control characters, and in XML, which forbids them.

Names, values, logs and answers come from others. A control character can steer a terminal, an invisible or a bidirectional one
can make a text look like another, and a line break in a name can forge a line of ours. Each of them is shown as its escape
sequence. This is the one place that says which characters these are; `harness.terminal` is the one way to a terminal.
"""

from __future__ import annotations

import re

MAX_NAME = 120

# Controls but tab and line feed; the soft hyphen and other invisible characters; marks and overrides of direction; separators
# of lines and paragraphs; surrogates; characters that XML forbids; tags.
_HIDDEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\ufffe\uffff\U000e0000-\U000e007f"
)
_CONTROL = re.compile(f"[{_HIDDEN}]")
_CONTROL_OR_BREAK = re.compile(rf"[\t\n{_HIDDEN}]")


def plain(text: str) -> str:
    """Returns `text` with every character that is hidden or steers, but tab and line feed, shown as its escape sequence."""
    return _CONTROL.sub(_escape, text)


def one_line(text: str) -> str:
    """Returns a sentence fit to be shown, its line breaks and runs of spaces made single spaces."""
    return plain(" ".join(text.split()))


def name(text: str, most: int = MAX_NAME) -> str:
    """Returns a name fit to be shown in one line, and cut at `most` characters with its length said.

    Spaces stay as they are, since they tell names apart; tabs and line breaks are shown as escape sequences.
    """
    shown = _CONTROL_OR_BREAK.sub(_escape, text[:most])
    return shown if len(text) <= most else f"{shown}… ({len(text):,} characters)"


def message(text: str) -> str:
    """Returns an error's text fit to be shown: lines after the first are indented, so that none of them looks like our own."""
    return re.sub(r"\n(?!  )", "\n  ", plain(text))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")
