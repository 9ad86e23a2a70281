"""What a run on broker groups is judged by beside the model: rules that need no search, over all keys."""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import TYPE_CHECKING

from harness.op import OpType
from harness.verdict import Part, Verdict
from workloads.controller.group import (
    ELECTION_FAILED,
    FENCED_MASTER_EPOCH,
    FENCED_SYNC_EPOCH,
    INVALID_ID,
    INVALID_MASTER,
    MASTER_STILL_EXISTS,
    SUCCESS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.op import Operation, Value

MAX_NAMED = 20
TOO_LATE = (FENCED_MASTER_EPOCH, FENCED_SYNC_EPOCH, INVALID_MASTER)


def one_owner(operations: Sequence[Operation]) -> Part:
    """Says whether any id of a group was given to two brokers, which differ by their check codes.

    It holds where nothing is cleaned up, as in the workload of broker ids.
    """
    owners: dict[tuple[str | None, int], dict[str, Operation]] = defaultdict(dict)
    for operation, broker, check in _applies(operations):
        if operation.result.get("code") == SUCCESS:
            owners[operation.key, broker].setdefault(check, operation)
    return _one_holder("one-owner", owners, thing="id", holder="owner")


def contended(operations: Sequence[Operation]) -> Part:
    """Says whether brokers got in each other's way: an id that one broker was given was refused to another one."""
    given: set[tuple[str | None, int]] = set()
    refused: set[tuple[str | None, int]] = set()
    for operation, broker, _ in _applies(operations):
        place = (operation.key, broker)
        if operation.result.get("code") == SUCCESS:
            given.add(place)
        elif operation.result.get("code") == INVALID_ID:
            refused.add(place)
    both = len(given & refused)
    details: dict[str, Value] = {"given": len(given), "contended": both}
    held = f"{both} of {len(given)} ids that were given to one broker were refused to another one."
    untested = None if both else "No id that was given to one broker was refused to another one"
    return _part("contended", details, held=held, untested=untested)


def one_master(operations: Sequence[Operation]) -> Part:
    """Says whether any epoch of a group had two masters, by whatever answer names a master and its epoch."""
    masters: dict[tuple[str | None, int], dict[str, Operation]] = defaultdict(dict)
    for operation in operations:
        if operation.type is OpType.OK:
            match operation.result:
                case {"master": int(master), "master_epoch": int(epoch)}:
                    masters[operation.key, epoch].setdefault(str(master), operation)
    return _one_holder("one-master", masters, thing="epoch", holder="master")


def stood(operations: Sequence[Operation]) -> Part:
    """Says whether any broker lost an election that another broker of its group won."""
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
    held = f"In {both} of {len(won)} groups with a master, another broker stood and lost."
    untested = None if both else "In no group one broker won an election and another one lost it"
    return _part("stood", details, held=held, untested=untested)


def master_in_sync(operations: Sequence[Operation]) -> Part:
    """Says whether any answer has a master that is not in the sync set of the same answer."""
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
                if any(isinstance(each, list | tuple) and each[:1] in ([master], (master,)) for each in others):
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
    held = f"In each of {seen} answers the master is in the sync set."
    untested = None if seen else "No answer named a master and a sync set"
    return _part("master-in-sync", details, broken=broken, held=held, untested=untested)


def epochs_grow(operations: Sequence[Operation]) -> Part:
    """Says whether any epoch of a group went back: an operation that began after another one ended was told a smaller one.

    It holds where nothing is cleaned up. It takes O(n log n).
    """
    answers: dict[tuple[str | None, str], list[tuple[Operation, int]]] = defaultdict(list)
    for operation in operations:
        if operation.type is OpType.OK and isinstance(operation.result, dict):
            for field in ("master_epoch", "sync_epoch"):
                epoch = operation.result.get(field)
                if type(epoch) is int:
                    answers[operation.key, field].append((operation, epoch))
    back: list[tuple[str, tuple[Operation, int], tuple[Operation, int]]] = []
    for (_, field), found in answers.items():
        back += [(field, before, after) for before, after in _gone_back(found)]
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
    held = f"None of {seen} epochs in answers is smaller than one that was answered before."
    return _part(
        "epochs-grow", details, broken=broken, held=held, untested=None if seen else "No answer named an epoch"
    )


def _gone_back(
    found: Sequence[tuple[Operation, int]],
) -> Iterator[tuple[tuple[Operation, int], tuple[Operation, int]]]:
    """Gives each answer with a smaller epoch than the greatest one that was answered before it was asked for, and that one."""
    ended = sorted(found, key=lambda each: _end(each[0]))
    greatest: tuple[Operation, int] | None = None
    done = 0
    for operation, epoch in sorted(found, key=lambda each: each[0].invoke_index):
        while done < len(ended) and _end(ended[done][0]) < operation.invoke_index:
            if greatest is None or ended[done][1] > greatest[1]:
                greatest = ended[done]
            done += 1
        if greatest is not None and epoch < greatest[1]:
            yield greatest, (operation, epoch)


def _end(operation: Operation) -> float:
    return inf if operation.complete_index is None else operation.complete_index


def altered(operations: Sequence[Operation]) -> Part:
    """Says whether sync sets were altered, and whether any alter came too late."""
    codes = [
        operation.result.get("code")
        for operation in operations
        if operation.f == "alter" and operation.type is OpType.OK and isinstance(operation.result, dict)
    ]
    done, late = codes.count(SUCCESS), sum(map(codes.count, TOO_LATE))
    details: dict[str, Value] = {"altered": done, "too_late": late}
    untested = None
    if not done or not late:
        untested = "No sync set was altered" if not done else "No alter expected an epoch or a master that had passed"
    held = f"{done} alters were carried out, and {late} were refused since they came too late."
    return _part("altered", details, held=held, untested=untested)


def _one_holder(
    name: str, seen: Mapping[tuple[str | None, int], Mapping[str, Operation]], *, thing: str, holder: str
) -> Part:
    """Returns the part that is invalid where any thing of a group has two holders.

    Args:
        name: The part.
        seen: Group and thing to its holders, each with the first operation whose answer names it.
        thing: What is held, e.g. `id`.
        holder: Who holds it, e.g. `owner`.
    """
    shared = {place: found for place, found in seen.items() if len(found) > 1}
    details: dict[str, Value] = {
        f"{thing}s": len(seen),
        "shared": [
            {"key": key, thing: which, f"{holder}s": {who: each.invoke_index for who, each in found.items()}}
            for (key, which), found in list(shared.items())[:MAX_NAMED]
        ],
    }
    broken = None
    if shared:
        (key, which), found = next(iter(shared.items()))
        (one, first), (other, second) = list(found.items())[:2]
        broken = (
            f"{len(shared)} of {len(seen)} {thing}s had two {holder}s. In group {key}, the {holder} of {thing} {which} was "
            f"{one} by the answer to event {first.invoke_index}, and {other} by that to event {second.invoke_index}."
        )
    held = f"Each of {len(seen)} {thing}s had one {holder}."
    untested = None if seen else f"No answer named the {holder} of an {thing}"
    return _part(name, details, broken=broken, held=held, untested=untested)


def _part(
    name: str, details: Mapping[str, Value], *, held: str, untested: str | None, broken: str | None = None
) -> Part:
    """Returns a part that is invalid where its rule was broken, unknown where nothing tested it, and else valid.

    Args:
        name: The part.
        details: What was counted.
        held: What was seen where the rule held, as a sentence.
        untested: What was missing, as the beginning of a sentence; None if the rule was tested.
        broken: How the rule was broken, as a sentence; None if it was not.
    """
    if broken is not None:
        return Part(name=name, verdict=Verdict.INVALID, reason=broken, details=details)
    if untested is not None:
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=f"{untested}, so nothing was tested.", details=details)
    return Part(name=name, verdict=Verdict.VALID, reason=held, details=details)


def _applies(operations: Sequence[Operation]) -> Iterator[tuple[Operation, int, str]]:
    """Gives the answered applies, each with its id and its check code; a history may come from anyone."""
    for operation in operations:
        if operation.f == "apply" and operation.type is OpType.OK and isinstance(operation.result, dict):
            match operation.value:
                case {"id": int(broker), "check": str(check)}:
                    yield operation, broker, check
