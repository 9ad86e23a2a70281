"""The final reads after healing: their keys, and their part of the verdict.

They are the same for every workload. They read each key of the run once more through each node. Otherwise a loss in an unread
key would stay hidden.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from harness.console.plain import counted_of
from harness.op import FINAL_PHASE, NEMESIS, OpType
from harness.verdict import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.final_reads import FinalReads
    from harness.op import Op, Operation, Value

MAX_NAMED_KEYS = 20


def keys_of(history: Iterable[Op]) -> list[str | None]:
    """Returns all keys of the clients' operations, in the order of their first use; None stands for the only object."""
    return list(dict.fromkeys(op.key for op in history if op.process != NEMESIS))


def final_reads(operations: Sequence[Operation], reads: FinalReads) -> Part:
    """Returns the part `final-reads`: whether every key was read after healing, and the nodes.

    Args:
        operations: All operations of the run.
        reads: The results of the final reads.
    """
    through: dict[str | None, set[str | None]] = {}
    for operation in operations:
        nodes = through.setdefault(operation.key, set())
        if operation.phase == FINAL_PHASE and operation.type is OpType.OK:
            nodes.add(operation.node)
    unread = [key for key, nodes in through.items() if not nodes]
    by_node = Counter(str(node) for nodes in through.values() for node in nodes)
    details: dict[str, Value] = {
        "keys": len(through),
        "unread": unread[:MAX_NAMED_KEYS],
        "keys_by_node": dict(sorted(by_node.items())),
        "left_out": dict(reads.left_out),
    }
    untested = reads.missing
    if untested is None and not through:
        untested = "The run used no key, so there were no final reads."
    elif untested is None and unread:
        what = "The only object" if set(through) == {None} else counted_of(len(unread), len(through), "key")
        untested = f"{what} could not be read after healing, so a write lost there was not seen."
    through_nodes = [
        node if by_node[node] == len(through) else f"{node} ({counted_of(by_node[node], len(through), 'key')})"
        for node in dict.fromkeys([*reads.through, *by_node])
    ]
    left_out = "".join(f" {node} was left out: it {why}." for node, why in reads.left_out.items())
    several = f"All {len(through):,} keys were" if len(through) > 1 else "The only key was"
    what = "The only object was" if set(through) == {None} else several
    sentence = f"{what} read after healing, through {', '.join(through_nodes)}.{left_out}"
    return Part.of("final-reads", details, held=sentence, untested=untested)
