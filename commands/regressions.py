"""Writes a finding as a regression: a plan, and a suite file with the expected verdict; see docs/suites.md."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import nemesis.choices
from commands import choosing
from commands.compose import NOT_REPRODUCED
from harness.console import options as opt
from harness.console.plugins import PLACE_SEPARATOR, is_file_place, split_place
from harness.errors import InputError
from harness.suites.suite import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import click

BY_CHANCE_RUNS = 10
FAULT = "fault"
MAX_NAME = 60


def write_regression(
    test: click.Context, values: Mapping[str, Any], *, plan: str, part: str, path: Path, by_chance: bool
) -> Path:
    """Writes `NAME.json` with the plan, and `NAME.toml` with the test. The finding is a verdict, so thresholds are left out.

    Args:
        test: The context of `labrys test`.
        values: Its options by parameter name.
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
    without = NOT_REPRODUCED | nemesis.choices.DRAWING | {nemesis.choices.PLAN_FILE, THRESHOLD}
    words = opt.command_line(test, {**values, **_relative(values, path.parent)}, without=without)
    lines = [
        '# This is the verdict today. When the bug is fixed, expect "valid", and remove expect-parts and at-least.',
        "[[test]]",
        f"name = {json.dumps(path.name[:MAX_NAME])}",
        f"plan = {json.dumps(files[0].name)}",
        f"seed = {values['seed']}",
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


def _relative(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Returns the places of code in files, relative to the folder of the regression."""
    places = {name: split_place(values[name] or "") for name in (choosing.SYSTEM, choosing.WORKLOAD, FAULT)}
    return {
        name: f"{os.path.relpath(file, folder)}{PLACE_SEPARATOR}{attribute}"
        for name, (file, attribute) in places.items()
        if is_file_place(values[name] or "")
    }


def toml_lines(words: Sequence[str]) -> Iterator[str]:
    """Yields command-line words as lines of TOML: `--rate 5` as `rate = 5`, `--no-x` as `x = false`."""
    for place, word in enumerate(words):
        if not word.startswith("--"):
            continue
        following = words[place + 1] if place + 1 < len(words) else "--"
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
