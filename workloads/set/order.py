"""Anomalies that show only in several reads of a set together.

A grow-only set goes through one sequence of states, and each state contains all states before it. So of any two reads, one
returned all elements of the other. And a read that returned an element returned all elements whose adds ended before the add of
that element began. With the facts about single elements, this decides linearizability exactly. If there is no anomaly, a legal
order is: the reads in the order of their sizes, each after the adds of its elements.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from checker.formats.columns import NEVER

if TYPE_CHECKING:
    from workloads.set.facts import Bools, Facts


class Skipped(NamedTuple):
    """A read that returned an element, but not another one that was in the set before the add of the former began.

    Attributes:
        read: The read.
        skipped: The element that it did not return.
        returned: The element that it returned.
    """

    read: int
    skipped: int
    returned: int


class Crossed(NamedTuple):
    """Two reads that each returned an element which the other did not return.

    Attributes:
        one: The first read.
        other: The second read.
        of_one: An element that only the first read returned.
        of_other: An element that only the second read returned.
    """

    one: int
    other: int
    of_one: int
    of_other: int


def skipped(facts: Facts, sound: Bools) -> list[Skipped]:
    """Returns the reads that skip an element, with one such element each.

    Args:
        facts: The facts about the elements.
        sound: The elements to consider: those without another anomaly.
    """
    known = np.where(sound, facts.known, NEVER)
    order = np.argsort(known)
    known_in_order = known[order]
    cases = []
    for read, listed in enumerate(facts.members):
        members = listed[sound[listed]]
        if not len(members):
            continue
        begins = facts.add_start[members]
        start, latest = int(facts.read_start[read]), int(begins.max())
        low, high = np.searchsorted(known_in_order, [start, latest])
        returned = np.count_nonzero((known[members] > start) & (known[members] < latest))
        if high - low > returned:
            missing = np.setdiff1d(order[low:high], members)
            earliest = missing[np.argmin(known[missing])]
            cases.append(Skipped(read, int(earliest), int(members[np.argmax(begins)])))
    return cases


def crossed(facts: Facts, sound: Bools) -> list[Crossed]:
    """Returns the neighbours in the order of the reads' sizes of which neither returned all elements of the other.

    Args:
        facts: The facts about the elements.
        sound: The elements to consider: those without another anomaly.
    """
    stamp = np.full(len(sound), -1)
    members = [listed[sound[listed]] for listed in facts.members]
    order = sorted(range(len(members)), key=lambda read: len(members[read]))
    cases = []
    for index, (small, large) in enumerate(pairwise(order)):
        stamp[members[large]] = index
        alone = members[small][stamp[members[small]] != index]
        if len(alone):
            others = np.setdiff1d(members[large], members[small])
            cases.append(Crossed(small, large, int(alone.min()), int(others.min())))
    return cases
