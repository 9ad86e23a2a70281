"""The causes that people know: files `known/NAME.toml` in a repository, each with the symptoms of one cause.

    link = "https://example.org/issues/17"
    signatures = ["c56146b91a9d", "402aeeaa10ba"]
    cause = "--mend 4"        # optional: what an experiment showed
    expires = "2027-03-01"
    steps = "findings/17.md"  # optional: a page with a heading `Steps`, for the authors of the system

`signatures` are keys of symptoms, as `labrys triage` shows them. After `expires`, the entry counts no more: nobody forgets it.
`steps` is a path from the folder that has `known`.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from harness.console.documents import read_text, read_toml
from harness.console.members import read
from harness.errors import InputError
from results.causes.symptoms import DIGITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from results.causes.grouping import Group

KNOWN: Final = Path("known")
MAX_FILES: Final = 1_000
MAX_SIGNATURES: Final = 200
MAX_PAGE_BYTES: Final = 1 << 20
STEPS: Final = "Steps"  # the heading of the steps, at any level
Text = Annotated[str, Meta(max_length=500)]
Key = Annotated[str, Meta(pattern=f"^[0-9a-f]{{{DIGITS}}}$")]
_HEADING: Final = re.compile(r"(?P<level>#{1,6}) +(?P<title>.*?) *")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    link: Text
    signatures: Annotated[list[Key], Meta(min_length=1, max_length=MAX_SIGNATURES)]
    expires: str
    cause: Text | None = None
    steps: Text | None = None


class Known(Struct, frozen=True, kw_only=True):
    """A cause that people know.

    Attributes:
        name: The name of its file.
        link: Where people discuss it.
        signatures: The keys of its symptoms.
        expires: The last day on which it counts.
        cause: The defect, if an experiment showed it; then it must agree.
        steps: The page with steps that use the tools of the system alone; None without one.
    """

    name: str
    link: str
    signatures: frozenset[str]
    expires: date
    cause: str | None = None
    steps: Path | None = None

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
        stored = read(read_toml(path), _File, "")
        expires = date.fromisoformat(stored.expires)
    except ValueError:
        raise InputError(f"{path}: expires: expected a date such as 2027-03-01, in quotes") from None
    except InputError as error:
        raise InputError(str(error) if str(path) in str(error) else f"{path}: {error}") from error
    return Known(
        name=path.stem,
        link=stored.link,
        signatures=frozenset(stored.signatures),
        expires=expires,
        cause=stored.cause,
        steps=None if stored.steps is None else _page(path, stored.steps),
    )


def _page(path: Path, steps: str) -> Path:
    """Returns the page of an entry's steps.

    Raises:
        InputError: It is outside of the folder that has the known causes' folder.
    """
    above = path.resolve().parent.parent
    page = above / steps
    if not page.resolve().is_relative_to(above):
        raise InputError(f"{path}: steps: expected a page below {above}, not {steps!r}")
    return page


def steps_of(entry: Known) -> str:
    """Returns the steps of a known cause, as Markdown; empty if it names none.

    Raises:
        InputError: The page cannot be read, or has no heading `Steps`.
    """
    if entry.steps is None:
        return ""
    lines = read_text(entry.steps, MAX_PAGE_BYTES).splitlines()
    levels = []
    is_code = False
    for number, line in enumerate(lines):
        is_code ^= line.startswith("```")
        heading = _HEADING.fullmatch(line)
        if heading is not None and not is_code:
            levels.append((number, len(heading["level"]), heading["title"]))
    start = next(((number, level) for number, level, title in levels if title == STEPS), None)
    if start is None:
        raise InputError(f"{entry.steps}: expected a heading `{STEPS}`, for known/{entry.name}.toml")
    end = next((number for number, level, _ in levels if number > start[0] and level <= start[1]), len(lines))
    return "\n".join(lines[start[0] + 1 : end]).strip()


def of_group(group: Group, known: Sequence[Known]) -> Known | None:
    """Returns the first known cause that a group matches; None without one."""
    return next((cause for cause in known if cause.matches(group)), None)
