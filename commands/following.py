"""Shows the progress of a command that writes into a log.

On a terminal, the last line of the log stays at the bottom. Elsewhere, a new last line is printed every `PLAIN_INTERVAL_S`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from harness import below
from harness.plain import one_line

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from rich.console import Console

LIVE_INTERVAL_S = 0.5
PLAIN_INTERVAL_S = 15.0
TAIL_BYTES = 8192


class Following:
    """A context that shows the last line of a log."""

    def __init__(self, console: Console, log: Path) -> None:
        """Takes the console, and the path of the log, which may not exist yet."""
        self._console = console
        self._log = log
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

    def line(self) -> Text:
        """Returns the last complete line of the log; empty if it has none."""
        try:
            with below.open_file(self._log.parent, self._log) as file:
                file.seek(max(0, self._log.stat().st_size - TAIL_BYTES))
                text = file.read(TAIL_BYTES).decode("utf-8", errors="replace")
        except OSError:
            return Text("")
        lines = [line for line in text.rpartition("\n")[0].splitlines() if line.strip()]
        return Text(f"      {one_line(lines[-1])}" if lines else "", style="dim")

    def _show(self) -> None:
        if self._console.is_terminal:
            with Live(
                console=self._console, transient=True, get_renderable=self.line, refresh_per_second=1 / LIVE_INTERVAL_S
            ):
                self._over.wait()
            return
        shown = ""
        while not self._over.wait(PLAIN_INTERVAL_S):
            line = self.line()
            if line.plain not in {"", shown}:
                self._console.print(line)
                shown = line.plain
