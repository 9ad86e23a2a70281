"""A suite on real nodes through its whole life: a case done, a case ended by SIGTERM, the rest done by `--resume`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from clusters.local import list_clusters
from harness.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

DEADLINE_S = 240.0
SUITE = """
name = "short"

[defaults]
nodes = 3
time-limit = 3
cluster-name = "{cluster}"

[[test]]
name = "quiet"

[[test]]
name = "paused"
time-limit = 8
nemesis = "pause"
fault-on = "0.5"
fault-off = "0.5"
fault-quiet = "1"
"""


def command(file: Path, store: Path, *more: str) -> list[str]:
    """Returns the command that runs the suite."""
    return [sys.executable, "-m", "cli", "suite", str(file), "--seed", "7", "--store", str(store), *more]


def cases_done(store: Path) -> dict[str, dict[str, object]]:
    """Returns the records of the finished cases."""
    files = list(store.glob("suites/short/*/suite.json"))
    cases: dict[str, dict[str, object]] = json.loads(files[0].read_text())["results"] if files else {}
    return cases


def test_a_suite_that_is_ended_heals_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """SIGTERM ends the running case with its cluster; `--resume` runs only the other cases; JUnit has all cases."""
    store, file = tmp_path / "store", tmp_path / "short.toml"
    cluster = f"suite-{os.getpid()}"  # others may have clusters on this machine
    file.write_text(SUITE.format(cluster=cluster))
    deadline_s = time.monotonic() + DEADLINE_S

    first = subprocess.Popen(command(file, store), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(list(store.glob("short-*/2*/plan.json"))) < 2:
        assert first.poll() is None, first.communicate()[1]
        assert time.monotonic() < deadline_s, "the second case did not begin"
        time.sleep(0.1)
    first.send_signal(signal.SIGTERM)
    _, said = first.communicate(timeout=DEADLINE_S)

    assert first.returncode == ExitCode.INTERRUPTED, said
    assert "--resume" in said
    assert set(cases_done(store)) == {"quiet"}
    assert cluster not in {one.name for one in list_clusters()}

    folder = next(store.glob("suites/short/*"))
    second = subprocess.run(
        command(file, store, "--resume", str(folder)), capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )

    assert second.returncode in {ExitCode.VALID, ExitCode.UNKNOWN}, second.stderr
    assert "] quiet" not in second.stderr, "it does not run again"
    assert set(cases_done(store)) == {"quiet", "paused"}
    (quiet,) = store.glob("short-quiet/2*/results.json")
    measured = json.loads(quiet.read_text())["availability"]
    events = [json.loads(line) for line in (quiet.parent / "history.jsonl").read_text().splitlines()[1:]]
    following = [event for event in events if "via" in event and event.get("phase") is None]
    refused = [event for event in following if event.get("error", "").startswith("not-leader:")]
    # The number of answers in the first seconds depends on the machine; the counted facts do not.
    assert measured["refused"] == len(refused)
    assert measured["operations"] == len(following) - len(refused) > 0
    report = ET.parse(folder / "junit.xml").getroot()  # noqa: S314 - our own file
    assert {case.get("name") for case in report.iter("testcase")} == {"quiet", "paused"}
