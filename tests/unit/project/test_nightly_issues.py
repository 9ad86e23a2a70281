"""The nightly's issues: issue.sh carries out what `labrys triage --actions` says, on GitHub, on GitLab, and as a dry run."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import parse_qs

from tests.stand_ins import asked, nightly, stand_in

if TYPE_CHECKING:
    from pathlib import Path

ACTIONS = {
    "actions": [
        {
            "do": "open",
            "number": None,
            "cause": "a",
            "title": "Labrys: a $(touch bad) `touch bad`",
            "body": "<!-- mark -->\nOne.",
        },
        {"do": "comment", "number": 7, "cause": "b", "title": "", "body": "Two."},
        {"do": "reopen", "number": 8, "cause": "c", "title": "", "body": "Three."},
        {"do": "close", "number": 9, "cause": "d", "title": "", "body": "Four."},
    ],
    "left": [{"cause": "e", "why": "it is gone"}],
}


def test_issues_are_opened_and_closed_on_github(tmp_path: Path) -> None:
    """Each action is one or two calls, with the text in a file; foreign text is no shell."""
    programs = tmp_path / "bin"
    stand_in(programs, "gh", f'for last; do :; done; [ ! -f "$last" ] || cat "$last" >>"{programs}/bodies"')
    (tmp_path / "actions.json").write_text(json.dumps(ACTIONS))
    done = nightly("issue.sh", "carry-out", "actions.json", cwd=tmp_path, programs=programs, TRACKER="github")
    assert done.returncode == 0, done.stderr
    calls = [re.sub(r" /\S+/body$", " BODY", line) for line in asked(programs)]
    assert calls == [
        "label create labrys --force --description Opened and closed by the nightly of Labrys",
        "issue create --label labrys --title Labrys: a $(touch bad) `touch bad` --body-file BODY",
        "issue comment 7 --body-file BODY",
        "issue comment 8 --body-file BODY",
        "issue reopen 8",
        "issue comment 9 --body-file BODY",
        "issue close 9",
    ]
    assert (programs / "bodies").read_text() == "<!-- mark -->\nOne.\nTwo.\nThree.\nFour.\n"
    assert done.stdout.endswith("no action for e: it is gone\n")
    assert not (tmp_path / "bad").exists()


def test_issues_are_listed_and_an_error_of_the_tracker_is_one(tmp_path: Path) -> None:
    """A list that fails leaves no file, so that no issue is opened twice."""
    programs = tmp_path / "bin"
    stand_in(programs, "gh", "echo '[]'")
    assert nightly("issue.sh", "list", "new.json", cwd=tmp_path, programs=programs, TRACKER="github").returncode == 0
    assert ((tmp_path / "new.json").read_text(), asked(programs)[0][:47]) == (
        "[]\n", "issue list --label labrys --state all --limit 5",
    )  # fmt: skip
    stand_in(programs, "gh", "exit 4")
    (tmp_path / "actions.json").write_text(json.dumps(ACTIONS))
    for words in (("list", "other.json"), ("carry-out", "actions.json")):
        assert nightly("issue.sh", *words, cwd=tmp_path, programs=programs, TRACKER="github").returncode == 4
    assert not (tmp_path / "other.json").exists()
    done = nightly("issue.sh", "list", "other.json", cwd=tmp_path, programs=programs, TRACKER="jira")
    assert (done.returncode, "expected print, github or gitlab" in done.stderr) == (254, True)


def test_a_dry_run_prints_the_issues(tmp_path: Path) -> None:
    """It is the default, and asks nobody."""
    (tmp_path / "actions.json").write_text(json.dumps(ACTIONS))
    done = nightly("issue.sh", "carry-out", "actions.json", cwd=tmp_path, programs=tmp_path / "none")
    assert done.returncode == 0, done.stderr
    assert "open - Labrys: a $(touch bad)" in done.stdout
    assert "\n    Two.\n" in done.stdout
    assert nightly("issue.sh", "list", "issues.json", cwd=tmp_path, programs=tmp_path / "none").returncode == 0
    assert json.loads((tmp_path / "issues.json").read_text()) == []


class _GitLab(BaseHTTPRequestHandler):
    """The calls of GitLab's API that issue.sh uses."""

    asked: ClassVar[list[tuple[str, str, dict[str, list[str]], str | None]]] = []

    def _answer(self, answer: object) -> None:
        text = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.asked.append((self.command, self.path, parse_qs(text), self.headers["PRIVATE-TOKEN"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def do_GET(self) -> None:
        """Answers with two pages of issues."""
        self._answer([{"iid": number} for number in range(100 if self.path.endswith("&page=1") else 3)])

    def do_POST(self) -> None:
        """Answers with nothing."""
        self._answer({})

    do_PUT = do_POST  # noqa: N815 - the name of the base class

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_issues_are_opened_and_closed_on_gitlab(tmp_path: Path) -> None:
    """The API gets the texts as they are, and all pages of the list are read."""
    _GitLab.asked.clear()
    (tmp_path / "actions.json").write_text(json.dumps(ACTIONS))
    with ThreadingHTTPServer(("127.0.0.1", 0), _GitLab) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        variables = {
            "TRACKER": "gitlab", "GITLAB_TOKEN": "secret", "CI_PROJECT_ID": "5",
            "CI_API_V4_URL": f"http://127.0.0.1:{server.server_address[1]}/api/v4",
        }  # fmt: skip
        for words in (("list", "issues.json"), ("carry-out", "actions.json")):
            done = nightly("issue.sh", *words, cwd=tmp_path, programs=tmp_path / "none", **variables)
            assert done.returncode == 0, done.stderr
        server.shutdown()
    assert len(json.loads((tmp_path / "issues.json").read_text())) == 103
    assert {token for *_, token in _GitLab.asked} == {"secret"}
    issues = "/api/v4/projects/5/issues"
    assert [(method, path, form) for method, path, form, _ in _GitLab.asked[2:]] == [
        ("POST", issues, {
            "title": ["Labrys: a $(touch bad) `touch bad`"], "description": ["<!-- mark -->\nOne.\n"], "labels": ["labrys"],
        }),
        ("POST", f"{issues}/7/notes", {"body": ["Two.\n"]}),
        ("POST", f"{issues}/8/notes", {"body": ["Three.\n"]}),
        ("PUT", f"{issues}/8", {"state_event": ["reopen"]}),
        ("POST", f"{issues}/9/notes", {"body": ["Four.\n"]}),
        ("PUT", f"{issues}/9", {"state_event": ["close"]}),
    ]  # fmt: skip
