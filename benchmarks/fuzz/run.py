"""Runs the command on damaged files of every kind and on hostile programs, endlessly or for some minutes, and checks its rules.

    python -m benchmarks fuzz --minutes 60 [--kind results.json] [--seed 1] [--out build/fuzz]

Prints the number of files of each kind. For a failure, prints the folder with its files; `why.txt` there has the command and
the broken rule. Ctrl-C ends it with the counts. The exit code is 1 if a rule was broken.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.fuzz.kinds import Kinds
from benchmarks.fuzz.law import Commands

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.fuzz.kinds import Case
    from benchmarks.fuzz.law import Outcome

EVERY_S = 60.0
VERDICTS = MappingProxyType({0: True, 1: False, 2: "unknown"})
KEPT = 3  # the number of kept failures that look the same


def carried_out(
    case: Case, commands: Commands, folder: Path, *, raw: bool = True
) -> Iterator[tuple[Sequence[str], Outcome, str | None]]:
    """Carries out the commands of a case, and yields each with its result, and how it breaks the rules."""
    outcome = commands.run(case.arguments, folder, plots=case.plots, cluster=case.opens)
    yield case.arguments, outcome, _without_a_verdict(outcome, case, folder) or case.broken(outcome, folder, raw=raw)
    for arguments in case.then if (folder / "store/h/latest/results.json").exists() else ():
        outcome = commands.run(arguments, folder)
        yield arguments, outcome, outcome.broken(raw=raw)


def _without_a_verdict(outcome: Outcome, case: Case, folder: Path) -> str | None:
    """Returns what is wrong if the exit code of a run is that of a verdict which its folder does not have."""
    if not case.breaks_off or outcome.status not in VERDICTS:
        return None
    try:
        valid = json.loads((folder / "store/h/latest/results.json").read_text(encoding="utf-8"))["valid"]
    except (OSError, ValueError) as error:
        return f"exit code {outcome.status} without a verdict: {error}"
    return None if VERDICTS[outcome.status] == valid else f"exit code {outcome.status} and the verdict {valid}"


class Fuzzer:
    """Counts files, and keeps those that break a rule."""

    def __init__(self, out: Path, *, raw: bool) -> None:
        """Starts without findings."""
        self._out = out
        self._raw = raw
        self.inputs: Counter[str] = Counter()
        self.codes: Counter[int] = Counter()
        self.failures: Counter[tuple[str, str]] = Counter()

    def try_one(self, kinds: Kinds, commands: Commands, kind: str, seed: str) -> None:
        """Makes one case and checks the command's result."""
        with tempfile.TemporaryDirectory(prefix="labrys-fuzz-") as name:
            folder = Path(name)
            case = kinds.make[kind](random.Random(seed), folder)
            self.inputs[kind] += 1
            for arguments, outcome, broken in carried_out(case, commands, folder, raw=self._raw):
                self.codes[outcome.status] += 1
                if broken is not None:
                    self._keep(f"{kind}-{seed.replace('/', '-')}", folder, arguments, outcome, broken)

    def _keep(self, name: str, folder: Path, arguments: Sequence[str], outcome: Outcome, broken: str) -> None:
        signature = (name.partition("-")[0], broken[:60] if "traceback" not in broken else broken)
        self.failures[signature] += 1
        if self.failures[signature] > KEPT:
            return
        target = self._out / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder, target, symlinks=True)
        why = f"labrys {shlex.join(arguments)}\nstatus {outcome.status}\n{broken}\n\n{outcome.err[-20_000:]}"
        (target / "why.txt").write_text(why, encoding="utf-8", errors="backslashreplace")
        print(f"{target}\n    labrys {shlex.join(arguments)!a:.200}\n    {broken!a}", flush=True)

    def counts_line(self) -> str:
        """Returns the counts in a line."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.inputs.items()))
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(self.codes.items()))
        broken = f"{sum(self.failures.values())} broke the law in {len(self.failures)} ways"
        return f"{self.inputs.total()} inputs ({kinds}); exit codes {codes}; {broken}"


def main(arguments: Sequence[str]) -> int:
    """Runs the fuzzer. Returns 1 if a rule was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long; 0 is without end")
    parser.add_argument("--kind", action="append", help="only this kind of file; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-raw", action="store_true", help="let text pass that a terminal obeys")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="where files that break the law are kept")
    options = parser.parse_args(arguments)
    # A shell starts background commands with Ctrl-C ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fuzzer = Fuzzer(options.out, raw=not options.no_raw)
    with tempfile.TemporaryDirectory(prefix="labrys-fuzz-") as scratch, Commands() as commands:
        kinds = Kinds(Path(scratch))
        names = options.kind or list(kinds.make)
        end_s = time.monotonic() + (options.minutes * 60 if options.minutes else float("inf"))
        next_s, number = time.monotonic() + EVERY_S, 0
        try:
            while time.monotonic() < end_s:
                kind = names[number % len(names)]
                fuzzer.try_one(kinds, commands, kind, f"{options.seed}/{number}")
                number += 1
                if time.monotonic() > next_s:
                    print(fuzzer.counts_line(), flush=True)
                    next_s = time.monotonic() + EVERY_S
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    print(fuzzer.counts_line(), flush=True)
    return 1 if fuzzer.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
