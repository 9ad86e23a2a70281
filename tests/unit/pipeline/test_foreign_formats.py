"""`labrys analyze` reads what `labrys check` reads, of each format of other tools, with the same verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from checker.checking import Checked, Request, check_file
from checker.deciders import Wanted
from harness.verdict import Verdict
from results.pipeline.read.local_files import LocalFiles
from results.pipeline.read.sources import find_sources
from tests.unit.checker.jepsen_blocks import Name, Op, block_file
from tests.unit.pipeline.test_single_job import rows_of, run

if TYPE_CHECKING:
    from pathlib import Path

WANTED = Wanted(model="register")
HEADER = '{"format": "labrys-history", "version": 1}\n'


def events(last: int) -> list[dict[str, Any]]:
    """Returns a write of 1, and a read after it."""
    parts = [("invoke", 0, "write", 1), ("ok", 0, "write", 1), ("invoke", 1, "read", None), ("ok", 1, "read", last)]
    return [
        {"index": index, "time": index, "type": kind, "process": process, "f": f, "value": value}
        for index, (kind, process, f, value) in enumerate(parts)
    ]


def edn(value: Any) -> str:
    """Returns a value of an event in EDN."""
    return "nil" if value is None else str(value)


def lines(prefix: str, some: list[dict[str, Any]]) -> bytes:
    """Returns events as Jepsen prints them."""
    return "".join(
        f"{prefix}{event['process']}\t:{event['type']}\t:{event['f']}\t{edn(event['value'])}\n" for event in some
    ).encode()


def files_of(last: int) -> dict[str, bytes]:
    """Returns the content of a file of each format, by its name."""
    some = events(last)
    ops = [
        Op(event["index"], event["time"], event["type"], event["process"], event["f"], event["value"]) for event in some
    ]
    maps = [{Name(name): Name(of) if name in {"type", "f"} else of for name, of in event.items()} for event in some]
    untimed = [event | {"time": -1, "more": [1]} for event in some]
    return {
        "array.json": json.dumps(some, indent=2, separators=(",", " : ")).encode(),
        "several.json": "\n".join(json.dumps(event, indent=2) for event in some).encode(),
        "lines.jsonl": "\n".join(map(json.dumps, untimed)).encode(),
        "history.txt": lines("", some),
        "jepsen.log": lines("INFO [2026-01-02 03:04:05,678] jepsen worker 0 - jepsen.util ", some),
        "console.log": lines("INFO  jepsen.util - ", some),
        "test.jepsen": block_file(ops),
        "old.jepsen": block_file(maps, version=0),
    }


@pytest.mark.parametrize(("last", "verdict"), [(1, Verdict.VALID), (2, Verdict.INVALID)])
def test_each_format_has_the_verdict_of_check(tmp_path: Path, last: int, verdict: Verdict) -> None:
    """Files that are named on the command line are read, whatever their names are."""
    paths = []
    for name, content in files_of(last).items():
        (tmp_path / name).write_bytes(content)
        paths.append(str(tmp_path / name))
        [checked] = check_file(paths[-1], Request(wanted=WANTED))
        assert isinstance(checked, Checked), checked
        assert (checked.verdict, checked.operations) == (verdict, 2), name
    summary = run(tmp_path, tmp_path / "out", paths=paths, wanted=WANTED)
    verdicts = {path: [row["verdict"] for row in rows] for path, rows in rows_of(summary, "verdicts").items()}
    assert verdicts == {path: [str(verdict)] for path in paths}
    assert not summary.quarantined


def test_the_folder_of_a_run_of_jepsen_is_one_history(tmp_path: Path) -> None:
    """Its history is read once: from history.edn, else from test.jepsen, else from history.txt."""
    folder = tmp_path / "store" / "noop" / "20260102T030405"
    (folder / "independent" / "1").mkdir(parents=True)
    contents = files_of(1)
    (folder / "results.edn").write_text("{:valid? true}")
    (folder / "independent" / "1" / "history.edn").write_text("[]")
    for name in ("history.txt", "test.jepsen"):
        (folder / name).write_bytes(contents[name])
        [source] = find_sources(LocalFiles(), [str(tmp_path / "store")])
        assert source.data.endswith(name)
    (folder / "history.edn").write_text("{:type :invoke :process 0 :f :read :value nil}")
    [source] = find_sources(LocalFiles(), [str(tmp_path / "store")])
    assert source.data.endswith("/history.edn")


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,  ", " : ")])
@pytest.mark.parametrize("header", [HEADER, ""])
def test_a_torn_last_line_is_left_out_as_by_check(tmp_path: Path, separators: tuple[str, str], header: str) -> None:
    """However the writer of the JSON puts spaces, and wherever the line is cut; but not if a line break ends it."""
    whole = "".join(json.dumps(event, separators=separators) + "\n" for event in events(1))
    paths = []
    torn = json.dumps({"index": 4, "time": 9, "type": "invoke"}, separators=separators)
    for cut in (1, 3, 9, len(torn) - 1):
        paths.append(str(tmp_path / f"cut-{cut}.jsonl"))
        (tmp_path / f"cut-{cut}.jsonl").write_text(header + whole + torn[:cut])
        [checked] = check_file(paths[-1], Request(wanted=WANTED))
        assert isinstance(checked, Checked), checked
        assert checked.verdict is Verdict.VALID
    summary = run(tmp_path, tmp_path / "out", paths=paths, wanted=WANTED)
    assert summary.counts == {"valid": len(paths)}
    assert not summary.quarantined
    (tmp_path / "ended.jsonl").write_text(header + whole + torn[:9] + "\n")
    summary = run(tmp_path, tmp_path / "out2", paths=[str(tmp_path / "ended.jsonl")], wanted=WANTED)
    assert summary.counts == {"unknown": 1}
