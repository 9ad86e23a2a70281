"""The native part of the checker: see `checker/kernel/src/python.rs`."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Self, TypeAlias

from checker.models.base import Call, Model

__version__: str
REFUSED: Final = -1

Verdict: TypeAlias = Literal["valid", "invalid", "unknown"]

class Config:
    """A state that is possible at a moment; operations are positions in the columns of a problem.

    Attributes:
        path: Operations that lead from the initial state to it.
        last: The operation that took effect last, among those that returned.
        pending: The operations that are open and have not taken effect.
    """

    path: Final[list[int]]
    last: Final[int | None]
    pending: Final[list[int]]

    def __new__(cls, *, path: list[int], last: int | None, pending: list[int]) -> Self: ...

class Counts:
    """How often each reduction of a search applied; `checker.explain.effort` has them in words."""

    segments: Final[int]
    absorbed: Final[int]
    commuted: Final[int]
    merged: Final[int]
    dead_ends: Final[int]

class Outcome:
    """What `solve` says of one problem; operations are positions in its columns.

    Attributes:
        verdict: The verdict.
        analyzer: The algorithm that decided.
        cause: Unknown: why.
        op: Invalid: the first operation at whose return no linearization is left. Unknown: the furthest return reached.
        kind: Invalid: the kind of violation.
        core: Invalid: operations that contradict each other.
        unsuited: Why the requested algorithm does not apply.
        steps: The number of model steps.
        seconds: Wall time.
        order: Valid: the order of a linearization; see `checker.search.solving.positions`.
        configs: The states before `op` returns, or at the end.
        has_all_configs: Whether these are all.
        counts: How often each reduction applied; None if no search of the kernel decided.
    """

    verdict: Final[Verdict]
    analyzer: Final[str]
    cause: Final[str | None]
    op: Final[int | None]
    kind: Final[str | None]
    core: Final[list[int]]
    unsuited: Final[str | None]
    steps: Final[int]
    seconds: Final[float]
    order: Final[bytes | None]
    configs: Final[list[Config]]
    has_all_configs: Final[bool]
    counts: Final[Counts | None]

    def __new__(
        cls,
        *,
        verdict: Verdict,
        analyzer: str,
        cause: str | None = None,
        op: int | None = None,
        kind: str | None = None,
        core: list[int] = ...,
        unsuited: str | None = None,
        steps: int = 0,
        seconds: float = 0.0,
        order: bytes | None = None,
        configs: list[Config] = ...,
        has_all_configs: bool = False,
        counts: Counts | None = None,
    ) -> Self: ...

class Transitions:
    """The table of a model that is written in Python: its states and operations as numbers, each transition asked for once.

    The search of the kernel asks such a table, and so does the search for places in the order that a system tells
    (`checker.search.placement`). State 0 is the initial one.

    Attributes:
        calls: By number: what the model sees of the operations that are alike.
        states: How many states were seen.
        entries: How many transitions are known.
    """

    def __new__(cls, model: Model) -> Self: ...
    @property
    def calls(self) -> list[Call]: ...
    @property
    def states(self) -> int: ...
    @property
    def entries(self) -> int: ...
    def add(self, call: Call) -> int:
        """Returns the number of operations that are alike, and that have none yet."""

    def step(self, state: int, call: int) -> int:
        """Returns the number of the next state, or `REFUSED`. The model is asked once.

        Raises:
            ModelError: The model has states that are not hashable.
        """

    def state(self, number: int) -> Any:
        """Returns the state with a number."""

    def refusal(self, state: int, call: int) -> str | None:
        """Returns why the model refuses operations in a state; None if it does not."""

class Problem:
    """A history as columns (any contiguous buffers: f of uint8, the others of int64), and its model's family."""

    def __new__(
        cls,
        family: str,
        f: Any,
        a: Any,
        b: Any,
        s: Any,
        e: Any,
        *,
        initial: Sequence[int],
        offsets: Any | None = None,
        flat: Any | None = None,
        step: Transitions | Callable[[int, int], int] | None = None,
        observers: bytes | None = None,
    ) -> Self: ...
    def __len__(self) -> int: ...

class Events:
    """Reads a plain history; a `line` is that of the first byte.

    The name is `jsonl` (after its header), `json-lines` (without one), `edn` or `console-log`. `keyed` says whether values are
    pairs of a key and a value. `transactions` is the workload of transactions, `list-append` or `rw-register`. `part` says that
    the text is a part of the lines of a `jsonl`, without its header.
    """

    def __new__(
        cls, name: str, *, keyed: bool = False, line: int = 1, transactions: str | None = None, part: bool = False
    ) -> Self: ...
    @property
    def line(self) -> int: ...
    def feed(self, text: bytes) -> int | None:
        """Takes the whole events at the beginning of a text, and returns their length; None if the history is not plain."""

    def finish(self) -> EventColumns | None:
        """Returns the operations; None if the history is not plain."""

class ChangedValue:
    """A completion that is not ok, and whose value may differ from that of its invoke; see `EventColumns.value`."""

    row: Final[int]
    line: Final[int]
    failed: Final[bool]
    kind: Final[int]
    first: Final[int]
    second: Final[int]

class PartOfEvents:
    """What a part of a history needs of the others.

    Attributes:
        lines: The lines of faults, and of completions of operations that it did not invoke, with their numbers.
        first: The index of its first event.
        workers: Columns of its processes: the number, the time of the first event and of the last completion, and flags. The
            flags are 1 if the first event is such a completion, 2 for an operation that is open, 4 after an info.
    """

    lines: Final[list[tuple[int, bytes]]]
    first: Final[int]
    workers: Final[tuple[bytes, bytes, bytes, bytes]]

class EventColumns:
    """The operations of a plain history as columns of bytes, and the distinct texts.

    Attributes:
        events: The number of events, with faults.
        around: Whether there are events of faults.
        timed: Whether the events have times.
        back_line: The first line whose time is before that of an earlier one; None if there is none.
        changed: Completions with other values than their invokes.
        keys: The texts of keys, as in the file; so are the next four.
        functions: Those of functions.
        values: Those of values that are no integers and no pairs of these.
        names: Those of nodes, errors and phases.
        unused: Those that no operation has.
        type: By row, the type as int8; the next six columns have places of texts as int32, -1 for none.
        process: By row, as int64; so are the next five, -1 for none.
        value: Kinds as int8, and two columns of int64, as in `checker.formats.columns.Values`.
        result: Likewise.
        order: The rows that have a number of the system's own, with this number.
        transactions: The values, if they are transactions.
        part: Of a part: what it needs of the others.
    """

    events: Final[int]
    around: Final[bool]
    timed: Final[bool]
    back_line: Final[int | None]
    changed: Final[list[ChangedValue]]
    keys: Final[list[str]]
    functions: Final[list[str]]
    values: Final[list[str]]
    names: Final[list[str]]
    unused: Final[list[str]]
    type: Final[bytes]
    key: Final[bytes]
    function: Final[bytes]
    node: Final[bytes]
    error: Final[bytes]
    phase: Final[bytes]
    via: Final[bytes]
    process: Final[bytes]
    start: Final[bytes]
    end: Final[bytes]
    start_ns: Final[bytes]
    end_ns: Final[bytes]
    scheduled_ns: Final[bytes]
    value: Final[tuple[bytes, bytes, bytes]]
    result: Final[tuple[bytes, bytes, bytes]]
    order: Final[list[tuple[int, int]]]
    transactions: Final[Transactions | None]
    part: Final[PartOfEvents | None]

class Transactions:
    """The requests and the answers of transactions: the request of a row has twice its number, and the answer one more."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int) -> str:
        """Returns canonical JSON."""

class Cancellation:
    """Ends the searches of a `solve` that runs in another thread."""

    def __new__(cls) -> Self: ...
    def cancel(self) -> None: ...
    def is_cancelled(self) -> bool: ...

def solve(
    problems: Sequence[Problem],
    *,
    algorithm: str,
    time_limit_s: float | None,
    processor_limit_s: float | None,
    memory_limit: int | None,
    threads: int,
    want_order: bool,
    fail_fast: bool,
    cancellation: Cancellation | None = None,
) -> list[Outcome]:
    """Decides problems on that many threads, without the interpreter lock; without a limit half of the free memory is used.

    `time_limit_s` is wall time of the call, and `processor_limit_s` is processor time of each search.
    """

class Malformed:
    """A transaction that has another form than its workload.

    Attributes:
        row: Its row.
        answer: Whether the answer is wrong, and not the request.
        place: The micro-operation; None for the whole.
        what: The reason, a name of `checker.transactions.judge`.
    """

    row: Final[int]
    answer: Final[bool]
    place: Final[int | None]
    what: Final[str]

class SamePosition:
    """A key, and two rows that wrote it and have one position in the system's own order."""

    key: Final[str]
    rows: Final[list[int]]

class WrittenTwice:
    """Two writes of one value to a key, or one of the initial value.

    Attributes:
        key: The canonical JSON of the key.
        element: That of the value.
        rows: Two rows.
        places: The places of their micro-operations; twice the same for a write of the initial value.
    """

    key: Final[str]
    element: Final[str]
    rows: Final[list[int]]
    places: Final[list[int]]

    def __new__(cls, *, key: str, element: str, rows: list[int], places: list[int]) -> Self: ...

class LeftOut:
    """Values that were written to a key twice, or are the initial one.

    Attributes:
        first: The first of them.
        values: How many there are.
        reads: How many reads of them were left out.
    """

    first: Final[WrittenTwice]
    values: Final[int]
    reads: Final[int]

class Finding:
    """An anomaly that is no cycle.

    Attributes:
        kind: Its name.
        key: The canonical JSON of the key.
        rows: The transactions.
        places: For each of them, the place of its micro-operation.
        elements: The canonical JSON of the elements that it is about; None for the initial version.
    """

    kind: Final[str]
    key: Final[str]
    rows: Final[list[int]]
    places: Final[list[int]]
    elements: Final[list[str | None]]

    def __new__(
        cls, *, kind: str, key: str, rows: list[int], places: list[int], elements: list[str | None]
    ) -> Self: ...

class Link:
    """An edge: the first transaction precedes the second one.

    Attributes:
        first: The row of the first one.
        second: That of the second one.
        kind: What orders them: `ww`, `wr`, `rw`, `conflict`, `process` or `realtime`.
        key: The canonical JSON of the key; None for an edge without data.
        before: The version before; None for the initial one.
        after: The version after.
    """

    first: Final[int]
    second: Final[int]
    kind: Final[str]
    key: Final[str | None]
    before: Final[str | None]
    after: Final[str | None]

    def __new__(
        cls, *, first: int, second: int, kind: str, key: str | None, before: str | None, after: str | None
    ) -> Self: ...

class Cycle:
    """A cycle of dependencies: its type, the number of transactions in its component, and its edges."""

    kind: Final[str]
    component: Final[int]
    links: Final[list[Link]]

    def __new__(cls, *, kind: str, component: int, links: list[Link]) -> Self: ...

class Overlap:
    """Writers of common keys that depend on each other.

    Attributes:
        kind: The type of anomaly.
        component: The number of transactions in their component.
        decided: Whether it is decided that no order keeps them apart.
        writers: Rows, each with the canonical JSON of a key.
    """

    kind: Final[str]
    component: Final[int]
    decided: Final[bool]
    writers: Final[list[tuple[int, str]]]

    def __new__(cls, *, kind: str, component: int, decided: bool, writers: list[tuple[int, str]]) -> Self: ...

class VersionReason:
    """Two versions of a key in a cycle, and the source that their order follows from."""

    key: Final[str]
    before: Final[str]
    after: Final[str]
    source: Final[str]

    def __new__(cls, *, key: str, before: str, after: str, source: str) -> Self: ...

class VersionPair:
    """Two versions of a key, in the order that a case begins with; None is the initial one."""

    key: Final[str]
    before: Final[str | None]
    after: Final[str | None]

class VersionOrder:
    """The order of two versions of a key.

    Attributes:
        key: The canonical JSON of the key.
        before: The first version.
        after: The second one.
        why: What it follows from: a source, `path`, `seen` or `chosen`.
        links: The edges that show it.
    """

    key: Final[str]
    before: Final[str | None]
    after: Final[str | None]
    why: Final[str]
    links: Final[list[Link]]

class ShownCycle:
    """A cycle, the orders of versions that it needs, and how many more of these there are."""

    links: Final[list[Link]]
    orders: Final[list[VersionOrder]]
    left: Final[int]

class Case:
    """One case of a contradiction.

    Attributes:
        chosen: The order of two versions that it begins with; None if it needs none.
        shown: The cycle; None if it is long.
    """

    chosen: Final[VersionPair | None]
    shown: Final[ShownCycle | None]

class Ordering:
    """Whether the versions of registers have an order that a class of models allows.

    Attributes:
        answer: `order` if they have one, `contradiction` if not, `limit` if the steps did not suffice, or `too-large`.
        cases: The cases of a contradiction.
        rows: Its rows.
    """

    answer: Final[str]
    cases: Final[list[Case]]
    rows: Final[list[int]]

    def __new__(cls, *, answer: str, cases: list[Case], rows: list[int]) -> Self: ...

class TransactionFindings:
    """What the kernel finds in a history of transactions.

    Attributes:
        findings: The anomalies that are no cycles.
        cycles: The cycles.
        overlaps: Writers that no order keeps apart.
        counts: The number of anomalies by their types.
        data_edges: The number of dependencies.
        reasons: What the order of versions of registers in the cycles follows from.
        ordering: For `asked`, if the known orders make no anomaly that is prohibited.
        placed: With `transaction-order`: how many transactions that write and did not fail have a position, and how many there
            are.
        twice: Values that were written to a key twice, or are the initial one; None if there are none.
        order: With `want_order`: the rows in an order that all edges agree with; None if there is a cycle.
    """

    findings: Final[list[Finding]]
    cycles: Final[list[Cycle]]
    overlaps: Final[list[Overlap]]
    counts: Final[dict[str, int]]
    data_edges: Final[int]
    reasons: Final[list[VersionReason]]
    ordering: Final[Ordering | None]
    placed: Final[tuple[int, int] | None]
    twice: Final[LeftOut | None]
    order: Final[list[int] | None]

    def __new__(
        cls,
        *,
        findings: list[Finding],
        cycles: list[Cycle],
        overlaps: list[Overlap],
        counts: dict[str, int],
        data_edges: int,
        reasons: list[VersionReason],
        ordering: Ordering | None = None,
    ) -> Self: ...

class PartLink:
    """An edge in a part of a graph; in place of versions it has the places of edges."""

    first: Final[int]
    second: Final[int]
    kind: Final[str]
    before: Final[int | None]
    after: Final[int | None]

class PartCycle:
    """A cycle in a part of a graph; `start` is the first row of its component."""

    kind: Final[str]
    component: Final[int]
    start: Final[int]
    links: Final[list[PartLink]]

class PartOverlap:
    """Writers in a part of a graph, each a row and the number of a group; `start` is the first row of their component."""

    kind: Final[str]
    component: Final[int]
    start: Final[int]
    decided: Final[bool]
    writers: Final[list[tuple[int, int]]]

class PartFindings:
    """What a part of a graph shows."""

    cycles: Final[list[PartCycle]]
    overlaps: Final[list[PartOverlap]]
    counts: Final[dict[str, int]]

def transactions(
    workload: str,
    *,
    kind: Any,
    process: Any,
    start: Any,
    end: Any,
    request: Any,
    answer: Any,
    texts: list[str] | Transactions,
    extra: str,
    sources: list[str] = ...,
    more: list[str] = ...,
    want_order: bool = False,
    position: Any = None,
    initial: str | None = None,
    asked: tuple[str, str, list[str]] | None = None,
) -> TransactionFindings | Malformed | SamePosition:
    """Finds the anomalies of transactions, without the interpreter lock.

    Args:
        workload: `list-append` or `rw-register`.
        kind: By row: 0 ok, 1 fail, 2 info, as int8; the other columns are int64. The starts ascend.
        process: The number of the process.
        start: The invoke's index.
        end: The completion's index.
        request: The place of the request in `texts`; below 0 for a value that is no list of micro-operations.
        answer: The place of the answer in `texts`, likewise.
        texts: Canonical JSON of lists of micro-operations, or the transactions of a file. A file's request has an even place,
            and its answer the next one.
        extra: What orders transactions besides their data: `none`, `process` or `realtime`.
        sources: What the order of versions follows from: `sequential-keys`, `linearizable-keys`; for registers also
            `writes-follow-reads`, `transaction-order`, `atomic-visibility`.
        more: Anomalies to search besides those that are always searched: `observed-transaction-vanishes`, `fractured-read` and
            `G-causal`, which need lists, and `G-prefix`.
        want_order: Whether to return an order of the rows that all edges agree with.
        position: By row: its position in the system's own commit order, from 0; -1 for none. `transaction-order` needs it.
        initial: The value of all registers at the beginning, in canonical JSON; None: nil.
        asked: For registers, what the order of versions must keep: a class of models by the name of an anomaly (`CLASSES` of
            `checker.consistency`), what orders transactions besides their data in it, and all that is prohibited.
    """

def sort_seconds(count: int) -> float:
    """Seconds to sort that many random records of 16 bytes: the yardstick of the benchmarks."""

def evident_texts(texts: tuple[Any, Any, Any]) -> bytes:
    """Returns by row 1 if the text is certainly canonical JSON of null, plain strings, integers and lists, or if there is none.

    Args:
        texts: The ends, the first of which is a beginning, as int32; the bytes; and by row 1 if there is a text, all as arrays.
    """

class TransactionParts:
    """Transactions, divided by their keys: columns of a row and a key, as uint32.

    Attributes:
        row: The row.
        places: The places of its micro-operations, all in a row, and the end of each part.
        key: The canonical JSON of the key: texts and ends.
        text: That of the micro-operations, likewise.
        address: A number that spreads keys over buckets.
    """

    row: Final[bytes]
    places: Final[tuple[bytes, bytes]]
    key: Final[tuple[bytes, bytes]]
    text: Final[tuple[bytes, bytes]]
    address: Final[bytes]

class PartFinding:
    """An anomaly of a key, as `Finding`, with the number of the key."""

    kind: Final[str]
    key: Final[int]
    rows: Final[list[int]]
    places: Final[list[int]]
    elements: Final[list[str | None]]

class KeyDependencies:
    """What keys show by themselves: columns of uint32, where 2^32 - 1 is none.

    Attributes:
        edges: From, to, kind, key, version before, version after, and source.
        fans: Key, row, version, and 1 for a writer.
        groups: Key, row and version of writers without a known order.
        first: By key, its first row.
        keys: The canonical JSON of keys: texts and ends.
        elements: That of versions, likewise.
        findings: The anomalies that are no cycles.
        contradicted: The places of sources that contradict the others.
        data_edges: The number of dependencies.
        at: If `more` needs them: the places of the reads of edges and of fans in the parts.
        reads: Likewise: key, row, place in the part, place in the order of versions, and version.
        writes: Likewise.
    """

    edges: Final[list[bytes]]
    fans: Final[list[bytes]]
    groups: Final[list[bytes]]
    first: Final[bytes]
    keys: Final[tuple[bytes, bytes]]
    elements: Final[tuple[bytes, bytes]]
    findings: Final[list[PartFinding]]
    contradicted: Final[bytes]
    data_edges: Final[int]
    at: Final[tuple[bytes, bytes] | None]
    reads: Final[list[bytes] | None]
    writes: Final[list[bytes] | None]

def transaction_parts(
    workload: str, *, kind: Any, request: tuple[Any, Any, Any], answer: tuple[Any, Any, Any]
) -> TransactionParts | Malformed:
    """Divides transactions by their keys.

    Args:
        workload: `list-append` or `rw-register`.
        kind: By row: 0 ok, 1 fail, 2 info, as int8.
        request: Canonical JSON, as in `evident_texts`; no text for a value that is no list of micro-operations.
        answer: Likewise; it counts in a row of kind 0.
    """

def transaction_dependencies(
    workload: str,
    *,
    kind: Any,
    process: Any,
    start: Any,
    end: Any,
    text: tuple[Any, Any, Any],
    sources: list[str],
    left_out: list[int],
    more: list[str] = ...,
    initial: str | None = None,
) -> KeyDependencies | WrittenTwice:
    """Finds what keys show by themselves.

    Args:
        workload: `list-append` or `rw-register`.
        kind: See `transactions`, as for the next three. A row is a part of a transaction, in the order of starts.
        process: The number of the process.
        start: The invoke's index.
        end: The completion's index.
        text: The parts, as in `evident_texts`.
        sources: See `transactions`.
        left_out: The places of sources (1 to 3) that contradict the others in other keys.
        more: See `transactions`.
        initial: See `transactions`.
    """

class TransactionGraph:
    """A part of the graph of dependencies.

    Rows are transactions that did not fail, in the order of starts. `edges` are columns of uint32: from, to, kind, rank of the
    key, place of the read in its transaction. `fans` are rank of the key, row, 1 for a writer, and place of the read. `groups`
    are number and row. `reads` and `writes` are rank of the key, row, place in the transaction, place in the order of versions,
    and version; `more` says which anomalies are searched besides those that always are. `unordered` says whether orders of the
    groups decide snapshot isolation. `extra` is `none` or `realtime`.
    """

    def __new__(
        cls,
        *,
        kind: Any,
        process: Any,
        start: Any,
        end: Any,
        edges: Sequence[Any],
        fans: Sequence[Any],
        groups: Sequence[Any],
        reads: Sequence[Any],
        writes: Sequence[Any],
        unordered: bool,
        extra: str,
        more: list[str],
    ) -> Self: ...
    def reach(self, entries: list[int], exits: list[int]) -> tuple[bytes, bytes]:
        """Returns by row whether an entry leads to it, and whether it leads to an exit."""

    def cycles(self) -> PartFindings:
        """Returns the cycles and the overlaps. The places of fans, of reads and of writes come after those of all edges."""
