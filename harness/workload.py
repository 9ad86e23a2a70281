"""The interface of a workload: its operations, its final reads, and its check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.client import ClientFactory
    from harness.faults import FaultRecord
    from harness.final_reads import FinalReads
    from harness.generator import Generator
    from harness.node import Node
    from harness.op import Op, Operation
    from harness.verdict import Part
    from harness.watch import Sighting


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The observations of a run besides its operations, for the checker.

    Attributes:
        faults: The record of each fault that began.
        final_reads: The results of the final reads; None if the test has none.
        sightings: The reports of the nodes about themselves, in the order of time.
    """

    faults: Sequence[FaultRecord] = ()
    final_reads: FinalReads | None = None
    sightings: Sequence[Sighting] = ()


class Workload(Protocol):
    """A generator, a model and a checker that belong together.

    Labrys finds a workload by an entry point of the group `labrys.workloads`. Its name is `name`, and its object is the class.
    The class is called with its `Options`.

    Attributes:
        name: Its name on the command line, e.g. `register`.
        summary: A description in one line.
        Options: The frozen dataclass of its options; see `harness.declare`.
        functions: The functions of the clients, each with its argument and its result in one line.
        model: The name of the model that decides each key if there is only a history, as in `labrys check`; None if the
            workload is a `checker.judging.Judge`, which decides it.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see the class

    @property
    def summary(self) -> str: ...  # noqa: D102

    @property
    def Options(self) -> type: ...  # noqa: D102, N802 - it is a class

    @property
    def functions(self) -> Mapping[str, str]: ...  # noqa: D102

    @property
    def model(self) -> str | None: ...  # noqa: D102

    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns a fresh generator for the main phase of the run.

        Args:
            seed: The run's root seed.
            streams: The number of op streams that ask it: workers in a closed loop, nodes in an open loop. Stream `i` draws
                only from `stream(seed, f"worker/{i}")`, as `harness.combinators.each_stream` does. `labrys plan` prints the
                first operations of each; see `harness.generator.Asker.preview`.
        """
        ...

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:
        """Returns a generator of reads of every key of the run, for `node` after healing."""
        ...

    def check(self, operations: Sequence[Operation], observed: Observed) -> Sequence[Part]:
        """Judges the client operations of a whole run, with the final reads.

        A part that could not be produced is `unknown` with the reason, and is not left out.
        """
        ...


def clients_of(workload: Workload, system: ClientFactory) -> ClientFactory:
    """Returns the factory of the clients of a run's workload phase.

    A workload can have a method `clients` with this argument and result. Its clients then carry out some operations on their
    own, e.g. on a resource beside the system, and give the others to the clients of the system.

    Args:
        workload: The workload.
        system: Makes the clients of the system.
    """
    own: Callable[[ClientFactory], ClientFactory] | None = getattr(workload, "clients", None)
    return system if own is None else own(system)
