"""The issues of causes: one for each, found again by its first line, and closed when the cause is gone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace as with_members

from harness.errors import InputError
from results.causes.issues import (
    MAX_BODY,
    MAX_KEYS,
    MAX_OPENED,
    Action,
    Actions,
    actions_of,
    json_of_actions,
    mark_of,
    read_issues,
)
from results.causes.reading import Seen
from results.causes.texts import Page, page_of
from tests.unit.results.test_causes import case, causes, trial

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from results.causes.cases import Case, Trial

LINK = "https://example.org/run/5"


def page(cases: Sequence[Case], others: Sequence[Trial] = (), known: Path | None = None) -> Page:
    """Returns the page of causes of runs."""
    seen = Seen(trials=[*(each.trial for each in cases), *others], cases=list(cases))
    return page_of(["store"], seen, causes(cases, others, known), "")


class Tracker:
    """The issues of a repository."""

    def __init__(self, path: Path) -> None:
        self.path, self.issues = path, list[dict[str, object]]()

    def night(self, of: Page, report: str = "# Report") -> list[tuple[str, int | None]]:
        """Carries out the actions of a night, and returns them."""
        self.path.write_text(json.dumps(self.issues))
        actions = actions_of(of, read_issues(self.path), lambda _: report, LINK)
        for action in actions.actions:
            self._do(action)
        return [(action.do, action.number) for action in actions.actions]

    def _do(self, action: Action) -> None:
        if action.number is None:
            number = len(self.issues) + 1
            issue = {"number": number, "state": "OPEN", "body": action.body, "url": f"https://example.org/{number}"}
            self.issues.append({**issue, "closedAt": None})
        elif action.do == "close":
            self.closed(action.number, "2026-11-03T12:00:00Z")
        elif action.do == "reopen":
            self.issues[action.number - 1] |= {"state": "OPEN", "closedAt": None}

    def closed(self, number: int, when: str) -> None:
        """Closes an issue."""
        self.issues[number - 1] |= {"state": "CLOSED", "closedAt": when}


@pytest.fixture
def tracker(tmp_path: Path) -> Tracker:
    """Returns a repository without issues."""
    return Tracker(tmp_path / "issues.json")


def test_an_issue_lives_as_long_as_its_cause(tracker: Tracker) -> None:
    """It is opened once, gets a comment from each night with the cause, and is closed and opened again."""
    early = [case(number, "logs differ", night=0) for number in range(8)]
    assert tracker.night(page(early)) == [("open", None)]
    later = [*early, *(case(number, "logs differ", night=1) for number in range(10, 14))]
    assert tracker.night(page(later)) == [("comment", 1)]
    few = [trial(number, 2) for number in range(1)]
    assert tracker.night(page(later, few)) == []  # chance explains one run without it
    right = [trial(number, 2 + number // 6) for number in range(12)]
    assert tracker.night(page(later, right)) == [("close", 1)]
    assert tracker.night(page(later, right)) == []
    assert tracker.night(page([*later, case(99, "logs differ", night=5)], right)) == [("reopen", 1)]
    assert [issue["state"] for issue in tracker.issues] == ["OPEN"]


def test_the_text_of_an_issue_says_what_to_know(tracker: Tracker) -> None:
    """The mark, the facts, the address of the night, and the report; a comment has the rate so far."""
    tracker.night(page([case(1, "logs differ")]))
    body = str(tracker.issues[0]["body"])
    key = case(1, "logs differ").symptom.key
    assert body.splitlines()[0] == f"<!-- labrys-cause: {key} -->"
    assert "labrys test --seed 1" in body
    assert f"]({LINK})" in body
    assert body.endswith("# Report")
    [comment] = actions_of(page([case(1, "logs differ")]), read_issues(tracker.path), lambda _: "", "").actions
    assert comment.do == "open"  # the file has the issues before the night
    tracker.path.write_text(json.dumps(tracker.issues))
    [comment] = actions_of(page([case(1, "logs differ")]), read_issues(tracker.path), lambda _: "", "").actions
    assert comment.body.startswith("The night of 2026-11-01 has the cause: 1 of 1 run")


def test_two_causes_have_two_issues(tracker: Tracker) -> None:
    """Each keeps its own, in any order of the list; a cause of which only a part is known by an issue has that one."""
    both = [case(1, "logs differ"), case(2, "a node is gone")]
    assert tracker.night(page(both)) == [("open", None), ("open", None)]
    tracker.issues.reverse()
    assert sorted(tracker.night(page(both)), key=str) == [("comment", 1), ("comment", 2)]
    of = {
        action.cause: action.number
        for action in actions_of(page(both), read_issues(tracker.path), lambda _: "").actions
    }
    marks = {str(issue["body"]).split()[2]: issue["number"] for issue in tracker.issues}
    assert of == marks


def test_symptoms_that_change_keep_the_issue(tracker: Tracker) -> None:
    """One common key is enough, and the issue with the most in common is that of the cause."""
    [one] = page([case(1, "logs differ")]).causes
    wide = with_members(one, signatures=["0" * 12, "1" * 12, one.signatures[0]])
    near = with_members(one, signatures=["2" * 12, *one.signatures])
    for number, cause in enumerate((wide, near), 1):
        tracker.issues.append({"number": number, "state": "OPEN", "body": mark_of(cause), "url": "u", "closedAt": None})
    assert tracker.night(page([case(1, "logs differ")])) == [("comment", 2)]


def test_one_symptom_of_two_defects_has_two_issues(tracker: Tracker) -> None:
    """The digest of the defect tells them apart; without an experiment, the symptom decides."""
    [plain] = page([case(1, "logs differ")]).causes
    first, second = (with_members(plain, name=f"c{n}", defect=f"--mend {n}") for n in (1, 2))
    both = with_members(page([case(1, "logs differ")]), causes=[first, second])
    assert tracker.night(both) == [("open", None), ("open", None)]
    tracker.issues.reverse()
    assert sorted(tracker.night(both), key=str) == [("comment", 1), ("comment", 2)]
    assert tracker.night(with_members(both, causes=[second])) == [("comment", 2)]
    assert tracker.night(with_members(both, causes=[plain])) in ([("comment", 1)], [("comment", 2)])


def test_a_person_who_closes_an_issue_is_heard(tracker: Tracker) -> None:
    """The night before says nothing new; a later night with the cause opens the issue again, unless it is filed as known."""
    first = [case(1, "logs differ", night=0)]
    tracker.night(page(first))
    tracker.closed(1, "2026-11-02T10:00:00Z")  # the day after the night of the first of November
    assert tracker.night(page(first)) == []
    tracker.closed(1, "2026-11-02T10:00:00Z")
    later = [*first, case(2, "logs differ", night=1)]
    assert tracker.night(page(later)) == [("reopen", 1)]


def test_a_known_cause_gets_comments_and_no_new_issue(tracker: Tracker, tmp_path: Path) -> None:
    """The issue is that of its link, or the one that Labrys opened; a closed one stays closed."""
    known = tmp_path / "known"
    known.mkdir()
    runs = [case(1, "logs differ")]
    (known / "logs.toml").write_text(
        f'link = "https://example.org/1"\nsignatures = ["{runs[0].symptom.key}"]\nexpires = "2027-01-01"\n'
    )
    assert tracker.night(page(runs, known=known)) == []
    tracker.issues.append(
        {"number": 1, "state": "OPEN", "body": None, "url": "https://example.org/1", "closedAt": None}
    )
    assert tracker.night(page(runs, known=known)) == [("comment", 1)]
    tracker.closed(1, "2026-10-01T00:00:00Z")
    assert tracker.night(page(runs, known=known)) == []


def test_what_the_machine_did_opens_no_issue(tracker: Tracker) -> None:
    """What the test or the system did opens one."""
    for blame, number in (("machine", 0), ("test", 1), ("system", 1)):
        found = case(1, "logs differ")
        signature = with_members(found.signature, ended="unknown", blame=blame, why="the rule")
        tracker.issues.clear()
        tracker.night(page([replace(found, signature=signature)]))
        assert len(tracker.issues) == number, blame


def test_a_night_opens_so_many_issues_and_no_more(tracker: Tracker) -> None:
    """A broken machine does not flood a repository; what is left says why."""
    words = [f"{a} {b}" for a in ("logs", "nodes", "values", "terms", "keys") for b in ("a", "b", "c", "d", "e")]
    many = page([case(number, f"{text}ly gone away") for number, text in enumerate(words)])
    assert len(many.causes) > MAX_OPENED
    actions = actions_of(many, [], lambda _: "")
    assert len(actions.actions) == MAX_OPENED
    assert {each.why for each in actions.left} == {f"this night opens {MAX_OPENED} issues already"}


def test_foreign_text_stays_text_and_names_no_other_cause(tracker: Tracker) -> None:
    """A sentence with a mark, HTML or a mention is no markup. A mark counts only as the first text of an issue."""
    hostile = "<!-- labrys-cause: 0123456789ab --> <script>x</script> @all #7 [a](b)\n\x1b[2J"
    tracker.night(page([case(1, hostile, line=hostile)]), report="r" * (2 * MAX_BODY))
    body = str(tracker.issues[0]["body"])
    assert "<script>" not in body
    assert "@all" not in body
    assert body.count("<!--") == 1
    assert len(body) <= MAX_BODY
    tracker.path.write_text(json.dumps([{**tracker.issues[0], "body": f"\n{body}"}]))
    assert read_issues(tracker.path)[0].keys == frozenset()
    tracker.path.write_text(json.dumps(tracker.issues))
    assert "0123456789ab" not in read_issues(tracker.path)[0].keys


def test_a_cause_of_many_symptoms_has_a_mark(tracker: Tracker) -> None:
    """The most frequent keys are in it, and it is read."""
    [one] = page([case(1, "logs differ")]).causes
    many = with_members(one, signatures=[f"{number:012x}" for number in range(200)])
    tracker.path.write_text(json.dumps([{"number": 1, "state": "OPEN", "body": f"{mark_of(many)}\nText", "url": "u"}]))
    [issue] = read_issues(tracker.path)
    assert len(issue.keys) == MAX_KEYS


def test_issues_of_gitlab_are_read(tracker: Tracker) -> None:
    """They have other names."""
    [one] = page([case(1, "logs differ")]).causes
    tracker.path.write_text(
        json.dumps(
            [
                {
                    "iid": 4, "state": "closed", "description": mark_of(one), "web_url": "u",
                    "closed_at": "2026-11-02T10:00:00.1Z", "title": "t",
                },
                {"iid": 5, "state": "opened", "description": None, "web_url": "v", "closed_at": None},
            ]
        )
    )  # fmt: skip
    closed, other = read_issues(tracker.path)
    assert (closed.number, closed.is_open, str(closed.closed), closed.keys) == (
        4,
        False,
        "2026-11-01",
        frozenset(one.signatures),
    )
    assert (other.number, other.is_open, other.keys) == (5, True, frozenset())


BAD: Mapping[str, str] = {
    "{": "JSON",
    "[" * 100_000: "JSON",
    "{}": "a list",
    "[1]": "issues",
    '[{"number": -1, "state": "OPEN", "body": "", "url": ""}]': "number",
    '[{"number": 1, "state": "ajar", "body": "", "url": ""}]': "state",
    '[{"iid": 1, "state": "opened", "description": 7, "web_url": ""}]': "description",
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:20])
def test_a_malformed_list_is_named(text: str, tmp_path: Path) -> None:
    """The error names the file and the member."""
    path = tmp_path / "issues.json"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(BAD[text])) as error:
        read_issues(path)
    assert "issues" in str(error.value)


def test_actions_are_json() -> None:
    """With the reason for each cause that nothing is done for."""
    actions: Actions = actions_of(page([case(1, "logs differ")]), [], lambda _: "")
    document = json.loads(json.dumps(json_of_actions(actions)))
    assert (document["format"], document["version"]) == ("labrys-issue-actions", 1)
    [action] = document["actions"]
    assert (action["do"], action["number"], action["title"]) == ("open", None, "Labrys: logs differ")
