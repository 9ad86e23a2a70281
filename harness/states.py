"""The parts about the states of nodes: one leader in each term, and equal replicas."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from harness.about import MEMBER, About
from harness.console.plain import counted
from harness.leaders import claims, rivals
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Value
    from harness.replicas import Difference, Replicas
    from harness.watch import Sighting

MAX_EXAMPLES = 5
REPLICAS_EQUAL = "replicas-equal"
AT_REST = "at rest"
ONE_LEADER = "one-leader-per-term"


def one_leader_per_term(sightings: Sequence[Sighting], promise: str, lane: str | None = None) -> Part:
    """Returns the extra part `one-leader-per-term`: whether two nodes led in one term by the reports.

    Args:
        sightings: What the nodes reported about themselves, and observers about the leader of a group.
        promise: The sentence of the service; see `Service.one_leader_per_term`.
        lane: The service and the group, if it is not the service that clients use; then the name of the part has it.
    """
    name = ONE_LEADER if lane is None else f"{ONE_LEADER} ({lane})"
    pairs = rivals(sightings)
    terms = {claim.term for claim in claims(sightings)}
    details: dict[str, Value] = {
        "promise": promise,
        "terms": len(terms),
        "rivals": [
            {"term": pair.term, "nodes": list(dict.fromkeys(claim.node for claim in pair.claims))}
            for pair in pairs[:MAX_EXAMPLES]
        ],
    }
    broken = about = None
    if pairs:
        first = pairs[0].claims
        about = About(
            from_ns=first[0].time_ns,
            to_ns=max(claim.last_ns for claim in first),
            nodes=tuple(dict.fromkeys(claim.node for claim in first)),
        )
        more = f" This is so in {len(pairs)} terms." if len(pairs) > 1 else ""
        broken = f"{pairs[0]}{more} {promise}"
    return Part.of(
        name,
        details,
        held=f"No two nodes led in one term by the reports; {counted(len(terms), 'term')} had a leader.",
        untested=None if terms else "No poll saw a leader with a term.",
        broken=broken,
        about=about,
        extra=True,
    )


def replicas_equal(replicas: Replicas | None) -> Part:
    """Returns the part `replicas-equal`: whether replicas at the same applied index, or at rest, have the same state."""
    if replicas is None:
        reason = "The run ended before its replicas were compared."
        return Part(name=REPLICAS_EQUAL, verdict=Verdict.UNKNOWN, reason=reason)
    details: dict[str, Value] = {
        "applied": dict(replicas.applied),
        "compared": {
            AT_REST if index is None else str(index): list(nodes) for index, nodes in replicas.compared.items()
        },
        "differing_keys": replicas.differing_keys,
        "differing": [asdict(difference) for difference in replicas.differing],
    }
    apart, stayed_out = _apart(replicas)
    if replicas.from_ns is not None:
        unlike = (node for difference in replicas.differing for node in (*difference.values, *difference.lacking))
        details[MEMBER] = About(
            from_ns=replicas.from_ns,
            to_ns=replicas.from_ns + round(replicas.seconds * NS_PER_S),
            nodes=tuple(dict.fromkeys(node.partition(" (state")[0] for node in unlike)) or tuple(replicas.applied),
        ).to_json()
    broken = None
    if replicas.differing:
        first = _difference(replicas.differing[0])
        where = f"after {replicas.seconds:.0f} s at rest" if replicas.unplaced else "at the same applied index"
        broken = f"Replicas differ {where} in {counted(replicas.differing_keys, 'key')}; {first}.{apart}{stayed_out}"
    same = "no key" if not replicas.keys else f"the same {counted(replicas.keys, 'key')}"
    where = "at rest" if replicas.largest is None else f"at applied index {replicas.largest}"
    sentence = f"{len(replicas.together)} replicas have {same} {where}.{apart}{stayed_out}"
    untested = sentence if apart else None
    if not replicas.together:
        lack = "answered" if replicas.unplaced else "were at the same applied index"
        untested = f"No two replicas {lack} in {replicas.seconds:.0f} s.{apart}{stayed_out}"
    return Part.of(REPLICAS_EQUAL, details, held=sentence, untested=untested, broken=broken)


def _apart(replicas: Replicas) -> tuple[str, str]:
    """Returns a sentence with the nodes outside the largest group, and one with those of them that had stayed out."""
    apart = {
        node: f"{node} ({'alone' if node in replicas.unplaced else 'no answer' if index is None else f'at index {index}'})"
        for node, index in replicas.applied.items()
        if node not in replicas.together
    }
    waited = ", ".join(text for node, text in apart.items() if node not in replicas.out)
    out = ", ".join(text for node, text in apart.items() if node in replicas.out)
    them = " with them" if replicas.together else ""
    return (
        f" Not compared{them}: {waited}." if waited else "",
        f" Not compared{them}, because it stayed out after healing: {out}." if out else "",
    )


def _difference(difference: Difference) -> str:
    clauses = [f"{node} has {value!r}" for node, value in difference.values.items()]
    clauses += [f"{node} lacks it" for node in difference.lacking]
    where = "" if difference.applied_index is None else f" at index {difference.applied_index}"
    return f"{difference.key}{where}: {', '.join(clauses)}"
