"""What to do with the issues of a repository after a night: one issue for each cause.

The first line of an issue names its cause, by the keys of its symptoms and a digest of its defect. So later nights find it.
The most frequent key of a cause may change from night to night, but its keys have some in common with those of its issue. An
issue and a cause that have the most in common belong together, and each of them to one alone.

A cause that the newest night has opens an issue, is a comment on the open one, or opens the closed one again. An issue of a
cause that is gone is closed. Nothing is opened for what the machine did, and for a cause that people have filed as known.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from harness.console.documents import read_bytes
from harness.console.members import Instant, Whole, read, written
from harness.console.plain import counted, one_line
from harness.errors import InputError
from results.causes.cases import night_of
from results.causes.symptoms import DIGITS
from results.causes.texts import facts_of, rate_of, told
from results.words.markdown import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from results.causes.standing import Cause
    from results.causes.texts import Page

FORMAT: Final = "labrys-issue-actions"
VERSION: Final = 1
MAX_ISSUES: Final = 10_000
MAX_BYTES: Final = 256 << 20  # of all issues
MAX_OPENED: Final = 20  # in a night: a broken machine must not flood a repository
MAX_KEYS: Final = 20  # in the first line of an issue
MAX_TITLE: Final = 120
MAX_BODY: Final = 60_000  # characters; GitHub takes 65,536
MAX_FACT: Final = 2_000
_MARK: Final = re.compile(
    rf"<!-- labrys-cause:(?P<keys>(?: [0-9a-f]{{{DIGITS}}}){{1,{MAX_KEYS}}})(?:; defect (?P<defect>[0-9a-f]{{{DIGITS}}}))? -->"
)
_ABOUT: Final = (
    "Labrys writes this issue. A later night with the same cause adds a comment. Labrys closes it when the cause is gone.",
    "The first line of this text is hidden, and says which cause it is. Please leave it there.",
)
_CUT: Final = "\n\nThe report is longer; `labrys report RUN --for-authors` writes all of it.\n"

Text = Annotated[str, Meta(max_length=1 << 20)]
Do = Literal["open", "comment", "reopen", "close"]


class _GitHub(Struct, frozen=True, kw_only=True, rename="camel"):
    number: Whole
    state: Literal["OPEN", "CLOSED"]
    body: Text | None
    url: Text
    closed_at: Instant | None = None


class _GitLab(Struct, frozen=True, kw_only=True):
    iid: Whole
    state: Literal["opened", "closed"]
    description: Text | None
    web_url: Text
    closed_at: Instant | None = None


class Issue(Struct, frozen=True, kw_only=True):
    """An issue of a repository.

    Attributes:
        number: Its number.
        is_open: Whether it is open.
        url: Its address.
        closed: The night in which it was closed; null if it is open, or if this is unknown.
        keys: The keys of the symptoms of its cause; empty without a first line of Labrys.
        defect: The digest of the defect of its cause; null without one.
    """

    number: int
    is_open: bool
    url: str
    closed: date | None = None
    keys: frozenset[str] = frozenset()
    defect: str | None = None


class Action(Struct, frozen=True, kw_only=True):
    """What to do with one issue.

    Attributes:
        do: `open` makes an issue; `comment` adds one; `reopen` and `close` add a comment, too.
        number: The number of the issue; null to make one.
        cause: The name of the cause.
        title: The title of a new issue; empty for others.
        body: The text of the issue or of the comment, as Markdown.
    """

    do: Do
    number: int | None
    cause: str
    title: str
    body: str


class Left(Struct, frozen=True, kw_only=True):
    """A cause for which nothing is done.

    Attributes:
        cause: Its name.
        why: The reason.
    """

    cause: str
    why: str


class Actions(Struct, frozen=True, kw_only=True):
    """What to do with the issues of a repository.

    Attributes:
        format: The name of the format.
        version: Its version.
        actions: What to do, in this order.
        left: The causes for which nothing is done.
    """

    format: str
    version: int
    actions: list[Action]
    left: list[Left]


def read_issues(path: Path) -> list[Issue]:
    """Reads issues in the form of `gh issue list --json number,state,body,url,closedAt`, or of the API of GitLab.

    Raises:
        InputError: The file cannot be read, or is malformed; the message names the member.
    """
    try:
        document = json.loads(read_bytes(path, MAX_BYTES))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected JSON: {one_line(str(error))}") from error
    if not isinstance(document, list) or len(document) > MAX_ISSUES:
        raise InputError(f"{path}: expected a list of at most {MAX_ISSUES} issues")
    return [_issue(issue, f"{path}[{index}]") for index, issue in enumerate(document)]


def _issue(document: Any, where: str) -> Issue:
    if isinstance(document, dict) and "iid" in document:
        lab = read(document, _GitLab, where)
        number, is_open, body, url = lab.iid, lab.state == "opened", lab.description, lab.web_url
        closed = lab.closed_at
    else:
        hub = read(document, _GitHub, where)
        number, is_open, body, url = hub.number, hub.state == "OPEN", hub.body, hub.url
        closed = hub.closed_at
    mark = _MARK.match(body or "")
    return Issue(
        number=number,
        is_open=is_open,
        url=url,
        closed=None if is_open or closed is None else night_of(closed),
        keys=frozenset() if mark is None else frozenset(mark["keys"].split()),
        defect=None if mark is None else mark["defect"],
    )


def json_of_actions(actions: Actions) -> dict[str, Any]:
    """Returns the actions as JSON."""
    document: dict[str, Any] = written(actions)
    return document


def actions_of(page: Page, issues: Sequence[Issue], report: Callable[[Cause], str], link: str = "") -> Actions:
    """Returns what to do with the issues of a repository.

    Args:
        page: The causes.
        issues: The issues.
        report: Returns the report of a cause for the authors of the system, as Markdown; empty if there is none.
        link: The address of the night; empty without one.
    """
    own = _issues_of(page.causes, issues)
    newest = page.nights[-1] if page.nights else ""
    actions, left = list[Action](), list[Left]()
    for cause in page.causes:
        issue = own.get(cause.name)
        do, why = _what(cause, issue, newest)
        if do == "open" and sum(action.do == "open" for action in actions) == MAX_OPENED:
            do, why = None, f"this night opens {MAX_OPENED} issues already"
        if do is None:
            left.append(Left(cause=cause.name, why=why))
            continue
        is_new = do == "open"
        body = _opening(cause, report(cause), link) if is_new else "\n".join(_comment(cause, newest, link))
        actions.append(
            Action(
                do=do,
                number=None if issue is None or is_new else issue.number,
                cause=cause.name,
                title=_title(cause) if is_new else "",
                body=body,
            )
        )
    return Actions(format=FORMAT, version=VERSION, actions=actions, left=left)


def _digest(defect: str | None) -> str | None:
    return None if defect is None else hashlib.sha256(defect.encode("utf-8", "backslashreplace")).hexdigest()[:DIGITS]


def mark_of(cause: Cause) -> str:
    """Returns the first line of the issue of a cause, which readers of Markdown do not show."""
    defect = _digest(cause.defect)
    tail = "" if defect is None else f"; defect {defect}"
    return f"<!-- labrys-cause: {' '.join(cause.signatures[:MAX_KEYS])}{tail} -->"


def _issues_of(causes: Sequence[Cause], issues: Sequence[Issue]) -> dict[str, Issue]:
    """Returns the issue of each cause that has one, by the name of the cause."""
    pairs = []
    for cause in causes:
        keys, defect = frozenset(cause.signatures), _digest(cause.defect)
        for issue in issues:
            common = len(keys & issue.keys)
            if common and (defect is None or issue.defect is None or defect == issue.defect):
                share = common / len(keys | issue.keys)
                pairs.append((defect == issue.defect, share, issue.is_open, -issue.number, cause.name, issue))
    pairs.sort(key=lambda pair: pair[:5], reverse=True)
    own: dict[str, Issue] = {}
    taken: set[int] = set()
    for *_, cause_name, issue in pairs:
        if cause_name not in own and issue.number not in taken:
            own[cause_name] = issue
            taken.add(issue.number)
    by_url = {issue.url: issue for issue in issues}
    for cause in causes:
        if cause.name not in own and cause.link in by_url:
            own[cause.name] = by_url[cause.link]
    return own


def _what(cause: Cause, issue: Issue | None, newest: str) -> tuple[Do | None, str]:
    """Returns what to do for a cause; if nothing, also why."""
    is_open = issue is not None and issue.is_open
    if cause.state == "gone":
        return ("close", "") if is_open else (None, "it is gone, and has no open issue")
    if cause.last.night != newest:
        return None, "the newest night lacks it, and chance explains that"
    if is_open:
        return "comment", ""
    if cause.known is not None:
        return None, f"known/{cause.known}.toml has it, and it has no open issue"
    if cause.blame == "machine":
        return None, f"it is put down to the machine: {cause.why}"
    return ("open", "") if issue is None else _again(issue, newest)


def _again(issue: Issue, newest: str) -> tuple[Do | None, str]:
    """Returns what to do with a closed issue whose cause the newest night has."""
    if issue.closed is not None and issue.closed >= date.fromisoformat(newest):
        return None, f"issue {issue.number} was closed after that night"
    return "reopen", ""


def _facts(cause: Cause, link: str) -> Iterator[str]:
    for word, fact in facts_of(cause):
        yield f"- {word}: {quoted(fact, MAX_FACT)}"
    if link:
        yield f"- [the night with its reports]({link})"


def _title(cause: Cause) -> str:
    sentence = told(cause)
    return f"Labrys: {sentence}" if len(sentence) <= MAX_TITLE else f"Labrys: {sentence[:MAX_TITLE]}…"


def _opening(cause: Cause, report: str, link: str) -> str:
    """Returns the text of a new issue."""
    lines = [mark_of(cause), quoted(told(cause), MAX_FACT), "", *_facts(cause, link), "", *_ABOUT, "", report]
    whole = "\n".join(lines)
    return whole if len(whole) <= MAX_BODY else whole[: whole.rfind("\n", 0, MAX_BODY - len(_CUT))] + _CUT


def _comment(cause: Cause, newest: str, link: str) -> Iterator[str]:
    """Yields the lines of a comment."""
    if cause.state == "gone":
        yield f"The cause is gone: {counted(cause.absent, 'later run')} without it."
    else:
        yield f"The night of {newest} has the cause: {rate_of(cause)} so far."
    yield ""
    yield from _facts(cause, link)
