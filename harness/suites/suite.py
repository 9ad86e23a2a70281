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
- `expect-rate = "<= 0.05"`: the share of runs that may be unexpected. A sequential test decides by the runs of the case over
  all nights; see `harness.suites.rates`.

Further tables `[[test.where]]` of a test expect something else of some combinations; `harness.suites.expecting` has an example.

A folder is a suite of regressions: each of its TOML files has tests as above. Paths are relative to the file that names
them; see `harness.suites.paths`.
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
from harness.console.suggest import did_you_mean
from harness.errors import InputError
from harness.randomness import SEED_BITS, repeat_seed, stream
from harness.suites.case import Case
from harness.suites.expectation import SuiteCase
from harness.suites.expecting import (
    DURING_FAULT,
    KEYS,
    KNOWN_FAILURES,
    THRESHOLDS,
    WHERE,
    Expected,
    Where,
    expected_of,
    wheres_of,
)
from harness.suites.paths import from_file, moved_code
from harness.suites.rates import EXPECT_RATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import TypeAlias

    import click

    KnownOptions: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, click.ParamType[Any]]]

TOP_KEYS = frozenset({"name", "defaults", "test"})
AT_LEAST = "at-least"
OWN_KEYS = frozenset({"name", "seed", "repeat", AT_LEAST, WHERE, *KEYS})
PLAN = "plan"
CHOOSING = ("system", "workload")
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
        known: Returns the types of all options that a case can have, by long name, from the options that it has.

    Raises:
        InputError: A file cannot be read, or is not a valid suite.
    """
    is_folder = path.is_dir()
    files = sorted(path.glob("*.toml")) if is_folder else [path]
    if not files:
        raise InputError(
            f"{path}: expected files with names that end in .toml, and found none; docs/guide/suites.md shows one"
        )
    name = path.resolve().name if is_folder else path.stem
    cases: list[Case] = []
    for file in files:
        document = read_toml(file)
        if is_folder and "name" in document:
            raise InputError(f"{file}: remove `name`; a suite of a folder has the name of the folder, {name!r}")
        name = document.get("name", name)
        for where, table in _tests(file, document):
            cases += _cases(where, table, suite=path, file=file, seed=seed, known=known, room=MAX_CASES - len(cases))
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


def _is_name(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and value.isprintable()


def _cases(
    where: str, table: Mapping[str, Any], *, suite: Path, file: Path, seed: int, known: KnownOptions, room: int
) -> Iterable[Case]:
    name = table.get("name")
    if not _is_name(name):
        raise InputError(f"{where}: expected a name, which is {NAME_RULE}")
    repeat = _whole(f"{where} ({name})", table, "repeat", 1, MAX_CASES)
    at_least = _whole(f"{where} ({name})", table, AT_LEAST, 1, repeat) if AT_LEAST in table else None
    own_seed = _whole(f"{where} ({name})", table, "seed", 0, MAX_SEED) if "seed" in table else None
    options = {key: value for key, value in table.items() if key not in OWN_KEYS}
    for key, value in options.items():
        if not all(
            isinstance(item, str | int | float | bool) for item in (value if isinstance(value, list) else [value])
        ):
            raise InputError(
                f"{where} ({name}): {key} takes a value or a list of values, not {shown(value)}. A list makes a case of "
                'each value, e.g. nemesis = ["kill", "pause"]'
            )
        if value == []:
            raise InputError(
                f"{where} ({name}): {key} has an empty list, which gives no case; give it a value or remove it"
            )
    dimensions = [key for key, value in options.items() if isinstance(value, list)]
    if repeat * math.prod(len(options[key]) for key in dimensions) > room:
        raise InputError(f"{where} ({name}): more than {MAX_CASES} cases; split the suite")
    wheres = wheres_of(f"{where} ({name})", table.get(WHERE, []), {key: options[key] for key in dimensions})
    used: set[str] = set()
    for choice in itertools.product(*(options[key] for key in dimensions)):
        chosen = dict(zip(dimensions, choice, strict=True))
        types = _types(f"{where} ({name})", file, {**options, **chosen}, known)
        settled = from_file(file, {**options, **chosen}, types)
        applying = [own_where for own_where in wheres if own_where.applies_to(chosen)]
        used |= {own_where.place for own_where in applying}
        expected = _expected(f"{where} ({name})", table, applying, at_least)
        point = ",".join(f"{key}={_as_written(value)}" for key, value in chosen.items())
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
                expect=expected.verdict,
                known_failures=expected.known_failures,
                expect_during_fault=expected.during_fault,
                expect_parts=expected.parts,
                thresholds=expected.thresholds,
                expect_rate=expected.rate,
                runs=1 if at_least is None else repeat,
                at_least=at_least or 1,
                repetition=None if turns == 1 else turn,
            )
    idle = next((own_where for own_where in wheres if own_where.place not in used), None)
    if idle is not None:
        raise InputError(
            f"{idle.place}: no combination of the test has these values together; remove the table or change it"
        )


def _whole(where: str, table: Mapping[str, Any], key: str, low: int, high: int) -> int:
    """Returns a whole number of a test; `low` if the key is missing."""
    value = table.get(key, low)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InputError(f"{where}: {key} takes a whole number from {low} to {high}, not {shown(value)}")
    return value


def _expected(where: str, table: Mapping[str, Any], applying: Sequence[Where], at_least: int | None) -> Expected:
    """Returns what a test expects of one combination.

    Raises:
        InputError: An expectation is not valid, or goes not with `at-least`.
    """
    own = {**table, **{key: value for own_where in applying for key, value in own_where.table.items()}}
    location = applying[-1].place if applying else where
    others = [key for key in (DURING_FAULT, KNOWN_FAILURES, THRESHOLDS, EXPECT_RATE) if own.get(key)]
    if at_least is not None and others:
        raise InputError(f"{location}: {AT_LEAST} counts verdicts only, so it does not go with {others[0]}")
    return expected_of(location, own)


def _as_written(value: object) -> str:
    """Returns a value as the file has it: TOML writes `false`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _types(
    where: str, file: Path, options: Mapping[str, Any], known: KnownOptions
) -> Mapping[str, click.ParamType[Any]]:
    """Returns the types of the options of a case; refuses an option that `labrys test` does not have with these."""
    # Code in a file must be found before the types are known, because it has options of its own.
    code = {key: moved_code(value, file.parent) for key in CHOOSING if isinstance(value := options.get(key), str)}
    types = known({**options, **code})
    for key in options:
        if key not in types:
            with_these = " and ".join(f"the {which} {shown(options[which])}" for which in CHOOSING if which in options)
            condition = f" with {with_these}" if with_these else ""
            raise InputError(
                f"{where}: a test of a suite has no key {key!r}{condition}. {did_you_mean(key, {*types, *OWN_KEYS})}"
            )
    return types
