"""Foreign text made fit to be shown: to a terminal, which obeys control characters, and in XML, which forbids them."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def plain(text: str) -> str:
    """Returns `text` with every control character but tab and newline shown as its escape sequence."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


def one_line(text: str) -> str:
    """Returns `text` fit to be shown, its line breaks and runs of spaces made single spaces."""
    return plain(" ".join(text.split()))
