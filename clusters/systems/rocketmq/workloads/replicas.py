"""Checks that all controllers have the same groups, by their answers to the final reads.

A controller answers from its own memory, and only while it leads. The final reads move the leadership to each controller in
turn, and read the whole state and the next id of every group. No client changes a group then. So each controller must give the
same answers as the one before, with two exceptions:

- In a group with heartbeats, the controllers may have held elections by themselves. Then the later state must be reachable from
  the earlier one by such elections (`uncertain.may_reach`), with the same replicas.
- A change with an unknown outcome can take effect between two reads. The part leaves out such a group; the model checks it.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from checker.identity import same
from clusters.systems.rocketmq.workloads.group import READS, SUCCESS, Group, Live, Replica, Sync
from clusters.systems.rocketmq.workloads.uncertain import may_reach
from harness.about import about_operations
from harness.op import FINAL_PHASE, OpType
from harness.verdict import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.final_reads import FinalReads
    from harness.op import Operation, Value

NAME: Final = "replicas-equal"
MAX_NAMED: Final = 20
_LIVENESS: Final = ("heartbeat", "leave")


class Differing(NamedTuple):
    """Two controllers with different states of a group.

    Attributes:
        key: The group.
        f: The function of the reads: `state` or `next`.
        one: The earlier read.
        other: The later read, through another controller.
    """

    key: str | None
    f: str
    one: Operation
    other: Operation


def replicas_equal(operations: Sequence[Operation], reads: FinalReads) -> Part:
    """Checks that all controllers gave the same answers to the final reads.

    The part is unknown if a controller never led, or did not answer for each group. The check takes O(n).

    Args:
        operations: All operations of the run.
        reads: The results of the final reads.
    """
    with_heartbeats = {operation.key for operation in operations if operation.f in _LIVENESS}
    pending = {
        operation.key
        for operation in operations
        if operation.type is OpType.INFO and operation.f not in (*READS, *_LIVENESS)
    }
    answered = _final_answers(operations)
    nodes = [*reads.through, *reads.left_out]
    compared: set[str | None] = set()
    silent: set[str] = set(reads.left_out)
    differing: list[Differing] = []
    for (key, f), answers in answered.items():
        if key in pending:
            continue
        silent |= set(reads.through) - {answer.node for answer in answers if answer.node is not None}
        compared.add(key)
        for one, other in pairwise(answers):
            if not _agree(one.result, other.result, elects=key in with_heartbeats and f == "state"):
                differing.append(Differing(key, f, one, other))
    details: dict[str, Value] = {
        "controllers": [node for node in nodes if node not in silent],
        "groups": len(compared),
        "pending": len(pending),
        "differing": [
            {"key": pair.key, "f": pair.f, "nodes": [pair.one.node, pair.other.node],
             "events": [pair.one.invoke_index, pair.other.invoke_index]}
            for pair in differing[:MAX_NAMED]
        ],
    }  # fmt: skip
    without = f" {len(pending)} groups with a change of unknown outcome are left out." if pending else ""
    untested = reads.missing
    if untested is None and (silent or not compared):
        missing = (
            f"{', '.join(sorted(silent))} did not answer for each group" if silent else "no group could be compared"
        )
        untested = f"Not all controllers could be compared: {missing}.{without}"
    return Part.of(
        NAME,
        details,
        held=f"{len(nodes)} controllers, each while it led, hold the same {len(compared)} groups.{without}",
        untested=untested,
        broken=_reason(differing) if differing else None,
        about=about_operations(
            operation for differing_pair in differing[:1] for operation in (differing_pair.one, differing_pair.other)
        ),
    )


def _final_answers(operations: Sequence[Operation]) -> dict[tuple[str | None, str], list[Operation]]:
    """Returns the last answered final read of each group through each controller, in the order of time."""
    last: dict[tuple[str | None, str], dict[str | None, Operation]] = defaultdict(dict)
    for operation in operations:
        if operation.phase == FINAL_PHASE and operation.type is OpType.OK and operation.f in ("state", "next"):
            answers = last[operation.key, operation.f]
            answers.pop(operation.node, None)
            answers[operation.node] = operation
    return {
        group_and_f: sorted(by_node.values(), key=lambda operation: operation.invoke_index)
        for group_and_f, by_node in last.items()
    }


def _agree(one: Any, other: Any, *, elects: bool) -> bool:
    """Returns whether two controllers may give these answers one after the other.

    Args:
        one: The earlier answer.
        other: The later answer.
        elects: Whether the controllers may have held elections by themselves in between.
    """
    if same(one, other):
        return True
    if not elects or not (_is_group(one) and _is_group(other)):
        return False
    before, after = _group(one), _group(other)
    if before.replicas != after.replicas or before.sync is None or after.sync is None:
        return False
    if not before.sync.members or not after.sync.members:  # the answer does not show members without an id
        return before.sync.master_epoch <= after.sync.master_epoch and before.sync.epoch <= after.sync.epoch
    return may_reach(before, after.sync)


def _is_group(answer: Any) -> bool:
    return isinstance(answer, dict) and answer.get("code") == SUCCESS and answer.get("known") is True


def _group(answer: dict[str, Any]) -> Group:
    """Returns the group in an answer. Every member of its sync set may be alive."""
    rows = [*answer["in_sync"], *answer["not_in_sync"]]
    replicas = tuple(sorted(Replica(id_, address, "") for id_, address, _ in rows))
    master = answer.get("master")
    members = sorted({id_ for id_, *_ in answer["in_sync"]} | ({master} if master is not None else set()))
    sync = Sync(master, answer["master_epoch"], tuple(members), answer["sync_epoch"])
    return Group(replicas=replicas, sync=sync, live=tuple(Live(member) for member in members))


def _reason(differing: Sequence[Differing]) -> str:
    first = differing[0]
    return (
        f"{len(differing)} reads through one controller differ from those through the one before. {first.f} of group "
        f"{first.key} is {first.one.result} through {first.one.node} (event {first.one.invoke_index}), and "
        f"{first.other.result} through {first.other.node} (event {first.other.invoke_index})."
    )
