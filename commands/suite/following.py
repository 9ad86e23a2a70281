"""Shows the progress of commands that write into logs.

On a terminal, the last line of each log stays at the bottom. Elsewhere, a new last line is printed every `PLAIN_INTERVAL_S`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from harness.console import below
from harness.console.plain import one_line, plain

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from rich.console import Console

LIVE_INTERVAL_S = 0.5
PLAIN_INTERVAL_S = 15.0
TAIL_BYTES = 8192


class Following:
    """A context that shows the last line of each log."""

    def __init__(self, console: Console, *, named: bool) -> None:
        """Takes the console, and whether each line has the name of its log."""
        self._console = console
        self._named = named
        self._logs: dict[str, Path] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, name="following", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def add(self, name: str, log: Path) -> None:
        """Begins to show a log, which may not exist yet."""
        self._logs = {**self._logs, name: log}

    def remove(self, name: str) -> None:
        """Shows a log no more."""
        self._logs = {other: log for other, log in self._logs.items() if other != name}

    def lines(self) -> list[str]:
        """Returns the last complete line of each log that has one."""
        return [
            f"      {f'{plain(name)}: ' if self._named else ''}{line}"
            for name, log in self._logs.items()
            if (line := _last_line(log))
        ]

    def _text(self) -> Text:
        return Text("\n".join(self.lines()), style="dim")

    def _show(self) -> None:
        if self._console.is_terminal:
            with Live(
                console=self._console, transient=True, get_renderable=self._text, refresh_per_second=1 / LIVE_INTERVAL_S
            ):
                self._over.wait()
            return
        shown: list[str] = []
        while not self._over.wait(PLAIN_INTERVAL_S):
            lines = self.lines()
            for line in lines:
                if line not in shown:
                    self._console.print(Text(line, style="dim"))
            shown = lines


def _last_line(log: Path) -> str:
    """Returns the last complete line of a log; empty if it has none."""
    try:
        with below.open_file(log.parent, log) as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            text = file.read(TAIL_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.rpartition("\n")[0].splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else ""
