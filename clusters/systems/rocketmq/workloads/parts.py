"""The parts of the verdict on broker groups beside the model: rules over all keys that need no search."""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import TYPE_CHECKING

from clusters.systems.rocketmq.workloads.group import (
    ELECTION_FAILED,
    FENCED_MASTER_EPOCH,
    FENCED_SYNC_EPOCH,
    INVALID_ID,
    INVALID_MASTER,
    MASTER_STILL_EXISTS,
    SUCCESS,
)
from harness.about import about_operations
from harness.op import OpType
from harness.verdict import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harness.op import Operation, Value

MAX_NAMED = 20
TOO_LATE = (FENCED_MASTER_EPOCH, FENCED_SYNC_EPOCH, INVALID_MASTER)


def one_owner(operations: Sequence[Operation]) -> Part:
    """Checks that each id of a group has only one owner. Two owners of an id have different check codes.

    The rule holds without clean requests, as in the workload of broker ids.
    """
    claims = (claim for claim in _applies(operations) if claim[0].result.get("code") == SUCCESS)
    return _one_holder("one-owner", claims, thing="id", holder="owner")


def contended(operations: Sequence[Operation]) -> Part:
    """Checks that brokers contended for ids: the controller gave an id to one broker, and refused it to another one."""
    given: set[tuple[str | None, int]] = set()
    refused: set[tuple[str | None, int]] = set()
    for operation, broker, _ in _applies(operations):
        group_and_broker = (operation.key, broker)
        if operation.result.get("code") == SUCCESS:
            given.add(group_and_broker)
        elif operation.result.get("code") == INVALID_ID:
            refused.add(group_and_broker)
    both = len(given & refused)
    details: dict[str, Value] = {"given": len(given), "contended": both}
    sentence = f"{both} of {len(given)} ids that were given to one broker were refused to another one."
    untested = None if both else "No id that was given to one broker was refused to another one, so nothing was tested."
    return Part.of("contended", details, held=sentence, untested=untested)


def one_master(operations: Sequence[Operation]) -> Part:
    """Checks that each epoch of a group has only one master, over all answers that have a master and its epoch."""
    return _one_holder("one-master", _masters(operations), thing="epoch", holder="master")


def stood(operations: Sequence[Operation]) -> Part:
    """Checks that in some group, one broker won an election and another broker lost one."""
    won: set[str | None] = set()
    lost: set[str | None] = set()
    for operation in operations:
        if operation.f == "elect" and operation.type is OpType.OK and isinstance(operation.result, dict):
            code = operation.result.get("code")
            if code == SUCCESS:
                won.add(operation.key)
            elif code in (ELECTION_FAILED, MASTER_STILL_EXISTS):
                lost.add(operation.key)
    both = len(won & lost)
    details: dict[str, Value] = {"won": len(won), "contended": both}
    sentence = f"In {both} of {len(won)} groups with a master, another broker stood and lost."
    untested = (
        None if both else "In no group one broker won an election and another one lost it, so nothing was tested."
    )
    return Part.of("stood", details, held=sentence, untested=untested)


def master_in_sync(operations: Sequence[Operation]) -> Part:
    """Checks that the master in an answer is in the sync set of the same answer."""
    seen = 0
    without: list[tuple[Operation, int]] = []
    for operation in operations:
        if operation.type is not OpType.OK:
            continue
        match operation.result:
            case {"master": int(master), "sync_set": [*members]}:
                seen += 1
                if master not in members:
                    without.append((operation, master))
            case {"master": int(master), "not_in_sync": [*others]}:
                seen += 1
                if any(isinstance(other, list | tuple) and other[:1] in ([master], (master,)) for other in others):
                    without.append((operation, master))
    details: dict[str, Value] = {
        "answers": seen,
        "without": [
            {"key": operation.key, "event": operation.invoke_index, "master": master}
            for operation, master in without[:MAX_NAMED]
        ],
    }
    broken = None
    if without:
        operation, master = without[0]
        broken = (
            f"{len(without)} of {seen} answers have a sync set that lacks the master. In group {operation.key}, broker "
            f"{master} was master and not in sync by the answer to event {operation.invoke_index}."
        )
    sentence = f"In each of {seen} answers the master is in the sync set."
    untested = None if seen else "No answer named a master and a sync set, so nothing was tested."
    by = [operation for operation, _ in without[:1]]
    return Part.of(
        "master-in-sync", details, broken=broken, held=sentence, untested=untested, about=about_operations(by)
    )


def epochs_grow(operations: Sequence[Operation]) -> Part:
    """Checks that epochs of a group never decrease: from an operation to one that begins after its end.

    The rule holds without clean requests. The check takes O(n log n).
    """
    answers: dict[tuple[str | None, str], list[tuple[Operation, int]]] = defaultdict(list)
    for operation in operations:
        if operation.type is OpType.OK and isinstance(operation.result, dict):
            for field in ("master_epoch", "sync_epoch"):
                epoch = operation.result.get(field)
                if type(epoch) is int:
                    answers[operation.key, field].append((operation, epoch))
    back: list[tuple[str, tuple[Operation, int], tuple[Operation, int]]] = []
    for (_, field), epochs in answers.items():
        back += [(field, before, after) for before, after in _gone_back(epochs)]
    seen = sum(map(len, answers.values()))
    details: dict[str, Value] = {
        "epochs": seen,
        "back": [
            {"key": one[0].key, "epoch": field, "events": [one[0].invoke_index, other[0].invoke_index],
             "values": [one[1], other[1]]}
            for field, one, other in back[:MAX_NAMED]
        ],
    }  # fmt: skip
    broken = None
    if back:
        field, (one, before), (other, after) = back[0]
        broken = (
            f"{len(back)} of {seen} epochs in answers are smaller than one that was answered before. In group {one.key}, "
            f"{field} was {before} by the answer to event {one.invoke_index}, and then {after} by that to event "
            f"{other.invoke_index}."
        )
    sentence = f"None of {seen} epochs in answers is smaller than one that was answered before."
    untested = None if seen else "No answer named an epoch, so nothing was tested."
    by = [operation for _, (one, _), (other, _) in back[:1] for operation in (one, other)]
    return Part.of("epochs-grow", details, broken=broken, held=sentence, untested=untested, about=about_operations(by))


def _gone_back(
    answers: Sequence[tuple[Operation, int]],
) -> Iterator[tuple[tuple[Operation, int], tuple[Operation, int]]]:
    """Yields each answer whose epoch is smaller than an epoch answered before its operation began, after the largest such."""
    ended = sorted(answers, key=lambda answer: _end(answer[0]))
    greatest: tuple[Operation, int] | None = None
    done = 0
    for operation, epoch in sorted(answers, key=lambda answer: answer[0].invoke_index):
        while done < len(ended) and _end(ended[done][0]) < operation.invoke_index:
            if greatest is None or ended[done][1] > greatest[1]:
                greatest = ended[done]
            done += 1
        if greatest is not None and epoch < greatest[1]:
            yield greatest, (operation, epoch)


def _end(operation: Operation) -> float:
    return inf if operation.complete_index is None else operation.complete_index


def altered(operations: Sequence[Operation]) -> Part:
    """Checks that alters changed sync sets, and that other alters came too late."""
    codes = [
        operation.result.get("code")
        for operation in operations
        if operation.f == "alter" and operation.type is OpType.OK and isinstance(operation.result, dict)
    ]
    done, late = codes.count(SUCCESS), sum(map(codes.count, TOO_LATE))
    details: dict[str, Value] = {"altered": done, "too_late": late}
    untested = None
    if not done or not late:
        what = "No sync set was altered" if not done else "No alter expected an epoch or a master that had passed"
        untested = f"{what}, so nothing was tested."
    sentence = f"{done} alters were carried out, and {late} were refused since they came too late."
    return Part.of("altered", details, held=sentence, untested=untested)


def _one_holder(name: str, claims: Iterable[tuple[Operation, int, str]], *, thing: str, holder: str) -> Part:
    """Returns the part that is invalid if a thing of a group has two holders.

    Args:
        name: The name of the part.
        claims: An operation, and the thing and the holder in its answer.
        thing: The word for the thing, e.g. `id`.
        holder: The word for the holder, e.g. `owner`.
    """
    seen: dict[tuple[str | None, int], dict[str, Operation]] = defaultdict(dict)
    for operation, number, by in claims:
        seen[operation.key, number].setdefault(by, operation)
    shared = {claim: holders for claim, holders in seen.items() if len(holders) > 1}
    details: dict[str, Value] = {
        f"{thing}s": len(seen),
        "shared": [
            {
                "key": key,
                thing: which,
                f"{holder}s": {who: operation.invoke_index for who, operation in holders.items()},
            }
            for (key, which), holders in list(shared.items())[:MAX_NAMED]
        ],
    }
    broken = None
    if shared:
        (key, which), holders = next(iter(shared.items()))
        (one, first), (other, second) = list(holders.items())[:2]
        broken = (
            f"{len(shared)} of {len(seen)} {thing}s had two {holder}s. In group {key}, the {holder} of {thing} {which} was "
            f"{one} by the answer to event {first.invoke_index}, and {other} by that to event {second.invoke_index}."
        )
    sentence = f"Each of {len(seen)} {thing}s had one {holder}."
    untested = None if seen else f"No answer named the {holder} of an {thing}, so nothing was tested."
    of_first = [operation for holders in list(shared.values())[:1] for operation in holders.values()]
    return Part.of(name, details, broken=broken, held=sentence, untested=untested, about=about_operations(of_first))


def _applies(operations: Sequence[Operation]) -> Iterator[tuple[Operation, int, str]]:
    """Yields the answered applies, each with its id and its check code. It skips bad values of foreign histories."""
    for operation in operations:
        if operation.f == "apply" and operation.type is OpType.OK and isinstance(operation.result, dict):
            match operation.value:
                case {"id": int(broker), "check": str(check)}:
                    yield operation, broker, check


def _masters(operations: Sequence[Operation]) -> Iterator[tuple[Operation, int, str]]:
    """Yields the answers with a master and its epoch, each with this epoch and master."""
    for operation in operations:
        if operation.type is OpType.OK:
            match operation.result:
                case {"master": int(master), "master_epoch": int(epoch)}:
                    yield operation, epoch, str(master)
