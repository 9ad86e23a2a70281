"""Generators made of generators, with Jepsen's names where they mean the same.

The law they all keep: an operation that a part answers is passed on at once, so nothing is asked for and then thrown away; and
what a part is told is every event, its own operations' and others'.

Two differences from Jepsen are on purpose. Each worker goes through a sequence on its own, and only `phases`, `then` and
`synchronize` make workers wait for each other. And a part that answers `Later` never holds up another that could go on.
"""

from harness.combinators.bounds import limit, once, time_limit, until_ok
from harness.combinators.choice import mix
from harness.combinators.keys import independent
from harness.combinators.order import concat, cycle, phases, sleep, synchronize, then
from harness.combinators.pace import delay, poisson, stagger
from harness.combinators.sources import from_function, repeat, sequence
from harness.combinators.workers import each_process, each_worker, on_workers, reserve

__all__ = [
    "concat",
    "cycle",
    "delay",
    "each_process",
    "each_worker",
    "from_function",
    "independent",
    "limit",
    "mix",
    "on_workers",
    "once",
    "phases",
    "poisson",
    "repeat",
    "reserve",
    "sequence",
    "sleep",
    "stagger",
    "synchronize",
    "then",
    "time_limit",
    "until_ok",
]
