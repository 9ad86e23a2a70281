"""Runs of released programs in virtual time, for the tests of systems in their folders."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import cli
from tests.documents import is_proven

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

EXAMPLE: Final = "redis"  # for tests that need the quick programs of some system
SHORT: Final = (
    "--rate",
    "10",
    "--time-limit",
    "4",
    "--fault-on",
    "0.5-1",
    "--fault-off",
    "0.5-1",
    "--fault-quiet",
    "1-2",
)
ONCE: Final = ("--fault-on", "2-3", "--fault-off", "1-2", "--fault-quiet", "1-2")
JUDGES: Final = frozenset({"linearizable", "settled", "list-append"})


def invoked(store: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Carries out a run. Returns its exit code and its `results.json`."""
    before = set(store.glob("*/2*"))
    nodes = () if "--nodes" in words else ("--nodes", "3")
    code = cli.invoke(["test", "--cluster", "sim", *nodes, *words, "--store", str(store)])
    (folder,) = set(store.glob("*/2*")) - before
    return code, json.loads((folder / "results.json").read_text(encoding="utf-8"))


def plan_file(folder: Path, faults: Sequence[Mapping[str, Any]], *, time_limit_s: float) -> Path:
    """Writes a plan for three nodes with some faults, which get their numbers. Returns its file."""
    plan = {
        "format": "labrys-plan",
        "version": 3,
        "nodes": ["n1", "n2", "n3"],
        "seed": 1,
        "time_limit_s": time_limit_s,
        "faults": [{"id": number, **fault} for number, fault in enumerate(faults)],
    }
    path = folder / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    return path


def assert_a_seed_repeats(store: Path, *words: str, seeds: Sequence[str] = ("1", "1")) -> None:
    """Asserts that runs of the first seed have equal digests of all calls and equal histories, and those of other seeds do not.

    The system keeps its promise, and each fault has its effect.
    """
    runs = [invoked(store, *words, *SHORT, "--seed", seed) for seed in seeds]
    one, again, *others = (results["execution"] for _, results in runs)
    assert one == again
    assert [other for other in others if other["digest"] == one["digest"]] == []
    for _, results in runs:
        valid = {name: part["valid"] for name, part in results["parts"].items()}
        (judged,) = JUDGES & set(valid)
        assert valid[judged] is True
        assert valid["faults-effective"] is True
    assert_the_same_history(store)


def assert_the_same_history(store: Path) -> None:
    """Asserts that the first two runs of a store have the same bytes of history."""
    first, second = (path.read_bytes() for path in sorted(store.glob("*/2*/history.jsonl"))[:2])
    assert first == second


def assert_valid(store: Path, *words: str) -> None:
    """Asserts that each part of the verdict on a run is valid."""
    code, results = invoked(store, *words)
    unknown = {name: part["reason"] for name, part in results["parts"].items() if part["valid"] is not True}
    assert (code, unknown) == (0, {})


def assert_two_runs_are_equal(store: Path, *words: str) -> None:
    """Asserts that two runs have equal digests of all calls, and equal histories."""
    runs = [invoked(store, *words)[1]["execution"] for _ in range(2)]
    assert runs[0] == runs[1]
    assert_the_same_history(store)


def assert_calls_need_no_stop(store: Path, *words: str, least: float) -> None:
    """Asserts that a run is the same if programs answer no calls themselves; else they answer this share of them at least."""
    runs = [invoked(store, *words, *SHORT, "--seed", "3", *more)[1] for more in ((), ("--all-stop",))]
    ended, stopped = (results["execution"] for results in runs)
    assert (ended["digest"], ended["trace"]) == (stopped["digest"], stopped["trace"])
    assert_the_same_history(store)
    assert stopped["figures"]["answered"] == 0
    assert ended["figures"]["answered"] > least * ended["figures"]["calls"]


def assert_an_error_of_a_sync_is_proven(store: Path, *words: str, file: str, shown: str, says: str) -> None:
    """Asserts that the third sync of a file fails, that its process ends, and that the run is valid.

    Args:
        store: The folder of the run.
        words: `--system`, the system and its options.
        file: The file, as in the option of the fault.
        shown: A pattern of the proof.
        says: What a log of the system says.
    """
    load = ("--rate", "20", "--time-limit", "6", "--nemesis", "disk-error", "--seed", "1")
    options = ("--fault-options", f"disk-error.file={file},disk-error.nth=3")
    code, results = invoked(store, *words, *load, *ONCE, *options)
    (failed,) = results["faults"]
    assert is_proven(failed)
    assert re.search(shown, failed["proof"]["reason"])
    assert code == 0
    assert results["parts"]["processes"]["reason"].startswith(f"The process {words[1]} of ")
    logs = [path.read_text(errors="replace") for path in store.glob("*/2*/nodes/*/*.log")]
    assert any(says in log for log in logs)


def assert_an_empty_disk_is_prepared(store: Path, *words: str) -> None:
    """Asserts that a system recovers on an empty disk, which `wipe` leaves."""
    _, results = invoked(store, *words, "--nemesis", "wipe", *SHORT, "--seed", "1")
    (wiped, *_) = results["faults"]
    assert is_proven(wiped), wiped
    assert results["parts"]["recovered"]["valid"] is True
