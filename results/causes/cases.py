"""The runs that are not as expected, and those that are, as far as their groups and rates depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from results.causes.symptoms import Symptom
    from results.record.signatures import Signature
    from results.store.store import Run

# What `labrys shrink` leaves in the folder of a run: the smallest plan, and the command that carries it out.
SHRUNK_COMMAND: Final = "shrunk-command.txt"
SIMULATED: Final = "sim"  # the kind of cluster whose runs their seeds repeat
NIGHT: Final = timedelta(hours=12)  # a night goes from noon to noon, UTC


def night_of(started_utc: datetime) -> date:
    """Returns the night of a run: the date on which it began, from noon to noon, UTC."""
    return (started_utc - NIGHT).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run of a store.

    Attributes:
        run: Its folder; None for a run without one.
        name: A name that no other run of the same triage has: its store, its test and the time of its start.
        night: Its night: the date on which its night began; see `night_of`.
        line: The case of its suite without the number of the repetition, or its test: runs of one line are comparable.
        system: The system under test.
        software: The program under test: systems that are views of one program share it.
        release: The version of the program; empty if it is unknown.
        seed: The root seed, as text; empty if it is unknown.
        reproduce: The command that runs it again, from its files; empty if it is unknown. It is shown, and never started.
        size: How much is in the run: the number of its planned faults, and the length of its workload in seconds.
        repeats: Whether its seed repeats it, as in the simulator: a second run with the same command is no further trial.
    """

    run: Run | None
    name: str
    night: date
    line: str
    system: str
    software: str
    release: str = ""
    seed: str = ""
    reproduce: str = ""
    size: tuple[int, float] = (0, 0.0)
    repeats: bool = False

    @property
    def identity(self) -> tuple[str, ...]:
        """Returns what two runs share that are one trial."""
        return (
            ("seed", self.reproduce, self.software, self.release)
            if self.repeats and self.reproduce
            else ("run", self.name)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A run that is not as expected.

    Attributes:
        trial: The run.
        signature: Its signature.
        symptom: Its symptom.
        repairs: The names of the known defects that its build has and that a rebuild can repair, such as `--mend 4`; empty for
            systems that do not run in the simulator; None if they are unknown, as of an earlier night.
    """

    trial: Trial
    signature: Signature
    symptom: Symptom
    repairs: Sequence[str] | None = ()

    @property
    def name(self) -> str:
        """Returns the name of its run."""
        return self.trial.name
