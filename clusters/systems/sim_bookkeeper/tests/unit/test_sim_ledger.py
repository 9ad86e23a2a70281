"""Single ledgers of the simulated BookKeeper, message by message: creation, fences, recovery, close, and reads."""

from __future__ import annotations

import random
from typing import Any

import pytest

from clusters.systems.sim_bookkeeper import outcomes
from clusters.systems.sim_bookkeeper.bugs import Bug
from clusters.systems.sim_bookkeeper.ledger_messages import AskHeld, LedgerRequest
from clusters.systems.sim_bookkeeper.messages import Add, Answer, Put
from clusters.systems.sim_bookkeeper.options import Protocol
from clusters.systems.sim_bookkeeper.tests.catches.bookkeeper_stage import KEY, Stage, only_b1, without_b1


class LedgerStage(Stage):
    """The nodes, and requests on one ledger."""

    def __init__(self, bug: Bug = Bug.NONE) -> None:
        super().__init__(Protocol.LEDGERS, bug=bug)

    def request(self, node: str, f: str, value: Any = None) -> int:
        """Gives a request to a client node. Returns the number under which its answer comes."""
        return self.ask(node, LedgerRequest(KEY, f, value))

    def carried_out(self, node: str, f: str, value: Any = None) -> Any:
        """Returns the result of a request, or the code of another answer."""
        number = self.request(node, f, value)
        self.deliver()
        answer = self.answers[number]
        return answer.value if answer.code == outcomes.OK else answer.code


def created(bug: Bug = Bug.NONE) -> LedgerStage:
    """Returns a ledger of c1 with 1 on all bookies."""
    stage = LedgerStage(bug)
    assert stage.carried_out("c1", "append", 1) == 0
    return stage


def test_the_first_append_creates_the_ledger_and_its_node_writes_it() -> None:
    """Nobody can recover it before, and the other client node refuses appends, and names the writer."""
    stage = LedgerStage()
    assert [stage.carried_out("c2", f) for f in ("recover", "confirmed")] == [outcomes.NO_LEDGER] * 2
    assert [stage.carried_out("c1", "append", value) for value in (1, 2)] == [0, 1]
    number = stage.request("c2", "append", 3)
    stage.deliver()
    assert stage.answers[number] == Answer(outcomes.NOT_WRITER, writer="c1")


def test_two_creators_get_one_ledger() -> None:
    """Both ask at once. The second to reach the metadata store is not the writer."""
    stage = LedgerStage()
    first, second = stage.request("c1", "append", 1), stage.request("c2", "append", 2)
    stage.deliver()
    assert stage.answers[first] == Answer(outcomes.OK, 0)
    assert stage.answers[second] == Answer(outcomes.NOT_WRITER, writer="c1")


def test_a_process_that_starts_again_does_not_write_the_ledger_of_the_one_before() -> None:
    """It asks for the same ledger at its first append, and learns that there is one."""
    stage = created()
    stage.start("c1")
    stage.hosts["c1"].random = random.Random(2)
    assert stage.carried_out("c1", "append", 2) == outcomes.NOT_WRITER
    assert stage.carried_out("c1", "recover") == 0


def test_a_recovery_fences_the_writer_and_keeps_what_it_finds() -> None:
    """2 is on b1 only, and the recovery reads it there. Its append is indeterminate, and both nodes agree on the end."""
    stage = created()
    late = stage.request("c1", "append", 2)
    stage.deliver(without=only_b1)
    assert late not in stage.answers
    assert stage.carried_out("c2", "recover") == 1
    stage.retry("c1")
    stage.deliver()
    assert stage.answers[late] == Answer(outcomes.FENCED)
    assert [stage.carried_out(node, "recover") for node in ("c1", "c2")] == [1, 1]
    assert stage.carried_out("c2", "read", [0, 9]) == [[0, 1], [1, 2]]
    number = stage.ask("md", AskHeld(KEY))
    stage.deliver()
    answer: Any = stage.answers[number]
    assert answer.meta.segments[-1].last == 1


def test_two_recoveries_agree_on_the_end() -> None:
    """c1 does not hear b1, the only bookie with 2, and c2 does. The first to close wins."""
    stage = created()
    stage.request("c1", "append", 2)
    stage.deliver(without=only_b1)
    stage.start("c1")
    first = stage.request("c1", "recover")
    stage.deliver(
        without=lambda *mail: without_b1(*mail) or (isinstance(mail[2], Put) and mail[2].meta.segments[-1].last == 0)
    )
    assert first not in stage.answers
    assert stage.carried_out("c2", "recover") == 1
    stage.retry("c1")
    stage.deliver()
    assert stage.answers[first] == Answer(outcomes.OK, 1)


def test_a_close_changes_no_end_of_a_recovery_at_the_same_node() -> None:
    """The recovery of c1 finds 2, which its writer part has not confirmed."""
    stage = created()
    stage.request("c1", "append", 2)
    stage.deliver(without=only_b1)
    assert stage.carried_out("c1", "recover") == 1
    assert stage.carried_out("c1", "close") == outcomes.FENCED
    assert stage.carried_out("c2", "recover") == 1


def test_the_writer_closes_its_ledger_and_a_reader_sees_confirmed_entries_only() -> None:
    """The last entry is confirmed with the next one, or by the close."""
    stage = created()
    assert stage.carried_out("c1", "append", 2) == 1
    assert stage.carried_out("c2", "confirmed") == 0
    assert stage.carried_out("c2", "read", [0, 9]) == [[0, 1]]
    assert stage.carried_out("c2", "close") == outcomes.NOT_WRITER
    assert stage.carried_out("c1", "close") == 1
    assert [stage.carried_out("c2", f) for f in ("confirmed", "recover")] == [1, 1]
    assert stage.carried_out("c1", "append", 3) == outcomes.NOT_WRITER


@pytest.mark.parametrize(("bug", "last"), [(Bug.NONE, 1), (Bug.UNCONFIRMED_READS, 2)])
def test_a_confirmation_is_of_an_entry_that_the_ack_quorum_has(bug: Bug, last: int) -> None:
    """Entry 2 reached b1 only. With the bug, a reader takes it for confirmed."""
    stage = created(bug)
    stage.carried_out("c1", "append", 3)
    stage.request("c1", "append", 2)
    stage.deliver(without=lambda _, receiver, message: isinstance(message, Add) and receiver != "b1")
    number = stage.request("c2", "confirmed")
    stage.deliver(without=lambda sender, *_: sender == "b3")
    assert stage.answers[number] == Answer(outcomes.OK, last)
