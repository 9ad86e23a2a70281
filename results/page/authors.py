"""A report for the authors of a system: one Markdown file that a maintainer can follow without Labrys.

It is made from the files of a run alone. Each text of the run is escaped: it comes from the system under test, or from a folder
of anyone.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from harness.console.plain import counted, one_line
from harness.op import OpType
from harness.reached import RECOVERED
from harness.units import NS_PER_S
from harness.verdict import CONTROL_NODE, Verdict
from results.circumstances.fault_clauses import happened
from results.circumstances.losses import reason as reason_of
from results.logs.lines import log_files
from results.page.evidence import evidence, logs_of
from results.page.story import at, scene_of, story
from results.record.counterexample import counterexamples_of
from results.words.markdown import quoted
from results.words.rates import rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.faults import FaultRecord
    from harness.watch import Sighting
    from results.logs.lines import Logs
    from results.page.story import Scene
    from results.record.record import RunRecord
    from results.store.store import Run

MAX_TEXT: Final = 2_000
MAX_FILES: Final = 30
MAX_FAULTS: Final = 40
MAX_ERRORS: Final = 6
# Parts that say what the fault of the test itself would be, in words: none of them is about the system.
OF_THE_TEST: Final = {
    "faults-effective": "The faults had their effect",
    "client-errors": "The client knows each error",
    CONTROL_NODE: "The machine of the test kept up",
    "completed": "The run went through its phases",
    "progress": "Operations succeeded while and after faults were on",
}


def authors_report(
    run: Run, record: RunRecord, *, rate: tuple[int, int] | None, shorter: str = "", steps: str = "", patch: str = ""
) -> str:
    """Returns the report of a run.

    Args:
        run: The folder of the run.
        record: Its record.
        rate: How many runs of the same case and release show the same, and of how many; None if it is not known.
        shorter: The command of a smaller run that shows the same, as `labrys shrink` found it; empty if there is none.
        steps: Steps with the tools of the system alone, as Markdown of this repository; empty if there are none.
        patch: A patch of this repository that repairs the cause of the run; empty if there is none.
    """
    program = f"{record.test.software} {record.test.system_version or ''}".rstrip()
    lines = [
        f"# {quoted(program)}: {quoted(reason_of(record), MAX_TEXT)}",
        "",
        *_section("What was run", _subject(record)),
        *_section("What is promised", _promise(record)),
        *_section("What must not be", _violations(record)),
        *_happened(run, record),
        *_section("Faults of the run", _faults(record)),
        *_section("How often", _often(rate)),
        *_section("What was ruled out", _ruled_out(record)),
        *_section("Steps with the system's own tools", iter(steps.splitlines())),
        *_section("A patch", _patched(patch)),
        *_section("How to run it again", _again(record, shorter, has_steps=bool(steps))),
        *_section("Files", _files(run)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, lines: Iterator[str]) -> list[str]:
    body = [*lines]
    return [f"## {title}", "", *body, ""] if body else []


def _subject(record: RunRecord) -> Iterator[str]:
    test = record.test
    for name, version in test.versions.items():
        yield f"- {quoted(name)} {quoted(version)}"
    artifact = test.artifact
    if artifact is not None:
        program = f"{quoted(artifact.name)} {quoted(artifact.version)}"
        # Of a released program, Labrys builds what starts it: the commit is that of these sources.
        commit = "" if artifact.commit is None else f"; the sources of its build have commit {quoted(artifact.commit)}"
        changes = ", as released" if not artifact.patches else ""
        yield f"- The program: {program}{changes}; SHA-256 {quoted(artifact.digest)}{commit}"
        for patch in artifact.patches:
            yield f"  - changed: {quoted(patch)}"
    yield f"- {counted(len(test.nodes), 'node')}: {quoted(', '.join(test.nodes))}; the workload is {quoted(test.workload)}"
    yield f"- The test began at {test.started_utc:%Y-%m-%d %H:%M:%S} UTC. Times below count from the start of its workload."


def _promise(record: RunRecord) -> Iterator[str]:
    tested = record.test.tested
    if tested is None or tested.promise is None:
        yield "Labrys has no sentence of the system about this. The run was judged by what the workload asks for."
        return
    yield f"{quoted(tested.promise, MAX_TEXT)}"
    if tested.source is not None:
        yield ""
        yield f"Source: {quoted(tested.source, MAX_TEXT)}"
    if tested.others:
        yield ""
        yield f"The test asked for something else: {quoted(' '.join(tested.others), MAX_TEXT)}"


def _violations(record: RunRecord) -> Iterator[str]:
    for part in record.parts:
        if part.verdict is Verdict.INVALID:
            yield f"- {quoted(part.reason, MAX_TEXT)} (Labrys calls this check {quoted(part.name)}.)"


def _happened(run: Run, record: RunRecord) -> list[str]:
    """Returns the section with the events around the first violation, in the order of time."""
    pieces = evidence(record)
    logs = logs_of(run, record, pieces)
    examples = counterexamples_of(record, "")
    scene = scene_of(examples[0]) if examples else next((piece.scene for piece in pieces if piece.scene), None)
    if scene is None:
        return _section("After the last fault", _aftermath(record))
    return _section("What happened", _timeline(scene, record, logs))


def _aftermath(record: RunRecord) -> Iterator[str]:
    """Yields what clients and nodes did in the longest time without a success after the last fault.

    This is for a violation that is no single moment.
    """
    healed_ns = max((fault.end_ns for fault in record.faults), default=0)
    yield f"- The last fault ended at {_time(healed_ns)}." if record.faults else "- The run had no fault."
    end_ns = max(
        [
            healed_ns,
            *(seen.last_ns for seen in record.sightings),
            *(operation.last_ns for operation in record.operations),
        ]
    )
    successes = sorted(operation.last_ns for operation in record.operations if operation.type is OpType.OK)
    around = [0, *successes, end_ns]
    gaps = [(later - earlier, earlier, later) for earlier, later in pairwise(around) if later > healed_ns]
    _, from_ns, until_ns = max(gaps, default=(0, healed_ns, end_ns))
    ended = "to the end" if not successes or until_ns > successes[-1] else f"to {_time(until_ns)}"
    yield f"- The longest time without a success: from {_time(from_ns)} {ended}."
    failed = [
        operation
        for operation in record.operations
        if from_ns < operation.last_ns < until_ns and operation.type is not OpType.OK
    ]
    errors = Counter(operation.error or "no answer" for operation in failed)
    for error, number in errors.most_common(MAX_ERRORS):
        yield f"- In this time, {counted(number, 'operation')} ended with {quoted(error)}."
    longest: dict[str, tuple[int, Sighting]] = {}
    for seen in record.sightings:
        length_ns = min(seen.last_ns, until_ns) - max(seen.time_ns, from_ns)
        if length_ns >= 0 and length_ns > longest.get(seen.node, (-1, seen))[0]:
            longest[seen.node] = length_ns, seen
    for node, (_, seen) in sorted(longest.items()):
        term = "" if seen.term is None else f" in term {seen.term}"
        leader = "" if seen.leader is None else f", with {quoted(seen.leader)} as the leader"
        times = f"from {_time(seen.time_ns)} to {_time(seen.last_ns)}"
        yield f"- The state of {quoted(node)} that lasted longest: {quoted(seen.role or 'no answer')}{term}{leader}, {times}."


def _time(time_ns: int) -> str:
    return f"{time_ns / NS_PER_S:.3f} s"


def _timeline(scene: Scene, record: RunRecord, logs: Logs) -> Iterator[str]:
    yield "| time | event |"
    yield "|---|---|"
    for moment in story(scene, record, (), logs.near(scene.spans)):
        mark = " **This cannot be.**" if moment.culprit else ""
        yield f"| {at(moment.time_ns)} | {quoted(moment.text, MAX_TEXT)}{mark} |"
    for note in logs.notes:
        yield ""
        yield quoted(note, MAX_TEXT)


def _faults(record: RunRecord) -> Iterator[str]:
    began = [fault for fault in record.faults if fault.end_ns > fault.start_ns]
    for fault in began[:MAX_FAULTS]:
        yield f"- {_time(fault.start_ns)} to {_time(fault.end_ns)}: {quoted(happened(fault), MAX_TEXT)}. {_proof(fault)}"
    if len(began) > MAX_FAULTS:
        yield f"- {counted(len(began) - MAX_FAULTS, 'later fault')} are left out."


def _proof(fault: FaultRecord) -> str:
    if fault.proof is None or not fault.proof.effective:
        return "No effect is proven."
    return f"Seen: {quoted(fault.proof.reason, MAX_TEXT)}"


def _often(rate: tuple[int, int] | None) -> Iterator[str]:
    if rate is None:
        yield "Unknown: the folder two above this run is no store with it."
        return
    yield f"{rate_text(*rate)} of this case and this release showed it (95 %, Wilson)."


def _ruled_out(record: RunRecord) -> Iterator[str]:
    by_name = {part.name: part for part in record.parts}
    is_down = RECOVERED in by_name and by_name[RECOVERED].verdict is Verdict.INVALID
    for name, words in OF_THE_TEST.items():
        part = by_name.get(name)
        if part is not None and not (
            is_down and name == "progress"
        ):  # the violation itself keeps operations from success
            known = "" if part.verdict is Verdict.VALID else " **not ruled out:**"
            yield f"- {words}:{known} {quoted(part.reason, MAX_TEXT)}"


def _patched(patch: str) -> Iterator[str]:
    if patch:
        yield "This patch of the released sources repairs the known cause of the run. `git apply --unidiff-zero` applies it."
        yield ""
        yield "```diff"
        yield from patch.splitlines()
        yield "```"


def _again(record: RunRecord, shorter: str, *, has_steps: bool) -> Iterator[str]:
    yield "Labrys carries the run out again with"
    yield ""
    yield f"    {one_line(record.test.reproduce)}"
    if shorter:
        yield ""
        yield "and a smaller one that shows the same with"
        yield ""
        yield f"    {one_line(shorter)}"
    if not has_steps:
        yield ""
        yield "This report has no steps with the system's own tools: no known cause with such steps matches the run."


def _files(run: Run) -> Iterator[str]:
    paths: Sequence[str] = [str(path.relative_to(run.path)) for path in log_files(run)]
    yield f"The folder of the run has the operations in {quoted('history.jsonl')}, the verdict in {quoted('results.json')}."
    yield "It has these logs of the nodes:"
    yield ""
    for path in paths[:MAX_FILES]:
        yield f"- {quoted(path)}"
    if not paths:
        yield "- none"
    if len(paths) > MAX_FILES:
        yield f"- and {len(paths) - MAX_FILES} more"
