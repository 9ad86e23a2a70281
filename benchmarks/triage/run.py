"""Triage: how pure its groups are, and into how many groups it puts one defect.

`python -m benchmarks triage --runs 10000` hunts each planted bug of the simulated systems, and DLedger, its log and the
controllers with every mend but one. So each run that is invalid has one known defect. It also hunts the builds without a
planted bug and with all mends, which must have no group. It prints purity (the share of runs in a group whose most frequent
defect is theirs) and groups for each defect, three times:

- by symptoms alone, as for systems without repairs;
- with experiments, as `labrys triage` does. A build with one defect tells much: no other can be the cause;
- with experiments that do not know which defects a build has, as for a release with all of them. Here an experiment still finds
  the one defect at once, but only runs that were carried out again have a cause for certain.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

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
from commands.triage.experiments import Replays, repairs_of
from harness import parts
from harness.console import plugins
from harness.console.members import read
from harness.errors import InputError, LabrysError
from harness.pool import Pool
from results.causes.cases import Case, Trial
from results.causes.grouping import grouped
from results.causes.symptoms import symptom_of
from results.record.signatures import Signature
from results.signatures.warnings import classes_in
from results.stored.document import build
from tests.catches.hunts import Hunt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from commands.hunt.draws import Draw
    from commands.options.compose import Settled
    from results.causes.grouping import Group

SEED = 66
PROGRESS_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A build to hunt.

    Attributes:
        system: The system.
        words: The options of the build.
        defect: Its one defect, as an experiment names it with its system; empty if it has none.
    """

    system: str
    words: tuple[str, ...]
    defect: str

    def __str__(self) -> str:
        return " ".join([self.system, *self.words])


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunted:
    """A run of a hunt, small enough to pass between processes.

    Attributes:
        case: The run; None if it is as expected.
        subject: Its build.
        draw: What the hunt drew.
        software: The program.
        warnings: The classes of warnings in its logs.
    """

    case: Case | None
    subject: Subject
    draw: Draw
    software: str
    warnings: Mapping[str, int]


def subjects(systems: Sequence[str]) -> Iterator[Subject]:
    """Yields the builds of some systems; of all if there are none."""
    for system, table in (("sim-raft", RAFT), ("sim-txn", TXN), ("sim-bookkeeper", BOOKKEEPER)):
        if not systems or system in systems:
            yield Subject(system=system, words=workload_of(system), defect="")
            for bug, planted in table.items():
                words = ("--bug", str(bug), *workload_of(system, planted.needs.workloads))
                yield Subject(system=system, words=words, defect=f"--bug {bug}")
    for system, mends in (("dledger", DLEDGER), ("dledger-log", DLEDGER), ("rocketmq-controller", CONTROLLER)):
        if not systems or system in systems:
            yield Subject(system=system, words=("--mend", "all", *workload_of(system)), defect="")
            for number in mends.texts:
                others = ",".join(str(mend) for mend in mends.texts if mend != number)
                yield Subject(system=system, words=("--mend", others, *workload_of(system)), defect=f"--mend {number}")


def workload_of(system: str, needed: Sequence[str] = ()) -> tuple[str, str]:
    """Returns the words for the first workload that a bug needs, or else that a system serves."""
    serves = choosing.chosen(plugins.SYSTEMS, system, by_place=False).type.serves
    return "--workload", next(iter(needed or serves))


@cache
def hunt_of(subject: Subject) -> Hunt:
    """Returns the hunt of a build."""
    return Hunt(subject.words, seed=SEED, system=subject.system)


def hunted(subject: Subject, runs: int) -> list[Hunted]:
    """Carries out the runs of a build."""
    idle.expect(runs)
    hunt, hunted_runs = hunt_of(subject), list[Hunted]()
    chooser = Chooser(hunt.space, seed=SEED, guided=True)
    for number in range(runs):
        draw = chooser.draw()
        try:
            hunted_runs.append(_carried_out(hunt.shared.settled(draw), subject, draw, number, chooser))
        except InputError:
            continue  # the faults do not fit into the time of the run
        except LabrysError as error:
            print(f"! {subject}, run {number}: {error}", file=sys.stderr)
    return hunted_runs


def _carried_out(settled: Settled, subject: Subject, draw: Draw, number: int, chooser: Chooser) -> Hunted:
    with carried_out(settled, lambda _: Unobserved()) as (test, result, operations):
        chooser.learn(draw, behaviour_of(result, operations))
        info = info_of(settled, test, settled.plan())
        record = record_of(info, result, parts.of_run(test, result, operations), operations, duration_s=0.0)
        files = [path for paths in result.logs.values() for path in paths]
        root = files[0].parent.parent if files else Path.cwd()
        warnings = classes_in(root, files, info.nodes)
        document = build(record, warnings=warnings)
    hunted = Hunted(case=None, subject=subject, draw=draw, software=info.software, warnings=warnings)
    if document["signature"] is None:
        return hunted
    signature = read(document["signature"], Signature, "signature")
    trial = Trial(
        run=None, name=f"{subject} {number:05d}", night=date(2026, 11, 30), line=str(subject), system=subject.system,
        software=info.software, seed=str(draw.seed), reproduce=settled.reproduce, repeats=True,
        size=(len(test.plan), test.time_limit_s),
    )  # fmt: skip
    own = repairs_of(settled.options.system.type.Options, settled.options.values())
    symptom = symptom_of(signature, info.software)
    return replace(hunted, case=Case(trial=trial, signature=signature, symptom=symptom, repairs=own))


def cases_of(runs: Iterable[Hunted]) -> list[tuple[Hunted, Case]]:
    """Returns the invalid runs, each with its symptom beside the warnings of runs that are as expected."""
    listed = list(runs)
    usual: dict[str, set[str]] = {}
    for run in listed:
        if run.case is None:
            usual.setdefault(run.software, set()).update(run.warnings)
    cases = []
    for run in listed:
        if run.case is not None and run.case.signature.ended == "invalid":
            telling = [warning for warning in run.warnings if warning not in usual.get(run.software, ())]
            symptom = symptom_of(run.case.signature, run.software, telling)
            cases.append((run, replace(run.case, symptom=symptom)))
    return cases


def figures(groups: Sequence[Group], defect_of: Mapping[str, str]) -> tuple[float, float, int]:
    """Returns the purity of groups, the groups for each defect, and the number of defects."""
    counts = [Counter(defect_of[case.name] for case in group.cases) for group in groups]
    total = sum(count.total() for count in counts)
    defects = {defect for count in counts for defect in count}
    pure = sum(max(count.values()) for count in counts)
    return pure / max(total, 1), len(groups) / max(len(defects), 1), len(defects)


def measure(pairs: Sequence[tuple[Hunted, Case]], budget_s: float, *, verbose: bool) -> None:
    """Prints the figures of the three ways."""
    by_name = {case.name: run for run, case in pairs}
    defect_of = {case.name: f"{case.trial.software} {run.subject.defect}" for run, case in pairs}
    cases = [case for _, case in pairs]
    union: dict[str, tuple[str, ...]] = {}
    for case in cases:
        union[case.trial.software] = tuple(sorted({*union.get(case.trial.software, ()), *(case.repairs or ())}))
    blind = [replace(case, repairs=union[case.trial.software]) for case in cases]

    def settled_of(case: Case) -> Settled:
        run = by_name[case.name]
        return hunt_of(run.subject).shared.settled(run.draw)

    print("| way | purity | groups for a defect | groups | defects | replays | seconds of them | own seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for way, own, budget in (
        ("symptoms alone", cases, 0.0), ("experiments", cases, budget_s), ("experiments, builds unknown", blind, budget_s)
    ):  # fmt: skip
        replays = Replays(settled_of, budget) if budget else None
        began_s = time.monotonic()
        groups = grouped(own, replays)
        runs, spent_s = (0, 0.0) if replays is None else (replays.runs, replays.seconds)
        own_s = time.monotonic() - began_s - spent_s
        purity, per_defect, defects = figures(groups, defect_of)
        print(
            f"| {way} | {purity:.3f} | {per_defect:.2f} | {len(groups)} | {defects} | {runs} | {spent_s:.0f} | {own_s:.1f} |",
            flush=True,
        )
        if verbose:
            for group in groups:
                counts = Counter(defect_of[case.name] for case in group.cases).most_common(6)
                print(f"    {group.name}: {group.cases[0].symptom.sentence}: {counts}")


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, help="the number of runs of all builds together")
    parser.add_argument("--systems", nargs="*", metavar="SYSTEM", default=[], help="only these systems")
    parser.add_argument("--minutes", type=float, default=60.0, help="the most minutes for the hunts")
    parser.add_argument("--budget", type=float, default=600.0, help="the seconds for the experiments of each way")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at the same time")
    parser.add_argument("--verbose", action="store_true", help="print the groups")
    options = parser.parse_args()
    builds = list(subjects(options.systems))
    share = max(1, options.runs // len(builds))
    began_s = time.monotonic()
    runs: list[Hunted] = []
    with Pool(options.jobs) as pool:
        futures = [pool.submit(hunted, build, share) for build in builds]
        for build, future in zip(builds, futures, strict=True):
            own = future.result()
            runs += own
            shown = Counter("valid" if run.case is None else run.case.signature.ended for run in own)
            print(f"· {time.monotonic() - began_s:.0f} s, {build}: {dict(shown)}", file=sys.stderr, flush=True)
            if time.monotonic() - began_s > 60 * options.minutes:
                print(f"the time ended after {build}; later builds are left out", file=sys.stderr)
                break
    pairs = cases_of(runs)
    mended = [case for run, case in pairs if not run.subject.defect]
    print(f"{len(runs)} runs in {time.monotonic() - began_s:.0f} s, {len(pairs)} invalid")
    print(f"groups for builds without a known defect: {len(grouped(mended))}")
    print(f"unknown or broken off: {dict(Counter(_blame(run) for run in runs if run.case is not None))}")
    measure([(run, case) for run, case in pairs if run.subject.defect], options.budget, verbose=options.verbose)
    return 0


def _blame(run: Hunted) -> str:
    case = run.case
    return "" if case is None else case.signature.blame or case.signature.ended


if __name__ == "__main__":
    sys.exit(main())
