"""Prints what came out of suites, by system and workload: `python -m tools.verdicts STORE...`.

The cases come from the suites of the stores. If a case ran several times with one seed of its suite, its last run counts.
A row has the proved faults by kind, and how each case ended beside what its suite expects.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.console.plain import counted
from results.record.forms import Results
from results.store.store import Store
from results.store.suites import newest_suites
from tools.recovery import MOST_BYTES, system_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from results.store.store import Run
    from results.store.suites import CaseRow, SuiteRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case of a suite, and its last run.

    Attributes:
        suite: The suite.
        seed: The seed of the suite.
        name: The case.
        system: The system with its version.
        workload: The workload.
        ended: Its verdict beside the expected one, in the words of the suite.
        operations: The number of its operations.
        proved: The number of proved faults, by kind.
        unproved: The number of faults without a proof.
    """

    suite: str
    seed: str
    name: str
    system: str
    workload: str
    ended: str
    operations: int
    proved: Mapping[str, int]
    unproved: int


def last_runs(stores: Iterable[Store]) -> tuple[list[Case], list[str]]:
    """Reads the suites of stores.

    Returns:
        The cases with their last runs, and a sentence for each suite or result that cannot be a part of the table.
    """
    rows = [(row, store) for store in stores for row in newest_suites(store, len(store.suites()))]
    newest: dict[tuple[str, str, str], Case] = {}
    problems = []
    for row, store in sorted(rows, key=lambda entry: entry[0].folder[1]):
        if row.problem:
            problems.append(f"{'/'.join(row.folder)}: {row.problem}")
        for case in row.cases:
            if case.ended and case.run is None:
                problems.append(f"{case.name} of {'/'.join(row.folder)} has no run: {case.ended}: {case.why}")
            elif case.run is not None:
                newest[row.name, row.seed, case.name] = _read(store.open_run("/".join(case.run)), row, case)
    return list(newest.values()), problems


def _read(run: Run, row: SuiteRow, case: CaseRow) -> Case:
    test = json.loads(run.read_bytes(run.test_json, MOST_BYTES))
    results = msgspec.json.decode(run.read_bytes(run.results_json, MOST_BYTES), type=Results)
    version = test["versions"].get(test["system"])
    return Case(
        suite=row.name,
        seed=row.seed,
        name=case.name,
        system=f"{system_of(test)} {version}" if version else system_of(test),
        workload=test["workload"],
        ended=case.ended,
        operations=results.counts.operations,
        proved=Counter(fault.planned.called for fault in results.faults if fault.is_proven),
        unproved=sum(not fault.is_proven for fault in results.faults),
    )


def table(cases: Sequence[Case]) -> str:
    """Returns a row for each system and workload, as a Markdown table."""
    grouped: defaultdict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        grouped[case.system, case.workload].append(case)
    lines = [
        "| system | workload | suites, with seeds | operations | proved faults | verdicts |",
        "|---|---|---|---|---|---|",
    ]
    for (system, workload), several in sorted(grouped.items()):
        suites = sorted({f"`{case.suite}` {case.seed}" for case in several})
        proved = sum((Counter(case.proved) for case in several), Counter())
        faults = [f"`{kind}` {count}" for kind, count in sorted(proved.items())] or ["none"]
        unproved = sum(case.unproved for case in several)
        if unproved:
            faults.append(f"{unproved} without a proof")
        ended = Counter(case.ended for case in several)
        cells = [
            f"`{workload}`",
            ", ".join(suites),
            f"{sum(case.operations for case in several):,}",
            ", ".join(faults),
            "; ".join(
                f"{count} {words}" for words, count in sorted(ended.items(), key=lambda entry: (-entry[1], entry[0]))
            ),
        ]
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(*places: str) -> None:
    """Prints the table of the suites in some stores."""
    cases, problems = last_runs([Store(Path(folder)) for folder in places])
    for problem in problems:
        print(f"left out: {problem}", file=sys.stderr)
    print(table(cases))
    print(f"{counted(len(cases), 'case')} in {counted(len(places), 'store')}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
