"""Triage: how pure its groups are, and into how many groups it puts one defect.

`python -m benchmarks triage --runs 10000` hunts each planted bug of the simulated systems, and DLedger, its log and the
controllers with every mend but one. So each run that is invalid has one known defect. It also hunts the builds without a
planted bug and with all mends, which must have no group. With `--several`, it hunts builds with all defects together instead,
and experiments of its own say which defect a run has; see `truth`. It prints purity (the share of runs in a group whose most
frequent defect is theirs) and groups for each defect, for each way:

- by symptoms alone, as for systems without repairs;
- with experiments, as `labrys triage` does. A build with one defect tells much: no other can be the cause;
- of builds with one defect, with experiments that do not know which one, as for a release with all of them.

`--keep FILE` keeps the runs, and `--kept FILE` measures them again, so that two versions see the same runs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.triage.hunts import cases_of, hunted, keep, kept, settled_of, subjects
from benchmarks.triage.truth import is_known, truth_of
from commands.triage.experiments import Replays
from harness.pool import Pool
from results.causes.grouping import grouped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.triage.hunts import HuntedRun
    from results.causes.cases import Case
    from results.causes.grouping import Group

Pairs = list[tuple["HuntedRun", "Case"]]


def hunt_all(options: argparse.Namespace) -> list[HuntedRun]:
    """Carries out the runs of all builds, or as many as there is time for."""
    builds = list(subjects(options.systems, several=options.several))
    number = max(1, options.runs // len(builds))
    began_s = time.monotonic()
    runs: list[HuntedRun] = []
    with Pool(options.jobs) as pool:
        futures = [pool.submit(hunted, build, number) for build in builds]
        for build, future in zip(builds, futures, strict=True):
            own = future.result()
            runs += own
            if options.keep is not None:
                keep(options.keep, own)
            shown = Counter("valid" if run.signature is None else run.signature.ended for run in own)
            print(f"· {time.monotonic() - began_s:.0f} s, {build}: {dict(shown)}", file=sys.stderr, flush=True)
            if time.monotonic() - began_s > 60 * options.minutes:
                print(f"the time ended after {build}; later builds are left out", file=sys.stderr)
                break
    return runs


def truths_of(pairs: Pairs, path: Path | None, budget_s: float) -> dict[str, str]:
    """Returns the defect of each run, or why it is not known; runs without a result for lack of time are left out.

    Args:
        pairs: The runs.
        path: A file with the results of an earlier call, which gets further ones; None: no file.
        budget_s: The time for experiments.
    """
    truths = {case.name: run.defect for run, case in pairs if run.defect is not None}
    if path is not None and path.exists():
        truths |= dict(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    began_s, runs = time.monotonic(), 0
    for _, case in pairs:
        if case.name in truths:
            continue
        if time.monotonic() - began_s > budget_s:
            break
        truths[case.name], number = truth_of(settled_of(case.trial.reproduce), case)
        runs += number
        if path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([case.name, truths[case.name]]) + "\n")
    if runs:
        print(f"experiments for the truth: {runs} runs in {time.monotonic() - began_s:.0f} s", file=sys.stderr)
    return truths


def figures(groups: Sequence[Group], defect_of: Mapping[str, str]) -> tuple[float, float, int, int]:
    """Returns the purity of groups, the groups for each defect, and the numbers of groups and of defects.

    Runs without a defect do not count, and groups of them neither.
    """
    counts = [Counter(defect_of[case.name] for case in group.cases if case.name in defect_of) for group in groups]
    counts = list(filter(None, counts))
    total = sum(count.total() for count in counts)
    defects = {defect for count in counts for defect in count}
    pure = sum(max(count.values()) for count in counts)
    return pure / max(total, 1), len(counts) / max(len(defects), 1), len(counts), len(defects)


def measure(pairs: Pairs, truths: Mapping[str, str], budget_s: float, *, verbose: bool) -> None:
    """Prints the figures of the ways."""
    defect_of = {
        case.name: f"{case.trial.software} {truths[case.name]}"
        for _, case in pairs
        if case.name in truths and is_known(truths[case.name])
    }
    cases = [case for _, case in pairs]
    ways: list[tuple[str, list[Case], float]] = [("symptoms alone", cases, 0.0)]
    if budget_s:
        ways.append(("experiments", cases, budget_s))
    if budget_s and any(run.defect for run, _ in pairs):
        union: dict[str, tuple[str, ...]] = {}
        for case in cases:
            union[case.trial.software] = tuple(sorted({*union.get(case.trial.software, ()), *(case.repairs or ())}))
        ways.append(("builds unknown", [replace(case, repairs=union[case.trial.software]) for case in cases], budget_s))
    print("| way | purity | groups for a defect | groups | defects | replays | seconds of them | own seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for way, own, budget in ways:
        replays = Replays(lambda case: settled_of(case.trial.reproduce), budget) if budget else None
        began_s = time.monotonic()
        groups = grouped(own, replays)
        runs, spent_s = (0, 0.0) if replays is None else (replays.runs, replays.seconds)
        own_s = time.monotonic() - began_s - spent_s
        purity, per_defect, number, defects = figures(groups, defect_of)
        print(
            f"| {way} | {purity:.3f} | {per_defect:.2f} | {number} | {defects} | {runs} | {spent_s:.0f} | {own_s:.1f} |",
            flush=True,
        )
        if verbose:
            for group in groups:
                counts = Counter(defect_of.get(case.name, "not known") for case in group.cases).most_common(6)
                print(f"    {group.name}: {group.cases[0].symptom.sentence}: {counts}")


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000, help="the number of runs of all builds together")
    parser.add_argument("--systems", nargs="*", metavar="SYSTEM", default=[], help="only these systems")
    parser.add_argument("--several", action="store_true", help="builds with several defects instead of one")
    parser.add_argument("--minutes", type=float, default=60.0, help="the most minutes for the hunts")
    parser.add_argument(
        "--budget", type=float, default=600.0, help="the seconds for the experiments of each way; 0: none"
    )
    parser.add_argument("--truth-budget", type=float, default=1200.0, help="the seconds for the truth of --several")
    parser.add_argument(
        "--truths", type=Path, metavar="FILE", help="keep the truths, and read those of an earlier call"
    )
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the runs")
    parser.add_argument("--kept", type=Path, nargs="+", metavar="FILE", help="measure kept runs, and hunt none")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes at the same time")
    parser.add_argument("--verbose", action="store_true", help="print the groups")
    options = parser.parse_args()
    runs = [run for path in options.kept for run in kept(path)] if options.kept else hunt_all(options)
    pairs = cases_of(runs)
    mended = [case for run, case in pairs if run.defect == ""]
    print(f"{len(runs)} runs of {len({run.build for run in runs})} builds, {len(pairs)} invalid")
    for system in dict.fromkeys(run.system for run in runs):
        own = [run.processor_s for run in runs if run.system == system]
        print(f"{system}: {len(own)} runs, {sum(own) / len(own):.2f} s of processor time each")
    print(f"groups for builds without a known defect: {len(grouped(mended))}")
    print(f"unknown or broken off: {dict(Counter(_blame(run) for run in runs if run.signature is not None))}")
    with_defect = [(run, case) for run, case in pairs if run.defect != ""]
    truths = truths_of(with_defect, options.truths, options.truth_budget)
    if any(run.defect is None for run, _ in with_defect):
        print(f"truths: {dict(Counter(truths.get(case.name, 'no time for it') for _, case in with_defect))}")
    measure(with_defect, truths, options.budget, verbose=options.verbose)
    return 0


def _blame(run: HuntedRun) -> str:
    return "" if run.signature is None else run.signature.blame or run.signature.ended


if __name__ == "__main__":
    sys.exit(main())
