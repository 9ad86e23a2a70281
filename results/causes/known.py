"""The causes that people know: files `known/NAME.toml` in a repository, each with the symptoms of one cause.

    link = "https://example.org/issues/17"
    signatures = ["c56146b91a9d", "402aeeaa10ba"]
    cause = "--mend 4"        # optional: what an experiment showed
    expires = "2027-03-01"

`signatures` are keys of symptoms, as `labrys triage` shows them. After `expires`, the entry counts no more: nobody forgets it.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from harness.console.documents import read_toml
from harness.console.members import read
from harness.errors import InputError
from results.causes.symptoms import DIGITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from results.causes.grouping import Group

KNOWN: Final = Path("known")
MAX_FILES: Final = 1_000
MAX_SIGNATURES: Final = 200
Text = Annotated[str, Meta(max_length=500)]
Key = Annotated[str, Meta(pattern=f"^[0-9a-f]{{{DIGITS}}}$")]
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    link: Text
    signatures: Annotated[list[Key], Meta(min_length=1, max_length=MAX_SIGNATURES)]
    expires: str
    cause: Text | None = None


class Known(Struct, frozen=True, kw_only=True):
    """A cause that people know.

    Attributes:
        name: The name of its file.
        link: Where people discuss it.
        signatures: The keys of its symptoms.
        expires: The last day on which it counts.
        cause: The defect, if an experiment showed it; then it must agree.
    """

    name: str
    link: str
    signatures: frozenset[str]
    expires: date
    cause: str | None = None

    def matches(self, group: Group) -> bool:
        """Returns whether a group has this cause: each of its symptoms is known, and the causes agree if both are."""
        agree = self.cause is None or group.cause is None or self.cause == group.cause
        return agree and self.signatures.issuperset(group.keys)

    def counts_on(self, day: date) -> bool:
        """Returns whether it has not expired."""
        return day <= self.expires


def read_known(folder: Path) -> list[Known]:
    """Returns the known causes in a folder, sorted by name; none if there is no such folder.

    Raises:
        InputError: A file is malformed; the message names it and what is expected.
    """
    if not folder.is_dir():
        return []
    paths = sorted(folder.glob("*.toml"))
    if len(paths) > MAX_FILES:
        raise InputError(
            f"{folder}: expected at most {MAX_FILES} known causes, found {len(paths)}; remove expired ones"
        )
    return [_read(path) for path in paths]


def _read(path: Path) -> Known:
    if not _NAME.fullmatch(path.stem):
        raise InputError(f"{path}: expected a name of letters, digits and `._-` for a known cause")
    try:
        found = read(read_toml(path), _File, "")
        expires = date.fromisoformat(found.expires)
    except ValueError:
        raise InputError(f"{path}: expires: expected a date such as 2027-03-01, in quotes") from None
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from error
    return Known(
        name=path.stem, link=found.link, signatures=frozenset(found.signatures), expires=expires, cause=found.cause
    )


def of_group(group: Group, known: Sequence[Known]) -> Known | None:
    """Returns the first known cause that a group matches; None without one."""
    return next((each for each in known if each.matches(group)), None)
