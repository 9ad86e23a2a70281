"""Writes a finding as a regression: a plan, and a suite file with the expected verdict; see docs/guide/suites.md."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from commands.options.promised import PROMISES
from commands.options.run_options import reproduce_words
from harness.console.parameters import ProgramText
from harness.console.plugins import PLACE_SEPARATOR, is_file_place, split_place
from harness.errors import InputError
from harness.suites.case import THRESHOLD
from nemesis.choices import DRAWING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from commands.options.run_options import RunOptions, Sources

BY_CHANCE_RUNS = 10
MAX_NAME = 60


def write_regression(
    options: RunOptions, sources: Sources, *, plan: str, part: str, path: Path, by_chance: bool
) -> Path:
    """Writes `NAME.json` with the plan, and `NAME.toml` with the test. The finding is a verdict, so thresholds are left out.

    Args:
        options: The settled options of the test.
        sources: Where their values come from.
        plan: The plan, as text.
        part: The part of the verdict that is invalid.
        path: The folder and NAME, with or without `.toml`.
        by_chance: Whether only some runs find it, so that the test is repeated.

    Returns:
        The path of `NAME.toml`.

    Raises:
        InputError: A file exists already, or cannot be written.
    """
    path = path.with_suffix("") if path.suffix == ".toml" else path
    files = [path.with_name(f"{path.name}{ending}") for ending in (".json", ".toml")]
    alone = _relative(replace(options, faults=replace(options.faults, plan_file=None)), path.parent)
    # A case of a suite has the workload's own defaults, so whatever differs from those is in the file.
    alone = alone.having({PROMISES: False})
    words = reproduce_words(alone, sources, without={*DRAWING, THRESHOLD, PROMISES})
    lines = [
        '# This is the verdict today. When the bug is fixed, expect "valid", and remove expect-parts and at-least.',
        "[[test]]",
        f"name = {json.dumps(path.name[:MAX_NAME])}",
        f"plan = {json.dumps(files[0].name)}",
        f"seed = {options.seed}",
        *([f"repeat = {BY_CHANCE_RUNS}", "at-least = 1"] if by_chance else []),
        *toml_lines(words),
        'expect = "invalid"',
        f"expect-parts = [{json.dumps(part)}]",
    ]  # fmt: skip
    for file, text in zip(files, (plan, "\n".join(lines) + "\n"), strict=True):
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except OSError as error:
            raise InputError(f"{file} could not be written: {error.strerror}; choose another name") from error
    return files[1]


def _relative(options: RunOptions, folder: Path) -> RunOptions:
    """Returns the options with the places of code in files relative to the folder of the regression."""

    def relative(location: str) -> str:
        file, attribute = split_place(location)
        return f"{os.path.relpath(file, folder)}{PLACE_SEPARATOR}{attribute}" if is_file_place(location) else location

    fault = options.faults.fault
    programs = {
        str(option.name): _relative_program(value, folder)
        for option in options.click_options()
        if isinstance(option.type, ProgramText) and (value := options.values()[str(option.name)])
    }
    options = options.having(programs)
    return replace(
        options,
        system=replace(options.system, name=relative(options.system.name)),
        workload=replace(options.workload, name=relative(options.workload.name)),
        faults=replace(options.faults, fault=None if fault is None else relative(fault)),
    )


def _relative_program(command: str, folder: Path) -> str:
    """Returns a command whose program is relative to a folder, if a path names it."""
    program, space, arguments = command.lstrip().partition(" ")
    if os.sep not in program or program.startswith(("/", "~")):
        return command
    moved = os.path.relpath(program, folder)
    return f"{moved if os.sep in moved else f'.{os.sep}{moved}'}{space}{arguments}"


def toml_lines(words: Sequence[str]) -> Iterator[str]:
    """Yields command-line words as lines of TOML: `--rate 5` as `rate = 5`, `--no-x` as `x = false`."""
    for index, word in enumerate(words):
        if not word.startswith("--"):
            continue
        following = words[index + 1] if index + 1 < len(words) else "--"
        name = word.removeprefix("--")
        if not following.startswith("--"):
            yield f"{name} = {_value(following)}"
        elif name.startswith("no-"):
            yield f"{name.removeprefix('no-')} = false"
        else:
            yield f"{name} = true"


def _value(text: str) -> str:
    try:
        float(text)
    except ValueError:
        return json.dumps(text)
    return text if text.lstrip("-")[:1].isdigit() else json.dumps(text)
