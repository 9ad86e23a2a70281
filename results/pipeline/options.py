"""The options of an analysis."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from checker.checking import conventions_of
from checker.deciders import Wanted
from checker.search.solving import AUTO
from results.pipeline.decide.asked import VerdictOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from checker.models import Model


IN_PROCESS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """The options of an analysis.

    Attributes:
        paths: The paths to read, as Spark writes paths.
        out: The output folder.
        wanted: The model or the workload, if the user set one.
        conventions: `nil_read`, `failed_cas` and `crashed_dequeue`, if they differ from those of each format.
        keyed: Whether values of events are pairs of a key and a value; None: detected for each history.
        time_limit_s: Seconds for the search of each key; None for no limit.
        memory_limit: Bytes for each key in a worker.
        algorithm: One of `checker.search.solving.ALGORITHMS`.
        cross_check: Whether a second algorithm must agree.
        certificate: Whether to return the linearization of valid keys.
        explain_model: Whether to return the effort of the search of each key.
        strict: Whether a malformed row ends the job.
        incremental: Whether to read only new and changed sources.
        keep_operations: Whether to write also operations that were read from tables.
        pictures: Whether to draw.
        in_process: The maximum number of operations that this process takes; Spark takes more.
    """

    paths: Sequence[str]
    out: str
    wanted: Wanted = field(default_factory=Wanted)
    conventions: Mapping[str, str] = field(default_factory=dict)
    keyed: bool | None = None
    time_limit_s: float | None = 60.0
    memory_limit: int = 1 << 30
    algorithm: str = AUTO
    cross_check: bool = False
    certificate: bool = False
    explain_model: bool = False
    strict: bool = False
    incremental: bool = False
    keep_operations: bool = False
    pictures: bool = True
    in_process: int = IN_PROCESS

    def of_model(self, model: type[Model], format_name: str, conventions: Iterable[tuple[str, str]]) -> VerdictOptions:
        """Returns the options of the check of a history by a model.

        Args:
            model: The model's class.
            format_name: The format of the history.
            conventions: The conventions that the history itself defines.
        """
        return VerdictOptions(
            model=model,
            initial=self.wanted.initial,
            conventions={**conventions_of(format_name), **dict(conventions), **self.conventions},
            algorithm=self.algorithm,
            time_limit_s=self.time_limit_s,
            memory_limit=self.memory_limit,
            cross_check=self.cross_check,
            certificate=self.certificate,
            explain_model=self.explain_model,
        )

    @property
    def deciding(self) -> dict[str, Any]:
        """The options that the verdicts depend on."""
        names = ("keyed", "time_limit_s", "memory_limit", "algorithm", "cross_check", "certificate", "explain_model")
        values = {name: getattr(self, name) for name in names}
        values |= {"initial": self.wanted.initial, "model": self.wanted.model, "conventions": dict(self.conventions)}
        if self.wanted.workload is not None or self.wanted.settings:
            values |= {"workload": self.wanted.workload, "workload_options": list(self.wanted.settings)}
        return values
