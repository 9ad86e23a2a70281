"""The operations of one stream of a workload, as its generator gives them without answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.generator import Asker, first_operations
from harness.op import Invocation

if TYPE_CHECKING:
    from harness.workload import Workload


def drawn(
    workload: Workload, number: int, count: int, *, streams: int = 4, seed: int = 1, preview: bool = False
) -> list[Invocation]:
    """Returns the first operations of a stream; in a preview, values that only a run knows are words."""
    generator = workload.generator(seed=seed, streams=streams)
    asker = Asker(number, number, "n1", 0, workers=frozenset(range(streams)), preview=preview)
    answers = [generator.ask(asker) for _ in range(count)]
    operations = [answer for answer in answers if isinstance(answer, Invocation)]
    assert len(operations) == count
    return operations


def described(workload: Workload, *, seed: int, streams: int, count: int) -> Any:
    """Returns what `labrys plan` shows of the streams."""
    return first_operations(workload.generator(seed=seed, streams=streams), streams=streams, count=count)


def in_turns(workload: Workload, numbers: list[int], *, streams: int = 4) -> dict[int, list[Invocation]]:
    """Returns the operations of each stream when one generator is asked for the streams in this order."""
    generator = workload.generator(seed=1, streams=streams)
    by_stream: dict[int, list[Invocation]] = {number: [] for number in numbers}
    for number in numbers:
        answer = generator.ask(Asker(number, number, "n1", 0, workers=frozenset(range(streams))))
        assert isinstance(answer, Invocation)
        by_stream[number].append(answer)
    return by_stream
