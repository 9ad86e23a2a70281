"""The bank: Jepsen's kinds of wrong reads, its options, and what a judgement says; the generator moves only what it may."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from checker.checking import Request, check_file
from checker.deciders import Wanted
from checker.formats.columns import of_operations
from checker.formats.parquet import write_operations
from checker.judging.judged import Judged
from checker.models import model
from harness.errors import InputError
from harness.op import Operation, OpType
from harness.verdict import Verdict
from tests.unit.workloads.spoiled_histories import operation
from tests.unit.workloads.streams import drawn
from workloads.bank import BankOptions, BankWorkload

if TYPE_CHECKING:
    from pathlib import Path

    from checker.judging import Judgement

ACCOUNTS = ("0", "1", "2")


def judged(operations: list[Operation], **options: Any) -> Judgement:
    """Judges a bank of three accounts with 10 in all, unless the options say otherwise."""
    given = {"accounts": "3", "total_amount": 10, **options}
    return BankWorkload(BankOptions(**given)).judge(of_operations(operations))


def transfer(begin: int, end: int, amount: int = 1, kind: OpType = OpType.OK, process: int = 0) -> Operation:
    """Returns a transfer from account 0 to account 1."""
    value = {"from": "0", "to": "1", "amount": amount}
    return operation(begin, end, "transfer", value, value, kind, process)


def read(begin: int, end: int, balances: Any, process: int = 1) -> Operation:
    """Returns a read."""
    return operation(begin, end, "read", None, balances, process=process)


def test_reads_with_the_right_sum_are_valid() -> None:
    """Whatever transfers are under way; an account may be missing, as for Jepsen."""
    judgement = judged([transfer(0, 3), read(1, 2, {"0": 10, "1": 0, "2": 0}), read(4, 5, {"0": 9, "1": 1})])
    assert (judgement.verdict, judgement.reason) == (Verdict.VALID, "All 2 reads returned balances of 10 in all.")
    assert dict(judgement.counts) == {
        "transfers": 1, "reads": 2, "unexpected-key": 0, "nil-balance": 0, "wrong-total": 0, "negative-value": 0,
    }  # fmt: skip
    assert dict(judgement.figures) == {"read-count": 2, "error-count": 0}
    assert judgement.plot is not None


@pytest.mark.parametrize(
    ("balances", "kind", "sentence"),
    [
        ({"0": 9, "1": 0, "2": 0}, "wrong-total", "which is 9 in all, and not 10."),
        ([9, 0, 0], "wrong-total", "which is 9 in all, and not 10."),
        ({"0": 11, "1": -1, "2": 0}, "negative-value", "but no balance may be negative: '1' has -1."),
        ({"0": 10, "1": None, "2": 0}, "nil-balance", "but '1' has no balance."),
        ({"0": 10, "1": 0, "7": 0}, "unexpected-key", "but the bank has no account '7'."),
        ({"0": None, "7": 3}, "unexpected-key", "but the bank has no account '7'."),
        ({"0": 11, "1": -2, "2": 0}, "wrong-total", "which is 9 in all, and not 10."),
    ],
)
def test_a_wrong_read_has_the_kind_that_jepsen_says(balances: Any, kind: str, sentence: str) -> None:
    """The first kind that holds; the sentence has the process, the balances and the event, and the transfers under way."""
    judgement = judged([transfer(0, 3), read(1, 2, balances), read(4, 5, {"0": 9, "1": 1, "2": 0})])
    assert (judgement.verdict, judgement.reason) == (
        Verdict.INVALID,
        "1 of 2 reads returned balances that the bank cannot have.",
    )
    assert {
        name: number for name, number in judgement.counts.items() if number and name not in {"transfers", "reads"}
    } == {kind: 1}
    [anomaly] = judgement.anomalies
    assert anomaly.kind == kind
    assert sentence in anomaly.explanation
    assert anomaly.explanation.startswith(f"{kind}: Process 1 read ")
    assert " at event 2" in anomaly.explanation
    assert anomaly.explanation.endswith("One transfer was under way.")
    assert (anomaly.rows, anomaly.decisive) == ((0, 1), 1)
    errors: Any = judgement.figures["errors"]
    assert errors[kind]["count"] == 1
    assert errors[kind]["first"] == errors[kind]["last"] == 2


def test_figures_have_the_worst_sum() -> None:
    """With Jepsen's names: the lowest and the highest sum, and the read that is farthest from the total."""
    reads = [read(2 * at + 2, 2 * at + 3, [total, 0, 0]) for at, total in enumerate((10, 9, 14, 3, 11))]
    judgement = judged([transfer(0, 1), *reads])
    assert judgement.figures["errors"] == {
        "wrong-total": {"count": 4, "first": 5, "last": 11, "worst": 9, "lowest": 3, "highest": 14}
    }
    assert judgement.figures["error-count"] == 4


def test_balances_may_be_negative_on_request() -> None:
    """The sum must be right all the same."""
    operations = [transfer(0, 1, 12), read(2, 3, {"0": -2, "1": 12, "2": 0})]
    assert judged(operations).counts["negative-value"] == 1
    assert judged(operations, negative_balances=True).verdict is Verdict.VALID


def test_another_bank_is_told_with_its_option() -> None:
    """If all reads agree on another sum or other accounts, the sentence says how to give them."""
    judgement = judged([transfer(0, 1), read(2, 3, [50, 0, 0]), read(4, 5, [0, 50, 0])])
    assert "If it is the bank's total, say so: --workload-option total-amount=50." in judgement.anomalies[0].explanation
    named = judged([transfer(0, 1), read(2, 3, {"alice": 4, "bob": 6})])
    assert "say so: --workload-option accounts=alice,bob." in named.anomalies[0].explanation
    assert judged([transfer(0, 1), read(2, 3, {"alice": 4, "bob": 6})], accounts="alice, bob").verdict is Verdict.VALID
    apart = judged([transfer(0, 1), read(2, 3, [50, 0, 0]), read(4, 5, [0, 51, 0])])
    assert "--workload-option" not in apart.anomalies[0].explanation


def test_nothing_tested_is_unknown() -> None:
    """Without a read, or without a transfer that may have happened."""
    assert judged([transfer(0, 1)]).verdict is Verdict.UNKNOWN
    assert judged([read(0, 1, [10, 0, 0])]).verdict is Verdict.UNKNOWN
    assert judged([transfer(0, 1, kind=OpType.FAIL), read(2, 3, [10, 0, 0])]).verdict is Verdict.UNKNOWN
    assert judged([transfer(0, 1, kind=OpType.INFO), read(2, 3, [10, 0, 0])]).verdict is Verdict.VALID


@pytest.mark.parametrize("balances", [5, None, "x", {"0": "ten"}, {"0": True}, [[1]]])
def test_a_read_without_balances_is_refused(balances: Any) -> None:
    """The error has the event, what was expected, and what was found."""
    with pytest.raises(InputError, match="event 3: expected an object of numbers, the balances of all accounts"):
        judged([transfer(0, 1), read(2, 3, balances)])


@pytest.mark.parametrize("accounts", ["1", "", "a", "a,a", "0"])
def test_a_bank_has_two_accounts_or_more(accounts: str) -> None:
    """Else nothing can be transferred."""
    with pytest.raises(InputError, match="expected two accounts or more"):
        BankOptions(accounts=accounts)


def test_snapshots_are_valid_and_torn_reads_are_not() -> None:
    """Random banks: a read of one state is never accused, and a read of two states is, exactly if the sums differ."""
    source = random.Random("bank")
    torn = 0
    for _ in range(300):
        states = [[10, 0, 0]]
        for _ in range(source.randint(1, 8)):
            one, other = source.sample(range(3), 2)
            now = list(states[-1])
            amount = source.randint(0, now[one])
            now[one], now[other] = now[one] - amount, now[other] + amount
            states.append(now)
        before, after = source.choice(states), source.choice(states)
        cut = source.randint(0, 3)
        balances = dict(zip(ACCOUNTS, [*before[:cut], *after[cut:]], strict=True))
        judgement = judged([transfer(0, 1), read(2, 3, balances)])
        assert (judgement.verdict is Verdict.VALID) == (sum(balances.values()) == 10)
        torn += judgement.verdict is Verdict.INVALID
    assert torn > 20


EDN = """
{:type :invoke, :f :transfer, :process 0, :time 1, :value {:from 0, :to 1, :amount 5}}
{:type :fail, :f :transfer, :process 0, :time 2, :value [:negative 0]}
{:type :invoke, :f :transfer, :process 0, :time 3, :value {:from 1, :to 0, :amount 5}}
{:type :info, :f :transfer, :process 0, :time 4, :value {:from 1, :to 0, :amount 5}, :error :timeout}
{:type :invoke, :f :read, :process 1, :time 5, :value nil}
{:type :ok, :f :read, :process 1, :time 6, :value {0 %d, 1 15, 2 5}}
"""


@pytest.mark.parametrize(("balance", "verdict"), [(80, Verdict.VALID), (75, Verdict.INVALID)])
def test_each_format_is_checked(tmp_path: Path, balance: int, verdict: Verdict) -> None:
    """Jepsen's history with its defaults, as EDN, JSON and a table."""
    (tmp_path / "h.edn").write_text(EDN % balance)
    (tmp_path / "long.edn").write_text(EDN % balance + " " * (1 << 20))
    operations = [transfer(0, 1), read(2, 3, {"0": balance, "1": 15, "2": 5})]
    write_operations(tmp_path / "h.parquet", operations, run="r")
    events = [
        {"type": "invoke", "process": 0, "f": "transfer", "value": {"from": 0, "to": 1, "amount": 1}},
        {"type": "ok", "process": 0, "f": "transfer", "value": {"from": 0, "to": 1, "amount": 1}},
        {"type": "invoke", "process": 1, "f": "read", "value": None},
        {"type": "ok", "process": 1, "f": "read", "value": {"0": balance, "1": 15, "2": 5}},
    ]
    (tmp_path / "h.jsonl").write_text("\n".join(map(json.dumps, events)))
    for name in ("h.edn", "long.edn", "h.parquet", "h.jsonl"):
        [result] = check_file(str(tmp_path / name), Request(wanted=Wanted(workload="bank")))
        assert isinstance(result, Judged)
        assert result.verdict is verdict, name


def test_the_name_as_a_model_leads_to_the_workload() -> None:
    """Jepsen's users know the bank beside the models."""
    with pytest.raises(InputError, match="--workload bank"):
        model("bank")


def test_transfers_are_between_two_accounts() -> None:
    """Amounts from 1 to the largest, and reads without a value."""
    workload = BankWorkload(BankOptions(accounts="a,b,c", max_transfer=4))
    operations = drawn(workload, 1, 400)
    moved: list[Any] = [invocation.value for invocation in operations if invocation.f == "transfer"]
    assert {invocation.f for invocation in operations} == {"transfer", "read"}
    assert {(transfer_value["from"], transfer_value["to"]) for transfer_value in moved} == {
        (one, other) for one in "abc" for other in "abc" if one != other
    }
    assert {transfer_value["amount"] for transfer_value in moved} == {1, 2, 3, 4}
