"""`labrys logs` prints all logs of a run in one order: no line is lost, and each file keeps its own order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import cli
from harness.errors import InputError
from harness.node_clocks import Clocks, NodeClock
from harness.units import NS_PER_S as S
from results.logs import merged as module
from results.logs.merged import merged_logs
from results.logs.times import ASSUMED, LogTimes, all_log_times, log_times
from results.store.store import Run, Store
from tests.unit.results.stored import store_run
from tests.unit.results.synthetic import record
from tests.unit.results.test_log_lines import BEGAN, EXACT, clocks, write

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord

OF_WORLD = LogTimes(began_ns=0, of_world=True)
RECORD = record(seed=7, operations=30)


def lines_of(run: Run, own_record: RunRecord) -> list[tuple[float | None, str, str]]:
    """Returns the time, the node and the text of each line."""
    times = all_log_times(own_record)
    return [
        (None if entry.time_ns is None else entry.time_ns / S, entry.node, entry.text)
        for entry in merged_logs(run, own_record, times).entries()
    ]


def logs(folder: Path, *arguments: str) -> Result:
    """Runs `labrys logs` on a run."""
    return CliRunner().invoke(cli.labrys, ["logs", str(folder), *arguments], catch_exceptions=False)


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(0, 50)), max_size=8), max_size=4))
def test_the_order_is_that_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[int | None]]
) -> None:
    """By brute force: sort by time, where a line without a time has that of the line before. No file is reordered."""
    folder = tmp_path_factory.mktemp("run")
    wanted: list[tuple[float, int, int]] = []
    for number, drawn in enumerate(files):
        ordered = iter(sorted(time for time in drawn if time is not None))
        times = [None if time is None else next(ordered) for time in drawn]
        last_time, rows = float("-inf"), []
        for row, time in enumerate(times):
            last_time = last_time if time is None else time
            wanted.append((last_time, number, row))
            rows.append(f"line {number}.{row}" if time is None else f"{time}.000000 line {number}.{row}")
        path = folder / "nodes" / f"n{number}" / "node.log"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"{row}\n" for row in rows))
    texts = [entry.text for entry in merged_logs(Run(folder), RECORD, OF_WORLD).entries()]
    assert texts == [f"line {number}.{row}" for _, number, row in sorted(wanted)]


def test_the_clocks_of_the_nodes_decide_the_order(valid_record: RunRecord, tmp_path: Path) -> None:
    """A node whose clock is 2 s ahead, in another zone, logs before the one that reads an earlier time."""
    run = write(tmp_path, "n1", (7200 + 12.25, "first"), (7200 + 15.0, "third"))
    write(tmp_path, "n2", (11.0, "second"), file="a.log")
    write(tmp_path, "n2", (14.0, "fourth"), file="b.log")
    ahead = NodeClock(offset_ns=2 * S, uncertain_ns=1_000_000, zone_s=7200)
    lines = lines_of(run, replace(valid_record, clocks=clocks(n1=ahead, n2=EXACT)))
    assert lines == [(10.25, "n1", "first"), (11.0, "n2", "second"), (13.0, "n1", "third"), (14.0, "n2", "fourth")]


def test_a_clock_that_goes_back_keeps_the_order_of_its_file(tmp_path: Path) -> None:
    """The lines after the jump follow at once, with their own times; those of other nodes are where they belong."""
    for node, text in {"n1": "5.000000 a\n2.000000 b\n6.000000 c\n", "n2": "1.000000 d\n5.500000 e\n"}.items():
        path = tmp_path / "nodes" / node / "node.log"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    texts = [entry.text for entry in merged_logs(Run(tmp_path), RECORD, OF_WORLD).entries()]
    assert texts == ["d", "a", "b", "e", "c"]


def test_a_time_long_after_the_run_holds_nothing_back(valid_record: RunRecord, tmp_path: Path) -> None:
    """A line about the year 2126 stands after the line before it, and a note counts it."""
    run = write(tmp_path, "n1", (1.0, "certificate"), (3.0e9, "valid until"), (2.0, "ready"))
    write(tmp_path, "n2", (3.0, "later"))
    own_record = replace(valid_record, clocks=clocks(n1=EXACT, n2=EXACT))
    times = log_times(own_record)
    assert times is not None
    merged = merged_logs(run, own_record, times)
    shown = [entry.text for entry in merged.entries()]
    assert [shown[0], shown[2:]] == ["certificate", ["ready", "later"]]
    assert shown[1].endswith("valid until")
    assert merged.notes == ["1 time in node.log of n1 is long after the run, and did not count."]


def test_a_foreign_log_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No link is followed, a line has a limit, a file that is left out is told, and a terminal obeys nothing."""
    run = store_run(Store(tmp_path), RECORD)
    for path in run.nodes_dir.rglob("*.log"):
        path.unlink()
    secret = tmp_path / "secret"
    secret.write_text("2026-01-31 10:00:01 secret\n")
    folder = run.nodes_dir / "n1"
    (folder / "link.log").symlink_to(secret)
    (folder / "odd.log").write_bytes(b"1.5 \x1b[2J\x00\xff\rx\n" + b"y" * 5000 + b"\nz\n")
    (folder / "tail.log").write_bytes(b"no end")
    monkeypatch.setattr(module, "MAX_LINE", 1000)
    ended = logs(run.path)
    assert ended.exit_code == 0
    assert "secret" not in ended.output
    assert "link.log of n1 was not read: a symbolic link" in ended.stderr
    assert "1 line of odd.log of n1 is cut at 1,000 bytes." in ended.stderr
    assert "\x1b" not in ended.output
    assert "\\x1b[2J\\x00" in ended.stdout
    assert [len(line) < 1100 for line in ended.stdout.splitlines()] == [True] * 4
    monkeypatch.setattr(module, "MAX_OPEN", 1)
    assert "2 more files left out; --node shows those of one node." in logs(run.path).stderr


def test_a_reader_chooses_a_time_and_nodes(tmp_path: Path) -> None:
    """--from and --to are seconds of the run; a line without a time goes with the one before."""
    made = replace(RECORD, clocks=Clocks(began_utc=BEGAN, nodes=dict.fromkeys(RECORD.test.nodes, EXACT)))
    run = store_run(Store(tmp_path), made)
    for path in run.nodes_dir.rglob("*.log"):
        path.unlink()
    write(run.path, "n1", (-2.0, "install"), (5.0, "WARN disk"), (9.0, "end"))
    with (run.nodes_dir / "n1" / "node.log").open("a") as log:
        log.write("\tat x.y(Z.java)\n")
    write(run.path, "n2", (6.0, "vote"))
    assert logs(run.path, "--from", "5", "--to", "6").stdout.splitlines() == [
        "     5.000000  n1  WARN disk",
        "     6.000000  n2  vote",
    ]
    assert logs(run.path, "--from", "8").stdout.splitlines() == [
        "     9.000000  n1  end",
        "               n1  \tat x.y(Z.java)",
    ]
    assert logs(run.path, "--to=-1").stdout.splitlines() == ["    -2.000000  n1  install"]
    assert len(logs(run.path, "--node", "n2").stdout.splitlines()) == 1
    with pytest.raises(InputError, match=r"expected one of n1, n2.*found 'n9'"):
        logs(run.path, "--node", "n9")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "7", "--to", "8.5"], "The logs have no line between 7.0 s and 8.5 s."),
        (["--from", "9.5"], "The logs have no line at 9.5 s or later."),
        (["--to=-1"], "The logs have no line at -1.0 s or earlier."),
    ],
)
def test_an_empty_answer_says_so(tmp_path: Path, arguments: list[str], said: str) -> None:
    """A reader sees that the time has no lines, and not that the command did nothing."""
    made = replace(RECORD, clocks=Clocks(began_utc=BEGAN, nodes=dict.fromkeys(RECORD.test.nodes, EXACT)))
    run = store_run(Store(tmp_path), made)
    for path in run.nodes_dir.rglob("*.log"):
        path.unlink()
    write(run.path, "n1", (9.0, "end"))
    ended = logs(run.path, *arguments)
    assert (ended.exit_code, ended.stdout, ended.stderr.splitlines()[-1]) == (0, "", said)
    assert logs(run.path, "--from", "9", "--to", "9").stdout.splitlines() == ["     9.000000  n1  end"]


def test_times_that_go_back_are_refused(tmp_path: Path) -> None:
    """The error names both, and what was expected of them."""
    with pytest.raises(InputError, match=r"--from and --to: expected.*found 3.0 s as the first and 2.0 s as the last"):
        logs(tmp_path, "--from", "3", "--to", "2")


def test_a_run_without_clocks_says_whose_times_these_are(tmp_path: Path) -> None:
    """A run of an earlier version did not read the clocks; its lines have the order of the nodes' own clocks."""
    run = store_run(Store(tmp_path), replace(RECORD, clocks=None))
    ended = logs(run.path)
    assert ASSUMED in ended.stderr
    assert "heartbeat 1" in ended.stdout
    for path in run.nodes_dir.rglob("*.log"):
        path.unlink()
    with pytest.raises(InputError, match="has no logs of nodes"):
        logs(run.path)
