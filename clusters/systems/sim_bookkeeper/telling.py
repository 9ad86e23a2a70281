"""What a node knows of a log, as text, for `labrys explain` and `labrys explore`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.console.plain import listed

if TYPE_CHECKING:
    from clusters.systems.sim_bookkeeper.bookie import Promise
    from clusters.systems.sim_bookkeeper.log import Log
    from clusters.systems.sim_bookkeeper.messages import Meta


def of_bookie(promise: Promise) -> str:
    """Returns which requests a bookie refuses; empty if none."""
    if promise.fenced:
        return f"fences ledger {', '.join(map(str, promise.fenced))}"
    return f"refuses terms below {promise.term}" if promise.term > 1 else ""


def of_log(log: Log) -> str:
    """Returns what a client node does in a log, and what it waits for."""
    if log.takeover is not None:
        return log.takeover.told()
    if log.writer is None:
        return f"knows the writer {log.meta.owner} of term {log.meta.term}"
    waits = [
        f"{offset}, which {listed(sorted(pending.acks), 'and') if pending.acks else 'nobody'} acknowledged"
        for offset, pending in log.writer.pending.items()
    ]
    changes = f"; changes to {', '.join(log.writer.change.ensemble)}" if log.writer.change is not None else ""
    return f"writes to {', '.join(log.writer.ensemble)}{'; waits for ' if waits else ''}{'; '.join(waits)}{changes}"


def of_meta(meta: Meta) -> str:
    """Returns the owner of a log, and the ensembles of its last segment."""
    last = meta.segments[-1]
    state = "writes" if meta.is_open else "recovers" if last.last is None else f"closed it with entry {last.last}"
    fragments = "; ".join(f"from {fragment.first}: {', '.join(fragment.bookies)}" for fragment in last.fragments)
    return f"{meta.owner} {state}; {fragments}"
