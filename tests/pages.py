"""Commands of pages of `docs/`, and what the pages show of their outputs, for tests that carry them out."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import cli

DOCS = Path(__file__).parents[1] / "docs"
FLAGS = re.DOTALL | re.MULTILINE


def commands(page: str, *, until: str = "") -> list[str]:
    """Returns the lines of the shell blocks of a page, up to a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    text = text.partition(until)[0] if until else text
    return [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]


def steps(page: str, *, until: str = "") -> list[tuple[str, list[str]]]:
    """Returns the commands of a page, each in one line, with the outputs that the page shows after it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    lines: list[tuple[str, list[str]]] = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text.partition(until)[0] if until else text, FLAGS):
        if language == "sh":
            lines += [(line, []) for line in block.replace("\\\n", "").splitlines()]
        elif not language and lines:
            lines[-1][1].append(block)
    return lines


def plainly(text: str) -> str:
    """Returns a text without line breaks, the times of this machine and the names of runs."""
    text = re.sub(r"\d{8}T\d{6}\.\d{3}Z", "STAMP", " ".join(text.split()))
    return re.sub(r"(\] . \w+ seed \d+|as expected \S+) [\d.]+ m?s", r"\1 TIME", text)


def missing(shown: str, printed: str) -> list[str]:
    """Returns the pieces of a page's block, between dots, that an output does not have in this order."""
    at, lost = 0, []
    for piece in filter(None, map(str.strip, plainly(shown).split("..."))):
        start = printed.find(piece, at)
        if start < 0:
            lost.append(piece)
        else:
            at = start + len(piece)
    return lost


def carried_out(line: str, *more: str) -> tuple[int, str]:
    """Carries out a line of a page; returns the exit code, and both outputs as a terminal shows them."""
    labrys, *words = shlex.split(line)
    assert labrys == "labrys"
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        code = cli.invoke([*words, *more])
    return code, screen.getvalue()
