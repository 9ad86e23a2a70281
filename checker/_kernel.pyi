"""The native part of the checker: see `checker/kernel/src/python.rs`."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NotRequired, Self, TypedDict

from checker.models.base import Call, Model

__version__: str
REFUSED: Final = -1

class Outcome(TypedDict):
    """What `solve` says of one problem; operations are positions in its columns."""

    verdict: Literal["valid", "invalid", "unknown"]
    cause: str | None
    analyzer: str
    op: int | None
    kind: str | None
    core: list[int]
    unsuited: str | None
    steps: int
    seconds: float
    order: bytes | None
    configs: list[tuple[list[int], int | None, list[int]]]
    has_all_configs: NotRequired[bool]
    stats: NotRequired[dict[str, int]]

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

    The name is `jsonl` (after its header), `json-lines` (without one), `edn` or `etcd-log`. `keyed` says whether values are
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

    def finish(self) -> dict[str, Any] | None:
        """Returns the operations as columns of bytes, and the distinct texts; None if the history is not plain.

        The text of a value of transactions is in the member `transactions`. A part has three members more: `first`, the index
        of its first event; `lines` of faults, and of completions of operations that it did not invoke, with their numbers; and
        `workers`, columns of its processes: the number, the time of the first event and of the last completion, and flags.
        The flags are 1 if the first event is such a completion, 2 for an operation that is open, 4 after an info.
        """

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
) -> dict[str, Any]:
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

    Returns:
        `malformed` with a row, whether it is the answer, a micro-operation or None, and the reason; or `same_position`
        with a key and two rows that wrote it. Otherwise `findings` with kind, key, rows, micro-operations and elements;
        `cycles` with the type, the size of the component, and the links, each with two rows, a kind, a key and two versions;
        `overlaps` with the type, the size of the component, whether it is decided that no order keeps the writers apart, and
        the writers, each a row and a key; `counts` by kind and type; `keys`, and `data_edges`, the number of dependencies.
        `reasons` is there if the cycles have versions of registers whose order follows from a source: key, two versions, and
        the source. `order` is there if it is wanted: the rows, or None if there is a cycle. `placed` is there with
        `transaction-order`: how many transactions that write and did not fail have a position, and how many there are.
        `twice` is there if a value was written to a key twice, or is the initial one: the key, the element, two rows, two
        micro-operations, twice the same for a write of the initial value, how many such values there are, and how many reads
        of them were left out.

        `ordering` is there for `asked` if the known orders make no anomaly that is prohibited. It has three parts. The first
        one is `order` if the versions have an order that the class allows, `contradiction` if there is none, `limit` if the
        steps did not suffice, or `too-large`. The second one has the cases of a contradiction, and the third one its rows. A
        case has the order of two versions that it begins with (key, before, after) or None; and None if it is long, or the
        links of a cycle, the orders of versions that it needs, and how many more there are. Such an order has the key, both
        versions, what it follows from (a source, `path`, `seen` or `chosen`), and the links that show it.
    """

def sort_seconds(count: int) -> float:
    """Seconds to sort that many random records of 16 bytes: the yardstick of the benchmarks."""

def evident_texts(texts: tuple[Any, Any, Any]) -> bytes:
    """Returns by row 1 if the text is certainly canonical JSON of null, plain strings, integers and lists, or if there is none.

    Args:
        texts: The ends, the first of which is a beginning, as int32; the bytes; and by row 1 if there is a text, all as arrays.
    """

def transaction_parts(
    workload: str, *, kind: Any, request: tuple[Any, Any, Any], answer: tuple[Any, Any, Any]
) -> dict[str, Any]:
    """Divides transactions by their keys.

    Args:
        workload: `list-append` or `rw-register`.
        kind: By row: 0 ok, 1 fail, 2 info, as int8.
        request: Canonical JSON, as in `evident_texts`; no text for a value that is no list of micro-operations.
        answer: Likewise; it counts in a row of kind 0.

    Returns:
        `malformed`: the first row that is no transaction, and whether it is the answer. Or by row and key, as uint32: `row`;
        `places` of the micro-operations, all in a row, and the end of each part; `key` and `text`: canonical JSON and the ends;
        `address`: a number that spreads keys over buckets.
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
) -> dict[str, Any]:
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

    Returns:
        `written_twice` as in `transactions`. Or columns of uint32, where 2^32 - 1 is none: `from`, `to`, `kind`, `key`,
        `before`,
        `after` and `source` of edges; `fans`: key, row, version, and 1 for a writer; `groups`: key, row, version of writers
        without a known order; `first`: by key, its first row. `keys`, `elems`: texts and ends. `findings`: as in
        `transactions`,
        but with the number of the key. `contradicted`: places of sources. `data_edges`. If `more` needs them: `at`, the places
        of the reads of edges and of fans in the parts; `reads` and `writes`: key, row, place in the part, place in the order of
        versions, version.
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

    def cycles(self) -> dict[str, Any]:
        """Returns `cycles`, `overlaps` and `counts` as `transactions`.

        A cycle and an overlap have the first row of their component after its size. In place of versions, a link has the
        places of edges; those of fans, of reads and of writes come after all edges. An overlap has numbers of groups.
        """
