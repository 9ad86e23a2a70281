"""The usual spelling of values whose tags EDN defines: `#inst` and `#uuid`.

Two texts may be one value: `#inst "2026-01-01T00:00:00Z"` and `#inst "2026-01-01T01:00:00.000+01:00"`, or a UUID in large and
in small letters, or without the zeros before a group. The usual spelling is the one that Clojure prints, so it is the same for
both, and a value of Jepsen keeps its text. A text that EDN does not define, e.g. the 31st of April, stays as it is: it equals
only itself.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# RFC 3339, section 5.6. As in Clojure's reader, all after the year may be missing, and then it is the first moment in UTC.
_INSTANT: Final = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,30}))?)?)?)?)?)?(?:Z|([+-])(\d\d):(\d\d))?",
    re.ASCII,
)
# As `java.util.UUID.fromString`, which Clojure calls: 36 characters at most, and in each group a number below 2^63. Of a group
# that is too long, the last digits count.
_UUID: Final = re.compile(r"(?=.{,36}\Z)" + "-".join([r"\+?([0-9a-f]+)"] * 5), re.ASCII | re.IGNORECASE)
_DIGITS: Final = (8, 4, 4, 4, 12)
_LARGEST: Final = (1 << 63) - 1
_MILLISECONDS: Final = 3  # the digits of a fraction that Clojure always prints
_MOST: Final = 23  # hours, of an offset
_MINUTES: Final = 60


def usual(tag: str, value: Any) -> Any:
    """Returns the value of a tag in its usual spelling; unchanged if it has no other one."""
    spelling = _SPELLINGS.get(tag)
    return value if spelling is None or type(value) is not str else spelling(value)


def _instant(text: str) -> str:
    match = _INSTANT.fullmatch(text)
    if match is None:
        return text
    year, month, day, hour, minute, second = (
        int(part or least) for part, least in zip(match.groups()[:6], (0, 1, 1, 0, 0, 0), strict=True)
    )
    fraction, sign, hours, minutes = match.groups()[6:]
    if int(hours or 0) > _MOST or int(minutes or 0) >= _MINUTES:
        return text
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        moment = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - it is in UTC after the next line
        moment = moment + offset if sign == "-" else moment - offset
    except (ValueError, OverflowError):
        return text
    return f"{moment.isoformat()}.{(fraction or '').rstrip('0').ljust(_MILLISECONDS, '0')}-00:00"


def _uuid(text: str) -> str:
    match = _UUID.fullmatch(text)
    groups = [int(group, 16) for group in match.groups()] if match else []
    if not groups or max(groups) > _LARGEST:
        return text
    return "-".join(f"{group:0{digits}x}"[-digits:] for group, digits in zip(groups, _DIGITS, strict=True))


_SPELLINGS: Final[Mapping[str, Callable[[str], str]]] = {"inst": _instant, "uuid": _uuid}
