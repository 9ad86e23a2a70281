"""The workloads on groups whose brokers join and leave: compare-and-set on the sync set's epoch, and a mix of all requests."""

from __future__ import annotations

from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from harness.op import Invocation, OpType
from workloads.controller.group import SUCCESS
from workloads.controller.groups import FUNCTIONS, GroupWorkload
from workloads.controller.options import MemberOptions, MixedOptions, SyncStateSetOptions
from workloads.controller.parts import altered, epochs_grow, master_in_sync, one_master
from workloads.controller.streams import ALTER, ANY, LATE, MemberStream
from workloads.controller.uncertain import UncertainGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.generator import Answer, Asker, Generator
    from harness.op import Op, Operation, Value
    from harness.verdict import Part

LAST_SEEN = "last-seen"
_EXPECTED = ("master", "master_epoch", "sync_epoch")


class MemberWorkload(GroupWorkload):
    """Broker groups whose brokers send heartbeats, run for master, and alter the sync set."""

    model: ClassVar[str | None] = "workloads.controller.uncertain:UncertainGroup"
    rules = UncertainGroup()
    functions: ClassVar[Mapping[str, str]]
    _options: MemberOptions

    def stream(self, *, seed: int, number: int, streams: int) -> MemberStream:
        """See `GroupWorkload`. An alter has only the new sync set; the generator adds the rest."""
        return MemberStream(self._options, seed=seed, number=number, streams=streams)

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns the generator of the main phase, which never ends."""
        return MemberGenerator([self.stream(seed=seed, number=each, streams=streams) for each in range(streams)])

    def described(self, invocation: Invocation) -> Value:
        """Returns an argument as far as it is known before the run."""
        if invocation.f == ALTER and isinstance(invocation.value, dict):
            return {**dict.fromkeys(_EXPECTED, LAST_SEEN), **invocation.value}
        return super().described(invocation)

    def parts(self, operations: Sequence[Operation]) -> Sequence[Part]:
        """Returns the parts `one-master`, `master-in-sync`, `epochs-grow` and `altered`."""
        return [one_master(operations), master_in_sync(operations), epochs_grow(operations), altered(operations)]


class SyncStateSetWorkload(MemberWorkload):
    """Compare-and-set on the epoch of the sync set; see `harness.workload.Workload`.

    Attributes:
        name: `sync-state-set`.
        summary: A description in one line.
        Options: Its options.
        functions: Alter, the requests that it needs, and reads of the group.
    """

    name = "sync-state-set"
    summary = "Brokers alter the sync sets of independent groups by compare-and-set; a model checks every answer."
    Options = SyncStateSetOptions
    functions: ClassVar[Mapping[str, str]] = MappingProxyType(
        {f: FUNCTIONS[f] for f in ("apply", "heartbeat", "leave", "elect", "alter", "next", "replica", "state")}
    )

    def __init__(self, options: SyncStateSetOptions | None = None) -> None:
        self._options = options or SyncStateSetOptions()


class ControllerWorkload(MemberWorkload):
    """A mix of all requests of brokers; see `harness.workload.Workload`.

    Attributes:
        name: `controller`.
        summary: A description in one line.
        Options: Its options.
        functions: All functions but `clean`, which is not a request of brokers.
    """

    name = "controller"
    summary = "Brokers of independent groups join, leave and send all requests of brokers; a model checks every answer."
    Options = MixedOptions
    functions: ClassVar[Mapping[str, str]] = FUNCTIONS

    def __init__(self, options: MixedOptions | None = None) -> None:
        self._options = options or MixedOptions()


class MemberGenerator:
    """Gives each worker the operations of its stream, without end.

    An alter expects the master and the epochs of the latest answer about its group. Sometimes it expects the epoch before. Its
    sync set has only brokers with an id, as far as answers show, but sometimes others too. The controller refuses an alter if
    the broker has no id or the group no master. So until answers show both, the broker requests its id or an election instead.

    Attributes:
        streams: The streams, by the number of the worker.
    """

    def __init__(self, streams: Sequence[MemberStream]) -> None:
        self.streams = streams
        self._seen: dict[str | None, dict[str, int]] = {}
        self._ids: dict[str | None, set[int]] = defaultdict(set)
        self._applied: dict[int | str, int] = {}  # the id in the latest request of each process for an id

    def ask(self, asker: Asker) -> Answer:
        """Returns the next operation of the asker's stream."""
        stream = self.streams[asker.worker]
        operation = stream.next()
        if operation.f != ALTER or operation.key is None:
            return operation
        ids, seen = self._ids[operation.key], self._seen.get(operation.key, {})
        if stream.broker not in ids:
            return stream.apply(operation.key)
        if seen.keys() != set(_EXPECTED):
            return stream.elect(operation.key, designate=False)
        argument: dict[str, Any] = {**seen, **operation.value}
        if argument.pop(LATE, False):
            argument["sync_epoch"] -= 1
        members = {*argument["sync_set"]} if argument.pop(ANY, False) else ids.intersection(argument["sync_set"])
        # The controller refuses a sync set without the master.
        argument["sync_set"] = sorted({*members, seen["master"]})
        return Invocation(ALTER, argument, operation.key)

    def update(self, event: Op) -> None:
        """Stores what the answer shows: the ids, the master and the epochs."""
        if event.f == "apply" and event.type is OpType.INVOKE and isinstance(event.value, dict):
            self._applied[event.process] = event.value["id"]
        if event.type is not OpType.OK or not isinstance(event.value, dict):
            return
        if event.f == "apply" and event.value.get("code") == SUCCESS:
            self._ids[event.key].add(self._applied[event.process])
        seen = {name: event.value[name] for name in _EXPECTED if type(event.value.get(name)) is int}
        if "master_epoch" in seen and "master" not in seen:
            self._seen.pop(event.key, None)  # there is no master
        elif seen:
            self._seen.setdefault(event.key, {}).update(seen)
