"""The rules that the fuzzer checks on the command for every file.

The exit code is 0, 1, 2, 254 or 130. 255 is for machine errors, so no file causes it, but the code of a system may. There is no
traceback and no signal. Time and memory are bounded. The output has no raw terminal control characters.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet
    from types import TracebackType

ROOT = Path(__file__).parents[2]
CODES = frozenset({0, 1, 2, 130, 254})
BROKE_OFF = 255
# Control characters except tab and newline, bidirectional controls, line separators, and bytes that are not UTF-8.
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udcff]")
_TRACEBACK = "Traceback (most recent call last)"
_AROUND = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a command.

    Attributes:
        status: Its exit code, or the negative number of a signal.
        out: Standard output.
        err: Standard error.
    """

    status: int
    out: str
    err: str

    def broken(self, *, raw: bool = True, codes: AbstractSet[int] = CODES) -> str | None:
        """Returns how the result breaks the rules; None if it does not.

        Args:
            raw: Whether raw terminal control characters break them.
            codes: The exit codes that do not.
        """
        if _TRACEBACK in self.err or _TRACEBACK in self.out:
            return f"traceback: {_summary(self.err)}"
        if self.status < 0:
            return f"ended by signal {-self.status}"
        if self.status not in codes:
            return f"exit code {self.status}: {self.err.strip()[-200:]!r}"
        for name, text in () if not raw else (("standard output", self.out), ("standard error", self.err)):
            match = RAW.search(text)
            if match:
                around = text[max(0, match.start() - _AROUND) : match.end() + _AROUND]
                return f"raw {match[0]!r} on {name}: {around!r}"
        if self.status == 254 and not (self.err + self.out).strip():
            return "254 without a word"
        return None


class Commands:
    """Runs commands, each in a separate process with bounds. A context manager."""

    def __init__(self) -> None:
        """Starts the process that forks."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.fuzz.zygote"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
            start_new_session=True,  # Ctrl-C reaches only the fuzzer
        )
        self._answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, arguments: Sequence[str], folder: Path, *, plots: bool = False, cluster: bool = False) -> Outcome:
        """Runs `labrys ARGUMENTS` in a folder. Reports have plots, which take seconds, only if `plots`.

        The command opens a cluster only if `cluster`.
        """
        if self._process.stdin is None:
            raise RuntimeError("the process was started with a pipe")
        self._process.stdin.write(
            json.dumps({"arguments": list(arguments), "folder": str(folder), "plots": plots, "cluster": cluster}) + "\n"
        )
        self._process.stdin.flush()
        answer = json.loads(self._answer())
        out, err = (
            Path(answer[name]).read_bytes().decode("utf-8", errors="surrogateescape") for name in ("out", "err")
        )
        return Outcome(status=answer["status"], out=out, err=err)

    def _answer(self) -> str:
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError("the process that carries out commands has ended")
        return line


def _summary(err: str) -> str:
    """Returns the error of a traceback, and its last place in Labrys's code."""
    places = re.findall(r'File "[^"]*?([\w/]+\.py)", line (\d+)', err)
    last = [line for line in err.strip().splitlines() if line and not line.startswith(" ")][-1:]
    return f"{(last or ['?'])[0][:200]} at {':'.join(places[-1]) if places else '?'}"
