"""Runs one test many times, each time with another seed, and counts the invalid runs.

The first run has the seed of the command line. The seeds of the other runs are drawn from it
(`harness.randomness.repeat_seed`). So the same command repeats the same runs, and a larger --repeat begins with the same runs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.console.plain import counted, counted_of, one_line
from harness.errors import ExitCode, InputError, InterruptedEarly, LabrysError
from harness.outcome import RunOutcome, worst
from harness.suites.proportions import interval, interval_of_first_hit
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from commands.run.session import Session
    from harness.op import Value

FORMAT = "labrys-repeat"
VERSION = 1
METHODS = {
    False: "Wilson's score interval",
    True: "the exact interval for runs that end with the first hit",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """One of the runs.

    Attributes:
        number: The number of the run, from 1.
        seed: Its seed.
        outcome: Its outcome.
        seconds: Its duration.
        run: The run's folder; None if there is none.
        reproduce: The command that carries out this run alone.
    """

    number: int
    seed: int
    outcome: RunOutcome
    seconds: float
    run: str | None
    reproduce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The outcome of all runs.

    Attributes:
        runs: The finished runs, in order.
        asked: The value of `--repeat`.
        until_fail: Whether to stop after the first invalid run.
        interrupted: Whether a person ended the test early.
    """

    runs: Sequence[Repetition]
    asked: int
    until_fail: bool
    interrupted: bool

    def count(self, verdict: Verdict | None) -> int:
        """Returns the number of runs with a verdict; None counts the runs that broke off."""
        return sum(run.outcome.verdict is verdict for run in self.runs)

    @property
    def decided(self) -> int:
        """Returns the number of runs that are valid or invalid; the others do not count for the rate."""
        return self.count(Verdict.VALID) + self.count(Verdict.INVALID)

    @property
    def ended_by_hit(self) -> bool:
        """Returns whether `until_fail` ended the test after an invalid run."""
        return self.until_fail and self.count(Verdict.INVALID) > 0

    @property
    def interval(self) -> tuple[float, float]:
        """Returns the confidence interval (95 %) of the share of invalid runs."""
        if self.ended_by_hit:
            return interval_of_first_hit(self.decided)
        return interval(self.count(Verdict.INVALID), self.decided)

    @property
    def exit_code(self) -> ExitCode:
        """Returns the exit code of the worst run, as for several files (docs/decisions/0007)."""
        return ExitCode.INTERRUPTED if self.interrupted else worst(run.outcome for run in self.runs)

    def crossing(self, *, behind: bool) -> int:
        """Returns the number of runs that crossed a threshold while their control node was behind, or was not."""
        return sum(bool(run.outcome.crossed) and run.outcome.behind is behind for run in self.runs)

    @property
    def verdict(self) -> Verdict | None:
        """Returns the worst verdict; None if nothing ran, or if a run broke off and none is invalid."""
        if self.count(Verdict.INVALID):
            return Verdict.INVALID
        if self.count(None) or not self.runs:
            return None
        return Verdict.UNKNOWN if self.count(Verdict.UNKNOWN) else Verdict.VALID

    def describe(self) -> str:
        """Returns the number of invalid runs, as one or two sentences."""
        low, high = self.interval
        text = f"{counted_of(self.count(Verdict.INVALID), self.decided, 'run', 'are')} invalid"
        if self.decided:
            text += f": {low:.1%} to {high:.1%} with 95 % confidence ({METHODS[self.ended_by_hit]})"
        uncounted = [
            f"{number} {what}"
            for number, what in (
                (self.count(Verdict.UNKNOWN), "unknown"),
                (self.count(None), "broken off"),
            )
            if number
        ]
        text += f". Not counted: {', '.join(uncounted)}" if uncounted else ""
        for behind, what in ((False, "crossed a threshold"), (True, "crossed one with a control node that was behind")):
            number = self.crossing(behind=behind)
            text += f". {counted(number, 'run')} {what}" if number else ""
        left = self.asked - len(self.runs)
        if left and self.interrupted:
            text += f". Interrupted; {counted_of(left, self.asked, 'run', 'are')} left"
        return f"{text}."


def repeat(
    carry_out: Callable[[int], Session],
    seeds: Iterable[int],
    *,
    asked: int,
    until_fail: bool,
    reproduce: Callable[[int], str],
    on_run: Callable[[Tally], None],
) -> Tally:
    """Carries out runs one after the other.

    Args:
        carry_out: Carries out the run of a seed, and returns its outcome.
        seeds: The seeds, in order.
        asked: The number of seeds.
        until_fail: Whether to stop after the first invalid run.
        reproduce: Returns the reproduce line of a seed.
        on_run: Is called after each run with the tally so far.

    Raises:
        InputError: The options of the first run are not valid.
    """
    runs: list[Repetition] = []
    interrupted = False
    for number, seed in enumerate(seeds, 1):
        began_s = time.monotonic()
        folder = None
        try:
            session = carry_out(seed)
            outcome, folder = session.outcome.brief(), str(session.run.path)
        except (InterruptedEarly, KeyboardInterrupt):
            interrupted = True
            break
        except LabrysError as error:
            if isinstance(error, InputError) and number == 1:
                raise
            outcome = RunOutcome(judged=None, error=one_line(str(error)))
        interrupted = outcome.interrupted
        took_s = time.monotonic() - began_s
        runs.append(
            Repetition(number=number, seed=seed, outcome=outcome, seconds=took_s, run=folder, reproduce=reproduce(seed))
        )
        on_run(Tally(runs=runs, asked=asked, until_fail=until_fail, interrupted=interrupted))
        if interrupted or (until_fail and outcome.verdict is Verdict.INVALID):
            break
    return Tally(runs=runs, asked=asked, until_fail=until_fail, interrupted=interrupted)


def document_of(tally: Tally, *, test: str, seed: int, reproduce: str, folder: str) -> dict[str, Value]:
    """Returns the content of `repeat.json`, which `labrys test --repeat --format json` prints too."""
    low, high = tally.interval
    return {
        "format": FORMAT,
        "version": VERSION,
        "valid": None if tally.verdict is None else tally.verdict.as_json,
        "reason": tally.describe(),
        "test": test,
        "seed": str(seed),
        "reproduce": reproduce,
        "folder": folder,
        "asked": tally.asked,
        "until_fail": tally.until_fail,
        "interrupted": tally.interrupted,
        "counts": {
            "runs": len(tally.runs),
            "invalid": tally.count(Verdict.INVALID),
            "valid": tally.count(Verdict.VALID),
            "unknown": tally.count(Verdict.UNKNOWN),
            "error": tally.count(None),
            "crossed": tally.crossing(behind=False),
            "crossed_behind": tally.crossing(behind=True),
        },
        "interval": {"low": low, "high": high, "confidence": 0.95, "method": METHODS[tally.ended_by_hit]},
        "runs": [
            {
                "number": run.number,
                "seed": str(run.seed),
                "valid": None if run.outcome.verdict is None else run.outcome.verdict.as_json,
                "reason": run.outcome.reason,
                "invalid": list(run.outcome.invalid),
                "seconds": run.seconds,
                "run": run.run,
                "reproduce": run.reproduce,
                "crossed": list(run.outcome.crossed),
                "behind": run.outcome.behind,
            }
            for run in tally.runs
        ],
    }
