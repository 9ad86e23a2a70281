"""The whole numbers in the answers of RocketMQ, which are hostile input: JSON in the body, texts in the header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.kit.answers import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value


def integer(value: Value) -> int:
    """Returns a value of the body that is a whole number of 64 bits.

    Raises:
        NoAnswer: It is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise NoAnswer(f"expected a whole number, got {str(value)[:100]}")
    return value


def number(text: str) -> int:
    """Returns the whole number of 64 bits in a text.

    Raises:
        NoAnswer: It has none.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise NoAnswer(f"expected a whole number, got {text[:100]!r}")
    return integer(int(text))


def number_in(fields: Mapping[str, str], name: str) -> int:
    """Returns the whole number of 64 bits in a field of the header.

    Raises:
        NoAnswer: The field is missing, or has none.
    """
    if name not in fields:
        raise NoAnswer(f"expected the header field {name}, got {', '.join(fields)[:100] or 'none'}")
    return number(fields[name])
