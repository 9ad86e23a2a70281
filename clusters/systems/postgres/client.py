"""The clients of PostgreSQL: one session of one process, for transactions over lists and registers.

A key is a row of one table. A transaction begins with its isolation level. Then each micro-operation is one statement, and
COMMIT ends it. A read is a SELECT of the row. An append or a write is an INSERT, which changes the row instead if it is there:
an append adds the element to the text of the row, so the server reads and writes in one statement.

Source: PostgreSQL 15, "Transaction Isolation" and "INSERT".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar, Final

from clusters.kit.answers import Refused
from clusters.kit.contracts import Seen, Transactions, by_workload
from clusters.kit.stored import value_of
from clusters.kit.transactions import LIST_APPEND, READ, RW_REGISTER, only_reads
from clusters.systems.postgres.connection import Connection, literal
from clusters.systems.postgres.options import Level
from clusters.systems.postgres.outcomes import ROLLED_BACK

if TYPE_CHECKING:
    from clusters.kit.transactions import Mops
    from harness.node import Node
    from harness.op import Value

TABLE: Final = "labrys"
CREATE: Final = f"CREATE TABLE IF NOT EXISTS {TABLE} (key text PRIMARY KEY, value text NOT NULL)"


class PostgresTransactions(Transactions):
    """A `harness.client.RoutedClient`: it asks the primary, and a standby for reads if it has one.

    Attributes:
        row: The text of a row after a change, in SQL.
        form: What makes JSON of the text of a row.
        node: The primary.
        via: The node that received its last transaction; None if the client has no standby.
    """

    serves = (
        "txn is a transaction of the isolation level: SELECT for a read, INSERT ... ON CONFLICT DO UPDATE for a change"
    )
    never_happened = ROLLED_BACK
    read_timeout_s = change_timeout_s = 3.0
    row: ClassVar[str]
    form: ClassVar[str]

    def __init__(self, *, node: Node, standby: Node | None, level: Level) -> None:
        """Connects with the first transaction.

        Args:
            node: The primary.
            standby: The node that transactions which only read ask; None: they ask the primary.
            level: The isolation level of a transaction on the primary.
        """
        self.node = node
        self.via: str | None = None
        self._standby = standby
        self._level = level
        self._sessions = {asked.name: Connection(asked.address) for asked in (node, standby) if asked is not None}
        self._in_commit = False

    def was_sent(self) -> bool:
        """Returns whether the transaction has begun its COMMIT; before that, the server rolls back."""
        return self._in_commit

    async def carry_out(self, key: str, mops: Mops) -> Seen:
        """Carries out a transaction. If it does not end well, its session ends, so the server rolls back."""
        standby = self._standby if only_reads(mops) else None
        node = standby or self.node
        self.via = None if self._standby is None else node.name
        session, self._in_commit = self._sessions[node.name], False
        complete = False
        try:
            answer = await self._transact(session, key, mops, on_standby=standby is not None)
            complete = True
        finally:
            if not complete:
                await session.close()
        return Seen(answer)

    async def close(self) -> None:
        """Closes the sessions."""
        for session in self._sessions.values():
            await session.close()

    async def _transact(self, session: Connection, key: str, mops: Mops, *, on_standby: bool) -> Mops:
        level = Level.REPEATABLE_READ if on_standby and self._level is Level.SERIALIZABLE else self._level
        await session.query(f"BEGIN ISOLATION LEVEL {level.sql}")
        answer = [[function, name, await self._one(session, key, function, name, new)] for function, name, new in mops]
        self._in_commit = True
        tag, _ = await session.query("COMMIT")
        if tag != "COMMIT":
            raise Refused("40000", f"the server answered COMMIT with {tag[:20]}")
        return answer

    async def _one(self, session: Connection, key: str, function: Value, name: Value, new: Value) -> Value:
        """Carries out a micro-operation, and returns its result."""
        row_key = literal(f"{key}/{name}")
        if function == READ:
            _, rows = await session.query(f"SELECT value FROM {TABLE} WHERE key = {row_key}")  # noqa: S608 - a literal
            text = rows[0][0] if rows and rows[0] else None
            return None if text is None else value_of(self.form.format(text))
        await session.query(
            f"INSERT INTO {TABLE} (key, value) VALUES ({row_key}, {literal(json.dumps(new))}) "  # noqa: S608 - literals
            f"ON CONFLICT (key) DO UPDATE SET value = {self.row}"
        )
        return new


class PostgresLists(PostgresTransactions):
    """A list is a text with its elements and commas between them."""

    workloads = (LIST_APPEND,)
    row = f"{TABLE}.value || ',' || excluded.value"
    form = "[{}]"


class PostgresRegisters(PostgresTransactions):
    """A register is the text of its value."""

    workloads = (RW_REGISTER,)
    row = "excluded.value"
    form = "{}"


CLIENTS: Final = by_workload(PostgresLists, PostgresRegisters)
