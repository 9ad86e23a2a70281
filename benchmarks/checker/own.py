"""Users' own models: a state and a `step`, without help for the search except the marking of observers.

The same models in Go are beside porcupine's driver. A refusal is observed, because it depends on the state. An operation that
never returned may also have been refused.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from checker.models import Call, Inconsistent, Model

if TYPE_CHECKING:
    from collections.abc import Sequence

CAPACITY: Final = 4
PARTICIPANTS: Final = 3
ACCOUNTS: Final = 5
BALANCE: Final = 100
KEYS: Final = 4
Table: TypeAlias = "Sequence[Sequence[tuple[int, int]]]"  # by state and kind: the next state and the answer


class MaxRegister(Model):
    """`max` raises it, `read` gives it."""

    name: ClassVar[str] = "max-register"
    initial = 0

    def step(self, state: Any, op: Call) -> Any:
        """See `Model`."""
        if op.f == "max":
            return max(state, op.argument)
        return state if not op.ok or op.result == state else Inconsistent(f"read {op.result}, but it is {state}")


class BoundedStack(Model):
    """`push` is refused if it is full, `pop` if it is empty."""

    name: ClassVar[str] = "bounded-stack"
    initial = ()
    keeps_failed = frozenset({"push", "pop"})

    def step(self, state: Any, op: Call) -> Any:
        """See `Model`."""
        refused = len(state) == CAPACITY if op.f == "push" else not state
        if refused or op.failed:
            return state if refused and not op.ok else Inconsistent(f"it holds {len(state)}")
        if op.f == "push":
            return (*state, op.argument)
        return state[:-1] if not op.ok or op.result == state[-1] else Inconsistent(f"the top is {state[-1]}")


class LeaseLock(Model):
    """`acquire` gives a token, `release` takes it back, and `expire` ends any lease.

    A state is the holder's token, or 0, and the last token given.
    """

    name: ClassVar[str] = "lease-lock"
    initial = (0, 0)
    keeps_failed = frozenset({"acquire", "release"})

    def step(self, state: Any, op: Call) -> Any:
        """See `Model`."""
        holder, last = state
        if op.f == "expire":
            return (0, last)
        refused = holder != 0 if op.f == "acquire" else holder != op.argument
        if refused or op.failed:
            return state if refused and not op.ok else Inconsistent(f"the holder is {holder}")
        if op.f == "release":
            return (0, last)
        return (
            (last + 1, last + 1) if not op.ok or op.result == last + 1 else Inconsistent(f"{last} was the last token")
        )


class TwoPhaseCommit(Model):
    """A coordinator of three participants, one transaction after the other.

    A state is the number of the transaction, its phase, and the vote of each participant.
    """

    name: ClassVar[str] = "two-phase-commit"
    initial = (0, "idle", (None,) * PARTICIPANTS)
    keeps_failed = frozenset({"begin", "vote", "commit", "abort"})

    def step(self, state: Any, op: Call) -> Any:
        """See `Model`."""
        number, phase, votes = state
        if op.f == "read":
            return state if not op.ok or op.result == (number, phase) else Inconsistent(f"{number} is {phase}")
        after = self.after(state, op)
        if after is None or op.failed:
            return state if after is None and not op.ok else Inconsistent(f"{number} is {phase} with votes {votes}")
        return (
            after if op.f != "begin" or not op.ok or op.result == number + 1 else Inconsistent(f"{number} was the last")
        )

    @staticmethod
    def after(state: Any, op: Call) -> Any:
        """Returns the state after a mutator; None if it is refused."""
        number, phase, votes = state
        if op.f == "begin":
            return None if phase == "voting" else (number + 1, "voting", (None,) * PARTICIPANTS)
        transaction = op.argument[0] if op.f == "vote" else op.argument
        if transaction != number or phase != "voting":
            return None
        if op.f == "vote":
            _, who, vote = op.argument
            return None if votes[who] is not None else (number, phase, (*votes[:who], vote, *votes[who + 1 :]))
        if op.f == "abort":
            return (number, "aborted", votes)
        return (number, "committed", votes) if votes == ("yes",) * PARTICIPANTS else None


class CasList(Model):
    """`append` of a length and a value is refused unless the list has that length."""

    name: ClassVar[str] = "cas-list"
    initial = ()
    keeps_failed = frozenset({"append"})

    def step(self, state: Any, op: Call) -> Any:
        """See `Model`."""
        if op.f == "read":
            return state if not op.ok or op.result == state else Inconsistent(f"it has {len(state)} values")
        length, value = op.argument
        refused = length != len(state)
        if refused or op.failed:
            return state if refused and not op.ok else Inconsistent(f"it has {len(state)} values")
        return (*state, value)


class Bank(Model):
    """Accounts: `transfer` of `[from, to, amount]`, refused if the balance is too low; `read` of one or of all."""

    name: ClassVar[str] = "bank"
    initial = (BALANCE,) * ACCOUNTS

    def step(self, state: tuple[int, ...], op: Call) -> tuple[int, ...] | Inconsistent:
        """See `Model`."""
        if op.f == "read":
            balance = list(state) if op.argument is None else state[op.argument]
            return state if op.result == balance else Inconsistent(f"read {op.result}, but the accounts hold {balance}")
        source, target, amount = op.argument
        enough = state[source] >= amount
        if op.ok and op.result is not enough:
            return Inconsistent(
                f"a transfer of {amount} from {source} answers {op.result}, but it holds {state[source]}"
            )
        if not enough:
            return state
        after = list(state)
        after[source] -= amount
        after[target] += amount
        return tuple(after)

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read" or (op.ok and op.result is False)

    def impossible(self, op: Call) -> str | None:
        """See `Model`."""
        if op.f != "read":
            return None
        bank = ACCOUNTS * BALANCE
        balances = op.result if isinstance(op.result, list) else [op.result]
        right = sum(balances) == bank if op.argument is None else balances[0] in range(bank + 1)
        return None if right else f"the bank has {bank}, but the read says {op.result}"


class Store(Model):
    """Keys of a store as one object: `put` of `[key, value]`, `get` of a key, and `cas` of `[key, expected, new]`."""

    name: ClassVar[str] = "store"
    initial = (0,) * KEYS

    def step(self, state: tuple[int, ...], op: Call) -> tuple[int, ...] | Inconsistent:
        """See `Model`."""
        if op.f == "get":
            balance = state[op.argument]
            return (
                state
                if op.result == balance
                else Inconsistent(f"got {op.result} of {op.argument}, which holds {balance}")
            )
        key, *expected, new = op.argument
        matches = op.f == "put" or state[key] == expected[0]
        if op.f == "cas" and op.ok and op.result is not matches:
            return Inconsistent(f"cas from {expected[0]} answers {op.result}, but {key} holds {state[key]}")
        return (*state[:key], new, *state[key + 1 :]) if matches else state

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "get" or (op.ok and op.result is False)


class Automaton(Model):
    """A table: an operation's kind and the state determine the next state and the answer."""

    name: ClassVar[str] = "automaton"
    initial = 0

    def __init__(self, table: Table) -> None:
        """Makes the model.

        Args:
            table: By state and kind: the next state and the answer.
        """
        self.table = table

    def step(self, state: Any, op: Call) -> Any:
        """See `Model`."""
        after, answer = self.table[state][int(op.f)]
        return after if not op.ok or op.result == answer else Inconsistent(f"state {state} answers {answer}")


def random_table(seed: str) -> Table:
    """Returns a table of 2 to 12 states, 3 to 8 kinds of operations and 2 to 3 answers."""
    random = Random(seed)
    states, kinds, answers = random.randint(2, 12), random.randint(3, 8), random.randint(2, 3)
    return [[(random.randrange(states), random.randrange(answers)) for _ in range(kinds)] for _ in range(states)]
