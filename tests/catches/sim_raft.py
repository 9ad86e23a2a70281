"""The simulated Raft under many faults in little time: for tests and benchmarks that need thousands of runs.

The nodes, their network, their disks and their clocks are those of `--cluster sim`. Clients and faults are simpler here than in
a run of `labrys test`, and denser: an event loop calls them directly, and there is no event loop of asyncio. What decides is
Labrys: the workload's own check, and the comparison of the replicas. Everything comes from the seed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from clusters.sim.host import Request
from clusters.sim.machine import FATAL
from clusters.sim.world import SimWorld
from clusters.systems.sim_raft import messages, outcomes
from clusters.systems.sim_raft.bugs import TABLE, Bug
from clusters.systems.sim_raft.node import RaftProcess
from clusters.systems.sim_raft.options import Reads, SimRaftOptions
from harness import parts
from harness.op import Fail, Operation, OpType
from harness.randomness import stream
from harness.replicas import Dumps
from harness.system import ReplicaState
from harness.verdict import Part, Verdict
from harness.workload import Observed
from harness.world import Disturbance
from workloads.counter.workload import CounterWorkload
from workloads.lock.workload import LockWorkload
from workloads.log.workload import LogWorkload
from workloads.register.workload import RegisterWorkload
from workloads.set.workload import SetWorkload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from harness.workload import Workload

MS: Final = 1_000_000
RUN_MS: Final = 3000
QUIET_MS: Final = 1200  # without faults, after that
REST_MS: Final = 400  # without new operations, at the end
CLIENTS: Final = 10
THINK_MS: Final = 50  # on average, between two operations of a client
REFUSED_MS: Final = 80  # that a client waits longer after an operation that failed
TIMEOUT_MS: Final = 500
ATTEMPTS: Final = (1, 3)  # of the clients in turn

# The mixes of the suite: which faults a run draws from. The n-th run has the n-th mix, and so on in turn.
MIXES: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "leaders": ("isolate-leader", "pause-leader", "transfer"),
        "partitions": ("halves", "one-way", "isolate-leader", "bridge"),
        "restarts": ("kill-leader", "kill-some", "isolate-leader", "kill-voter"),
        "power": ("power-loss-of-some", "halves"),
        "disks": ("damage", "kill-leader", "halves", "disk-full"),
        "clocks": ("clock", "isolate-leader"),
        "slow": ("delay", "duplicate", "isolate-leader", "kill-leader"),
        "handover": ("transfer", "delay", "isolate-leader"),
    }
)
WORKLOADS: Final[Mapping[str, Callable[[], Workload]]] = MappingProxyType(
    {
        "register": RegisterWorkload,
        "set": SetWorkload,
        "counter": CounterWorkload,
        "log": LogWorkload,
        "lock": LockWorkload,
    }
)


def options_of(bug: Bug) -> SimRaftOptions:
    """Returns the options with which a bug matters."""
    return SimRaftOptions(bug=bug, reads=Reads(TABLE[bug].options.get("reads", Reads.READ_INDEX)))


def nodes_of(bug: Bug) -> int:
    """Returns on how many nodes a bug is looked for."""
    return TABLE[bug].nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run.

    Attributes:
        operations: What clients did.
        parts: The parts of the verdict, by name.
        logs: Node to its log.
    """

    operations: Sequence[Operation]
    parts: Mapping[str, Part]
    logs: Mapping[str, Sequence[str]]

    @property
    def blamed(self) -> list[str]:
        """Returns the names of the parts that are invalid."""
        return [name for name, part in self.parts.items() if part.verdict is Verdict.INVALID]


def mix_of(seed: int) -> str:
    """Returns the mix of a run of the suite."""
    return list(MIXES)[seed % len(MIXES)]


def workload_of(seed: int) -> str:
    """Returns the workload of a run of the suite."""
    return list(WORKLOADS)[seed // len(MIXES) % len(WORKLOADS)]


def once(
    seed: int,
    options: SimRaftOptions | None = None,
    *,
    nodes: int = 5,
    mix: str | None = None,
    workload: str | None = None,
) -> Outcome:
    """Runs once.

    Args:
        seed: The seed, which also says mix and workload where they are not given.
        options: Of the nodes; the correct version by default.
        nodes: How many there are.
        mix: The mix of faults.
        workload: What clients do.
    """
    run = _Run(seed, options or SimRaftOptions(), nodes, MIXES[mix or mix_of(seed)], workload or workload_of(seed))
    return run.go()


class _Asked:
    """What stands for the future of a request: it calls back."""

    def __init__(self, told: Callable[[Any], None]) -> None:
        self._told: Callable[[Any], None] | None = told

    def done(self) -> bool:
        return self._told is None

    def give_up(self) -> None:
        self._told = None

    def set_result(self, result: Any) -> None:
        told, self._told = self._told, None
        if told is not None:
            told(result)

    def set_exception(self, error: Exception) -> None:
        code = outcomes.NOT_CONNECTED if type(error).__name__ == "Refused" else outcomes.NO_ANSWER
        self.set_result(messages.Answer(code))


class _Run:
    """A cluster, its clients and its faults."""

    def __init__(self, seed: int, options: SimRaftOptions, nodes: int, kinds: Sequence[str], workload: str) -> None:
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self.world = SimWorld(self.names, seed)
        self.kinds = kinds
        self.workload = workload
        self.operations: list[Operation] = []
        self.events = 0
        self.processes = 0
        self.faults_over = False
        self.resting = False
        self.draws = stream(seed, "faults")
        self.damaged: str | None = None
        self._clients = stream(seed, "clients")
        self._options = options
        self._keys = 0

    def go(self) -> Outcome:
        """Carries it out and judges it."""
        for name in self.names:
            self.start(name)
        for number in range(CLIENTS):
            at, turn = self.names[number % len(self.names)], number // len(self.names)
            _Client(self, at, follows=turn % 2 == 1, attempts=ATTEMPTS[number % 2]).begin()
        self.later(700, self._fault)
        self._pass(RUN_MS)
        self.faults_over = True
        self.world.heal()
        for name in self.names:
            self.start(name)
        self._pass(RUN_MS + QUIET_MS)
        self.resting = True
        self._pass(RUN_MS + QUIET_MS + REST_MS)
        workload = WORKLOADS[self.workload]()
        found = list(workload.check(self.operations, Observed()))
        found += [self._replicas(), self._fatal_lines()]
        logs = {name: machine.lines for name, machine in self.world.machines.items()}
        return Outcome(operations=self.operations, parts={part.name: part for part in found}, logs=logs)

    def client_stream(self) -> Random:
        """Returns the source of chance of all clients."""
        return self._clients

    def later(self, delay_ms: float, action: Callable[[], None]) -> None:
        """Calls an action after a time."""
        self.world.later(int(delay_ms * MS), action, ())

    def ask(self, client: str, node: str, request: Request, asked: _Asked) -> None:
        """Sends a request."""
        self.world.later(self.world.network.delay_ns(), self.world.machines[node].take, (client, request, asked))

    def start(self, name: str) -> None:
        """Starts a node that does not run."""
        self.world.machines[name].start(lambda host: RaftProcess(host, self._options, self.workload))

    def _pass(self, until_ms: int) -> None:
        while self.world.now_ns < until_ms * MS:
            self.world.pass_until(until_ms / 1000)

    def _replicas(self) -> Part:
        dumps = Dumps()
        for number, name in enumerate(self.names):

            def told(answer: Any, name: str = name) -> None:
                if isinstance(answer, messages.Dump):
                    dumps.add(ReplicaState(node=name, applied_index=answer.applied, state=answer.state))

            self.ask("observer", name, Request(number, messages.AskDump()), _Asked(told))
        self._pass(self.world.now_ns // MS + 20)
        return parts.replicas_equal(dumps.compared(self.names, seconds=0.0))

    def _fatal_lines(self) -> Part:
        lines = [line for machine in self.world.machines.values() for line in machine.lines if f" {FATAL} " in line]
        verdict = Verdict.INVALID if lines else Verdict.VALID
        return Part(name="log-patterns", verdict=verdict, reason=lines[0] if lines else "No fatal line.", details={})

    # -- faults --------------------------------------------------------------------------------------------------------------

    def _fault(self) -> None:
        if self.faults_over:
            return
        kind = self.draws.choice(self.kinds)
        lasts_ms = self.draws.uniform(100, 1400)
        self._begin(kind, lasts_ms)
        self.later(self.draws.uniform(0.1, 0.9) * lasts_ms, self._fault)

    def _begin(self, kind: str, lasts_ms: float) -> None:
        leader = self._leader()
        victims = self.draws.sample(self.names, self.draws.randint(1, len(self.names)))
        if kind in {"isolate-leader", "halves", "one-way", "bridge", "delay", "duplicate"}:
            self._disturb(kind, leader, victims, lasts_ms)
        else:
            self._break(kind, leader, victims, lasts_ms)

    def _disturb(self, kind: str, leader: str, victims: Sequence[str], lasts_ms: float) -> None:
        """Cuts the network or slows it down."""
        world, key = self.world, self.world.now_ns
        if kind in {"delay", "duplicate"}:
            how = Disturbance(delay_ns=int(lasts_ms / 4) * MS, jitter_ns=int(lasts_ms / 4) * MS, hurry=0.3)
            for name in victims[: max(1, len(victims) // 2)]:
                world.disturb(key, name, how if kind == "delay" else replace(how, duplicate=0.5), arriving=False)
        else:
            world.cut(key, self._grudge(kind, leader, victims))
        self.later(lasts_ms, lambda: world.mend(key))

    def _break(self, kind: str, leader: str, victims: Sequence[str], lasts_ms: float) -> None:
        """Does something to a process, a clock or a disk."""
        world = self.world
        match kind:
            case "pause-leader":
                world.machines[leader].pause()
                self.later(lasts_ms, world.machines[leader].resume)
            case "kill-leader":
                self._kill(leader, lasts_ms)
            case "kill-some" | "power-loss-of-some":
                for name in victims:
                    self._kill(name, lasts_ms, power=kind == "power-loss-of-some")
            case "kill-voter":
                self._kill(victims[0], lasts_ms / 20)
            case "damage":
                self._damage(victims[0], lasts_ms)
            case "disk-full":
                world.fill_disk(victims[0], full=True)
                self.later(lasts_ms, lambda: world.fill_disk(victims[0], full=False))
            case "clock":
                world.set_clock(leader, ahead_ns=self.draws.choice((-2000, -700, 700)) * MS)
            case "transfer":
                request = Request(world.now_ns, messages.AskTransfer(victims[0]))
                self.ask("observer", leader, request, _Asked(lambda _: None))

    def _leader(self) -> str:
        """Returns the node that leads the highest term; any node if none says so."""
        found = [self.names[0]]
        best = -1
        for name, machine in self.world.machines.items():
            raft = getattr(machine._process, "_raft", None)
            if raft is not None and raft.role == "leader" and raft.storage.term > best:
                found, best = [name], raft.storage.term
        return found[0]

    def _grudge(self, kind: str, leader: str, victims: Sequence[str]) -> dict[str, frozenset[str]]:
        alone = [leader] if kind == "isolate-leader" else list(victims)
        if kind == "isolate-leader" and len(self.names) > 3 and self.draws.random() < 0.5:
            alone.append(self.draws.choice([name for name in self.names if name != leader]))
        others = [name for name in self.names if name not in alone]
        if kind == "bridge" and len(others) > 1:
            others = others[1:]
        grudge = {name: frozenset(others) for name in alone}
        if kind != "one-way":
            grudge |= {name: frozenset(alone) for name in others}
        return grudge

    def _kill(self, name: str, lasts_ms: float, *, power: bool = False) -> None:
        self.world.machines[name].kill()
        if power:
            self.world.lose_power(name)
        self.later(lasts_ms, lambda: self.start(name))

    def _damage(self, name: str, lasts_ms: float) -> None:
        """Kills a node and damages one of its files. The same node is damaged in a whole run: a majority keeps its disks."""
        name = self.damaged = self.damaged or name
        disk = self.world.machines[name].disk
        if not any(disk.read(each) for each in disk.names()):
            return
        self._kill(name, lasts_ms / 4)
        pick = self.draws.random()
        if self.draws.random() < 0.5:
            disk.cut_end(pattern="*", pick=pick, amount=self.draws.randint(1, 400))
        else:
            disk.flip(pattern="*", pick=pick, amount=1, seed=self.draws.randrange(2**31))


class _Client:
    """A client that does one operation after the other; see `clusters.systems.sim_raft.client`, which does the same."""

    def __init__(self, run: _Run, at: str, *, follows: bool, attempts: int) -> None:
        self._run = run
        self._at = at
        self._follows = follows
        self._attempts = attempts
        self._process = run.processes
        run.processes += 1
        self._sequence = 0
        self._requests = 0
        self._holds: tuple[str, Any] | None = None

    def begin(self, pause_ms: float = 0) -> None:
        """Begins the next operation after a while."""
        self._run.later(pause_ms + self._run.client_stream().expovariate(1 / THINK_MS), self._next)

    def _next(self) -> None:
        run, draws = self._run, self._run.client_stream()
        if run.resting:
            return
        key, value, kind = f"k{draws.randrange(2)}", len(run.operations) + 1, draws.random()
        f, argument = "read", None
        reads = 0.9 if run.faults_over else 0.3 if self._follows else 0.7
        if run.workload == "lock":
            f, key, argument = ("acquire", key, None) if self._holds is None else ("release", *self._holds)
        elif run.workload == "log" and kind < reads:
            argument = [max(0, value // 3 - 60), value]
        elif kind < reads:
            pass
        elif run.workload == "register":
            f, argument = ("write", value) if kind < (1 + reads) / 2 else ("cas", [self._seen(key), value])
        else:
            f, argument = ("append", value) if run.workload == "log" else ("add", value if run.workload == "set" else 1)
        if f == "read":
            body: messages.Command | messages.Query = messages.Query(f, key, argument)
        else:
            self._sequence += 1
            body = messages.Command(f"c{self._process}", self._sequence, f, key, argument)
        operation = Operation(
            process=self._process, f=f, value=argument, result=None, type=OpType.INFO, start_ns=run.world.now_ns, end_ns=None,
            invoke_index=run.events, complete_index=None, key=key, node=self._at,
        )  # fmt: skip
        run.events += 1
        run.operations.append(operation)
        self._send(len(run.operations) - 1, body, self._attempts, None)

    def _seen(self, key: str) -> Any:
        values = (each for each in reversed(self._run.operations) if each.key == key and each.type is OpType.OK)
        found = next(values, None)
        return None if found is None else found.result[1] if found.f == "cas" else found.result

    def _send(self, place: int, body: Any, attempts: int, doubt: str | None) -> None:
        def told(answer: messages.Answer) -> None:
            self._told(place, body, attempts - 1, doubt, answer)

        def late() -> None:
            if not asked.done():
                asked.give_up()
                told(messages.Answer(outcomes.NO_ANSWER))

        asked = _Asked(told)
        self._requests += 1
        self._run.ask(f"c{self._process}", self._at, Request(self._requests, body), asked)
        self._run.later(TIMEOUT_MS, late)

    def _told(self, place: int, body: Any, attempts: int, doubt: str | None, answer: messages.Answer) -> None:
        is_read = isinstance(body, messages.Query)
        if answer.code == outcomes.OK:
            self._end(place, OpType.OK, answer)
            return
        found = outcomes.outcome(answer.code, "", is_read=is_read)
        refused = answer.code in outcomes.REFUSED
        if not refused and isinstance(found, Fail) and not is_read:
            self._end(place, OpType.FAIL, answer)
            return
        if self._follows:
            names = self._run.names
            self._at = answer.leader or names[(names.index(self._at) + 1) % len(names)]
        doubt = doubt if refused else answer.code
        if attempts and (doubt is not None or not refused):
            self._run.later(20, lambda: self._send(place, body, attempts, doubt))
        else:
            self._end(place, OpType.INFO if doubt is not None and not is_read else OpType.FAIL, answer)

    def _end(self, place: int, kind: OpType, answer: messages.Answer) -> None:
        run = self._run
        ok = kind is OpType.OK
        operation = replace(
            run.operations[place],
            type=kind,
            result=answer.value if ok else None,
            order=answer.order if ok else None,
            end_ns=run.world.now_ns,
            complete_index=run.events,
            error=None if ok else answer.code,
        )
        run.events += 1
        run.operations[place] = operation
        if ok and operation.f in {"acquire", "release"}:
            self._holds = (str(operation.key), answer.value) if operation.f == "acquire" else None
        if kind is OpType.INFO:
            _Client(run, self._at, follows=self._follows, attempts=self._attempts).begin()
        else:
            self.begin(0 if kind is OpType.OK else REFUSED_MS)
