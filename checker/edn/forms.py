"""Cuts the first form off a text that goes on with something else, such as a line of a log.

The rule: the form is found by its tokens, in time proportional to its length, and is not read. What follows it need not be EDN.
"""

from __future__ import annotations

import re
from typing import Final

from checker.edn.tokens import TOKEN

_WORD: Final = re.compile(r"[\s,]*+([^\s,\"()\[\]{};\\#^`~@]++)(?=[\s,]|\Z)", re.ASCII)
_OPENERS: Final = frozenset({"(", "[", "{", "#{"})
_CLOSERS: Final = frozenset({")", "]", "}"})
_QUOTE: Final = '"'  # a string that has no end
_DISCARD: Final = "#_"


def first_form(text: str) -> tuple[str, str]:
    """Returns the text of the first form, and what follows it.

    Raises:
        ValueError: There is no whole form.
    """
    if word := _WORD.match(text):
        return word[1], text[word.end() :]
    depth, owed = 0, 1  # open collections; how many forms are still to come in the outermost place
    begin: int | None = None
    for match in TOKEN.finditer(text.rstrip()):  # an end in space would be slow
        token = match[1]
        if token[0] == ";" or token == _QUOTE:
            break
        begin = match.start(1) if begin is None else begin
        if token in _OPENERS:
            depth += 1
            continue
        if token in _CLOSERS:
            depth -= 1
        elif depth == 0 and token == _DISCARD:
            owed += 1
        if depth < 0:
            break
        is_prefix = token[0] == "#" and token[1:2] != "#"
        if depth == 0 and not is_prefix:
            owed -= 1
            if not owed:
                return text[begin : match.end()], text[match.end() :]
    raise ValueError("expected a form of EDN")
