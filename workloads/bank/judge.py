"""Checks one bank: each read must show balances that a bank can have whose transfers are atomic.

A transfer takes an amount from one account and gives it to another one. So the sum of all balances never changes, and a read
that is atomic returns balances with this sum, whatever transfers are under way. The judge examines each read alone. A wrong one
has the first of these kinds that holds:

- `unexpected-key`: the read returned an account that the bank does not have. Always invalid.
- `nil-balance`: an account has no balance. Always invalid.
- `wrong-total`: the balances do not add up to the bank's total. Always invalid.
- `negative-value`: a balance is below 0. Invalid unless `--negative-balances`.

These are the kinds and the order of Jepsen's `jepsen.tests.bank`. As there, a read may lack an account. This is not
linearizability: a read of an old state has the right sum. Other functions than `read` are transfers, whatever their names are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from checker.formats.columns import FAIL, OK
from checker.judging import Anomaly, value_at
from checker.judging.marks import Marks, plot
from checker.judging.rules import Rule, judged
from harness.console.documents import shown
from harness.console.plain import counted, counted_of
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.formats.columns import Columns, Int64s
    from checker.judging import Judgement
    from harness.op import Value

KINDS: Final = ("unexpected-key", "nil-balance", "wrong-total", "negative-value")
READ: Final = "read"
_MAX_CONCURRENT: Final = 4  # an anomaly shows at most so many of the transfers that were under way
_MAX_PLOTTED: Final = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Bank:
    """What a bank is.

    Attributes:
        accounts: The names of its accounts.
        total: The sum of all balances.
        may_be_negative: Whether a balance may be below 0.
    """

    accounts: Sequence[str]
    total: int
    may_be_negative: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A successful read.

    Attributes:
        row: Its row.
        balances: The balances by account.
        total: Their sum; None if an account has no balance.
        kind: What is wrong; None: nothing.
    """

    row: int
    balances: Mapping[str, Value]
    total: int | float | None
    kind: str | None


def judge(history: Columns, bank: Bank) -> Judgement:
    """Decides a bank.

    Args:
        history: The operations of one bank.
        bank: Its accounts and its total.

    Raises:
        InputError: The result of a read is not an object of balances, or a balance is not a number.
    """
    is_read = history.function == {name: at for at, name in enumerate(history.functions)}.get(READ, -1)
    rows = np.flatnonzero(is_read & (history.type == OK))
    rows = rows[np.argsort(history.start[rows], kind="stable")]
    transfers = np.flatnonzero(~is_read)
    may = transfers[history.type[transfers] != FAIL]
    reads = [_read(history, bank, row) for row in rows.tolist()]
    wrong = [read for read in reads if read.kind is not None]
    kinds = Counter(read.kind for read in wrong)
    counts = {
        "transfers": int(np.count_nonzero(history.type[transfers] == OK)),
        "reads": len(reads),
        **{kind: kinds[kind] for kind in KINDS},
    }
    hint = _hint(bank, reads)

    def rule(kind: str) -> Rule:
        return Rule(
            kind=kind,
            anomalies=lambda: (_anomaly(history, bank, may, read, hint) for read in wrong if read.kind == kind),
        )

    untested = None if len(may) else "No transfer may have happened, so nothing was tested."
    return judged(
        [rule(kind) for kind in KINDS],
        counts,
        held=f"All {counted(len(reads), 'read')} returned balances of {shown(bank.total)} in all.",
        untested=untested if reads else "No read succeeded, so nothing was tested.",
        broken=f"{counted_of(len(wrong), len(reads), 'read')} returned balances that the bank cannot have.",
        figures=_figures(history, bank, reads, wrong),
        plot=_plot(history, reads),
    )


def _read(history: Columns, bank: Bank, row: int) -> _Read:
    balances = _balances(history, row)
    known = [balance for balance in balances.values() if balance is not None]
    lacking = len(known) < len(balances)
    total = None if lacking else sum(known)
    kind = None
    if not balances.keys() <= set(bank.accounts):
        kind = "unexpected-key"
    elif lacking:
        kind = "nil-balance"
    elif total != bank.total:
        kind = "wrong-total"
    elif not bank.may_be_negative and any(balance < 0 for balance in known):
        kind = "negative-value"
    return _Read(row=row, balances=balances, total=total, kind=kind)


def _balances(history: Columns, row: int) -> dict[str, int | float | None]:
    """Returns the balances by account that a read returned; in a list, the first balance is that of the account 0.

    Raises:
        InputError: The result has another form.
    """
    value = value_at(history, history.result, row)
    if isinstance(value, list):
        value = {str(number): balance for number, balance in enumerate(value)}
    balances: dict[str, int | float | None] = {}
    for name, balance in value.items() if isinstance(value, dict) else [("", "")]:
        if balance is not None and (isinstance(balance, bool) or not isinstance(balance, int | float)):
            raise InputError(
                f"event {history.end[row]}: expected an object of numbers, the balances of all accounts, as the result of a "
                f"read, found {shown(value_at(history, history.result, row))}"
            )
        balances[name] = balance
    return balances


def _hint(bank: Bank, reads: Sequence[_Read]) -> str:
    """Returns which option to give if all reads agree on another bank than the options say; else nothing."""
    names = sorted({name for read in reads for name in read.balances})
    if any(read.kind == "unexpected-key" for read in reads):
        return f" If these are the accounts, say so: --workload-option accounts={','.join(names)}."
    totals = {read.total for read in reads}
    if len(totals) == 1 and None not in totals and totals != {bank.total}:
        opening = " The sum is the same in each read. If it is" if len(reads) > 1 else " If this is"
        return f"{opening} the bank's total, say so: --workload-option total-amount={shown(totals.pop())}."
    return ""


def _anomaly(history: Columns, bank: Bank, transfers: Int64s, read: _Read, hint: str) -> Anomaly:
    row = read.row
    open_ = transfers[(history.start[transfers] < history.end[row]) & (history.end[transfers] > history.start[row])]
    who = f"Process {history.process[row]} read {shown(dict(read.balances))} at event {history.end[row]}"
    balances = read.balances.items()
    match read.kind:
        case "unexpected-key":
            others = [name for name in read.balances if name not in set(bank.accounts)]
            what = f"but the bank has no account {', '.join(map(shown, others))}.{hint}"
        case "nil-balance":
            what = f"but {' and '.join(shown(name) for name, balance in balances if balance is None)} has no balance."
        case "wrong-total":
            what = f"which is {shown(read.total)} in all, and not {shown(bank.total)}.{hint}"
        case _:
            below = [f"{shown(name)} has {shown(balance)}" for name, balance in balances if _is_below(balance)]
            what = f"but no balance may be negative: {', '.join(below)}."
    under_way = f" {counted(len(open_), 'transfer')} were under way." if len(open_) > 1 else ""
    one = " One transfer was under way." if len(open_) == 1 else ""
    return Anomaly(
        kind=str(read.kind),
        subject=None if read.total is None else read.total,
        explanation=f"{read.kind}: {who}, {what}{under_way}{one}",
        rows=(*(int(index) for index in open_[-_MAX_CONCURRENT:]), row),
        decisive=row,
    )


def _is_below(balance: Value) -> bool:
    return isinstance(balance, int | float) and balance < 0


def _figures(history: Columns, bank: Bank, reads: Sequence[_Read], wrong: Sequence[_Read]) -> dict[str, Value]:
    """Returns the figures of Jepsen's bank, with its names; operations are the events of their completions."""
    errors: dict[str, Value] = {}
    for kind in KINDS:
        some = [read for read in wrong if read.kind == kind]
        if not some:
            continue
        figures: dict[str, Value] = {
            "count": len(some),
            "first": int(history.end[some[0].row]),
            "last": int(history.end[some[-1].row]),
        }
        if kind == "wrong-total":
            totals = [read.total for read in some if read.total is not None]
            worst = max(some, key=lambda read: abs((read.total or 0) - bank.total))
            figures |= {"worst": int(history.end[worst.row]), "lowest": min(totals), "highest": max(totals)}
        errors[kind] = figures
    return {"read-count": len(reads), "error-count": len(wrong), **({"errors": errors} if errors else {})}


def _plot(history: Columns, reads: Sequence[_Read]) -> dict[str, Value] | None:
    """Returns the plot of the sum of each read over time."""
    known = [read for read in reads if read.total is not None and abs(read.total) < _MAX_PLOTTED]

    def marks(name: str, some: Sequence[_Read], *, good: bool) -> Marks:
        return Marks(
            name=name,
            tone="good" if good else "bad",
            time_ns=history.end_ns[[read.row for read in some]] if some else np.zeros(0, np.int64),
            height=np.array([read.total for read in some]),
        )

    if not known:
        return None
    right = [read for read in known if read.kind is None]
    wrong = [read for read in known if read.kind is not None]
    return plot(
        "Sums of balances over time",
        "sum of all balances",
        [marks("right", right, good=True), marks("wrong", wrong, good=False)],
    )
