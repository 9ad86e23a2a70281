"""A case of a suite: one run of `labrys test`, and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.suites.expectation import Expectation
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.suites.thresholds import Threshold

THRESHOLD = "threshold"  # the option of `labrys test`


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run of a suite.

    Attributes:
        name: Unique in its suite, e.g. `partitions[nemesis=bridge]#2`.
        test: The name of the `[[test]]` it comes from.
        options: The options of `labrys test`, by long name without dashes in front, in the order of the file.
        seed: The root seed.
        reproduce: The command that runs this case of the suite again.
        expect: The expected verdict; a negative control expects `invalid`.
        known_failures: Parts with their verdicts, `name=verdict`, that do not fail the case.
        expect_during_fault: Whether a violation must be during or after a fault.
        expect_parts: The parts of the verdict that must be invalid.
        thresholds: The limits for numbers of the run.
        expect_rate: The share of runs that may be unexpected, over all nights; None: none may.
        runs: The number of runs, each with its own seed.
        at_least: The minimum number of runs that must end as expected.
        repetition: The number of the repetition of its combination, from 1; None if the combination runs once.
    """

    name: str
    test: str
    options: Mapping[str, str | int | float | bool]
    seed: int
    reproduce: str
    expect: Verdict
    known_failures: frozenset[str] = frozenset()
    expect_during_fault: bool = False
    expect_parts: frozenset[str] = frozenset()
    thresholds: Sequence[Threshold] = ()
    expect_rate: float | None = None
    runs: int = 1
    at_least: int = 1
    repetition: int | None = None

    @property
    def line(self) -> str:
        """Returns the name without the number of the repetition."""
        return self.name if self.repetition is None else self.name.removesuffix(f"#{self.repetition}")

    @property
    def expectation(self) -> Expectation:
        """Returns the expectation for its run."""
        return Expectation(
            verdict=self.expect,
            during_fault=self.expect_during_fault,
            known_failures=self.known_failures,
            parts=self.expect_parts,
            rate=self.expect_rate,
        )

    def arguments(self) -> list[str]:
        """Returns the arguments of `labrys` that run this case."""
        arguments = ["test", "--seed", str(self.seed)]
        for name, value in self.options.items():
            if isinstance(value, bool):
                arguments.append(f"--{name}" if value else f"--no-{name}")
            else:
                arguments += [f"--{name}", str(value)]
        for threshold in self.thresholds:
            arguments += [f"--{THRESHOLD}", str(threshold)]
        if self.runs > 1:
            arguments += ["--repeat", str(self.runs)]
            arguments += ["--until-fail"] if self.at_least == 1 and self.expect is Verdict.INVALID else []
        return arguments
