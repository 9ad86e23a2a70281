"""Takes the values, names and times out of sentences and log lines, so that those of two runs with one defect are equal.

A word with a digit is a number, a time, a key, a value or an address, and becomes `#`. The names of the nodes become `NODE`,
and a list of them becomes one. What stands in quotes, and values of lists and objects, become `…`. The plural of a word after
a number becomes the singular.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from results.record.signatures import MAX_CLASS, MAX_SENTENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_READ: Final = 4_000  # characters of a text; more are not looked at
MAX_NODES: Final = 64

_QUOTED: Final = re.compile(r"'[^']{0,400}'(?![A-Za-z])|\"[^\"]{0,400}\"|\[[^\[\]]{0,400}\]|\{[^{}]{0,400}\}")
_TOKEN: Final = re.compile(r"[^\s,;:()\[\]'\"]++")
_DIGIT: Final = re.compile(r"\d")
_UNIT: Final = re.compile(r"# (?:s|ms|µs|%|MB|bytes)(?![A-Za-z])")
_LIST_OF_NODES: Final = re.compile(r"NODE(?:(?:, | and |, and )NODE)+")
_LIST_OF_NUMBERS: Final = re.compile(r"#(?:(?:, | and |, and )#)+")
_PLURALS: Final = re.compile(r"\b(key|read|write|value|replica|operation|node|line|fault|element|message|case)s\b")
_OF_SEVERAL: Final = {"are": "is", "were": "was", "have": "has"}
_VERB: Final = re.compile(r"\b(?:are|were|have)\b")
_SPACES: Final = re.compile(r"\s+")
_SEVERITY: Final = re.compile(
    r"\b(?:WARN|WARNING|WRN|ERROR|ERR|FATAL|FTL|SEVERE|CRITICAL|PANIC|PNC)\b|\[(?:warn|error|fatal|panic)\w*\]"
    r"|^panic:|\blevel\"?[:=] ?\"?(?:warn|error|fatal|panic|crit)"
)


class Stripper:
    """Strips the texts of one run.

    Args:
        nodes: The names of its nodes.
    """

    def __init__(self, nodes: Sequence[str]) -> None:
        names = sorted(filter(None, nodes), key=len, reverse=True)[:MAX_NODES]
        listed = "|".join(map(re.escape, names))
        self._nodes = re.compile(rf"(?<![A-Za-z0-9_-])(?:{listed})(?![A-Za-z0-9_-])") if listed else None

    def sentence(self, text: str) -> str:
        """Returns a sentence without values, names and times."""
        words = self._named(text[:MAX_READ])
        words = _UNIT.sub("#", _without_numbers(_QUOTED.sub("…", words)))
        words = _LIST_OF_NUMBERS.sub("#", _LIST_OF_NODES.sub("NODE", words))
        words = _PLURALS.sub(r"\1", words).replace("entries", "entry")
        words = _VERB.sub(lambda verb: _OF_SEVERAL[verb[0]], words)
        return _SPACES.sub(" ", words).strip()[:MAX_SENTENCE]

    def line(self, text: str) -> str:
        """Returns the class of a log line: from the word that says how severe it is, without values, names and times."""
        severity = _SEVERITY.search(text)
        words = self._named(text[severity.start() if severity else 0 :][:MAX_READ])
        words = _LIST_OF_NODES.sub("NODE", _without_numbers(_QUOTED.sub("…", words)))
        return _SPACES.sub(" ", words).strip()[:MAX_CLASS]

    def _named(self, text: str) -> str:
        return text if self._nodes is None else self._nodes.sub("NODE", text)


def _without_numbers(text: str) -> str:
    """Returns a text with `#` for each word with a digit. Each character is looked at twice at most, in a hostile text too."""
    return _TOKEN.sub(lambda word: "#" if _DIGIT.search(word[0]) else word[0], text)
