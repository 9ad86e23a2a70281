"""The hunts of the triage benchmark: its builds, and their runs as lines of JSON, so that two versions see the same runs."""

from __future__ import annotations

import json
import os
import shlex
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from benchmarks.triage.plans import PLANS
from clusters.sim.jvm import idle
from clusters.systems.dledger.mends import DLEDGER
from clusters.systems.rocketmq.mends import CONTROLLER
from clusters.systems.sim_bookkeeper.bugs import TABLE as BOOKKEEPER
from clusters.systems.sim_raft.bugs import TABLE as RAFT
from clusters.systems.sim_txn.bugs import TABLE as TXN
from commands.hunt.draws import Chooser, behaviour_of
from commands.options import choosing
from commands.options.compose import info_of
from commands.run.records import record_of
from commands.run.trial import Unobserved, carried_out
from commands.triage.experiments import repairs_of
from harness import parts
from harness.console import plugins
from harness.console.members import read, written
from harness.errors import InputError, InterruptedEarly, LabrysError
from harness.randomness import stream
from results.causes.cases import Case, Trial
from results.causes.symptoms import symptom_of
from results.record.signatures import Signature
from results.signatures.warnings import classes_in
from results.stored.document import build
from tests.catches.hunts import Hunt
from tests.trials import settled_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commands.hunt.draws import Draw
    from commands.options.compose import Settled

SEED: Final = 66
SEVERAL: Final = "benchmarks.triage.several:SeveralBugs"
TOGETHER: Final = 6  # planted bugs in one build
SIMULATED: Final = (("sim-raft", RAFT), ("sim-txn", TXN), ("sim-bookkeeper", BOOKKEEPER))
MENDED: Final = (("dledger", DLEDGER), ("dledger-log", DLEDGER), ("rocketmq-controller", CONTROLLER))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A build to hunt.

    Attributes:
        system: The system.
        words: The options of the build.
        defect: Its one defect, as an experiment names it; empty if it has none; None if it has several.
    """

    system: str
    words: tuple[str, ...]
    defect: str | None

    def __str__(self) -> str:
        return " ".join([self.system, *self.words])


class HuntedRun(Struct, frozen=True, kw_only=True):
    """A run of a hunt.

    Attributes:
        build: Its build, as text.
        system: The system.
        software: The program.
        defect: The defect of the build; see `Subject`.
        number: Its number in the hunt.
        seed: Its seed, as text.
        command: The command that runs it again.
        faults: The number of its planned faults.
        time_limit_s: The length of its workload.
        processor_s: The seconds of processor time that it took, with those of its JVM.
        repairs: The names of the known defects of its build.
        signature: Its signature; null if it is as expected.
        warnings: The classes of warnings in its logs.
    """

    build: str
    system: str
    software: str
    defect: str | None
    number: int
    seed: str
    command: str
    faults: int
    time_limit_s: float
    processor_s: float
    repairs: list[str]
    signature: Signature | None
    warnings: dict[str, int]

    @property
    def name(self) -> str:
        """Returns its name, which no other run has."""
        return f"{self.build} {self.number:05d}"


def subjects(systems: Sequence[str], *, several: bool) -> Iterator[Subject]:
    """Yields the builds of some systems; of all if there are none.

    Args:
        systems: The systems.
        several: Whether the builds are those with all defects of a program together, and not those with one.
    """
    builds = _with_several() if several else _with_one()
    yield from (build for build in builds if not systems or build.system in systems)


def _with_several() -> Iterator[Subject]:
    bugs = list(RAFT)
    stream(SEED, "bugs").shuffle(bugs)
    for start in range(0, len(bugs), TOGETHER):
        together = ",".join(bugs[start : start + TOGETHER])
        own = ("--several", together, "--reads", "lease", "--workload", "register")
        yield Subject(system=SEVERAL, words=own, defect=None)
    for system, _ in MENDED:
        yield Subject(system=system, words=workload_of(system), defect=None)


def _with_one() -> Iterator[Subject]:
    for system, table in SIMULATED:
        yield Subject(system=system, words=workload_of(system), defect="")
        for bug, planted in table.items():
            words = ("--bug", str(bug), *workload_of(system, planted.needs.workloads))
            yield Subject(system=system, words=words, defect=f"--bug {bug}")
    for system, mends in MENDED:
        for plan in dict.fromkeys(PLANS[system].values()):
            yield Subject(system=system, words=("--mend", "all", *plan.split()), defect="")
        for number in mends.texts:
            others = ",".join(str(mend) for mend in mends.texts if mend != number)
            build = ("--mend", others, *PLANS[system][number].split())
            yield Subject(system=system, words=build, defect=f"--mend {number}")


def workload_of(system: str, needed: Sequence[str] = ()) -> tuple[str, str]:
    """Returns the words for the first workload that a bug needs, or else that a system serves."""
    serves = choosing.chosen(plugins.SYSTEMS, system, by_place=False).type.serves
    return "--workload", next(iter(needed or serves))


def hunted(subject: Subject, runs: int) -> list[HuntedRun]:
    """Carries out the runs of a build."""
    idle.expect(runs)
    hunt = Hunt(subject.words, seed=SEED, system=subject.system)
    chooser = Chooser(hunt.space, seed=SEED + zlib.crc32(str(subject).encode()), guided=True)
    done: list[HuntedRun] = []
    for number in range(runs):
        draw = chooser.draw()
        try:
            done.append(_carried_out(hunt.shared.settled(draw), subject, draw, number, chooser))
        except InputError:
            continue  # the faults do not fit into the time of the run
        except InterruptedEarly:
            raise
        except LabrysError as error:
            print(f"! {subject}, run {number}: {error}", file=sys.stderr)
    return done


def _carried_out(settled: Settled, subject: Subject, draw: Draw, number: int, chooser: Chooser) -> HuntedRun:
    began_s = processor_s()
    with carried_out(settled, lambda _: Unobserved()) as (test, result, operations):
        if result.interrupted:
            raise KeyboardInterrupt
        chooser.learn(draw, behaviour_of(result, operations))
        info = info_of(settled, test, settled.plan())
        record = record_of(info, result, parts.of_run(test, result, operations), operations, duration_s=0.0)
        files = [path for paths in result.logs.values() for path in paths]
        root = files[0].parent.parent if files else Path.cwd()
        warnings = classes_in(root, files, info.nodes)
        document = build(record, warnings=warnings)
    signature = document["signature"]
    return HuntedRun(
        build=str(subject), system=subject.system, software=info.software, defect=subject.defect, number=number,
        seed=str(draw.seed), command=settled.reproduce, faults=len(test.plan), time_limit_s=test.time_limit_s,
        processor_s=max(processor_s() - began_s, 0.0),
        repairs=list(repairs_of(settled.options.system.type.Options, settled.options.values())),
        signature=None if signature is None else read(signature, Signature, "signature"), warnings=warnings,
    )  # fmt: skip


def processor_s() -> float:
    """Returns the seconds of processor time of this process and of the processes that it started."""
    times, ticks = os.times(), 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                ticks += int(fields[11]) + int(fields[12])
    return times.user + times.system + times.children_user + times.children_system + ticks / os.sysconf("SC_CLK_TCK")


def keep(path: Path, runs: Iterable[HuntedRun]) -> None:
    """Appends runs to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(written(run)) + "\n" for run in runs)


def kept(path: Path) -> list[HuntedRun]:
    """Returns the runs of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [read(json.loads(line), HuntedRun, f"line {number}") for number, line in enumerate(lines, 1)]


def cases_of(runs: Sequence[HuntedRun]) -> list[tuple[HuntedRun, Case]]:
    """Returns the invalid runs, each with its symptom beside the warnings of runs that are as expected."""
    usual: dict[str, set[str]] = {}
    for run in runs:
        if run.signature is None:
            usual.setdefault(run.software, set()).update(run.warnings)
    cases = []
    for run in runs:
        if run.signature is None or run.signature.ended != "invalid":
            continue
        telling = [warning for warning in run.warnings if warning not in usual.get(run.software, ())]
        trial = Trial(
            run=None, name=run.name, night=date(2026, 11, 30), line=run.build, system=run.system, software=run.software,
            seed=run.seed, reproduce=run.command, size=(run.faults, run.time_limit_s), repeats=True,
        )  # fmt: skip
        symptom = symptom_of(run.signature, run.software, telling)
        cases.append((run, Case(trial=trial, signature=run.signature, symptom=symptom, repairs=run.repairs)))
    return cases


@cache
def settled_of(command: str) -> Settled:
    """Returns the options of a run by its command."""
    with settled_by(*shlex.split(command)[2:]) as settled:
        return settled
