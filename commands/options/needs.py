"""What planted bugs need: `labrys hunt` gives it to its runs, and `labrys test` warns about a run that lacks it.

The declaration of an option says which of its values plant a bug, and what a run needs to show it; see `harness.declare.Needs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commands.options import choosing
from harness.console import sources as opt
from harness.console.plain import listed
from harness.console.terminal import echo
from harness.option_values import planted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from commands.options.compose import Settled
    from commands.options.run_options import RunOptions
    from harness.declare import Needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """Something that a planted bug needs, and that the options of a run do not have.

    Attributes:
        name: The parameter with another value; None for the kinds of faults.
        wanted: What the bug needs, e.g. `--reads lease`.
        found: What the options have instead, e.g. `--reads log`.
        value: A value that fits; None if a hunt cannot set it.
    """

    name: str | None
    wanted: str
    found: str
    value: str | int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """A bug that the options of a run plant.

    Attributes:
        words: The option that plants it, e.g. `--bug lease-too-long`.
        needs: What a run needs to show it.
        flags: The flag of each option of the run, by parameter name.
    """

    words: str
    needs: Needs
    flags: Mapping[str, str]

    def lacks(self, values: Mapping[str, Any]) -> list[Lack]:
        """Returns the options whose values do not fit.

        Args:
            values: The values by parameter name.
        """
        lacking = [
            self._lack(
                name, f"{self.flags[name]} {listed([str(fit) for fit in sorted(fitting)], 'or')}", values, fitting[0]
            )
            for name, fitting in self.needs.options.items()
            if not self.fits(name, values[name])
        ]
        lacking += [
            self._lack(name, f"{self.flags[name]} {least} or more", values, least)
            for name, least in self.needs.at_least.items()
            if not self.fits(name, values[name])
        ]
        workload = values[choosing.WORKLOAD]
        if self.needs.workloads and workload not in self.needs.workloads:
            wanted = f"--workload {listed(self.needs.workloads, 'or')}"
            lacking.append(self._lack(choosing.WORKLOAD, wanted, values, None))
        return lacking

    def _lack(self, name: str, wanted: str, values: Mapping[str, Any], value: str | int | None) -> Lack:
        return Lack(name=name, wanted=wanted, found=f"{self.flags[name]} {opt.as_written(values[name])}", value=value)

    def fits(self, name: str, value: Any) -> bool:
        """Returns whether a run with this value of an option can show the bug."""
        fitting = self.needs.options.get(name)
        return (fitting is None or value in fitting) and (
            name not in self.needs.at_least or value >= self.needs.at_least[name]
        )

    def lacks_faults(self, kinds: Collection[str]) -> list[Lack]:
        """Returns the kinds of faults that a run with these kinds lacks."""
        if not self.needs.faults or self.fitting(kinds):
            return []
        wanted = f"a fault of the kind {listed(self.needs.faults, 'or')}"
        return [Lack(name=None, wanted=wanted, found=f"the faults {', '.join(kinds)}" if kinds else "no faults")]

    def fitting(self, kinds: Collection[str]) -> list[str]:
        """Returns those of some kinds with which a run can show the bug. A kind fits if one with its class does."""
        from nemesis.kinds import find_kind

        classes = {find_kind(kind).fault for kind in self.needs.faults}
        return [kind for kind in kinds if find_kind(kind).fault in classes]


def planted_bugs(options: RunOptions) -> list[PlantedBug]:
    """Returns the bugs that the options plant."""
    values = options.values()
    needed = [
        (name, needs)
        for picked in (options.system, options.workload)
        for name, needs in planted(picked.type.Options, values).items()
    ]
    flags = {str(option.name): option.opts[0] for option in options.click_options()} if needed else {}
    return [PlantedBug(words=f"{flags[name]} {values[name]}", needs=needs, flags=flags) for name, needs in needed]


def warn(settled: Settled) -> None:
    """Prints a line for each planted bug that a run cannot show."""
    values = {**settled.options.values(), "nodes": len(settled.nodes)}
    for bug in planted_bugs(settled.options):
        if not bug.needs.plants:
            continue  # the system says so itself
        lacks = [*bug.lacks(values), *bug.lacks_faults(settled.requested_kinds())]
        if lacks:
            echo(
                f"! this run cannot show {bug.words}: the bug needs {listed([lack.wanted for lack in lacks], 'and')}; "
                f"this run has {listed([lack.found for lack in lacks], 'and')}",
                err=True,
            )
