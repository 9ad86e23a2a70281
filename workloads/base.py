"""What workloads share: their options, the reads of every key after healing, and the parts of a verdict.

A workload of your own may derive from `JudgedWorkload` too. Then it has only its names, its generator and its judge.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from harness.combinators import until_ok
from harness.op import FINAL_PHASE, Invocation
from harness.returns import check_returns
from workloads.finals import final_reads, keys_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.final_reads import FinalReads
    from harness.generator import Generator
    from harness.node import Node
    from harness.op import Op, Operation
    from harness.verdict import Part
    from harness.workload import Observed

OptionsT = TypeVar("OptionsT")


class BaseWorkload(abc.ABC, Generic[OptionsT]):
    """A workload without its operations and its checks; see `harness.workload.Workload` for the attributes.

    Attributes:
        final: The functions that read a key after healing; none if there is nothing to read.
        options: The options of this test.
    """

    name: str
    summary: str
    Options: type[OptionsT]
    functions: Mapping[str, str]
    model: str | None
    final: Sequence[str] = ("read",)

    def __init_subclass__(cls, **more: Any) -> None:
        """Checks what the methods of a plug-in return; see `harness.returns`."""
        super().__init_subclass__(**more)
        check_returns(cls, "workload")

    def __init__(self, options: OptionsT | None = None) -> None:
        self.options = options or self.Options()

    @abc.abstractmethod
    def generator(self, *, seed: int, streams: int) -> Generator:
        """Returns the generator of the main phase; see `harness.workload.Workload`."""

    @abc.abstractmethod
    def parts(self, operations: Sequence[Operation], observed: Observed) -> list[Part]:
        """Returns the parts of the verdict, without that of the final reads."""

    def final_generator(self, *, history: Sequence[Op], node: Node) -> Generator:  # noqa: ARG002 - the same for each node
        """Returns the reads of every key in the history; each is repeated until it succeeds."""
        return until_ok(Invocation(f, None, key, FINAL_PHASE) for key in keys_of(history) for f in self.final)

    def final_part(self, operations: Sequence[Operation], reads: FinalReads) -> Part:
        """Returns the part `final-reads`."""
        return final_reads(operations, reads)

    def check(self, operations: Sequence[Operation], observed: Observed) -> list[Part]:
        """Returns the parts of `parts` and, if the test has final reads and there is something to read, `final-reads`."""
        parts = self.parts(operations, observed)
        if observed.final_reads is not None and self.final:
            parts.append(self.final_part(operations, observed.final_reads))
        return parts


class JudgedWorkload(BaseWorkload[OptionsT]):
    """A workload with a judge, which also decides the histories of `labrys check` and `labrys analyze`.

    Attributes:
        transactions: For transactions, the micro-operations of the values, as in `checker.formats.plain.read_plain`.
    """

    model = None
    transactions: ClassVar[str | None] = None

    @abc.abstractmethod
    def judge(self, history: Columns) -> Judgement:
        """Decides one object; see `checker.judging.Judge`."""

    def parts(self, operations: Sequence[Operation], observed: Observed) -> list[Part]:
        """Returns the part of the judge; it has the name of the workload."""
        from checker.formats.columns import of_operations  # noqa: PLC0415 - `--help` needs no judge
        from checker.judging import part_of  # noqa: PLC0415

        columns = of_operations(operations)
        return [part_of(self, columns, operation=operations.__getitem__, faults=observed.faults)]
