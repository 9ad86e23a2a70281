"""The model of a broker group: `clusters.systems.rocketmq.workloads.group` as a model of the checker.

Every answer of a controller is an observation, refusals too. A client returns the whole answer as the result of an `ok`
operation, whatever its code is. So the answer of a completed operation must equal that of `respond`. An operation without an
answer may take effect at any later time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from checker.errors import ModelError
from checker.identity import same
from checker.models.base import Call, Inconsistent, Model
from clusters.systems.rocketmq.workloads.group import FUNCTIONS, MASTER_NOT_AVAILABLE, READS, SUCCESS, Group, respond
from harness.console.documents import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Operation, Value

_MIN, _MAX = -(2**63), 2**63 - 1
MAX_IDS = 1000


class BrokerGroup(Model):
    """A broker group of RocketMQ's controller. Every answer is a result, refusals too."""

    name: ClassVar[str] = "broker-group"
    initial = Group()

    def step(self, state: Group, op: Call) -> Group | Inconsistent:
        """See `Model`."""
        after, answer = respond(state, op.f, op.argument)
        if op.ok and not same(op.result, answer):
            return Inconsistent(f"{described(state)} answers {short(answer)}")
        return after

    def observes(self, op: Call) -> bool:
        """See `Model`: reads and refusals, except a refused election that deposes the master."""
        if op.f in READS:
            return True
        return op.ok and isinstance(op.result, dict) and op.result.get("code") not in (SUCCESS, MASTER_NOT_AVAILABLE)

    def silent(self, op: Call) -> bool:
        """See `Model`."""
        return op.f in READS and not op.ok

    def describe(self, state: Group) -> Mapping[str, Value]:
        """See `Model`."""
        return {
            "replicas": None if state.replicas is None else [list(replica) for replica in state.replicas],
            "next": state.next_id,
            "sync": None if state.sync is None else state.sync._asdict(),
            "live": [list(live) for live in state.live],
        }

    def call(self, operation: Operation) -> Call:
        """Returns the operation in the form for `step`.

        Raises:
            ModelError: A broker group has no such operation, or the argument is bad.
        """
        check_argument(operation.f, operation.value)
        return super().call(operation)


def check_argument(f: str, argument: Value) -> None:
    """Checks the argument of a function, since a foreign history can have anything.

    Raises:
        ModelError: The function or the type of the argument is wrong.
    """
    wanted = FUNCTIONS.get(f)
    if wanted is None:
        raise ModelError(f"model {BrokerGroup.name}: expected one of {', '.join(FUNCTIONS)}, found {shown(f)}")
    if not wanted:
        if argument is not None:
            raise ModelError(f"model {BrokerGroup.name}: expected null as the argument of {f}, found {shown(argument)}")
        return
    if (
        not isinstance(argument, dict)
        or argument.keys() != wanted.keys()
        or not all(_fits(argument[name], kind) for name, kind in wanted.items())
    ):
        fields = ", ".join(f"{name} ({_KINDS[kind]})" for name, kind in wanted.items())
        raise ModelError(
            f"model {BrokerGroup.name}: expected a map of {fields} as the argument of {f}, found {shown(argument)}"
        )


_KINDS: Mapping[type, str] = {int: "an integer", str: "a text", bool: "true or false", list: "a list of integers"}


def _fits(value: Value, kind: type) -> bool:
    if kind is list:
        return isinstance(value, list | tuple) and len(value) <= MAX_IDS and all(_fits(member, int) for member in value)
    if kind is int:
        return type(value) is int and _MIN <= value <= _MAX
    return type(value) is kind


def short(answer: Any) -> str:
    """Returns an answer as a text of at most 300 characters."""
    if not isinstance(answer, dict):
        return shown(answer)
    return ", ".join(f"{name} {value}" for name, value in answer.items())[:300]


def described(group: Group) -> str:
    """Returns a group as a text."""
    if group.replicas is None:
        return "a group without brokers"
    ids = ", ".join(str(replica.id) for replica in group.replicas)
    sync = group.sync
    if sync is None or sync.master_epoch == 0:
        return f"a group with the brokers {ids}"
    master = f"master {sync.master}" if sync.master is not None else "no master"
    return f"a group with the brokers {ids} and {master} in epoch {sync.master_epoch}"
