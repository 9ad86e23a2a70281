"""The bank workload: transfers between accounts, and reads of all balances. Jepsen has it as `jepsen.tests.bank`."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from harness.combinators import each_stream
from harness.declare import hold_bounds, option
from harness.errors import InputError
from harness.op import Invocation
from workloads.base import JudgedWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.combinators import Source, Stream
    from harness.generator import Asker, Generator

_LEAST: Final = 2  # accounts, for a transfer
_DIGITS: Final = 6  # of a number of accounts, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class BankOptions:
    """The options of the bank workload, with Jepsen's names and defaults."""

    accounts: str = option(
        "8",
        "The accounts: a number N for the accounts 0 to N-1, or their names with commas between them.",
        metavar="NAMES",
        judges=True,
    )
    total_amount: int = option(
        100,
        "The sum of all balances. At the beginning, the first account has all of it.",
        low=1,
        high=10**15,
        judges=True,
    )
    max_transfer: int = option(5, "The largest amount of a transfer; the smallest is 1.", low=1, high=10**15)
    negative_balances: bool = option(default=False, help="A balance may be negative.", judges=True)
    read_share: float = option(0.5, "The share of operations that are reads.", low=0, high=1)

    def __post_init__(self) -> None:
        hold_bounds(self)
        if len(set(self.names)) < _LEAST:
            raise InputError(f"expected two accounts or more, found {self.accounts!r}; a transfer needs two")
        if not 0 < self.read_share < 1:
            raise InputError(
                f"expected a share of reads between 0 and 1, not {self.read_share}; without reads, or without transfers, "
                "nothing is tested"
            )

    @property
    def names(self) -> Sequence[str]:
        """Returns the names of the accounts."""
        parts = [part.strip() for part in self.accounts.split(",") if part.strip()]
        if len(parts) == 1 and parts[0].isdecimal() and parts[0].isascii() and len(parts[0]) <= _DIGITS:
            return [str(number) for number in range(int(parts[0]))]
        return parts


class BankWorkload(JudgedWorkload[BankOptions]):
    """Transfers and reads of all balances; see `harness.workload.Workload` and `checker.judging.Judge`."""

    name = "bank"
    summary = "Transfers between accounts and reads of all balances, whose sum must never change."
    Options = BankOptions
    functions = MappingProxyType(
        {
            "transfer": "{from, to, amount} -> the same; a transfer that would make a balance negative fails",
            "read": "null -> an object with the balance of each account; at first, the first account has all",
        }
    )

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns transfers between two different accounts, and reads."""
        return each_stream(self._operations, seed=seed, streams=streams)

    def judge(self, history: Columns) -> Judgement:
        """Decides one bank."""
        from workloads.bank.judge import Bank, judge  # noqa: PLC0415 - `--help` needs no judge

        options = self.options
        return judge(
            history,
            Bank(accounts=options.names, total=options.total_amount, may_be_negative=options.negative_balances),
        )

    def _operations(self, stream: Stream) -> Source:
        options, names = self.options, self.options.names

        def operation(_: Asker) -> Invocation:
            is_read, source, step = stream.random(), stream.below(len(names)), stream.below(len(names) - 1)
            amount = 1 + stream.below(options.max_transfer)
            if is_read < options.read_share:
                return Invocation("read", None)
            target = names[(source + 1 + step) % len(names)]
            return Invocation("transfer", {"from": names[source], "to": target, "amount": amount})

        return operation
