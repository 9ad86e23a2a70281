"""What the disk of a node may have after a loss of power at a step, and which of these states are the same.

A file system may lose any set of the changes of contents that no sync has made durable, and the last write that survives may
be there in part; see ALICE (Pillai et al., OSDI 2014). Changes of names are apart from those. They go through a journal: if one
is lost, so are all later ones. A step with n such changes has up to 2^n states. `enumerate_states` returns those that defects
need: nothing and everything lost, each beginning of the changes, each change alone lost or alone kept, names without contents,
contents without names, and a torn write.

Two states are the same if the disk has the same changes, and nothing has happened outside of the node between them. For the run
that goes on afterwards, they differ only in the instants between the two steps.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from harness.randomness import stream
from harness.units import NS_PER_MS, NS_PER_US
from harness.world import ANY_STEP, SYNCING, Losing
from nemesis.disksteps import ANY_CALL, CALLS, WALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.world import DiskStep, DiskSteps

SYNC = "sync"
EACH = (ANY_STEP, "*")
# The call that stalls is one of so many: the first one would mostly be of a thread that a timer wakes.
MOST_CALLS = {ANY_CALL: 200, WALL: 20}
NUMBER = re.compile(r"\d[0-9a-f]*")  # in names of files


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnStall:
    """When a thread of a node stalls.

    Attributes:
        after_us: The microseconds of the workload after which calls of the node count.
        calls: Which calls count: any, or only reads of the wall clock.
        nth: The number of the call before which its thread stalls, from 1.
        length_ms: For how many milliseconds it stalls at most.
    """

    after_us: int
    calls: str
    nth: int
    length_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashState:
    """A node without power right after a step, with what is left on its disk.

    Attributes:
        step: The step.
        nth: Its number among the steps of the node since the workload began, from 1; those right before syncs have their own.
        of_file: Its number among the steps of the node with its call and its file since then.
        losing: What is lost.
        words: What is lost, in words.
        rank: Its place among the states of the step, from 0; those with low ranks show most defects.
        starts: How often the node starts before its steps count; 0: they count from the begin of the workload.
        first: The loss of power from which the node recovers when it makes the step; None: it does not recover.
        down_s: How long the nodes are without power at least.
        longer_s: How long they are, if nothing succeeded meanwhile, because they had the leader; 0: not longer.
        stall: When a thread of each node that loses power stalls before; None: none does.
    """

    step: DiskStep
    nth: int
    of_file: int
    losing: Losing
    words: str
    rank: int
    starts: int = 0
    first: CrashState | None = None
    down_s: float = 0.0
    longer_s: float = 0.0
    stall: DrawnStall | None = None

    @property
    def kind(self) -> tuple[str, str, str]:
        """Returns what it shares with other states: the call, the file and the loss in words, without numbers."""
        return self.step.call, NUMBER.sub("#", self.step.file), NUMBER.sub("#", self.words)

    @property
    def losses(self) -> Sequence[CrashState]:
        """Returns the losses of power up to this one, in their order."""
        return [self] if self.first is None else [*self.first.losses, self]


class Image(NamedTuple):
    """What makes two states the same: the newest change that survives, those lost before it, and what happened elsewhere."""

    node: str
    newest: int
    lost: frozenset[int]
    torn: bool
    others: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Enumerated:
    """The states of a run.

    Attributes:
        steps: The steps.
        states: The states to visit, in the order of the steps.
        merged: How many states were the same as one of these.
        left_out: How many were left out, because a step had more than the limit.
    """

    steps: Sequence[DiskStep]
    states: Sequence[CrashState]
    merged: int
    left_out: int


def enumerate_states(
    steps: DiskSteps,
    *,
    until_ns: int,
    most: int,
    one: bool = True,
    at: tuple[str, str] = EACH,
    since_ns: Mapping[str, int] | None = None,
) -> Enumerated:
    """Returns the states of the steps of a run.

    Args:
        steps: All steps of the run. Those before the workload do not count.
        until_ns: The time of the world from which steps do not count.
        most: The most states of a step.
        one: Whether one node loses power. If several do, they lose the same: nothing, or all that is not durable.
        at: The kind of the steps whose states are visited, and a glob pattern of their files.
        since_ns: The nodes whose steps count, and from which time of the world on. None: those of all nodes.
    """
    numbers: dict[tuple[str, bool], int] = {}
    of_files: Counter[tuple[str, str, str]] = Counter()
    changes: dict[str, list[int]] = {}
    states: list[CrashState] = []
    seen: set[Image] = set()
    merged = left_out = 0
    counting: list[DiskStep] = []
    for index, step in enumerate(steps.noted):
        made = changes.setdefault(step.node, [])
        if step.call not in {SYNC, SYNCING}:
            made.append(step.number)
        if index < steps.before or step.time_ns >= until_ns:
            continue
        if since_ns is not None and step.time_ns < since_ns.get(step.node, until_ns):
            continue
        counted = step.node, step.call == SYNCING
        nth = numbers[counted] = numbers.get(counted, 0) + 1
        of_files[step.node, step.call, step.file] += 1
        if not step.fits(*at):
            continue
        counting.append(step)
        of_step = 0
        for losing, words in _losses(step, one=one):
            if not _is_possible(step, losing):
                continue
            image = _image(step, losing, made)
            if image in seen:
                merged += 1
            elif of_step == most:
                left_out += 1
            else:
                seen.add(image)
                states.append(
                    CrashState(
                        step=step,
                        nth=nth,
                        of_file=of_files[step.node, step.call, step.file],
                        losing=losing,
                        words=words,
                        rank=of_step,
                    )
                )
                of_step += 1
    return Enumerated(steps=counting, states=states, merged=merged, left_out=left_out)


def of_recovery(
    first: CrashState,
    steps: DiskSteps,
    *,
    nodes: Sequence[str],
    within_ns: int,
    most: int,
    one: bool,
    at: tuple[str, str] = EACH,
) -> Enumerated:
    """Returns the states of the steps with which nodes recover from a loss of power.

    Args:
        first: The loss of power.
        steps: All steps of the run with it.
        nodes: The nodes that lost power.
        within_ns: How long after their restart steps count.
        most: The most states of a step.
        one: As in `enumerate_states`.
        at: As in `enumerate_states`.
    """
    starts = {node: [at_ns for name, at_ns in steps.starts if name == node] for node in nodes}
    numbers = {node: sum(at_ns <= first.step.time_ns for at_ns in times) for node, times in starts.items()}
    since_ns = {node: times[numbers[node]] for node, times in starts.items() if numbers[node] < len(times)}
    if not since_ns:
        return Enumerated(steps=(), states=(), merged=0, left_out=0)
    until_ns = min(since_ns.values()) + within_ns
    enumerated = enumerate_states(steps, until_ns=until_ns, most=most, one=one, at=at, since_ns=since_ns)
    states = [replace(state, starts=numbers[state.step.node] + 1, first=first) for state in enumerated.states]
    return replace(enumerated, states=states)


def with_stalls(
    states: Sequence[CrashState], *, length_ms: int, tries: int, since_ns: int, seed: int | None
) -> list[CrashState]:
    """Returns each state several times, each with another stall of a thread before the step.

    Calls count from at most half of the stall before the step on, so that the thread mostly still stalls at the step.

    Args:
        states: The states.
        length_ms: The milliseconds for which a thread stalls at most.
        tries: How often each state is there.
        since_ns: The time of the world at which the wait for a step begins.
        seed: That of the run.
    """
    assert seed is not None  # noqa: S101 - `_settled` draws one
    chance = stream(seed, "crash/stalls")

    def drawn(state: CrashState) -> DrawnStall:
        after_ns = max(0, state.step.time_ns - since_ns - int(chance.random() * length_ms / 2 * NS_PER_MS))
        calls = chance.choice(CALLS)
        nth = 1 + int(chance.random() * MOST_CALLS[calls])
        return DrawnStall(after_us=after_ns // NS_PER_US, calls=calls, nth=nth, length_ms=length_ms)

    return [replace(state, stall=drawn(state)) for state in states for _ in range(tries)]


def in_order(states: Sequence[CrashState], seed: int | None) -> list[CrashState]:
    """Returns states in the order of the visits: first one of each kind, those that show most defects before others.

    Those of a kind come in a drawn order. So states that differ much come soon, whatever the time limit is.
    """
    assert seed is not None  # noqa: S101 - `_settled` draws one
    stream(seed, "crash/order").shuffle(ordered := [*states])
    before: Counter[tuple[str, str, str]] = Counter()
    places: list[tuple[int, int, CrashState]] = []
    for state in sorted(ordered, key=lambda state: state.rank):
        places.append((before[state.kind], state.rank, state))
        before[state.kind] += 1
    return [state for *_, state in sorted(places, key=lambda placed: placed[:2])]


def _losses(step: DiskStep, *, one: bool) -> Iterator[tuple[Losing, str]]:
    """Yields what may be lost at a step, those first that show most defects."""
    count = len(step.unsynced)
    everything = frozenset(range(1, count + 1))
    yield Losing(changes=frozenset()), "nothing is lost"
    yield Losing(), "all that was not synced is lost"
    if count and step.call == "write" and step.unsynced[-1].number == step.number:
        yield Losing(changes=frozenset(), torn=True), "the last write is there in part"
    if not one:
        return
    # Places count from the newest change.
    of_names = frozenset(change for change in everything if step.unsynced[-change].names)
    if of_names and of_names != everything:
        yield Losing(changes=of_names), "changes of names are lost"
        yield Losing(changes=everything - of_names), "changes of contents are lost"
    of_contents = [(change, step.unsynced[-change].file) for change in everything - of_names]
    for file in sorted({file for _, file in of_contents}):
        of_file = frozenset(change for change, of in of_contents if of == file)
        if of_file != everything:
            yield Losing(changes=of_file), f"changes of {file} are lost"
            yield Losing(changes=everything - of_names - of_file), f"changes of other files than {file} are lost"
    for index in range(1, count + 1):
        yield Losing(changes=frozenset({index})), f"change {index} from the end is lost"
        yield Losing(changes=frozenset(range(1, index + 1))), f"the last {index} changes are lost"
        yield Losing(changes=everything - {index}), f"only change {index} from the end is not lost"


def _is_possible(step: DiskStep, losing: Losing) -> bool:
    """Returns whether the file system allows a state: a change of names is not there without those before it."""
    if losing.changes is None:
        return True
    of_names = [index for index in range(1, len(step.unsynced) + 1) if step.unsynced[-index].names]
    lost = [index in losing.changes for index in of_names]  # the newest first
    return lost == sorted(lost, reverse=True)


def _image(step: DiskStep, losing: Losing, made: Sequence[int]) -> Image:
    """Returns what a state is; `made` has the numbers of all changes of the node so far."""
    count = len(step.unsynced)
    places = range(1, count + 1) if losing.changes is None else losing.changes
    lost = {step.unsynced[-index].number for index in places}
    newest = next((number for number in reversed(made) if number not in lost), 0)
    return Image(
        node=step.node,
        newest=newest,
        lost=frozenset(number for number in lost if number < newest),
        torn=losing.torn,
        others=step.others,
    )
