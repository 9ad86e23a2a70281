"""A random choice among generators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.generator import Later
from harness.op import Invocation
from harness.randomness import stream

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from harness.generator import Answer, Asker, Generator
    from harness.op import Op


def mix(children: Sequence[Generator], *, seed: int, name: str, weights: Sequence[float] | None = None) -> Generator:
    """Answers each operation from a child that is drawn at random, evenly or by weight.

    A child that has ended for a worker is no longer drawn for it. If the drawn child answers `Later`, the next child with an
    operation answers instead.

    Args:
        children: The generators to draw from.
        seed: The run's root seed.
        name: The name of the streams: worker `i` draws from the stream `{name}/{i}`, once for each of its operations.
        weights: The relative weight of each child; all are equal by default.

    Raises:
        InputError: The number of weights is wrong, or a weight is not above 0.
    """
    weights = [1.0] * len(children) if weights is None else list(weights)
    if len(weights) != len(children) or not children or min(weights) <= 0:
        raise InputError(f"a mix needs a weight above 0 for each of its {len(children)} generators, not {weights}")
    return _Mix(children, seed, name, weights)


class _Choice:
    """The state of one worker in a mix."""

    def __init__(self, draws: random.Random, count: int) -> None:
        self.draws = draws
        self.live = list(range(count))
        self.drawn: int | None = None


class _Mix:
    def __init__(self, children: Sequence[Generator], seed: int, name: str, weights: Sequence[float]) -> None:
        self._children = children
        self._seed = seed
        self._name = name
        self._weights = weights
        self._choices: dict[int, _Choice] = {}

    def ask(self, asker: Asker) -> Answer:
        choice = self._choices.get(asker.worker)
        if choice is None:
            draws = stream(self._seed, f"{self._name}/{asker.worker}")
            choice = self._choices[asker.worker] = _Choice(draws, len(self._children))
        live = choice.live
        soonest: Later | None = None
        passed = 0
        while passed < len(live):
            # A draw stays until it gives an operation, so that the n-th operation uses the n-th draw of its worker.
            if choice.drawn not in live:
                choice.drawn = choice.draws.choices(live, [self._weights[child] for child in live])[0]
            child = live[(live.index(choice.drawn) + passed) % len(live)]
            answer = self._children[child].ask(asker)
            if isinstance(answer, Invocation):
                choice.drawn = None
                return answer
            if answer is None:
                live.remove(child)
            else:
                passed += 1
                soonest = answer if soonest is None else sooner(soonest, answer)
        return soonest

    def update(self, event: Op) -> None:
        for child in self._children:
            child.update(event)


def sooner(one: Later, other: Later) -> Later:
    """Returns one `Later` for two generators: the earlier time, and an event if one of them waits for it."""
    or_event = one.or_event or other.or_event or one.at_ns is None or other.at_ns is None
    times = [later.at_ns for later in (one, other) if later.at_ns is not None]
    changed = one.changed or other.changed
    return Later(min(times), or_event, changed) if times else Later(changed=changed)
