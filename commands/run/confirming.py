"""The same test on real nodes, for a run of the simulator: what must change there, and the command that runs it.

What is simulated is not what is shipped, so a find of the simulator is confirmed on real nodes. The printed command must run
there as it is. So the faults change where real nodes need it (`nemesis.real_nodes`), and a sentence names each change.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import nemesis.planning
from clusters.options import SIMULATED
from clusters.sim.threads import Threads
from commands.options import choosing, subjects
from commands.options.run_options import reproduce_line
from harness.errors import InputError
from nemesis import real_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from commands.options.compose import Settled
    from commands.options.run_options import RunOptions

LOCAL: Final = "local"
LONGER: Final = 1.25  # the factor by which a workload gets longer until its longer faults fit into it
MOST_LONGER: Final = 12  # times that factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """How to run the test of a simulated run on real nodes.

    Attributes:
        line: The command.
        changes: A sentence for each change that real nodes need.
    """

    line: str
    changes: Sequence[str]


def confirmation(settled: Settled, run: Path) -> Confirmation | None:
    """Returns how to confirm a simulated run on real nodes; None if its system runs only in the simulator, or it ran there.

    Args:
        settled: The options of the run.
        run: Its folder. A run whose plan comes from a file that real nodes cannot carry out is replayed from there.
    """
    options = settled.options
    placed = subjects.placed(options).type
    if options.cluster.cluster_kind != SIMULATED or (placed.simulated and placed is options.system.type):
        return None
    if settled.given is None:
        options, changes = _drawn(settled)
        return Confirmation(line=reproduce_line(options, settled.sources), changes=changes)
    _, changes = real_nodes.changed_plan(settled.given)
    if not changes:
        return Confirmation(line=reproduce_line(on_local_nodes(options), settled.sources), changes=())
    line = shlex.join(["labrys", "replay", str(run), "--cluster", LOCAL, *_own_places(options)])
    return Confirmation(line=line, changes=changes)


def on_local_nodes(options: RunOptions) -> RunOptions:
    """Returns the options of a simulated run on local nodes, without those of simulated threads and of their start."""
    return options.having({"cluster_kind": LOCAL, "carrier": None, subjects.START_SEED: None, **asdict(Threads())})


def _drawn(settled: Settled) -> tuple[RunOptions, list[str]]:
    """Returns the options on local nodes that draw a plan for real nodes, and a sentence for each change.

    Longer faults may need a longer workload; it gets longer until the plan has room for each kind.
    """
    changes, sentences = real_nodes.changed_options(settled.options.faults)
    options = on_local_nodes(settled.options).having(changes)
    usual_s = options.load.time_limit
    for times in range(MOST_LONGER + 1):
        limit_s = float(round(usual_s * LONGER**times))
        try:
            nemesis.planning.check(
                options.faults,
                where=settled.layout,
                seed=options.seed,
                time_limit_s=limit_s if times else usual_s,
                given=None,
            )
        except InputError:
            continue
        if times:
            options = options.having({"time_limit": limit_s})
            sentences.append(f"It has --time-limit {limit_s:g} in place of {usual_s:g}, so that its faults have room.")
        break
    return options, sentences


def _own_places(options: RunOptions) -> list[str]:
    """Returns the options that name a system and a workload of the user's own, which a replay never takes from a run."""
    names = {choosing.SYSTEM: options.system.name, choosing.WORKLOAD: options.workload.name}
    return [
        word
        for option in options.click_options()
        if ":" in names.get(str(option.name), "")
        for word in (option.opts[0], names[str(option.name)])
    ]
