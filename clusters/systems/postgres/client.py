"""The client of PostgreSQL: one session of one process, for transactions over lists and registers.

A key is a row of one table. A transaction begins with its isolation level. Then each micro-operation is one statement, and
COMMIT ends it. A read is a SELECT of the row. An append or a write is an INSERT, which changes the row instead if it is there:
an append adds the element to the text of the row, so the server reads and writes in one statement.

Source: PostgreSQL 15, "Transaction Isolation" and "INSERT".
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import PAUSE_S, NoAnswer, NotSent, Refused, no_answer, unsupported
from clusters.kit.stored import value_of
from clusters.kit.transactions import LIST_APPEND, READ, TRANSACTION, only_reads
from clusters.systems.postgres.connection import Connection, literal
from clusters.systems.postgres.options import Level
from clusters.systems.postgres.outcomes import refused
from harness.op import ONLY_KEY, Fail, Ok

if TYPE_CHECKING:
    from clusters.kit.transactions import Mops
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

TABLE: Final = "labrys"
CREATE: Final = f"CREATE TABLE IF NOT EXISTS {TABLE} (key text PRIMARY KEY, value text NOT NULL)"
ANSWER_TIMEOUT_S: Final = 3.0


class PostgresClient:
    """A `harness.client.RoutedClient`: it asks the primary, and a standby for reads if it has one.

    Attributes:
        node: The primary.
        via: The node that received its last transaction; None if the client has no standby.
    """

    def __init__(self, *, node: Node, standby: Node | None, workload: str, level: Level) -> None:
        """Connects with the first transaction.

        Args:
            node: The primary.
            standby: The node that transactions which only read ask; None: they ask the primary.
            workload: The workload.
            level: The isolation level of a transaction on the primary.
        """
        self.node = node
        self.via: str | None = None
        self._standby = standby
        self._of_lists = workload == LIST_APPEND
        self._level = level
        self._sessions = {each.name: Connection(each.address) for each in (node, standby) if each is not None}
        self._in_commit = False

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out a transaction."""
        if invocation.f != TRANSACTION:
            return unsupported(invocation.f, invocation.value)
        mops: Mops = invocation.value
        is_read = only_reads(mops)
        node = self._standby if is_read and self._standby is not None else self.node
        self.via = None if self._standby is None else node.name
        session, self._in_commit = self._sessions[node.name], False
        complete = False
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                answer = await self._transact(session, invocation.key or ONLY_KEY, mops, on_standby=node != self.node)
            complete = True
        except Refused as error:
            return refused(error.code, str(error), in_commit=self._in_commit, is_read=is_read)
        except NotSent as error:
            await asyncio.sleep(PAUSE_S)
            return Fail(f"not-connected: {error}")
        except (NoAnswer, TimeoutError) as error:
            missing = f"no-answer: {error or f'no answer in {ANSWER_TIMEOUT_S:g} s'}"
            return no_answer(missing, is_read=is_read or not self._in_commit)
        finally:
            if not complete:
                await session.close()  # the server rolls back
        return Ok(answer)

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
        row = literal(f"{key}/{name}")
        if function == READ:
            _, rows = await session.query(f"SELECT value FROM {TABLE} WHERE key = {row}")  # noqa: S608 - a literal
            text = rows[0][0] if rows and rows[0] else None
            if text is None:
                return None
            return value_of(f"[{text}]" if self._of_lists else text)
        value = f"{TABLE}.value || ',' || excluded.value" if self._of_lists else "excluded.value"
        await session.query(
            f"INSERT INTO {TABLE} (key, value) VALUES ({row}, {literal(json.dumps(new))}) "  # noqa: S608 - literals
            f"ON CONFLICT (key) DO UPDATE SET value = {value}"
        )
        return new
