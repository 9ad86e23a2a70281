"""The clients of Redis: one connection of one process, with a class for each workload.

A script runs without other commands in between. Source: Redis' documentation, "Scripting with Lua", "Distributed locks with
Redis" (the lock of a single instance) and "Redis Streams".
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import PAUSE_S, InDoubt, NoAnswer, NotSent, Refused
from clusters.kit.contracts import (
    Contract,
    Counters,
    Done,
    Locks,
    Queues,
    Registers,
    Seen,
    Sets,
    Transactions,
    by_workload,
)
from clusters.kit.stored import value_of
from clusters.kit.transactions import APPEND, READ, WRITE, keys_of, only_reads
from clusters.systems.redis.connection import SENTINEL_PORT, Connection
from clusters.systems.redis.options import TransactionsBy
from clusters.systems.redis.outcomes import WRITE_NEVER_HAPPENED, WRONG_TYPE
from harness.op import Info

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.kit.transactions import Mops
    from harness.node import Node
    from harness.op import Ok, Outcome, Value

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a client sends its commands.

    Attributes:
        node: The client's own node.
        nodes: The nodes with a server.
        sentinels: The nodes with a sentinel, which the client asks for the master in turn; none: it stays at its node.
        acknowledge: The number of replicas that must have a write.
    """

    node: Node
    nodes: Sequence[Node]
    sentinels: Sequence[Node]
    acknowledge: int


class RedisClient(Contract):
    """A `harness.client.RoutedClient`: it asks a sentinel for the master, or stays at its node.

    Attributes:
        via: The node that received its last operation; None if the client stays at its node.
    """

    never_happened = WRITE_NEVER_HAPPENED
    read_timeout_s = change_timeout_s = ANSWER_TIMEOUT_S

    def __init__(self, where: Place) -> None:
        """Connects with the first operation."""
        self.node = where.node
        self.via: str | None = None
        self._nodes = where.nodes
        self._sentinels = where.sentinels
        self._acknowledge = where.acknowledge
        self._turn = where.nodes.index(where.node) if where.sentinels else 0
        self._at: Node | None = None if where.sentinels else where.node
        self._connection: Connection | None = None

    async def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    def was_sent(self) -> bool:
        """Returns whether the client has a connection to a server."""
        return self._connection is not None

    async def failed(self, error: Exception) -> None:  # noqa: ARG002 - the same after each
        """Closes the connection, and asks a sentinel again for the next operation: it may know another master by now."""
        await self.close()
        if self._sentinels:
            self._at = None
        await asyncio.sleep(PAUSE_S)

    async def confirmed(self, outcome: Ok) -> Outcome:
        """Returns the outcome if enough replicas have the write, and otherwise `Info`: the write may stay or vanish."""
        if not self._acknowledge:
            return outcome
        try:
            have = await self._call("WAIT", self._acknowledge, WAIT_MS)
        except (NotSent, NoAnswer, Refused) as error:  # the write itself is done
            return Info(f"not-acknowledged: {error}")
        if isinstance(have, int) and have >= self._acknowledge:
            return outcome
        return Info(f"not-acknowledged: {have} of {self._acknowledge} replicas have it")

    async def _call(self, *words: str | int) -> Any:
        """Sends a command to the server, and returns its answer; see `Connection.call`."""
        if self._connection is None:
            if self._at is None:
                self._at = await self._master()
            self.via = self._at.name if self._sentinels else None
            self._connection = Connection(self._at.address)
        return await self._connection.call(*words)

    async def _listed(self, *words: str | int) -> list[Any]:
        answer = await self._call(*words)
        if isinstance(answer, list | set):
            return list(answer)
        raise NoAnswer(f"expected a list, found {str(answer)[:100]}")

    async def _master(self) -> Node:
        """Asks the next sentinel for the master.

        Raises:
            NotSent: It does not answer, or names no node; nothing was sent to a server.
        """
        sentinel = self._sentinels[self._turn % len(self._sentinels)]
        self._turn += 1
        asked = Connection(sentinel.address, SENTINEL_PORT)
        try:
            answer = await asked.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
        except (NotSent, NoAnswer, Refused) as error:
            raise NotSent(f"the sentinel of {sentinel.name}: {error}") from error
        finally:
            await asked.close()
        address = answer[0] if isinstance(answer, list) and answer else None
        master = next((node for node in self._nodes if node.address == address), None)
        if master is None:
            raise NotSent(f"the sentinel of {sentinel.name} names no master: {str(answer)[:100]}")
        return master


class RedisRegisters(RedisClient, Registers):
    """A register is a key. A compare-and-set is a script that compares and sets."""

    serves = "read is GET, write is SET, cas is a script"

    async def read(self, key: str) -> Seen:
        """Reads the key."""
        return Seen(_value(await self._call("GET", key)))

    async def write(self, key: str, value: Value) -> Done:
        """Sets the key."""
        await self._call("SET", key, json.dumps(value))
        return Done()

    async def cas(self, key: str, expected: Value, new: Value) -> Done | None:
        """Runs the script."""
        before = "" if expected is None else json.dumps(expected)
        return Done() if await self._call("EVAL", CAS, 1, key, before, json.dumps(new)) else None


class RedisSets(RedisClient, Sets):
    """A set is a set of Redis."""

    serves = "add is SADD, read is SMEMBERS"

    async def add(self, key: str, element: Value) -> Done:
        """Adds a member."""
        await self._call("SADD", key, json.dumps(element))
        return Done()

    async def read(self, key: str) -> Seen:
        """Reads all members."""
        return Seen([_value(member) for member in await self._listed("SMEMBERS", key)])


class RedisCounters(RedisClient, Counters):
    """A counter is a key with INCRBY."""

    serves = "add is INCRBY, read is GET"

    async def add(self, key: str, amount: int) -> Done:
        """Adds to the key."""
        await self._call("INCRBY", key, amount)
        return Done()

    async def read(self, key: str) -> Seen:
        """Reads the key."""
        return Seen(_value(await self._call("GET", key)))


class RedisLocks(RedisClient, Locks):
    """A lock is a key that exists while the lock is held, with the holder's mark, and a counter beside it for its token."""

    serves = "acquire and release are scripts on a key, with a lease if the locks have one"

    def __init__(self, where: Place, *, owner: str, lease_s: float | None, fencing: bool) -> None:
        """Connects with the first operation.

        Args:
            where: Where the client sends its commands.
            owner: A text that no other client of the run has.
            lease_s: The lease of a lock in seconds; None: locks have none.
            fencing: Whether an acquire returns a token.
        """
        super().__init__(where)
        self.fencing = fencing
        self._owner = owner
        self._lease_ms = "" if lease_s is None else str(round(lease_s * 1000))
        self._marks: dict[str, str] = {}  # by key, the mark of the lock that this client acquired last

    async def acquire(self, key: str) -> Seen | None:
        """Sets the key if it is absent; the token is the number of the acquire."""
        token = await self._call("EVAL", ACQUIRE, 2, key, f"{key}/tokens", self._owner, self._lease_ms)
        if token is None:
            return None
        self._marks[key] = f"{self._owner}/{token}"
        return Seen(token)

    async def release(self, key: str, token: Value) -> Done | None:
        """Deletes the key if it has the mark."""
        mark = self._marks.get(key, "") if token is None else f"{self._owner}/{token}"
        return Done() if await self._call("EVAL", RELEASE, 1, key, mark) else None


class RedisTransactions(RedisClient, Transactions):
    """A transaction is one script of LRANGE and RPUSH, or of GET and SET; or each of its micro-operations is a command."""

    serves = "txn is a script of all reads and writes, or a command for each"

    def __init__(self, where: Place, *, by: TransactionsBy, commands: Mapping[str, str]) -> None:
        """Connects with the first operation.

        Args:
            where: Where the client sends its commands.
            by: How a transaction is carried out.
            commands: The command of Redis for each function of a micro-operation: `LISTS` or `VALUES`.
        """
        super().__init__(where)
        self._is_script = by is TransactionsBy.SCRIPT
        self._commands = commands

    async def carry_out(self, key: str, mops: Mops) -> Seen:
        """Carries out a transaction on the keys below a prefix."""
        names = keys_of(mops)
        numbers = {name: number for number, name in enumerate(names, 1)}
        words = [(self._commands[function], numbers[str(name)], new) for function, name, new in mops]
        keys = [f"{key}/{name}" for name in names]
        try:
            if self._is_script:
                given = [word for command, number, new in words for word in (command, number, json.dumps(new))]
                answers = await self._listed("EVAL", TRANSACT, len(keys), *keys, *given)
            else:
                answers = [
                    await self._call(command, keys[number - 1], *_arguments(command, new))
                    for command, number, new in words
                ]
        except (Refused, NotSent) as error:
            # A script that was refused has not written, unless a key in its middle has another type.
            is_whole = self._is_script and not (isinstance(error, Refused) and error.code == WRONG_TYPE)
            if is_whole or only_reads(mops):
                raise
            raise InDoubt("not-complete", str(error)) from error
        if len(answers) != len(mops):
            raise NoAnswer(f"expected {len(mops)} answers of a transaction, found {len(answers)}")
        return Seen(
            [
                [function, name, _result(answer, command) if function == READ else new]
                for (function, name, new), (command, _, _), answer in zip(mops, words, answers, strict=True)
            ]
        )


class RedisQueues(RedisClient, Queues):
    """A queue is a list: RPUSH at one end, LPOP at the other."""

    serves = "enqueue is RPUSH or XADD, dequeue is LPOP, or XREADGROUP and XACK, drain is a script"

    async def enqueue(self, key: str, value: Value) -> Done:
        """Pushes the value."""
        await self._call("RPUSH", key, json.dumps(value))
        return Done()

    async def dequeue(self, key: str) -> Seen | None:
        """Pops a value."""
        text = await self._call("LPOP", key)
        return None if text is None else Seen(_value(text))

    async def drain(self, key: str) -> Seen:
        """Takes all values by a script."""
        return Seen([_value(text) for text in await self._listed("EVAL", DRAIN, 1, key)])


class RedisStreams(RedisClient, Queues):
    """A queue is a stream with one group of consumers: XADD, and XREADGROUP with XACK and XDEL once the client has the value.

    A value that a consumer never acknowledged goes to another one later.
    """

    serves = RedisQueues.serves
    empty = "the queue has no value that no other consumer has"

    def __init__(self, where: Place, *, owner: str) -> None:
        """Connects with the first operation.

        Args:
            where: Where the client sends its commands.
            owner: The name of the consumer, which no other client of the run has.
        """
        super().__init__(where)
        self._owner = owner

    async def enqueue(self, key: str, value: Value) -> Done:
        """Adds an entry to the stream."""
        await self._call("XADD", key, "*", FIELD, json.dumps(value))
        return Done()

    async def dequeue(self, key: str) -> Seen | None:
        """Takes a value out of a stream: a new one, else one that its consumer has not acknowledged for a while.

        The value has come out once the client has it. If it is not acknowledged then, it comes out again.
        """
        delivered = await self._delivered(key)
        if delivered is None:
            answer = await self._call("XAUTOCLAIM", key, GROUP, self._owner, IDLE_MS, "0-0", "COUNT", 1)
            delivered = _entry(answer[1] if isinstance(answer, list) and len(answer) > 1 else None)
        if delivered is None:
            return None
        entry, text = delivered
        try:
            await self._call("XACK", key, GROUP, entry)
            await self._call("XDEL", key, entry)
        except (NoAnswer, NotSent, Refused) as error:
            await self.failed(error)
        return Seen(_value(text))

    async def drain(self, key: str) -> Seen:
        """Takes all values by a script."""
        return Seen([_value(text) for text in await self._listed("EVAL", DRAIN_STREAM, 1, key)])

    async def _delivered(self, key: str) -> tuple[str, str] | None:
        """Returns a new entry of a stream, with its value; makes the stream and its group if they are absent."""
        command = ("XREADGROUP", "GROUP", GROUP, self._owner, "COUNT", 1, "STREAMS", key, ">")
        try:
            streams = await self._call(*command)
        except Refused as error:
            if error.code != "NOGROUP":
                raise
            try:
                await self._call("XGROUP", "CREATE", key, GROUP, "0", "MKSTREAM")
            except Refused as other:
                if other.code != "BUSYGROUP":  # another client was faster
                    raise
            streams = await self._call(*command)
        return None if not streams else _entry(streams[0][1])


LISTS: Final = MappingProxyType({READ: "LRANGE", APPEND: "RPUSH"})
VALUES: Final = MappingProxyType({READ: "GET", WRITE: "SET"})
CLIENTS: Final = by_workload(RedisRegisters, RedisSets, RedisCounters, RedisLocks, RedisTransactions, RedisQueues)


def _arguments(command: str, value: Value) -> list[str | int]:
    """Returns the words of a micro-operation after its key."""
    if command == "GET":
        return []
    return [0, -1] if command == "LRANGE" else [json.dumps(value)]


def _result(answer: Any, command: str) -> Value:
    """Returns the result of the read of a micro-operation.

    Raises:
        NoAnswer: No client of this test wrote it.
    """
    if command == "GET":
        return _value(answer)
    if not isinstance(answer, list):
        raise NoAnswer(f"expected a list, found {str(answer)[:100]}")
    return [_value(member) for member in answer]


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


def _value(text: Any) -> Value:
    """Returns the value of a text that a client wrote; None for no text.

    Raises:
        NoAnswer: It is no JSON, so no client wrote it.
    """
    return None if text is None else value_of(text)
