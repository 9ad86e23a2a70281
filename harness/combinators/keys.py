"""Independent keys: each has a small history, so that checking stays cheap and each key has contention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.op import Invocation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from harness.generator import Answer, Asker, Generator
    from harness.op import Op


def independent(keys: Iterable[str], workers_per_key: int, make: Callable[[str], Generator]) -> Generator:
    """Lets groups of workers work on one key after the other.

    The workers are divided into groups. Each group takes the next unused key, works on it until its generator ends, and takes
    another one. A worker goes on to the next key of its group without waiting for the others, so a slow node does not delay
    them.

    Args:
        keys: The keys, which may be endless; each is used once.
        workers_per_key: The size of a group; the last group may be smaller.
        make: Makes the generator of a key. Its operations get the key.

    Raises:
        InputError: `workers_per_key` is below 1.
    """
    if workers_per_key < 1:
        raise InputError(f"a key needs at least one worker, not {workers_per_key}")
    return _Independent(keys, workers_per_key, make)


class _Group:
    """Workers that share keys."""

    def __init__(self, members: frozenset[int]) -> None:
        self.members = members
        self.keys: list[str] = []
        self.places = dict.fromkeys(members, 0)


class _Independent:
    def __init__(self, keys: Iterable[str], workers_per_key: int, make: Callable[[str], Generator]) -> None:
        self._keys = iter(keys)
        self._workers_per_key = workers_per_key
        self._make = make
        self._children: dict[str, Generator] = {}
        self._groups: dict[int, _Group] = {}

    def ask(self, asker: Asker) -> Answer:
        group = self._groups.get(asker.worker)
        if group is None:
            group = self._divide(asker.workers)[asker.worker]
        while True:
            place = group.places[asker.worker]
            if place == len(group.keys):
                key = next(self._keys, None)
                if key is None:
                    return None
                group.keys.append(key)
                self._children[key] = self._make(key)
            key = group.keys[place]
            answer = self._children[key].ask(asker._replace(workers=group.members))
            if isinstance(answer, Invocation):
                return answer._replace(key=key)
            if answer is not None:
                return answer
            group.places[asker.worker] += 1
            if min(group.places.values()) > place:
                del self._children[key]

    def update(self, event: Op) -> None:
        child = None if event.key is None else self._children.get(event.key)
        if child is not None:
            child.update(event)

    def _divide(self, workers: frozenset[int]) -> dict[int, _Group]:
        order = sorted(workers)
        for start in range(0, len(order), self._workers_per_key):
            group = _Group(frozenset(order[start : start + self._workers_per_key]))
            self._groups.update(dict.fromkeys(group.members, group))
        return self._groups
