"""`labrys bisect` finds the commit of a server in C with which a seed loses acknowledged writes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import cli

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]
EXAMPLE = Path(__file__).parents[3] / "examples" / "own_binary"
BUILD = "cc -O1 -pthread -o kv kv.c"
SYNC = 'if (!has("no-sync") && !has("answer-before-sync")) sync_log();'
COMMITS = (
    ("the server", "", ""),
    ("a longer queue", "listen(listener, 128)", "listen(listener, 256)"),
    ("a tidy line", "static void sync_log(void) {", "static void sync_log(void)"),
    ("a missing brace", "static void sync_log(void)\n", "static void sync_log(void) {\n"),
    ("syncs that were asked for", SYNC, 'if (has("sync")) sync_log();'),
    ("a clearer line", "registers, %lld bytes", "registers and %lld bytes"),
)


def git(repository: Path, *words: str) -> str:
    """Runs git in the repository."""
    identity = ("-c", "user.name=A", "-c", "user.email=a@host.example")
    return subprocess.run(
        ["git", "-C", str(repository), *identity, *words], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_commit_that_lost_a_sync(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of six commits leaves a sync out, and another one does not compile."""
    repository = tmp_path / "server"
    repository.mkdir()
    git(repository, "init", "--quiet")
    text = (EXAMPLE / "kv.c").read_text()
    for subject, old, new in COMMITS:
        assert old in text
        text = text.replace(old, new)
        (repository / "kv.c").write_text(text)
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "--message", subject)
    subprocess.run(["cc", "-O1", "-pthread", "-o", str(tmp_path / "kv"), str(repository / "kv.c")], check=True)
    common = ("--system", f"{EXAMPLE}/system.py:OwnBinary", "--store", str(tmp_path / "store"))
    assert cli.invoke([
        "test", *common, "--cluster", "sim", "--nodes", "1", "--name", "lost", "--program", str(tmp_path / "kv"),
        "--nemesis", "power-loss:all", "--fault-on", "0.2-0.4", "--fault-off", "0.3-0.8", "--fault-quiet", "0.5-1",
        "--rate", "50", "--time-limit", "2", "--seed", "1",
    ]) == 1  # fmt: skip
    capsys.readouterr()
    searched = (
        "--commits",
        str(repository),
        "--good",
        "HEAD~5",
        "--build",
        BUILD,
        "--product",
        "kv",
        "--over",
        "program",
    )
    assert cli.invoke(["bisect", "lost/latest", *common, *searched, "--seed-alone", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["good"][13:], answer["bad"][13:]) == ("a missing brace", "syncs that were asked for")
    assert answer["bad"].startswith(git(repository, "rev-parse", "--short=12", "HEAD~1"))
    assert answer["runs"] == 4
    (skipped,) = [value for value in answer["values"] if value["verdict"] == "skipped"]
    assert skipped["value"][13:] == "a tidy line"
    assert f"`{BUILD}` ended with status 1" in skipped["how"]
    assert "--program" in answer["bad_run"]
