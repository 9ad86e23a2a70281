"""What a system does with damaged files, beside what it promises: the part `damaged-files`.

Whether clients read wrong values after a damage is decided by the other parts: a silent wrong answer is invalid, whatever the
system promises. This part judges the node with the damage. If the system promises to repair, such a node must be back after
healing. If it promises to detect and refuse, the node may stay out, and so may the whole system if too few nodes are whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.console.plain import listed
from harness.promise import Handling
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from harness.ends import Ended
    from harness.faults import FaultRecord
    from harness.op import Value
    from harness.promise import OnDamage
    from harness.recovery import Recovery

DAMAGED_FILES: Final = "damaged-files"


def damages(faults: Sequence[FaultRecord], damaging: Collection[str]) -> Mapping[str, Sequence[FaultRecord]]:
    """Returns the proven faults that damaged files for good, by the node that they hit, in the order of their start."""
    by_node: dict[str, list[FaultRecord]] = {}
    for fault in faults:
        if fault.planned.kind in damaging and fault.is_proven:
            for node in fault.targets:
                by_node.setdefault(node, []).append(fault)
    return dict(sorted(by_node.items()))


def refusal(on_damage: OnDamage | None, hit: Collection[str], recovery: Recovery | None) -> str:
    """Returns why a system that did not work again keeps its promise, as a sentence; empty if it does not.

    Args:
        on_damage: What the system promises.
        hit: The nodes with damaged files.
        recovery: The recovery of the system; None if the run ended before.
    """
    if on_damage is None or on_damage.handling is not Handling.REFUSES or recovery is None:
        return ""
    nodes, quorum = recovery.nodes, recovery.quorum
    if nodes is None or quorum is None or nodes - len(hit) >= quorum:
        return ""
    whole = nodes - len(hit)
    return (
        f"Files of {listed(sorted(hit), 'and')} are damaged, and {whole} of {nodes} nodes are whole, fewer than the quorum "
        f"of {quorum}. {on_damage.sentence}"
    )


def excused(ends: Sequence[Ended], on_damage: OnDamage | None, hit: Mapping[str, Sequence[FaultRecord]]) -> list[Ended]:
    """Returns the ends of processes by which a system refuses damaged files, as it promises."""
    if on_damage is None:
        return []
    return [end for end in ends if any(fault.start_ns <= end.time_ns for fault in hit.get(end.node, ()))]


def damaged_files(
    system: str,
    on_damage: OnDamage | None,
    hit: Mapping[str, Sequence[FaultRecord]],
    recovery: Recovery | None,
    ended: Sequence[Ended] = (),
) -> Part | None:
    """Returns the part `damaged-files`; None if no fault damaged files.

    Args:
        system: The name of the system.
        on_damage: What it promises; None: it does not say.
        hit: What `damages` returns.
        recovery: The recovery of the system; None if the run ended before.
        ended: What `excused` returns.
    """
    if not hit:
        return None
    out = {} if recovery is None else {node: why for node, why in recovery.out.items() if node in hit}
    texts = [_of_node(node, faults, out.get(node), ended) for node, faults in hit.items()]
    details: dict[str, Value] = {
        "promise": None if on_damage is None else on_damage.sentence,
        "handling": None if on_damage is None else str(on_damage.handling),
        "source": None if on_damage is None else on_damage.source,
        "nodes": {node: [fault.planned.id for fault in faults] for node, faults in hit.items()},
        "out": dict(out),
    }
    told = f"{'; '.join(texts)}."
    everywhere = [
        fault.planned.called for faults in hit.values() for fault in faults if str(fault.planned.target) == "all"
    ]
    about = " is a negative control: it leaves no whole copy, so lost data is no finding."
    control = f" {everywhere[0]}{about}" if everywhere else ""
    verdict, promise = Verdict.UNKNOWN, f"{system} does not say what it does with damaged files."
    if recovery is None:
        promise = "The run ended before its recovery was observed."
    elif on_damage is not None:
        broken = on_damage.handling is Handling.REPAIRS and out and not everywhere
        verdict = Verdict.INVALID if broken else Verdict.VALID
        promise = f"{on_damage.sentence} By: {on_damage.source}."
    return Part(name=DAMAGED_FILES, verdict=verdict, reason=f"{told}{control} {promise}", details=details, extra=True)


def _of_node(node: str, faults: Sequence[FaultRecord], out: str | None, ended: Sequence[Ended]) -> str:
    kinds = listed(list(dict.fromkeys(fault.planned.called for fault in faults)), "and")
    own = [end for end in ended if end.node == node]
    ends = f"; its process ended by itself {own[0].how}" if own else ""
    return f"{node} had {kinds}, and {f'stays out: it {out}' if out else 'was not seen to stay out'}{ends}"
