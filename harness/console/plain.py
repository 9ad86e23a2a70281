"""Makes foreign text safe for a terminal, which obeys control characters, and for XML, which forbids them.

Names, values, logs and answers are foreign text. A control character can steer a terminal. An invisible or bidirectional
character can make a text look like another. A line break in a name can forge a line of Labrys. Each of them is shown as its
escape sequence. Only this module defines these characters, and only `harness.console.terminal` writes to a terminal.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_NAME = 120
_OF_ONE = {"are": "is", "have": "has", "were": "was"}

# Controls but tab and line feed; the soft hyphen and other invisible characters; marks and overrides of direction; separators
# of lines and paragraphs; surrogates; characters that XML forbids; tags.
_HIDDEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\ufffe\uffff\U000e0000-\U000e007f"
)
_CONTROL = re.compile(f"[{_HIDDEN}]")
_CONTROL_OR_BREAK = re.compile(rf"[\t\n{_HIDDEN}]")


def plain(text: str) -> str:
    """Returns `text` with escape sequences for hidden and control characters, except tab and line feed."""
    return _CONTROL.sub(_escape, text)


def one_line(text: str) -> str:
    """Returns a text as one safe line, with single spaces in place of line breaks and runs of spaces."""
    return plain(" ".join(text.split()))


def name(text: str, most: int = MAX_NAME) -> str:
    """Returns a name as one safe line. A longer name is cut at `most` characters, and its length is added.

    Spaces stay, because names may differ only in them. Tabs and line breaks become escape sequences.
    """
    shown = _CONTROL_OR_BREAK.sub(_escape, text[:most])
    return shown if len(text) <= most else f"{shown}… ({len(text):,} characters)"


def capital(text: str) -> str:
    """Returns a text with a capital letter at its begin, for a clause that begins a sentence."""
    return text[:1].upper() + text[1:]


def counted(count: int, noun: str) -> str:
    """Returns a number with its noun, e.g. `1 run` and `2,000 runs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(words: Sequence[str], before_last: str) -> str:
    """Returns words as a list in a sentence, e.g. `a, b or c`.

    Args:
        words: The words; at least one.
        before_last: The word before the last one, e.g. `or`.
    """
    return f" {before_last} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def counted_of(part: int, whole: int, noun: str, verb: str = "") -> str:
    """Returns a part of a number with the noun, e.g. `1 of 2 keys`; with the verb `are`, `1 of 2 keys is`.

    Args:
        part: The part.
        whole: The number.
        noun: The noun of one.
        verb: The verb of several, `are`, `have` or `were`, which agrees with the number; empty for none.
    """
    text = f"{part:,} of {counted(whole, noun)}"
    return f"{text} {_OF_ONE[verb] if 1 in {part, whole} else verb}" if verb else text


def message(text: str) -> str:
    """Returns the safe text of an error. Later lines are indented, so that none looks like a line of Labrys."""
    return re.sub(r"\n(?!  )", "\n  ", plain(text))


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")
