"""The client of Redis: one connection of one process, for registers, sets, counters, locks, queues and transactions.

- A register is a key. A compare-and-set is a script that compares and sets.
- A set is a set of Redis. A counter is a key with INCRBY.
- A lock is a key that exists while the lock is held, with the holder's mark, and a counter beside it for its token.
- A queue is a list: RPUSH at one end, LPOP at the other. Or it is a stream with one group of consumers: XADD, and XREADGROUP
  with XACK and XDEL once the client has the value. A value that a consumer never acknowledged goes to another one later.
- A transaction is one script of LRANGE and RPUSH, or of GET and SET; or each of its micro-operations is a command.

A script runs without other commands in between. Source: Redis' documentation, "Scripting with Lua", "Distributed locks with
Redis" (the lock of a single instance) and "Redis Streams".
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import PAUSE_S, NoAnswer, NotSent, no_answer, unsupported
from clusters.kit.stored import value_of
from clusters.kit.transactions import LIST_APPEND, READ, RW_REGISTER, TRANSACTION, keys_of, only_reads
from clusters.systems.redis.connection import SENTINEL_PORT, Connection, Refused
from clusters.systems.redis.options import QueueBy, TransactionsBy
from clusters.systems.redis.outcomes import CAS_MISMATCH, EMPTY, HELD, NOT_HELD, refused
from harness.op import ONLY_KEY, Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

MASTER: Final = "labrys"  # the name of the group in the sentinels
ANSWER_TIMEOUT_S: Final = 3.0
WAIT_MS: Final = 1000
GROUP: Final = "labrys"  # of the consumers of a stream
IDLE_MS: Final = 4000  # after which another consumer gets a value; longer than an operation of a client
FIELD: Final = "value"

CAS: Final = """
local held = redis.call('get', KEYS[1])
if held ~= ARGV[1] and not (held == false and ARGV[1] == '') then return 0 end
redis.call('set', KEYS[1], ARGV[2])
return 1"""
ACQUIRE: Final = """
if redis.call('exists', KEYS[1]) == 1 then return false end
local token = redis.call('incr', KEYS[2])
if ARGV[2] == '' then redis.call('set', KEYS[1], ARGV[1] .. '/' .. token)
else redis.call('set', KEYS[1], ARGV[1] .. '/' .. token, 'px', ARGV[2]) end
return token"""
RELEASE: Final = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])"""
DRAIN: Final = """
local all = redis.call('lrange', KEYS[1], 0, -1)
redis.call('del', KEYS[1])
return all"""
DRAIN_STREAM: Final = """
local all = {}
for _, entry in ipairs(redis.call('xrange', KEYS[1], '-', '+')) do all[#all + 1] = entry[2][2] end
redis.call('del', KEYS[1])
return all"""

TRANSACT: Final = """
local answers = {}
for at = 1, #ARGV, 3 do
  local key = KEYS[tonumber(ARGV[at + 1])]
  if ARGV[at] == 'LRANGE' then answers[#answers + 1] = redis.call('LRANGE', key, 0, -1)
  elseif ARGV[at] == 'GET' then answers[#answers + 1] = redis.call('GET', key)
  else answers[#answers + 1] = redis.call(ARGV[at], key, ARGV[at + 2]) end
end
return answers"""


class RedisClient:
    """A `harness.client.RoutedClient`: it asks a sentinel for the master, or stays at its node.

    Attributes:
        node: The client's own node.
        via: The node that received its last operation; None if the client stays at its node.
    """

    def __init__(
        self,
        *,
        node: Node,
        nodes: Sequence[Node],
        sentinels: Sequence[Node],
        workload: str,
        owner: str,
        acknowledge: int,
        fencing: bool,
        lease_s: float | None,
        queue_by: QueueBy,
        transactions_by: TransactionsBy,
    ) -> None:
        """Connects with the first operation.

        Args:
            node: The client's own node.
            nodes: The nodes with a server.
            sentinels: The nodes with a sentinel, which the client asks for the master in turn; none: it stays at its node.
            workload: The workload.
            owner: A text that no other client of the run has.
            acknowledge: The number of replicas that must have a write.
            fencing: Whether an acquire returns a token.
            lease_s: The lease of a lock in seconds; None: locks have none.
            queue_by: The type of Redis that holds a queue.
            transactions_by: How a transaction is carried out.
        """
        self.node = node
        self.via: str | None = None
        self._nodes = nodes
        self._sentinels = sentinels
        self._turn = nodes.index(node) if sentinels else 0
        self._workload = workload
        self._owner = owner
        self._acknowledge = acknowledge
        self._fencing = fencing
        self._queue_by = queue_by
        self._transactions_by = transactions_by
        self._lease_ms = "" if lease_s is None else str(round(lease_s * 1000))
        self._marks: dict[str, str] = {}  # by key, the mark of the lock that this client acquired last
        self._at: Node | None = None if sentinels else node
        self._connection: Connection | None = None

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation of the workload."""
        is_read = _is_read(invocation)
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                connection = await self._connected()
                return await self._carry_out(connection, invocation)
        except NotSent as error:
            await self._leave()
            return Fail(f"not-connected: {error}")
        except TimeoutError:
            sent = self._connection is not None
            await self._leave()
            silent = f"no-answer: no answer in {ANSWER_TIMEOUT_S:g} s"
            return no_answer(silent, is_read=is_read) if sent else Fail(silent)
        except NoAnswer as error:
            await self._leave()
            return no_answer(f"no-answer: {error}", is_read=is_read)
        except Refused as error:
            outcome = refused(error.text, is_read=is_read)
            await self._leave()  # a sentinel may know another master by now
            return outcome

    async def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _connected(self) -> Connection:
        if self._connection is None:
            if self._at is None:
                self._at = await self._master()
            self.via = self._at.name if self._sentinels else None
            self._connection = Connection(self._at.address)
        return self._connection

    async def _master(self) -> Node:
        """Asks the next sentinel for the master.

        Raises:
            NotSent: It does not answer, or names no node; nothing was sent to a server.
        """
        sentinel = self._sentinels[self._turn % len(self._sentinels)]
        self._turn += 1
        asked = Connection(sentinel.address, SENTINEL_PORT)
        try:
            found = await asked.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
        except (NotSent, NoAnswer, Refused) as error:
            raise NotSent(f"the sentinel of {sentinel.name}: {error}") from error
        finally:
            await asked.close()
        address = found[0] if isinstance(found, list) and found else None
        node = next((node for node in self._nodes if node.address == address), None)
        if node is None:
            raise NotSent(f"the sentinel of {sentinel.name} names no master: {str(found)[:100]}")
        return node

    async def _leave(self) -> None:
        """Closes the connection after an error, and asks a sentinel again for the next operation."""
        await self.close()
        if self._sentinels:
            self._at = None
        await asyncio.sleep(PAUSE_S)

    async def _carry_out(self, connection: Connection, invocation: Invocation) -> Outcome:
        operations = {
            "register": self._register,
            "set": self._set,
            "counter": self._counter,
            "lock": self._lock,
            LIST_APPEND: self._transaction,
            RW_REGISTER: self._transaction,
            "queue": self._stream if self._queue_by is QueueBy.STREAM else self._queue,
        }
        key = invocation.key or ONLY_KEY
        outcome = await operations[self._workload](connection, key, invocation.f, invocation.value)
        if isinstance(outcome, Ok) and not _is_read(invocation) and self._acknowledge:
            return await self._acknowledged(connection, outcome)
        return outcome

    async def _acknowledged(self, connection: Connection, outcome: Ok) -> Outcome:
        """Returns the outcome if enough replicas have the write, and otherwise `Info`: the write may stay or vanish."""
        try:
            have = await connection.call("WAIT", self._acknowledge, WAIT_MS)
        except (NotSent, NoAnswer, Refused) as error:  # the write itself is done
            return Info(f"not-acknowledged: {error}")
        if isinstance(have, int) and have >= self._acknowledge:
            return outcome
        return Info(f"not-acknowledged: {have} of {self._acknowledge} replicas have it")

    async def _register(self, connection: Connection, key: str, f: str, value: Value) -> Outcome:
        match f, value:
            case "read", _:
                return Ok(_value(await connection.call("GET", key)))
            case "write", _:
                await connection.call("SET", key, json.dumps(value))
                return Ok(value)
            case "cas", [expected, new]:
                before = "" if expected is None else json.dumps(expected)
                if await connection.call("EVAL", CAS, 1, key, before, json.dumps(new)):
                    return Ok(value)
                return Fail(f"{CAS_MISMATCH}: it does not hold {json.dumps(expected)[:100]}")
        return unsupported(f, value)

    async def _set(self, connection: Connection, key: str, f: str, value: Value) -> Outcome:
        match f:
            case "add":
                await connection.call("SADD", key, json.dumps(value))
                return Ok(value)
            case "read":
                return Ok([_value(member) for member in await _listed(connection, "SMEMBERS", key)])
        return unsupported(f, value)

    async def _counter(self, connection: Connection, key: str, f: str, value: Value) -> Outcome:
        match f, value:
            case "add", int(amount):
                await connection.call("INCRBY", key, amount)
                return Ok(value)
            case "read", _:
                return Ok(_value(await connection.call("GET", key)) or 0)
        return unsupported(f, value)

    async def _lock(self, connection: Connection, key: str, f: str, value: Value) -> Outcome:
        match f:
            case "acquire":
                token = await connection.call("EVAL", ACQUIRE, 2, key, f"{key}/tokens", self._owner, self._lease_ms)
                if token is None:
                    return Fail(f"{HELD}: another client holds it")
                self._marks[key] = f"{self._owner}/{token}"
                return Ok(token if self._fencing else None)
            case "release":
                mark = self._marks.get(key, "") if value is None else f"{self._owner}/{value}"
                if await connection.call("EVAL", RELEASE, 1, key, mark):
                    return Ok(value)
                return Fail(f"{NOT_HELD}: the lock is free, or another client holds it")
        return unsupported(f, value)

    async def _transaction(self, connection: Connection, key: str, f: str, value: Value) -> Outcome:
        if f != TRANSACTION:
            return unsupported(f, value)
        names = keys_of(value)
        places = {name: place for place, name in enumerate(names, 1)}
        of_lists = self._workload == LIST_APPEND
        read, write = ("LRANGE", "RPUSH") if of_lists else ("GET", "SET")
        words = [(read if function == READ else write, places[str(name)], new) for function, name, new in value]
        keys = [f"{key}/{name}" for name in names]
        try:
            if self._transactions_by is TransactionsBy.SCRIPT:
                given = [word for command, place, new in words for word in (command, place, json.dumps(new))]
                answers = await _listed(connection, "EVAL", TRANSACT, len(keys), *keys, *given)
            else:
                answers = [
                    await connection.call(command, keys[place - 1], *_arguments(command, new))
                    for command, place, new in words
                ]
        except (Refused, NotSent) as error:
            # A script that was refused has not written, unless a key in its middle has another type.
            is_whole = self._transactions_by is TransactionsBy.SCRIPT and not str(error).startswith("WRONGTYPE")
            if is_whole or only_reads(value):
                raise
            await self._leave()
            return Info(f"not-complete: {error}")
        if len(answers) != len(value):
            raise NoAnswer(f"expected {len(value)} answers of a transaction, found {len(answers)}")
        return Ok(
            [
                [function, name, _result(answer, of_lists=of_lists) if function == READ else new]
                for (function, name, new), answer in zip(value, answers, strict=True)
            ]
        )

    async def _queue(self, connection: Connection, key: str, f: str, value: Value) -> Outcome:
        match f:
            case "enqueue":
                await connection.call("RPUSH", key, json.dumps(value))
                return Ok(value)
            case "dequeue":
                found = await connection.call("LPOP", key)
                return Fail(f"{EMPTY}: the queue has no value") if found is None else Ok(_value(found))
            case "drain":
                return Ok([_value(each) for each in await _listed(connection, "EVAL", DRAIN, 1, key)])
        return unsupported(f, value)

    async def _stream(self, connection: Connection, key: str, f: str, value: Value) -> Outcome:
        match f:
            case "enqueue":
                await connection.call("XADD", key, "*", FIELD, json.dumps(value))
                return Ok(value)
            case "dequeue":
                return await self._consumed(connection, key)
            case "drain":
                return Ok([_value(each) for each in await _listed(connection, "EVAL", DRAIN_STREAM, 1, key)])
        return unsupported(f, value)

    async def _consumed(self, connection: Connection, key: str) -> Outcome:
        """Takes a value out of a stream: a new one, else one that its consumer has not acknowledged for a while.

        The value has come out once the client has it. If it is not acknowledged then, it comes out again.
        """
        found = await self._delivered(connection, key)
        if found is None:
            answer = await connection.call("XAUTOCLAIM", key, GROUP, self._owner, IDLE_MS, "0-0", "COUNT", 1)
            found = _entry(answer[1] if isinstance(answer, list) and len(answer) > 1 else None)
        if found is None:
            return Fail(f"{EMPTY}: the queue has no value that no other consumer has")
        entry, value = found
        try:
            await connection.call("XACK", key, GROUP, entry)
            await connection.call("XDEL", key, entry)
        except (NoAnswer, NotSent, Refused):
            await self._leave()
        return Ok(_value(value))

    async def _delivered(self, connection: Connection, key: str) -> tuple[str, str] | None:
        """Returns a new entry of a stream, with its value; makes the stream and its group if they are absent."""
        command = ("XREADGROUP", "GROUP", GROUP, self._owner, "COUNT", 1, "STREAMS", key, ">")
        try:
            streams = await connection.call(*command)
        except Refused as error:
            if not error.text.startswith("NOGROUP "):
                raise
            try:
                await connection.call("XGROUP", "CREATE", key, GROUP, "0", "MKSTREAM")
            except Refused as other:
                if not other.text.startswith("BUSYGROUP "):  # another client was faster
                    raise
            streams = await connection.call(*command)
        return None if not streams else _entry(streams[0][1])


def _is_read(invocation: Invocation) -> bool:
    return invocation.f == "read" or (invocation.f == TRANSACTION and only_reads(invocation.value))


def _arguments(command: str, value: Value) -> list[str | int]:
    """Returns the words of a micro-operation after its key."""
    if command == "GET":
        return []
    return [0, -1] if command == "LRANGE" else [json.dumps(value)]


def _result(answer: Any, *, of_lists: bool) -> Value:
    """Returns the result of the read of a micro-operation.

    Raises:
        NoAnswer: No client of this test wrote it.
    """
    if not of_lists:
        return _value(answer)
    if not isinstance(answer, list):
        raise NoAnswer(f"expected a list, found {str(answer)[:100]}")
    return [_value(each) for each in answer]


def _entry(entries: Any) -> tuple[str, str] | None:
    """Returns the only entry of a stream in an answer, with its value; None without one.

    Raises:
        NoAnswer: It is none of this test.
    """
    match entries:
        case None | []:
            return None
        case [[str(entry), [_, str(value)]]]:
            return entry, value
    raise NoAnswer(f"expected an entry with one value, found {str(entries)[:100]}")


async def _listed(connection: Connection, *words: str | int) -> list[Any]:
    answer = await connection.call(*words)
    if isinstance(answer, list | set):
        return list(answer)
    raise NoAnswer(f"expected a list, found {str(answer)[:100]}")


def _value(text: Any) -> Value:
    """Returns the value of a text that a client wrote; None for no text.

    Raises:
        NoAnswer: It is no JSON, so no client wrote it.
    """
    return None if text is None else value_of(text)
