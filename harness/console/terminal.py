"""The only module that writes to a terminal. The output has no control characters except the colours of Labrys.

Names, values, paths, errors and logs have foreign text. This module escapes every text, so that no caller can forget it. A
string is never markup: `[nemesis=bridge]` is a name, not a style.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import click

from harness.console.plain import message, plain

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rich.console import Console
    from rich.segment import Segment

PIPE_WIDTH = 100_000  # wider than any line


def echo(text: object = "", *, err: bool = False) -> None:
    """Writes a text and a line break to standard output, or to standard error."""
    click.echo(plain(str(text)), err=err)


def near(path: Path) -> Path:
    """Returns a path relative to the working folder, if it is below it."""
    here = path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def open_console(*, stderr: bool = True, **settings: Any) -> Console:
    """Returns a console of rich that escapes all strings, without markup, emoji or highlighting.

    Only a terminal has a width. In a pipe or a file, each sentence stays on one line.
    """
    from rich.console import Console  # noqa: PLC0415 - slow to import, and `--help` does not need it
    from rich.segment import Segment  # noqa: PLC0415

    class PlainConsole(Console):
        """Escapes the rendered text; colours are added after that."""

        def render(self, *args: Any, **kwargs: Any) -> Iterable[Segment]:
            for segment in super().render(*args, **kwargs):
                yield segment if segment.control else Segment(plain(segment.text), segment.style)

    console = PlainConsole(stderr=stderr, markup=False, emoji=False, highlight=False, **settings)
    if not console.is_terminal and "width" not in settings:
        console.width = PIPE_WIDTH
    return console


def annotation(level: str, title: str, text: str) -> str:
    """Returns an annotation: a line that GitHub Actions shows beside a build.

    Args:
        level: `error`, `warning` or `notice`.
        title: Its title.
        text: Its text; line breaks stay.
    """
    escapes = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
    for sign, escape in escapes:
        title, text = title.replace(sign, escape), text.replace(sign, escape)
    title = title.replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{text}"


class PlainFormatter(logging.Formatter):
    """Formats log records as text that is safe for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line, with its traceback if it has one."""
        return message(super().format(record))
