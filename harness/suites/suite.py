"""Suites: many tests from one file, each run as a command of its own.

A suite file is TOML. `[defaults]` has options of `labrys test`; each `[[test]]` overrides them, and every option with a list
as its value is a dimension of a matrix:

    name = "nightly"

    [defaults]
    time-limit = 120

    [[test]]
    name = "partitions"
    nemesis = ["partition-random-halves", "bridge"]
    read-mode = ["read-index", "raft-log"]
    repeat = 2

    [[test]]
    name = "negative-control"
    read-mode = "unsafe"
    expect = "invalid"

These are nine cases. The seed of a case is drawn from the seed of the suite and the name of the case, so a new case changes no
other. The worst case decides the exit code, in the order invalid, error, unknown, valid.

Further keys of a test:

- `expect-during-fault = true`: a negative control passes only if a violation was seen during or after a fault. A violation
  before all faults is not enough.
- `known-failures = ["recovered=invalid"]`: the suite does not count these parts of the verdict, because of a known bug. The
  summary shows that the case failed as known.
- `at-least = 1` with `repeat = 5`: one case of five runs, which passes if at least one of them ends as expected.
- `thresholds = ["p99_ms < 200", "availability > 0.9"]`: limits for numbers of the run; `harness.suites.thresholds` has the
  grammar. A case that crosses one fails with any verdict. If the control node was behind, it is unknown whether the case
  passes.

A folder is a suite of regressions: each of its TOML files has tests as above, and paths of plans are relative to the file.
`path/to/file.py:Class` as a system, a workload or a fault is relative to the file of the suite in any case.
"""

from __future__ import annotations

import itertools
import math
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from harness.console.documents import read_toml, shown
from harness.console.parameters import MAX_SEED
from harness.console.plugins import is_file_place
from harness.console.suggest import did_you_mean
from harness.errors import InputError
from harness.randomness import SEED_BITS, repeat_seed, stream
from harness.suites.case import Case
from harness.suites.expectation import SuiteCase
from harness.suites.thresholds import Threshold, read_threshold
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import TypeAlias

    KnownOptions: TypeAlias = Callable[[Mapping[str, Any]], Collection[str]]

TOP_KEYS = frozenset({"name", "defaults", "test"})
KNOWN_FAILURES = "known-failures"
DURING_FAULT = "expect-during-fault"
EXPECT_PARTS = "expect-parts"
AT_LEAST = "at-least"
THRESHOLDS = "thresholds"
OWN_KEYS = frozenset(
    {"name", "seed", "repeat", AT_LEAST, "expect", DURING_FAULT, EXPECT_PARTS, KNOWN_FAILURES, THRESHOLDS}
)
PLAN = "plan"
CHOOSING = ("system", "workload")
PLACES = (*CHOOSING, "fault")  # options that can name a file of Python
MAX_CASES = 10_000
MAX_NAME = 60
NAME_RULE = f"a printable text of 1 to {MAX_NAME} characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """All cases of a file.

    Attributes:
        name: The suite's name.
        seed: Its root seed.
        cases: The cases, in the order of their runs.
    """

    name: str
    seed: int
    cases: Sequence[Case]

    def case_of(self, case: Case) -> SuiteCase:
        """Returns the record of a case for its run."""
        return SuiteCase(suite=self.name, case=case.name, line=case.line, expectation=case.expectation)


def load_suite(path: Path, *, seed: int, known: KnownOptions) -> Suite:
    """Reads the file of a suite, or a folder of regressions, and returns all cases.

    Args:
        path: The file or the folder.
        seed: The suite's root seed.
        known: Returns the long names of all options that a case can have, from the options that it has.

    Raises:
        InputError: A file cannot be read, or is not a valid suite.
    """
    is_folder = path.is_dir()
    files = sorted(path.glob("*.toml")) if is_folder else [path]
    if not files:
        raise InputError(
            f"{path}: expected files with names that end in .toml, and found none; docs/suites.md shows one"
        )
    name = path.resolve().name if is_folder else path.stem
    cases: list[Case] = []
    for file in files:
        document = read_toml(file)
        if is_folder and "name" in document:
            raise InputError(f"{file}: remove `name`; a suite of a folder has the name of the folder, {name!r}")
        name = document.get("name", name)
        for where, table in _tests(file, document):
            own = _with_plan_paths(file, table) if is_folder else table
            cases += _cases(where, own, suite=path, file=file, seed=seed, known=known, room=MAX_CASES - len(cases))
    if not _is_name(name):
        raise InputError(f"{path}: name takes {NAME_RULE}, not {shown(name)}")
    twice = sorted(name for name, times in Counter(case.name for case in cases).items() if times > 1)
    if twice:
        raise InputError(f"{path}: two cases are named {twice[0]!r}; give their tests different names")
    return Suite(name=name, seed=seed, cases=cases)


def _tests(path: Path, document: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yields the tests of a file, each with its place for messages, and with the defaults of the file."""
    for key in document:
        if key not in TOP_KEYS:
            raise InputError(f"{path}: unknown key {key!r}. {did_you_mean(key, TOP_KEYS)}")
    defaults, tests = document.get("defaults", {}), document.get("test", [])
    tables = isinstance(tests, list) and all(isinstance(test, dict) for test in tests)
    if not isinstance(defaults, dict) or not tables or not tests:
        raise InputError(f"{path}: expected a table [defaults] and at least one table [[test]]")
    for number, test in enumerate(tests, 1):
        yield f"{path}: test {number}", {**defaults, **test}


def _with_plan_paths(file: Path, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a test with the paths of its plans, which are relative to the folder of its file."""
    plan = table.get(PLAN)
    if isinstance(plan, str):
        return {**table, PLAN: str(file.parent / plan)}
    if isinstance(plan, list) and all(isinstance(each, str) for each in plan):
        return {**table, PLAN: [str(file.parent / each) for each in plan]}
    return table


def _with_places(file: Path, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the options of a case; what stands in a file of Python is relative to the folder of the suite's file."""
    named = {key: options[key] for key in PLACES if isinstance(options.get(key), str) and is_file_place(options[key])}
    return {**options, **{key: str(file.parent / place) for key, place in named.items()}}


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and value.isprintable()


def _cases(
    where: str, table: Mapping[str, Any], *, suite: Path, file: Path, seed: int, known: KnownOptions, room: int
) -> Iterable[Case]:
    name = table.get("name")
    if not _is_name(name):
        raise InputError(f"{where}: expected a name, which is {NAME_RULE}")
    repeat = _whole(f"{where} ({name})", table, "repeat", 1, MAX_CASES)
    expect, during_fault, known_failures = _expected(f"{where} ({name})", table)
    parts = _expected_parts(f"{where} ({name})", table, expect)
    thresholds = _thresholds(f"{where} ({name})", table)
    at_least = None
    if AT_LEAST in table:
        at_least = _whole(f"{where} ({name})", table, AT_LEAST, 1, repeat)
        others = [key for key in (DURING_FAULT, KNOWN_FAILURES, THRESHOLDS) if table.get(key)]
        if others:
            raise InputError(f"{where} ({name}): {AT_LEAST} counts verdicts only, so it does not go with {others[0]}")
    own_seed = _whole(f"{where} ({name})", table, "seed", 0, MAX_SEED) if "seed" in table else None
    options = {key: value for key, value in table.items() if key not in OWN_KEYS}
    for key, value in options.items():
        if not all(
            isinstance(item, str | int | float | bool) for item in (value if isinstance(value, list) else [value])
        ):
            raise InputError(f"{where} ({name}): {key} takes a value or a list of values, not {shown(value)}")
        if value == []:
            raise InputError(
                f"{where} ({name}): {key} has an empty list, which gives no case; give it a value or remove it"
            )
    dimensions = [key for key, value in options.items() if isinstance(value, list)]
    if repeat * math.prod(len(options[key]) for key in dimensions) > room:
        raise InputError(f"{where} ({name}): more than {MAX_CASES} cases; split the suite")
    for choice in itertools.product(*(options[key] for key in dimensions)):
        chosen = dict(zip(dimensions, choice, strict=True))
        settled = _with_places(file, {**options, **chosen})
        _refuse_unknown(f"{where} ({name})", settled, known)
        point = ",".join(f"{key}={value}" for key, value in chosen.items())
        base = f"{name}[{point}]" if point else name
        turns = repeat if at_least is None else 1
        for turn in range(1, turns + 1):
            full = base if turns == 1 else f"{base}#{turn}"
            drawn = stream(seed, f"suite/{full}").getrandbits(SEED_BITS)
            yield Case(
                name=full,
                test=name,
                options=settled,
                seed=drawn if own_seed is None else repeat_seed(own_seed, turn),
                reproduce=shlex.join(["labrys", "suite", str(suite), "--only", full, "--seed", str(seed)]),
                expect=expect,
                known_failures=known_failures,
                expect_during_fault=during_fault,
                expect_parts=parts,
                thresholds=thresholds,
                runs=1 if at_least is None else repeat,
                at_least=at_least or 1,
                repetition=None if turns == 1 else turn,
            )


def _whole(where: str, table: Mapping[str, Any], key: str, low: int, high: int) -> int:
    """Returns a whole number of a test; `low` if the key is missing."""
    value = table.get(key, low)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InputError(f"{where}: {key} takes a whole number from {low} to {high}, not {shown(value)}")
    return value


def _refuse_unknown(where: str, options: Mapping[str, Any], known: KnownOptions) -> None:
    """Refuses an option that `labrys test` does not have with the system and the workload of these options."""
    names = known(options)
    for key in options:
        if key not in names:
            with_these = " and ".join(f"the {which} {shown(options[which])}" for which in CHOOSING if which in options)
            condition = f" with {with_these}" if with_these else ""
            raise InputError(
                f"{where}: a test of a suite has no key {key!r}{condition}. {did_you_mean(key, {*names, *OWN_KEYS})}"
            )


def _expected(where: str, table: Mapping[str, Any]) -> tuple[Verdict, bool, frozenset[str]]:
    """Reads the expected verdict of a test, whether it must be in or after a fault, and the known failures."""
    try:
        expect = Verdict(table.get("expect", Verdict.VALID))
    except (ValueError, TypeError):
        raise InputError(f"{where}: expect takes valid, invalid or unknown, not {shown(table['expect'])}") from None
    during_fault = table.get(DURING_FAULT, False)
    if not isinstance(during_fault, bool):
        raise InputError(f"{where}: {DURING_FAULT} takes true or false, not {shown(during_fault)}")
    if during_fault and expect is not Verdict.INVALID:
        raise InputError(f'{where}: {DURING_FAULT} needs expect = "invalid", and {expect} is expected')
    parts = table.get(KNOWN_FAILURES, [])
    if not isinstance(parts, list) or not all(
        isinstance(part, str) and part.endswith((f"={Verdict.INVALID}", f"={Verdict.UNKNOWN}")) for part in parts
    ):
        raise InputError(f"{where}: {KNOWN_FAILURES} takes a list of PART=invalid or PART=unknown, not {shown(parts)}")
    return expect, during_fault, frozenset(parts)


def _expected_parts(where: str, table: Mapping[str, Any], expect: Verdict) -> frozenset[str]:
    """Reads the parts of the verdict that must be invalid."""
    parts = table.get(EXPECT_PARTS, [])
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise InputError(f'{where}: {EXPECT_PARTS} takes a list such as ["linearizable"], not {shown(parts)}')
    if parts and expect is not Verdict.INVALID:
        raise InputError(f'{where}: {EXPECT_PARTS} needs expect = "invalid", and {expect} is expected')
    return frozenset(parts)


def _thresholds(where: str, table: Mapping[str, Any]) -> tuple[Threshold, ...]:
    """Reads the thresholds of a test."""
    texts = table.get(THRESHOLDS, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{where}: {THRESHOLDS} takes a list such as ["p99_ms < 200"], not {shown(texts)}')
    try:
        return tuple(read_threshold(text) for text in texts)
    except InputError as error:
        raise InputError(f"{where}: {THRESHOLDS}: {error}") from error
