"""Runs porcupine on histories, as a separate program built on the spot.

Each history has a limit of time and one of memory. A history beyond them took at least the time limit. The ratio of such a row
is a lower bound, and the table marks it.
"""

from __future__ import annotations

import hashlib
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCE: Final = Path(__file__).parent / "porcupine"
MODULE: Final = "github.com/anishathalye/porcupine"
MEMORY: Final = 6 << 30
UNKNOWN: Final = "unknown"
_PATIENCE_S: Final = 60.0
_NO_MEMORY: Final = ("out of memory", "cannot allocate memory")  # messages of Go's runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Porcupine's result for a history.

    Attributes:
        verdict: The verdict; `unknown` if it did not finish.
        seconds: The time of the check alone; the limit if it did not finish.
    """

    verdict: str
    seconds: float


class Porcupine:
    """The program, and the histories of porcupine's own tests."""

    def __init__(self, directory: Path, *, limit_s: float, repeats: int) -> None:
        """Builds the program.

        Args:
            directory: The folder for the program and the histories.
            limit_s: The time limit of each history.
            repeats: The number of checks of each; the fastest counts.

        Raises:
            RuntimeError: There is no Go, or the module is not available.
        """
        if shutil.which("go") is None:
            raise RuntimeError("there is no `go` on this machine")
        self._directory = directory
        self._program = directory / "porcupine"
        self.limit_s = limit_s
        self.repeats = repeats
        self._answers: dict[str, Answer] = {}
        _go("build", "-o", str(self._program), ".")
        self.data = Path(_go("list", "-m", "-f", "{{.Dir}}", MODULE).strip()) / "test_data"

    def check(self, model: str, made: str, lines: Iterable[str], limit_s: float) -> Answer:
        """Checks a history in a separate process, each history once.

        Args:
            model: The program's name of the model.
            made: The parameters of the model, if any.
            lines: The history in the program's format.
            limit_s: The time limit.

        Raises:
            RuntimeError: The program failed for a reason other than time or memory.
        """
        path = self._directory / "history.tsv"
        with path.open("w", encoding="utf-8") as file:
            file.write(f"{model}\t{made}\t{limit_s}\t{self.repeats}\n")
            file.writelines(lines)
        name = hashlib.sha256(path.read_bytes()).hexdigest()
        if name not in self._answers:
            self._answers[name] = self._asked(path, model, limit_s)
        return self._answers[name]

    def _asked(self, path: Path, model: str, limit_s: float) -> Answer:
        try:
            done = subprocess.run(
                [str(self._program), str(path)],
                capture_output=True,
                text=True,
                check=False,
                timeout=_PATIENCE_S + 2 * limit_s,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
            )
        except subprocess.TimeoutExpired:
            return Answer(verdict=UNKNOWN, seconds=limit_s)
        if done.returncode != 0:
            if not any(text in done.stderr for text in _NO_MEMORY):
                raise RuntimeError(f"the porcupine driver failed on model {model}: {done.stderr.strip()[:2000]}")
            return Answer(verdict=UNKNOWN, seconds=limit_s)
        _, verdict, seconds = done.stdout.split("\t")
        return Answer(verdict=verdict, seconds=float(seconds))


def _go(*arguments: str) -> str:
    done = subprocess.run(["go", *arguments], cwd=SOURCE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`go {arguments[0]}` failed: {done.stderr.strip()}")
    return done.stdout
