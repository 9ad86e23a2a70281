"""Reads the runs of stores for their groups: the signature of each run that is not as expected, and the classes of warnings.

A run of this version has both at the beginning of its `results.json`, so that thousands of runs take seconds. For a run of an
earlier version, and for one without a verdict, they are computed from its files. A store may come from anyone, and may grow
meanwhile: each file has a maximum size, no link is followed, and a run that cannot be read is named and left out.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harness.console.members import read, written
from harness.console.plain import one_line
from harness.errors import InputError
from harness.verdict import Verdict
from results.causes.cases import SHRUNK_COMMAND, SIMULATED, Case, Trial, night_of
from results.causes.symptoms import symptom_of
from results.record.record import test_from_document
from results.record.signatures import Signature, WarningClasses
from results.signatures.warnings import warning_classes
from results.store.errors import BadRecord
from results.store.store import Store, read_head
from results.stored.document import build
from results.stored.load import load_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from results.record.record import TestInfo
    from results.store.store import Run

T = TypeVar("T")

MAX_TEST_BYTES: Final = 8 << 20
MAX_PLAN_BYTES: Final = 1 << 20
MAX_COMMAND_BYTES: Final = 1 << 16
MAX_RUNS: Final = 200_000
MAX_OLD_VALID: Final = 20  # valid runs of earlier versions whose logs are read, for each program
_MEMBERS: Final = ("valid", "thresholds", "signature", "warnings")
_FAR: Final = (1 << 30, 0.0)  # the size of a run without a readable plan: others come first


@dataclass(slots=True, kw_only=True)
class Seen:
    """What the stores hold.

    Attributes:
        trials: All runs with a verdict or a signature.
        cases: Those that are not as expected.
        unread: For each run that could not be read, the reason.
        running: The number of runs that still run.
        computed: The number of signatures that were computed, because the runs lacked them.
    """

    trials: list[Trial] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    running: int = 0
    computed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRun:
    """A run that was read.

    Attributes:
        trial: The run.
        nodes: The names of its nodes.
        repairs: The known defects of its build; see `Case.repairs`.
        signature: Its signature; None if it is as expected.
        warnings: The classes of warnings in its logs; None if they are unknown.
        computed: Whether the signature was computed.
    """

    trial: Trial
    nodes: Sequence[str]
    repairs: Sequence[str] | None
    signature: Signature | None
    warnings: Mapping[str, int] | None
    computed: bool = False


def read_stores(
    stores: Sequence[Path],
    *,
    before: Sequence[ReadRun] = (),
    repairs: Callable[[TestInfo], Sequence[str]] = lambda _: (),
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> Seen:
    """Reads the runs of stores.

    Args:
        stores: The folders.
        before: Runs of earlier nights, e.g. of a trend folder; the name of each is its folder. Those that a store has, too, are
            left out.
        repairs: Returns the known defects of a test's build that a rebuild can repair; see `Case.repairs`.
        progress: Is called with the number of runs so far, and of all.
    """
    seen = Seen()
    runs = list(_runs(stores))[:MAX_RUNS]
    folders = {run.path.resolve() for _, run in runs}
    read_runs = [run for run in before if Path(run.trial.name).resolve() not in folders]
    for number, (name, run) in enumerate(runs, 1):
        progress(number, len(runs))
        if run.is_running():
            seen.running += 1
            continue
        try:
            read_runs.append(_read(name, run, repairs))
        except (InputError, OSError) as error:
            seen.unread[name] = one_line(str(error))
    usual = _usual(read_runs)
    for read_run in read_runs:
        seen.trials.append(read_run.trial)
        seen.computed += read_run.computed
        if read_run.signature is None:
            continue
        telling = [kind for kind in read_run.warnings or () if kind not in usual[read_run.trial.software]]
        symptom = symptom_of(read_run.signature, read_run.trial.software, telling)
        seen.cases.append(
            Case(trial=read_run.trial, signature=read_run.signature, symptom=symptom, repairs=read_run.repairs)
        )
    return seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """What the store of a run has beside it.

    Attributes:
        rate: How many runs of its case and its release show the same symptom, and of how many; None if it is not among them.
        shorter: The command of a smaller run that shows the same, as `labrys shrink` found it; empty if there is none.
        case: The run with its symptom; None if it is not among them.
    """

    rate: tuple[int, int] | None = None
    shorter: str = ""
    case: Case | None = None


def alike(run: Run, reproduce: str) -> Alike:
    """Reads the store of a run, which is two folders above it, for the runs that are like it.

    Args:
        run: The run.
        reproduce: The command that runs it again, as its `test.json` has it.
    """
    seen = read_stores([run.path.parent.parent])
    own = next((case for case in seen.cases if case.trial.run is not None and case.trial.run.path == run.path), None)
    if own is None:
        return Alike()
    trial = own.trial
    comparable = {other.identity for other in seen.trials if _comparable(other, trial)}
    same = {
        case.trial.identity
        for case in seen.cases
        if _comparable(case.trial, trial) and case.symptom.key == own.symptom.key
    }
    is_shorter = trial.reproduce != one_line(reproduce)
    return Alike(rate=(len(same), len(comparable)), shorter=trial.reproduce if is_shorter else "", case=own)


def _comparable(one: Trial, other: Trial) -> bool:
    return (one.line, one.software, one.release) == (other.line, other.software, other.release)


def _runs(stores: Iterable[Path]) -> Iterator[tuple[str, Run]]:
    """Yields each run once, with its name, the oldest run of a store first."""
    known: set[Path] = set()
    for store in stores:
        for run in reversed(Store(store).runs()):
            folder = run.path.resolve()
            if folder not in known:
                known.add(folder)
                yield f"{store}/{run.test_name}/{run.stamp}", run


def _read(name: str, run: Run, repairs: Callable[[TestInfo], Sequence[str]]) -> ReadRun:
    """Reads a run.

    Raises:
        InputError: A file of it is missing or malformed.
    """
    test = test_from_document(_json(run, run.test_json, MAX_TEST_BYTES), str(run.test_json))
    head = read_head(run.results_json, _MEMBERS)
    computed = False
    if "signature" in head and "warnings" in head and Verdict.from_json(head.get("valid")) is not None:
        warnings = _member(head, "warnings", WarningClasses)
        signature = _member(head, "signature", Signature)
    elif _is_plainly_valid(head, test):
        warnings = signature = None
    else:
        computed = True
        warnings = warning_classes(run, test.nodes)
        signature = _member(build(load_record(run), warnings=warnings), "signature", Signature)
    trial = _trial(name, run, test)
    return ReadRun(
        trial=trial,
        nodes=test.nodes,
        repairs=repairs(test) if trial.repeats and signature is not None else (),
        signature=_with_plan(signature, run),
        warnings=warnings,
        computed=computed,
    )


def _member(document: Mapping[str, Any], name: str, form: type[T]) -> T | None:
    return None if document[name] is None else read(document[name], form, name, error=BadRecord)


def _is_plainly_valid(head: Mapping[str, Any], test: TestInfo) -> bool:
    """Returns whether a run of an earlier version is valid as expected, so that it has no signature."""
    limits = head.get("thresholds")
    kept = isinstance(limits, list) and all(isinstance(limit, dict) and limit.get("kept") is True for limit in limits)
    return head.get("valid") is True and kept and test.expectation.verdict is Verdict.VALID


def _trial(name: str, run: Run, test: TestInfo) -> Trial:
    shrunk = run.path / SHRUNK_COMMAND
    has_smaller = run.has(shrunk) and run.has(run.shrunk_json)
    command = (
        run.read_bytes(shrunk, MAX_COMMAND_BYTES).decode("utf-8", errors="replace") if has_smaller else test.reproduce
    )
    return Trial(
        run=run,
        name=name,
        night=night_of(test.started_utc),
        line=test.name if test.suite is None else test.suite.line,
        system=test.system,
        software=test.software,
        release=test.system_version or "",
        seed=str(test.seed),
        reproduce=one_line(command),
        size=_size(run, run.shrunk_json if has_smaller else run.plan_json),
        repeats=test.options.get("cluster_kind") == SIMULATED,
    )


def _size(run: Run, path: Path) -> tuple[int, float]:
    """Returns how much is in a plan: the number of its faults, and its time limit in seconds."""
    try:
        plan = _json(run, path, MAX_PLAN_BYTES)
    except InputError:
        return _FAR
    faults, limit_s = (plan.get("faults"), plan.get("time_limit_s")) if isinstance(plan, dict) else (None, None)
    if not isinstance(faults, list):
        return _FAR
    return len(faults), float(limit_s) if isinstance(limit_s, int | float) else 0.0


def _with_plan(signature: Signature | None, run: Run) -> Signature | None:
    """Returns a signature with the shape of the smallest plan, if `labrys shrink` left one."""
    if signature is None or not run.has(run.shrunk_json):
        return signature
    plan = _json(run, run.shrunk_json, MAX_PLAN_BYTES)
    faults = plan.get("faults") if isinstance(plan, dict) else None
    kinds = [fault.get("kind") for fault in faults if isinstance(fault, dict)] if isinstance(faults, list) else []
    return read({**written(signature), "plan": kinds}, Signature, "signature", error=BadRecord)


def _json(run: Run, path: Path, most: int) -> Any:
    try:
        return json.loads(run.read_bytes(path, most))
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"{path} is not JSON: {error}") from error


def _usual(runs: Iterable[ReadRun]) -> dict[str, set[str]]:
    """Returns the classes of warnings that runs as expected of each program have."""
    usual: dict[str, set[str]] = defaultdict(set)
    old: Counter[str] = Counter()
    for run in runs:
        if run.signature is not None:
            continue
        warnings = run.warnings
        if warnings is None and run.trial.run is not None and old[run.trial.software] < MAX_OLD_VALID:
            old[run.trial.software] += 1
            warnings = warning_classes(run.trial.run, run.nodes)
        usual[run.trial.software].update(warnings or ())
    return usual
