"""Identifiers that are nested as deep as a history takes. With `--same`, each node counts from 0."""

from __future__ import annotations

import sys
from typing import Any

from wire import answer, requests

DEPTH = 128


def main() -> None:
    """Handles messages until stdin ends."""
    for number, (name, _, message) in enumerate(requests()):
        identifier: Any = number if "--same" in sys.argv else f"{name} {number}"
        for _ in range(DEPTH):
            identifier = [identifier]
        answer(name, message, id=identifier)


main()
