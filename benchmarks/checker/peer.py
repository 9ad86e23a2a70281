"""Runs porcupine on histories, as a program of its own that is built on the spot.

It gets a limit of time for each history and one of memory for all. What it does not finish within them took at least the limit:
the ratio of such a row is a lower bound, and the table says so.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SOURCE: Final = Path(__file__).parent / "porcupine"
MODULE: Final = "github.com/anishathalye/porcupine"
MEMORY: Final = 6 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What porcupine says of the histories of one row.

    Attributes:
        verdicts: Of each history; `unknown` if it did not finish.
        seconds: Of all histories, the check alone; what did not finish counts with the limit.
        finished: Whether it finished each of them.
    """

    verdicts: Sequence[str]
    seconds: float
    finished: bool


class Porcupine:
    """The program, and the histories that porcupine's own tests use."""

    def __init__(self, directory: Path, *, limit_s: float, repeats: int) -> None:
        """Builds the program.

        Args:
            directory: Where to put the program and the histories.
            limit_s: For each history.
            repeats: How often to check each; the fastest counts.

        Raises:
            RuntimeError: There is no Go, or the module cannot be had.
        """
        if shutil.which("go") is None:
            raise RuntimeError("there is no `go` on this machine")
        self._directory = directory
        self._program = directory / "porcupine"
        self.limit_s = limit_s
        self.repeats = repeats
        _go("build", "-o", str(self._program), ".")
        self.data = Path(_go("list", "-m", "-f", "{{.Dir}}", MODULE).strip()) / "test_data"

    def check(self, model: str, histories: Iterable[Iterable[str]]) -> Answer:
        """Checks the histories of one row, given as lines that the program reads."""
        paths = []
        for number, lines in enumerate(histories):
            path = self._directory / f"{number}.tsv"
            with path.open("w", encoding="utf-8") as file:
                file.write(f"{model}\t{self.limit_s}\t{self.repeats}\n")
                file.writelines(lines)
            paths.append(str(path))
        patience_s = 60 + len(paths) * 2 * self.limit_s
        try:
            done = subprocess.run(
                [str(self._program), *paths],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=False,
                timeout=patience_s,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
            )
            told = done.stdout
        except subprocess.TimeoutExpired as late:
            told = (late.stdout or b"").decode()
        found = {path: (verdict, float(s)) for path, verdict, s in (line.split("\t") for line in told.splitlines())}
        answers = [found.get(path, ("unknown", self.limit_s)) for path in paths]
        return Answer(
            verdicts=[verdict for verdict, _ in answers],
            seconds=sum(seconds for _, seconds in answers),
            finished=all(verdict != "unknown" for verdict, _ in answers),
        )


def _go(*arguments: str) -> str:
    done = subprocess.run(["go", *arguments], cwd=SOURCE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`go {arguments[0]}` failed: {done.stderr.strip()}")
    return done.stdout
