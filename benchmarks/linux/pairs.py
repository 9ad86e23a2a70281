"""Pairs of runs of one seed, side by side: each must do the same, call by call.

The first run of a pair has a log of its calls, so each call stops. In the second, programs answer some calls themselves, as in
runs of users. Only if both differ, the second is carried out again with a log.

A pair shares the state of this machine, so it does not show what changes slowly. For that, a file keeps what the programs
did, and a later night compares with it. A difference counts only if the controller, the kernel, the processor, the packages
and the code of Labrys are those of then. Otherwise it says nothing, and the comparison says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clusters.sim.linux.calls import first_difference
from commands.run.executions import Earlier, changed, where
from harness.console.documents import parse_json, read_bytes
from harness.console.members import read
from harness.errors import InputError
from harness.world import Execution

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HERE: Final = Path(__file__).parents[2]
ROOMS: Final = ("checker", "clusters", "commands", "harness", "nemesis", "results", "workloads")
KEPT: Final = HERE / "build" / "pairs"  # the logs of pairs that differ
MAX_BYTES: Final = 64 << 20
BEFORE: Final = 12  # lines before a difference
LAST: Final = 2000  # characters of what a run that left nothing has printed
LIMIT_S: Final = 1800
FORMAT: Final = "labrys-digests"
RUN: Final = (
    "--nodes", "3", "--rate", "10", "--nemesis", "kill,partition-random-halves", "--fault-on", "0.5-2", "--fault-off", "0.5-2",
    "--fault-quiet", "1-2",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Did:
    """What the programs of a run did, and with what.

    Attributes:
        execution: What they did.
        versions: The versions of the run, and digests of the packages of this machine and of Labrys' code.
    """

    execution: Execution
    versions: dict[str, str]


def compare_pairs(
    systems: Mapping[str, tuple[str, ...]], *, pairs: int, seconds: int, trace_all: bool, digests: Path | None
) -> int:
    """Carries out pairs, and prints a row for each system.

    Args:
        systems: The systems, each with its further options.
        pairs: How many pairs each has; their seeds are 1, 2 and so on.
        seconds: The virtual seconds of the workload.
        trace_all: Whether every system call is in the digest.
        digests: The file of what the programs did in earlier nights, which gets what they do now; None: there is none.

    Returns:
        The exit code: 0 if all pairs are equal, and none contradicts an earlier night.
    """
    earlier = {} if digests is None else _read(digests)
    around = {"packages": _packages(), "code of Labrys": _code()}
    now: dict[str, Did] = {}
    reasons: Counter[str] = Counter()  # why runs are not compared with an earlier night
    differences: list[str] = []
    print("| system     | pairs | equal | as in an earlier night |")
    print("|---|---|---|---|")
    for system, words in systems.items():
        equal = same = 0
        for seed in range(1, pairs + 1):
            options = (
                *words, "--seed", str(seed), "--time-limit", str(seconds), *(("--trace-all",) if trace_all else ()),
            )  # fmt: skip
            did, lines = _pair(system, options)
            if not lines:
                equal += 1
            else:
                differences += (
                    lines if equal == seed - 1 else lines[:1]
                )  # the first one of a system has its first difference
            print(f"· {system}: {equal} of {seed} pairs are equal", file=sys.stderr, flush=True)
            key = " ".join((system, *options))
            now[key] = Did(execution=did.execution, versions=did.versions | around)
            if (before := earlier.get(key)) is None:
                continue
            if before.execution.digest == did.execution.digest:
                same += 1
            elif changes := _changes(before, now[key]):
                reasons[changes] += 1
            else:
                difference = where(before.execution, did.execution)
                differences.append(f"{system} with seed {seed} differs from an earlier night: {difference}")
        print(f"| {system:<10} | {pairs} | {equal} | {same if earlier else '-'} |", flush=True)
    if digests is not None:
        _write(digests, earlier | now)
    for reason, count in reasons.items():
        print(f"{count} runs differ from an earlier night and cannot be compared with it: {reason}")
    for line in differences:
        print(line)
    return int(bool(differences))


def _pair(system: str, options: Sequence[str]) -> tuple[Did, list[str]]:
    """Carries out a run twice at the same time. Returns what the first one did, and lines about a difference; none if equal."""
    with tempfile.TemporaryDirectory(prefix="labrys-") as folder:
        stores = [Path(folder) / name for name in ("one", "other", "again")]
        command = [
            sys.executable,
            "-m",
            "cli",
            "test",
            "--cluster",
            "sim",
            "--system",
            system,
            *RUN,
            *options,
        ]
        one, other = _carried_out([*command, "--calls", "--store", stores[0]], [*command, "--store", stores[1]])
        if one.execution.digest == other.execution.digest:
            return one, []
        seed = options[options.index("--seed") + 1]
        lines = [f"{system} with seed {seed} differs: {where(one.execution, other.execution)}"]
        _carried_out([*command, "--calls", "--store", stores[2]])
        logs = [next(store.glob("*/2*/calls.log")) for store in (stores[0], stores[2])]
        return one, [*lines, *_first(logs, KEPT / f"{system}-{seed}")]


def _carried_out(*commands: Sequence[str | Path]) -> list[Did]:
    """Carries out runs at the same time. The last word of each command is its store. Returns what they did."""
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=HERE)
        for command in commands
    ]
    try:
        outputs = [process.communicate(timeout=LIMIT_S)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    return [_did(Path(command[-1]), output) for command, output in zip(commands, outputs, strict=True)]


def _first(logs: Sequence[Path], kept: Path) -> Iterator[str]:
    """Yields lines about the first difference of two logs, and keeps them."""
    kept.mkdir(parents=True, exist_ok=True)
    places = [kept / name for name in ("one.log", "other.log")]
    for log, target in zip(logs, places, strict=True):
        shutil.copyfile(log, target)
    with places[0].open("rb") as one, places[1].open("rb") as other:
        _, difference = first_difference(one, other, before=BEFORE)
    if difference is None:
        yield "  the logs are equal, so something differs that they do not show, or only if programs answer calls themselves"
        return
    yield from (f"  both    {line}" for line in difference.before)
    yield from (f"  first   {line}" for line in difference.first)
    yield from (f"  second  {line}" for line in difference.second)
    yield f"  {difference.describe()} `labrys calls {places[0]} {places[1]}` shows more."


def _did(store: Path, output: str) -> Did:
    """Returns what the programs of the run in a store did.

    Raises:
        InputError: It left nothing, e.g. because it broke off.
    """
    for path in store.glob("*/2*/results.json"):
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if "execution" in document:
            return Did(execution=read(document["execution"], Execution, "execution"), versions=document["versions"])
    raise InputError(f"a run left no digest: {output[-LAST:]}")


def _changes(before: Did, now: Did) -> str:
    """Returns what has changed around a run since an earlier night; empty if nothing has."""
    earlier = Earlier(label="an earlier night", seed=0, execution=before.execution, versions=before.versions)
    return "; ".join(changed(earlier, now.execution, now.versions))


def _read(path: Path) -> dict[str, Did]:
    if not path.exists():
        return {}
    document = parse_json(read_bytes(path, MAX_BYTES), str(path))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{path}: expected the format {FORMAT}; name another file with --digests")
    return read(document.get("runs"), dict[str, Did], f"{path}: runs")


def _write(path: Path, runs: Mapping[str, Did]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    document = {"format": FORMAT, "version": 1, "runs": {key: asdict(did) for key, did in sorted(runs.items())}}
    new.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def _packages() -> str:
    """Returns a digest of the packages of this machine; `unknown` without dpkg."""
    if shutil.which("dpkg-query") is None:
        return "unknown"
    done = subprocess.run(["dpkg-query", "--show"], check=True, capture_output=True, env=os.environ | {"LC_ALL": "C"})
    return hashlib.sha256(done.stdout).hexdigest()


def _code() -> str:
    """Returns a digest of the code of Labrys, whose clients and faults decide what the programs get."""
    digest = hashlib.sha256()
    for path in sorted(path for room in ROOMS for path in (HERE / room).rglob("*.py")):
        digest.update(f"{path.relative_to(HERE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()
