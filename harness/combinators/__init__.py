"""Generators that combine generators, with Jepsen's names where the meaning is the same.

All of them keep two rules. They pass on an operation of a child at once, so no operation is drawn and then dropped. And each
child gets every event, of its own operations and of others.

There are two differences from Jepsen. Each worker goes through a sequence separately, and only `phases`, `then` and
`synchronize` make workers wait for each other. And a child that answers `Later` never delays a child that could continue.
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
