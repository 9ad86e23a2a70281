"""The kinds of faults by name, with the names that Jepsen and OpenChaos give them, and what they need.

A kind is a class of faults and the target it has by default: `leader-kill` is `kill` aimed at the leader. On the command
line a kind may be aimed anew (`kill:minority`, `pause:n1+n3`). An unknown name is an error with a suggestion. A kind that a
node cannot take is refused before the run, with a sentence that names the node and what it lacks; `all` leaves such a kind out
and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.documents import shown
from harness.suggest import did_you_mean
from nemesis import options as opt
from nemesis import targets as tgt
from nemesis.errors import PlanError
from nemesis.faults import clock, disk, egress, files, leadership, loss, partitions, process, succession

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.node import Node
    from harness.op import Value
    from nemesis.fault import Fault

ALL_KINDS = "all"
NO_KIND = "none"
TARGET_SEPARATOR = ":"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of fault.

    Attributes:
        name: As in plans, histories and reports.
        fault: What carries it out.
        target: Its target where none is asked for; None: one must be asked for.
        aliases: Other names it is known by.
        in_all: Whether `all` means it too.
    """

    name: str
    fault: type[Fault]
    target: str | None
    aliases: tuple[str, ...] = ()
    in_all: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A kind as it was asked for.

    Attributes:
        kind: The kind.
        target: Its target: a spec or names.
        options: Its options, settled.
        label: The name of its stream of draws: as it was asked for.
        by_all: Whether only `all` asks for it; then a plan may leave it out.
    """

    kind: Kind
    target: str | tuple[str, ...]
    options: Mapping[str, Value] = field(default_factory=dict)
    label: str
    by_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A kind that `all` left out of a plan.

    Attributes:
        kind: Its name.
        nodes: The nodes that lack something for it; empty if the reason is another one.
        missing: What they lack, with what each node said; or the other reason.
    """

    kind: str
    nodes: tuple[str, ...]
    missing: str

    @property
    def reason(self) -> str:
        """Returns why it was left out, in words."""
        if not self.nodes:
            return self.missing
        return f"{', '.join(self.nodes)} {'lacks' if len(self.nodes) == 1 else 'lack'} {self.missing}"


_LIST = (
    Kind(name="partition-random-node", fault=partitions.RandomNode, target=tgt.ONE, aliases=("partition-node",)),
    Kind(
        name="partition-random-halves",
        fault=partitions.RandomHalves,
        target=tgt.RANDOM,
        aliases=("random-partition", "partition"),
    ),
    Kind(name="partition-halves", fault=partitions.Halves, target=tgt.ALL),
    Kind(name="partition-majorities-ring", fault=partitions.Ring, target=tgt.RANDOM, aliases=("majorities-ring",)),
    Kind(name="bridge", fault=partitions.Bridge, target=tgt.RANDOM, aliases=("partition-bridge",)),
    Kind(name="partition-leader", fault=partitions.Leader, target=tgt.LEADER, aliases=("leader-partition",)),
    Kind(name="partition-one-way", fault=partitions.OneWay, target=tgt.RANDOM, aliases=("partition-asymmetric",)),
    Kind(
        name="partition-fixed",
        fault=partitions.Fixed,
        target=tgt.ALL,
        aliases=("fixed-partition",),
        in_all=False,
    ),
    Kind(name="kill", fault=process.Kill, target=tgt.RANDOM, aliases=("random-kill",)),
    Kind(name="leader-kill", fault=process.Kill, target=tgt.LEADER, aliases=("kill-leader",), in_all=False),
    Kind(name="leaders-kill", fault=succession.KillLeaders, target=tgt.LEADER_MINORITY, in_all=False),
    Kind(name="minor-kill", fault=process.Kill, target=tgt.MINORITY, in_all=False),
    Kind(name="major-kill", fault=process.Kill, target=tgt.MAJORITY, in_all=False),
    Kind(name="fixed-kill", fault=process.Kill, target=None, in_all=False),
    Kind(name="crash", fault=process.Crash, target=tgt.RANDOM, aliases=("random-crash",)),
    Kind(name="pause", fault=process.Pause, target=tgt.RANDOM, aliases=("hammer-time", "random-suspend", "suspend")),
    Kind(name="leader-pause", fault=process.Pause, target=tgt.LEADER, aliases=("leader-suspend",), in_all=False),
    Kind(name="minor-pause", fault=process.Pause, target=tgt.MINORITY, aliases=("minor-suspend",), in_all=False),
    Kind(name="major-pause", fault=process.Pause, target=tgt.MAJORITY, aliases=("major-suspend",), in_all=False),
    Kind(name="fixed-pause", fault=process.Pause, target=None, aliases=("fixed-suspend",), in_all=False),
    Kind(name="packet-loss", fault=loss.Loss, target=tgt.RANDOM, aliases=("random-loss", "loss", "flaky")),
    Kind(name="minor-loss", fault=loss.Loss, target=tgt.MINORITY, in_all=False),
    Kind(name="major-loss", fault=loss.Loss, target=tgt.MAJORITY, in_all=False),
    Kind(name="fixed-loss", fault=loss.Loss, target=None, in_all=False),
    Kind(name="packet-delay", fault=egress.Delay, target=tgt.RANDOM, aliases=("random-delay", "delay", "slow")),
    Kind(name="minor-delay", fault=egress.Delay, target=tgt.MINORITY, in_all=False),
    Kind(name="major-delay", fault=egress.Delay, target=tgt.MAJORITY, in_all=False),
    Kind(name="fixed-delay", fault=egress.Delay, target=None, in_all=False),
    Kind(name="packet-duplicate", fault=egress.Duplicate, target=tgt.RANDOM),
    Kind(name="packet-reorder", fault=egress.Reorder, target=tgt.RANDOM),
    Kind(name="packet-corrupt", fault=egress.Corrupt, target=tgt.RANDOM),
    Kind(name="packet-rate", fault=egress.Rate, target=tgt.RANDOM),
    Kind(name="clock-skew", fault=clock.Skew, target=tgt.RANDOM, aliases=("clock-bump", "clock-scrambler")),
    Kind(name="clock-strobe", fault=clock.Strobe, target=tgt.RANDOM),
    Kind(name="power-loss", fault=disk.PowerLoss, target=tgt.ONE),
    Kind(name="disk-full", fault=disk.DiskFull, target=tgt.ONE),
    Kind(name="file-truncate", fault=files.Truncate, target=tgt.ONE, aliases=("truncate-file",), in_all=False),
    Kind(name="file-bitflip", fault=files.BitFlip, target=tgt.ONE, aliases=("bitflip",), in_all=False),
    Kind(name="leadership-transfer", fault=leadership.Transfer, target=tgt.FOLLOWER, aliases=("transfer",)),
)

KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _LIST})
ALIASES: Mapping[str, str] = MappingProxyType({alias: kind.name for kind in _LIST for alias in kind.aliases})


def find_kind(name: str) -> Kind:
    """Returns a kind by its name or an alias.

    Raises:
        PlanError: There is none; with a suggestion.
    """
    kind = KINDS.get(ALIASES.get(name, name))
    if kind is None:
        raise PlanError(f"unknown fault {shown(name)}. {did_you_mean(name, [*KINDS, *ALIASES, ALL_KINDS, NO_KIND])}")
    return kind


def choose(text: str, nodes: Sequence[str], options: Mapping[str, Value] | None = None) -> Choice:
    """Reads one kind as on the command line: `kind` or `kind:target`.

    Args:
        text: What was asked for.
        nodes: The names of all nodes.
        options: The kind's options.

    Raises:
        PlanError: The kind, its target or an option cannot be used.
    """
    name, separator, aim = text.partition(TARGET_SEPARATOR)
    kind = find_kind(name.strip())
    if separator:
        target = tgt.parse_target(aim.strip(), nodes)
    elif kind.target is not None:
        target = kind.target
    else:
        raise PlanError(f"{kind.name} needs the names of its nodes, e.g. {kind.name}:{nodes[0]}")
    target = kind.fault.check_target(kind.name, target, nodes)
    settled = opt.settle(kind.name, kind.fault.OPTIONS, options or {})
    label = f"{kind.name}{separator}{aim.strip()}"
    return Choice(kind=kind, target=target, options=settled, label=label)


def choose_all(
    texts: Iterable[str],
    nodes: Sequence[str],
    *,
    options: Mapping[str, Mapping[str, Value]] | None = None,
    capabilities: Mapping[str, Capabilities] | None = None,
) -> tuple[Choice, ...]:
    """Reads several kinds; each text may hold some, with commas between them.

    `all` means every kind there is, and `none`, by itself, that there is to be no fault.

    Args:
        texts: What was asked for.
        nodes: The names of all nodes.
        options: Options by kind name or alias.
        capabilities: Where they are known, `all` leaves out what these nodes cannot have; see `left_out`.

    Raises:
        PlanError: Something cannot be used, or a kind is asked for twice, or options belong to no kind that is.
    """
    wanted = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    if NO_KIND in wanted:
        if len(wanted) > 1:
            raise PlanError(f"{NO_KIND!r} among the faults excludes all others, and there are {', '.join(wanted)}")
        wanted = []
    given = {find_kind(name).name: values for name, values in (options or {}).items()}
    choices: dict[str, Choice] = {}
    for text in wanted:
        if text == ALL_KINDS:
            able = [kind for kind in KINDS.values() if kind.in_all and not _gaps(kind, capabilities or {})]
            for kind in able:
                choices.setdefault(kind.name, replace(choose(kind.name, nodes, given.get(kind.name)), by_all=True))
            continue
        choice = choose(text, nodes, given.get(find_kind(text.partition(TARGET_SEPARATOR)[0].strip()).name))
        if choice.label in choices and ALL_KINDS not in wanted:
            raise PlanError(f"the fault {choice.label!r} is asked for twice")
        choices[choice.label] = choice
    idle = sorted(given.keys() - {choice.kind.name for choice in choices.values()})
    if idle:
        raise PlanError(f"there are options for {idle[0]}, which is not among the faults that were asked for")
    return tuple(choices.values())


def asks_for_all(text: str) -> bool:
    """Says whether `all` is among the kinds that a text asks for."""
    return ALL_KINDS in (part.strip() for part in text.split(","))


def left_out(capabilities: Mapping[str, Capabilities]) -> tuple[LeftOut, ...]:
    """Returns the kinds that `all` leaves out on these nodes, each with the nodes and what they lack."""
    found = []
    for kind in KINDS.values():
        gaps = _gaps(kind, capabilities) if kind.in_all else []
        if gaps:
            lack = {gap.node for gap in gaps}
            nodes = tuple(node for node in capabilities if node in lack)
            found.append(LeftOut(kind=kind.name, nodes=nodes, missing=_missing(gaps)))
    return tuple(found)


def missing_capabilities(
    kinds: Iterable[str], capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = ()
) -> list[str]:
    """Says what nodes lack for the faults of a run; a run with such a sentence must not start.

    Args:
        kinds: The names of the kinds.
        capabilities: What each node can do, by its name.
        nodes: The nodes; where they have IPv6 addresses, packet faults need `ip6tables` too.

    Returns:
        A sentence for each kind and node that do not go together, naming the node and the missing thing.
    """
    return [line for name in dict.fromkeys(kinds) for line in _lacking(find_kind(name), capabilities, nodes)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """A capability that a kind needs and a node lacks, with what the node said, and the same of what would do instead."""

    capability: str
    node: str
    said: str
    instead: str | None
    instead_said: str


def _gaps(kind: Kind, capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = ()) -> list[_Gap]:
    gaps = []
    for capability in sorted(kind.fault.needs(nodes)):
        other = kind.fault.INSTEAD.get(capability)
        for node, can in capabilities.items():
            if can.available.isdisjoint({capability, other}):
                said = can.missing.get(capability, "not found")
                instead_said = can.missing.get(other, "not found") if other else ""
                gaps.append(_Gap(capability=capability, node=node, said=said, instead=other, instead_said=instead_said))
    return gaps


def _lacking(kind: Kind, capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = ()) -> list[str]:
    return [
        f"{kind.name} needs {gap.capability} on every node, and {gap.node} lacks it: {gap.said}"
        + (f"; nor {gap.instead} instead: {gap.instead_said}" if gap.instead else "")
        for gap in _gaps(kind, capabilities, nodes)
    ]


def _missing(gaps: Sequence[_Gap]) -> str:
    """Returns what nodes lack; nodes that say the same are said once."""
    told: dict[str, dict[str, list[str]]] = {}
    for gap in gaps:
        told.setdefault(gap.capability, {}).setdefault(gap.said, []).append(gap.node)
        if gap.instead:
            told.setdefault(gap.instead, {}).setdefault(gap.instead_said, []).append(gap.node)
    return " and ".join(f"{capability} ({_said(reasons)})" for capability, reasons in told.items())


def _said(reasons: Mapping[str, Sequence[str]]) -> str:
    if len(reasons) == 1:
        return next(iter(reasons))
    return "; ".join(f"{', '.join(nodes)}: {said}" for said, nodes in reasons.items())
