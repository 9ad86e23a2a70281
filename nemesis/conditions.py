"""The built-in conditions with which faults begin, without those on statuses; `nemesis.builtin` names all.

They watch from the planned start of their fault on: the logs, which the nodes filter; the messages of a simulated world; and
the operations of the clients. A line is one of a possible target of the fault. An operation of any client counts.
"""

from __future__ import annotations

import abc
import asyncio
import functools
import json
from typing import TYPE_CHECKING, Any, ClassVar

from harness.capabilities import SIMULATED, SIMULATED_MESSAGES
from harness.console.plain import counted, name, one_line
from harness.console.suggest import did_you_mean
from harness.errors import InputError
from harness.faults import Fired
from harness.op import NEMESIS, OpType
from nemesis import loglines
from nemesis.errors import FaultError, PlanError
from nemesis.fault import brief
from nemesis.options import integer, text
from nemesis.triggers import Condition

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.faults import Trigger
    from harness.node import Node
    from harness.op import Op, Value
    from harness.traits import LogLine
    from harness.world import World
    from nemesis.field import Field
    from nemesis.options import Option
    from nemesis.triggers import Subject

EVENT_POLL_S = 0.005
AGAIN_S = 0.5  # after a node could not be asked for its log
MAX_LINE = 300
MAX_VALUE = 60
MAX_COUNT = 1_000_000


class RareMessageSent(Condition):
    """A rare message from or to a possible target. Without one, it fires at its limit."""

    SUMMARY = (
        "A rare message between simulated nodes, from or to a possible target; or the limit, without such a message."
    )

    ALWAYS = True
    ONLY_SIMULATED = True

    @classmethod
    def lacks(cls, node: str, can: Capabilities) -> str | None:
        """Only simulated nodes show their messages."""
        if SIMULATED in can.available and SIMULATED_MESSAGES in can.missing:
            why = can.missing[SIMULATED_MESSAGES]
            return f"no fault can wait for a message of {node}, because {why}; leave out --fault-wait"
        if SIMULATED in can.available:
            return None
        return f"{node} does not show Labrys its messages, so no fault can wait for one; use --cluster sim, or no --fault-wait"

    @classmethod
    def prepare(cls, trigger: Trigger, field: Field, world: World | None) -> None:  # noqa: ARG003
        """Lets the world count messages from the start, as rare ones are those of which there were few."""
        if world is not None:
            world.count_messages()

    async def fires(self) -> Fired:
        """Waits for the message, or for the limit."""
        if self.world is None:
            raise FaultError("real nodes do not show their messages; use another trigger, `labrys faults` lists them")
        message = await self.world.rare_message(frozenset(self.targets), self.trigger.limit_s)
        now_ns = self.sight.clock.now_ns()
        if message is None:
            return Fired(time_ns=now_ns, what=f"without a rare message in {self.trigger.limit_s:g} s")
        when = "before" if message.held else "after"
        return Fired(time_ns=now_ns, what=f"{when} {message.kind} from {message.source} to {message.target}")


class LogLineAppears(Condition):
    """A line in the log of a possible target, or of another node, by the name that the system gives it."""

    SUMMARY = (
        "A line in the log of a possible target or of a named node, e.g. about a snapshot; the system names such lines."
    )
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "line": text(None, "The name of the line in the system; `labrys faults log-line` lists them."),
        "on": text(None, "The node in whose log the line is; if not given, the possible targets.", needed=False),
    }
    NAMES_NODE = True

    @classmethod
    def drawn(cls, subject: Subject) -> Sequence[Mapping[str, Value]]:
        """Each line that the system names."""
        return [{"line": line} for line in subject.log_lines]

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._unread: dict[str, Exception] = {}  # the error of each log that could not be read the last time

    @classmethod
    def check(cls, trigger: Trigger, subject: Subject) -> None:
        """The system must name the line."""
        line = trigger.parameters["line"]
        if line not in subject.log_lines:
            named = did_you_mean(line, subject.log_lines) if subject.log_lines else "It names none (`log_lines`)."
            raise PlanError(f"the system {subject.system} names no log line {line!r}. {named}")

    @classmethod
    def prepare(cls, trigger: Trigger, field: Field, world: World | None) -> None:  # noqa: ARG003
        """The system must name the line, its log must be that of a process, and a named node must be one of the run.

        Raises:
            InputError: It is not.
        """
        line = _named_line(field, trigger)
        check_on(trigger, field, "a log line")
        logs = [path for node in field.nodes for path in field.system.log_files(node)]
        if line.path not in logs:
            raise InputError(
                f"the line {trigger.parameters['line']} of {field.system.name} is in {line.path}, which is no log of its "
                f"processes: {', '.join(dict.fromkeys(logs))}"
            )

    async def wait(self) -> Fired | None:
        """Waits for the line.

        Raises:
            FaultError: There was none, and a log could not be read in the end.
        """
        fired = await super().wait()
        if fired is None and self._unread:
            raise FaultError(f"a log could not be read: {'; '.join(map(brief, self._unread.values()))}")
        return fired

    async def fires(self) -> Fired:
        """Follows the logs of all possible targets, or the one of the named node."""
        line = _named_line(self.field, self.trigger)
        on = self.trigger.parameters.get("on")
        followed = self.targets if on is None else (on,)
        role = self.role if on is None else None  # the line may be one of another role
        if self.world is not None:
            node, line_text = await self.world.log_line(frozenset(followed), line.pattern)
            return self._fired(node, line_text, line)
        nodes = [self.field.node(node_name) for node_name in followed]
        having = [candidate for candidate in nodes if line.path in self.field.system.log_files(candidate, role)]
        return await first(self._follow(candidate, line) for candidate in having)

    async def _follow(self, node: Node, line: LogLine) -> Fired:
        """Follows one log. It goes on after errors, because the node may come back."""
        position: loglines.Place | None = None
        while True:
            action = functools.partial(_look, self.field, line, position)
            looked = await self.field.each([node.name], action)
            if looked.failed:
                self._unread |= looked.failed
                await asyncio.sleep(AGAIN_S)
                continue
            self._unread.pop(node.name, None)
            seen = looked.done[node.name]
            if seen.line is not None:
                return self._fired(node.name, seen.line, line)
            position = seen.place

    def _fired(self, node: str, line_text: str, line: LogLine) -> Fired:
        return Fired(
            time_ns=self.sight.clock.now_ns(),
            what=f"with a log line of {node}: {name(one_line(line_text), MAX_LINE)}",
            measured={"node": node, "line": line_text, "log": line.path},
        )


class _EventCondition(Condition):
    """A condition on the operations of the clients. It names the node that answered."""

    NAMES_NODE = True

    async def fires(self) -> Fired:
        """Looks at each completion from now on."""
        events, clock = self.sight.history.ops, self.sight.clock
        seen = len(events)
        while True:
            for event in events[seen:]:
                if event.process == NEMESIS or event.type is OpType.INVOKE:
                    continue
                what = self.met(event)
                if what is not None:
                    return Fired(
                        time_ns=clock.now_ns(),
                        what=f"{what}: {_called(event)}",
                        measured={"node": event.via or event.node, "index": event.index, "process": event.process},
                    )
            seen = len(events)
            await clock.sleep_until_s(clock.now_s() + EVENT_POLL_S)

    @abc.abstractmethod
    def met(self, event: Op) -> str | None:
        """Returns the words for `Fired` if a completion meets the condition; None if not. It gets all completions in order."""


class OkAfterFailure(_EventCondition):
    """The first operation that succeeds after failures."""

    SUMMARY = "The first operation that succeeds after failures in a row; it names the node that answered."
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "failures": integer(1, 1, MAX_COUNT, "The least number of failures in a row, of all clients.")
    }
    _failures = 0

    def met(self, event: Op) -> str | None:
        """Counts failures. An answer of a working system is none, and a refusal counts as neither."""
        code = (event.error or "").partition(":")[0]
        system = self.field.system
        if event.type is OpType.FAIL and code in system.refusals:
            return None
        if event.type is OpType.INFO or (event.type is OpType.FAIL and code not in system.answers):
            self._failures += 1
            return None
        failures, self._failures = self._failures, 0
        if event.type is not OpType.OK or failures < self.trigger.parameters["failures"]:
            return None
        return f"with the first ok after {counted(failures, 'failure')}"


class OperationSucceeds(_EventCondition):
    """An operation of a function that succeeds."""

    SUMMARY = "The n-th operation of a function that succeeds; it names the node that answered."
    OPTIONS: ClassVar[Mapping[str, Option]] = {
        "f": text(None, "The function of the workload, e.g. write."),
        "n": integer(1, 1, MAX_COUNT, "Its number among those that succeed after the planned start of the fault."),
    }
    _count = 0

    @classmethod
    def drawn(cls, subject: Subject) -> Sequence[Mapping[str, Value]]:
        """The next operation of each function."""
        return [{"f": f} for f in subject.functions]

    @classmethod
    def check(cls, trigger: Trigger, subject: Subject) -> None:
        """The workload must have the function."""
        f = trigger.parameters["f"]
        if f not in subject.functions:
            raise PlanError(
                f"the workload {subject.workload} has no function {f!r}. {did_you_mean(f, subject.functions)}"
            )

    def met(self, event: Op) -> str | None:
        """Counts the operations."""
        if event.type is not OpType.OK or event.f != self.trigger.parameters["f"]:
            return None
        self._count += 1
        return None if self._count < self.trigger.parameters["n"] else f"with ok {self._count} of {event.f}"


def check_on(trigger: Trigger, field: Field, what: str) -> None:
    """Refuses a trigger that names a node which is none of the run.

    Raises:
        InputError: It does.
    """
    on = trigger.parameters.get("on")
    names = [node.name for node in field.nodes]
    if on is not None and on not in names:
        raise InputError(f"the trigger {trigger} waits for {what} of {on}, and the nodes are: {', '.join(names)}")


def _named_line(field: Field, trigger: Trigger) -> LogLine:
    """Returns the line that a trigger names.

    Raises:
        InputError: The system names no such line.
    """
    named = trigger.parameters["line"]
    lines = field.system.log_lines
    if named not in lines:
        raise InputError(
            f"the system {field.system.name} names no log line {named!r}; its lines are: {', '.join(lines) or 'none'}"
        )
    return lines[named]


def _look(field: Field, line: LogLine, position: loglines.Place | None, node: Node) -> loglines.Look:
    return loglines.look(field.shell(node), line.path, line.pattern, position)


async def first(waits: Iterable[Coroutine[Any, Any, Fired]]) -> Fired:
    """Returns the result of the coroutine that ends first, and cancels the others. Waits for ever if there is none."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        if not tasks:
            await asyncio.Event().wait()
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task in done).result()
    finally:
        for task in tasks:
            task.cancel()


def _called(event: Op) -> str:
    """Returns an operation in words, e.g. `write 5 of key 3 by process 4 on n2`."""
    value = "" if event.value is None else f" {name(json.dumps(event.value), MAX_VALUE)}"
    key = "" if event.key is None else f" of key {name(event.key, MAX_VALUE)}"
    return f"{event.f}{value}{key} by process {event.process} on {event.via or event.node}"
