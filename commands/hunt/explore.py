"""The command `labrys explore`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from commands.options.choosing import SIMULATED_SYSTEM, SYSTEM, ChoosingCommand, NameOptions
from commands.options.run_options import Picked
from harness.console import plugins
from harness.console.documents import parse_json, shown
from harness.console.parameters import Choice, Number, PluginName, Whole
from harness.console.plain import counted, one_line
from harness.console.plain import name as plain_name
from harness.console.terminal import echo
from harness.declare import with_option
from harness.errors import InputError
from harness.op import Invocation
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clusters.sim.explore.cluster import Invariants
    from clusters.sim.explore.found import Bounds, Explored, Happened
    from clusters.sim.explore.nodes import Nodes
    from clusters.sim.system import SimSystem
    from harness.node_states import NodeState
    from harness.op import Operation

DEFAULT_OPERATIONS: Final = "write 1; read"
MAX_OPERATIONS: Final = 16
MAX_TEXT: Final = 160


@click.command("explore", cls=ChoosingCommand)
@with_option(NameOptions, SYSTEM)
@click.option(
    "--workload", type=PluginName(plugins.WORKLOADS), default="register", show_default=True,
    help="The workload whose check decides the history of the clients.",
)  # fmt: skip
@click.option("--nodes", "count", type=Whole(1, 9), default=3, show_default=True, help="The number of nodes.")
@click.option(
    "--operations", default=DEFAULT_OPERATIONS, show_default=True, metavar="'F [VALUE]; ...'",
    help="The operations of clients. Each is invoked at most once, at any time, at any node. A value is JSON.",
)  # fmt: skip
@click.option(
    "--after", default="", metavar="'EVENT; ...'",
    help="Begin after these events, which count for no bound: e.g. 'n1 timer; settle n1,n2; client-0 > n1; n1 > n2'.",
)  # fmt: skip
@click.option("--timers", type=Whole(0, 1000), default=2, show_default=True, help="Up to so many timers fire.")
@click.option("--restarts", type=Whole(0, 100), default=0, show_default=True, help="Up to so many processes restart.")
@click.option(
    "--power-losses", type=Whole(0, 100), default=0, show_default=True,
    help="Up to so many nodes lose power, and restart without what they have not synced.",
)  # fmt: skip
@click.option(
    "--duplicates", type=Whole(0, 100), default=0, show_default=True, help="Up to so many messages arrive twice."
)
@click.option(
    "--one-clock", is_flag=True,
    help="Give all nodes the same clock: of all timers, the one that is due first fires. Messages take no time, or any time.",
)  # fmt: skip
@click.option(
    "--states", type=Whole(1, 1_000_000_000), default=1_000_000, show_default=True,
    help="Give up after so many states. A state takes about 1 kB.",
)  # fmt: skip
@click.option(
    "--minutes", type=Number(0, 100_000, above=True), default=10.0, show_default=True, help="Give up after this time."
)
@click.option(
    "--reduced/--not-reduced", default=True, show_default=True,
    help="Leave out states and events that can show nothing new; docs/guide/explore.md has the rules.",
)  # fmt: skip
@click.option(
    "--format", "output", type=Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
@click.pass_context
def explore(ctx: click.Context, /, **values: Any) -> None:
    """Visits every order of messages, timers, requests and restarts of a simulated system, within bounds.

    It ends with the first violation, which no shorter order of events has, or with the number of states. Any message may be
    lost. Clocks run at any speed. A violation is a history that the workload's check refuses, two leaders in one term,
    different committed entries at one index, or a process that an exception ends. Exit codes: 1 there is a violation, 2 the
    search gave up, 0 it visited every state within the bounds.
    """
    from clusters.sim.explore.found import Bounds

    bounds = Bounds(
        timers=values["timers"],
        restarts=values["restarts"],
        power_losses=values["power_losses"],
        duplicates=values["duplicates"],
        states=values["states"],
        seconds=60 * values["minutes"],
        reduced=values["reduced"],
        one_clock=values["one_clock"],
    )
    subject = _Subject.of(values)
    nodes, invariants, explored = subject.searched(bounds, lambda text: echo(f"· {text}", err=True))
    _print_json(nodes, explored) if values["output"] == "json" else _print(nodes, invariants, explored)
    ctx.exit(_verdict(explored).exit_code)


for _parameter in explore.params:
    if _parameter.name == SYSTEM:
        _parameter.default = SIMULATED_SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What a search visits.

    Attributes:
        system: The system, with its options.
        workload: The workload, with its options.
        names: The names of the nodes.
        invocations: The operations of the clients.
        after: The events before the search.
    """

    system: Picked
    workload: Picked
    names: Sequence[str]
    invocations: Sequence[Invocation]
    after: str

    @classmethod
    def of(cls, values: dict[str, Any]) -> _Subject:
        """Reads the options.

        Raises:
            InputError: The system is not simulated, does not serve the workload, or an operation is not valid.
        """
        system = Picked.of(plugins.SYSTEMS, values[SYSTEM], values)
        workload = Picked.of(plugins.WORKLOADS, values["workload"], {})
        if not getattr(system.type, "simulated", False):
            raise InputError(
                f"the system {plain_name(system.name)} runs on machines; labrys explore visits a system of the simulator, e.g. "
                f"--system {SIMULATED_SYSTEM}"
            )
        if workload.type.name not in system.type.serves:
            raise InputError(
                f"the system {plain_name(system.name)} serves {', '.join(system.type.serves)}, not "
                f"{plain_name(workload.type.name)}"
            )
        return cls(
            system=system,
            workload=workload,
            names=[f"n{number}" for number in range(1, values["count"] + 1)],
            invocations=_invocations(values["operations"], workload.type.functions),
            after=values["after"],
        )

    def searched(self, bounds: Bounds, say: Callable[[str], object]) -> tuple[Nodes, Invariants, Explored]:
        """Carries out the search.

        Raises:
            InputError: The system cannot be explored.
        """
        from clusters.sim.explore.cluster import Invariants, SearchCluster
        from clusters.sim.explore.form import FormError
        from clusters.sim.explore.history import asked
        from clusters.sim.explore.nodes import Nodes, client_of
        from clusters.sim.explore.search import Search
        from harness.workload import Observed

        cluster = SearchCluster(self.names)
        system: SimSystem = self.system.type.made(
            cluster, self.system.options, self.workload.type.name, self.workload.options
        )
        why_not = system.why_not_explored(one_clock=bounds.one_clock)
        if why_not is not None:
            raise InputError(f"labrys explore cannot visit this system: {why_not}")
        workload = self.workload.type(self.workload.options)
        of_name = {node.name: node for node in cluster.nodes}
        wanted = asked(self.invocations)
        requests = [
            system.request_of(client_of(number), operation.invocation) for number, operation in enumerate(wanted)
        ]
        nodes = Nodes(self.names, lambda name: system.factory(of_name[name]), requests)
        invariants = Invariants(system, cluster)

        def judge(operations: Sequence[Operation]) -> str | None:
            parts = workload.check(operations, Observed()) if operations else ()
            wrong = [part for part in parts if part.verdict is Verdict.INVALID]
            return f"{wrong[0].name}: {one_line(wrong[0].reason)}" if wrong else None

        search = Search(
            nodes,
            wanted,
            bounds=bounds,
            outcome=lambda number, answer: system.outcome_of(wanted[number].invocation, answer),
            judge=judge,
            conflict=invariants.conflict,
            matters=invariants.matters,
            after=self.after,
            alike=[self.names.index(name) for name in system.alike()],
        )

        def tell(states: int, events: int, depth: int) -> None:
            say(f"{counted(states, 'state')}, {counted(events, 'event')}; orders of {counted(depth, 'event')}")

        try:
            explored = search.run(invariants.look, tell, lambda reason: say(f"the search begins anew: {reason}"))
        except FormError as error:
            raise InputError(
                f"labrys explore cannot visit this system: {error}; docs/guide/explore.md has the rules"
            ) from error
        return nodes, invariants, explored


def _invocations(text: str, functions: Any) -> list[Invocation]:
    """Reads the operations.

    Raises:
        InputError: One has an unknown function, or a value that is not JSON, or there are too many.
    """
    invocations = []
    for operation in (part.strip() for part in text.split(";")):
        if not operation:
            continue
        function, _, value = operation.partition(" ")
        if function not in functions:
            raise InputError(
                f"--operations: expected one of {', '.join(functions)}, found {shown(function)}; e.g. '{DEFAULT_OPERATIONS}'"
            )
        invocations.append(
            Invocation(function, parse_json(value, f"--operations: {function}") if value.strip() else None)
        )
    if len(invocations) > MAX_OPERATIONS:
        raise InputError(f"--operations: expected at most {MAX_OPERATIONS} operations, found {len(invocations)}")
    return invocations


def _verdict(explored: Explored) -> Verdict:
    if explored.violation is not None:
        return Verdict.INVALID
    return Verdict.UNKNOWN if explored.left else Verdict.VALID


def _print(nodes: Nodes, invariants: Invariants, explored: Explored) -> None:
    from clusters.sim.explore.nodes import DEAD
    from harness.node_states import ClusterState
    from results.page.story import diverging

    visited = (
        f"{counted(explored.states, 'state')} visited, {counted(explored.events, 'event')} carried out, orders of up to "
        f"{counted(explored.depth, 'event')}, in {explored.seconds:.1f} s"
    )
    if explored.violation is None:
        echo(
            f"no violation: {explored.left}"
            if explored.left
            else "no violation: every state within the bounds was visited"
        )
        echo(visited)
        if not explored.left:
            echo(
                "orders without end: states come back" if explored.orders is None else counted(explored.orders, "order")
            )
        return
    echo(f"violation after {counted(len(explored.violation.events), 'event')}: {explored.violation.reason}")
    echo()
    states: dict[str, NodeState] = {}
    diverged: list[str] = []
    for number, happened in enumerate(explored.violation.events, 1):
        echo(f"{number:4}  {_event(nodes, happened)}")
        for line in happened.step.lines:
            echo(f"        {happened.node} logs: {one_line(line)[:MAX_TEXT]}")
        for operation, answer in happened.step.replies:
            echo(f"        {happened.node} answers client-{operation}: {one_line(repr(answer))[:MAX_TEXT]}")
        if happened.step.state != DEAD:
            states[happened.node] = invariants.state(happened.step.state)
            echo(f"        {_knows(states[happened.node])}")
        before, diverged = diverged, diverging(ClusterState(time_ns=number, nodes=tuple(states.values())))
        for sentence in diverged:
            if sentence not in before:
                echo(f"        {sentence}")
    echo()
    echo(visited)


def _knows(state: NodeState) -> str:
    """Returns the state of a node as one line: what `labrys explain` has in a row."""
    from results.page.story import HEADS, held

    name, *cells = held(state)
    return f"{name}: " + ", ".join(f"{head} {cell}" for head, cell in zip(HEADS[1:], cells, strict=True) if cell)


def _event(nodes: Nodes, happened: Happened) -> str:
    from clusters.sim.explore.nodes import Kind

    match happened.event.kind:
        case Kind.MESSAGE:
            message = nodes.messages[happened.event.number]
            return f"{message.source} → {message.target}  {one_line(repr(message.body))[:MAX_TEXT]}"
        case Kind.REQUEST:
            body = nodes.requests[happened.event.number]
            return f"client-{happened.event.number} → {happened.node}  {one_line(repr(body))[:MAX_TEXT]}"
        case Kind.TIMER:
            return f"{happened.node}  its next timer fires"
        case Kind.RESTART:
            return f"{happened.node}  restarts"
        case Kind.POWER_LOSS:
            return f"{happened.node}  loses power and restarts"


def _print_json(nodes: Nodes, explored: Explored) -> None:
    violation = explored.violation
    document: dict[str, Any] = {
        "verdict": str(_verdict(explored)),
        "left": explored.left,
        "states": explored.states,
        "events": explored.events,
        "depth": explored.depth,
        "orders": explored.orders,
        "node_states": explored.node_states,
        "messages": explored.messages,
        "histories": explored.histories,
        "alike": explored.alike,
        "seconds": round(explored.seconds, 3),
        "violation": None,
    }
    if violation is not None:
        document["violation"] = {
            "reason": violation.reason,
            "events": [
                {
                    "node": happened.node,
                    "event": str(happened.event.kind),
                    "text": _event(nodes, happened),
                    "logs": happened.step.lines,
                }
                for happened in violation.events
            ],
        }
    echo(json.dumps(document, indent=2))
