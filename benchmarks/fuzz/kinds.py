"""The kinds of the command's input: a correct file of each, its changes, and the commands that read it; hostile programs."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from benchmarks.fuzz import hostile, mutate, nodes
from benchmarks.fuzz.law import BROKE_OFF, CODES, ROOT
from checker.formats.parquet import write_operations
from harness.history import pair, read_history
from results.store.store import Store
from tests.unit.results.stored import store_run
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from benchmarks.fuzz.law import Outcome

NODES = "nodes"
OPERATIONS = 40
PLOTTED = 0.03
NAMES = (*["history"] * 20, "x" * 200, "x" * 256, "a\x1b[2Jb", "a\u202eb", "a\nb", "[red]x", "a b", "-x")
_CHECK = ("check", "--time-limit", "2", "--memory-limit", "64")
_PLAN = ("plan", "--seed", "1", "--time-limit", "60")
EDN_WORDS = (
    "{", "}", "[", "]", "(", ")", "#{", "#_", "#inst", "#:a{", "nil", "true", ":ok", ":info", ":nemesis", ":invoke",
    ":fail", "##NaN", "##Inf", "1/2", "1N", "1e9999", "1e-99999M", "\\newline", '"\\u0041"', ":process", ":value",
    ":index", ":time", ":f", "^", "@", ";", '"', ":labrys/conventions {:keyed true}", "9" * 4000, "[[1 2] [3 4]]",
    ":cas", ":read", ":write", ":txn", "(" * 200,
)  # fmt: skip
JSONL_WORDS = (
    "{", "}", "[", "]", ",", ":", '"', "null", "true", "NaN", '"index":', '"time":',
    '"scheduled":-1000000000000000000', '"key":"x",', '"type":"ok"', '"type":"info"', '"process":"nemesis"',
    '"value":[', '"f":"cas"', '"f":"txn"', "1e999", "9" * 4000, "[" * 300, "\\u001b[2J", "\\ud800", '"via":"n1"', '"order":9',
    '"phase":"final"',
)  # fmt: skip
LOG_WORDS = (
    "INFO", "jepsen.util", "-", "\t", ":nemesis", ":ok", ":info", ":timed-out", "[1 2]", "nil", ":cas", "9" * 4000, "{:a 1}",
)  # fmt: skip
TOML_WORDS = (
    "[", "]", "[[", "]]", "{", "}", "=", ".", ",", "#", '"', "'''", '"""', "true", "false", "nan", "inf", "-inf",
    "1979-05-27", "07:32:00", "0x" + "f" * 4000, "9" * 5000, "1e400", "[1, [2]]", "[" * 200, "a." * 50, "a = ",
    "[test]", "[check]", "[serve]", "inf", "-inf", "[[test]]", "repeat = 99999999999", "name = 'x'", "time-limit = 1e9",
    "rate = []", "host = 'a..b'", "key = '~nosuchuser/k'", "expect = 'invalid'", "nemesis = 'all'", '"\\u0000"',
    '"\\u001b[2J"', "fault-on = '0.01'", "plan = 'x'", "load = 'closed'", "concurrency = '999999n'", "[[hosts]]",
    "port = 1e9",
)  # fmt: skip
PLAN_WORDS = (
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "null",
    "NaN",
    "1e999",
    "9" * 5000,
    "[" * 300,
    '"kill"',
    '"leader"',
    '"all"',
)
TOML_CONFIG = b"""
[test]
nodes = 5
rate = 33.5
nemesis = "kill,partition-random-halves"
fault-on = "6-15,kill=1-2"
fault-options = "packet-loss.probability=0.5"
mix = "2:1:1"
final-reads = false
concurrency = "2n"

[check]
model = "register"
time-limit = 10
format = "json"
cross-check = true
"""
SUITE = b"""
name = "nightly"

[defaults]
time-limit = 60
rate = [10, 20.5]

[[test]]
name = "partitions"
nemesis = ["bridge", "kill,pause:leader"]
repeat = 3

[[test]]
name = "stale"
read-mode = "unsafe"
expect = "invalid"
expect-during-fault = true
known-failures = ["recovered=invalid"]
"""
INVENTORY = b"""
name = "lab"
user = "admin"
key = "id"

[[hosts]]
name = "n1"
host = "n1.lab.example"
address = "10.20.0.11"
host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA"

[[hosts]]
name = "n2"
host = "10.20.0.12"
port = 2222
host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA"
"""
CONSOLE_LOG = b"".join(
    b"INFO  jepsen.util - " + line + b"\n"
    for line in (
        b"0\t:invoke\t:read\tnil", b"1\t:invoke\t:write\t3", b"0\t:ok\t:read\tnil", b"1\t:ok\t:write\t3",
        b"2\t:invoke\t:cas\t[3 4]", b":nemesis\t:info\t:start\tnil", b"2\t:fail\t:cas\t[3 4]", b"3\t:invoke\t:read\tnil",
        b"3\t:info\t:read\t:timed-out", b"4\t:invoke\t:write\t1", b"4\t:info\t:write\t:timed-out", b"5\t:invoke\t:read\tnil",
        b"5\t:ok\t:read\t3",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A filled folder, and the command that reads it.

    Attributes:
        arguments: The words after `labrys`.
        plots: Whether plots are drawn, which takes seconds.
        runs: Whether it runs hostile programs, so that the rules of `benchmarks.fuzz.nodes` are checked too.
        breaks_off: Whether the command may end with 255 and a sentence, as a run does whose system fails.
        then: The words of further commands, about the folder of the run that the first one made, if there is one.
    """

    arguments: Sequence[str]
    plots: bool = False
    runs: bool = False
    breaks_off: bool = False
    then: Sequence[Sequence[str]] = ()

    @property
    def opens(self) -> bool:
        """Returns whether the command opens a cluster, without machines."""
        return self.runs or self.breaks_off

    def broken(self, outcome: Outcome, folder: Path, *, raw: bool = True) -> str | None:
        """Returns how the result of the command breaks the rules; None if it does not."""
        if self.runs:
            return nodes.broken(outcome, folder, raw=raw)
        return outcome.broken(raw=raw, codes=CODES | {BROKE_OFF} if self.breaks_off else CODES)


class Kinds:
    """All kinds, with a correct file of each in memory.

    Attributes:
        make: By name of a kind: fills a folder with a case of it.
    """

    def __init__(self, scratch: Path) -> None:
        """Makes the correct files in a folder of the fuzzer."""
        made = record(seed=5, operations=OPERATIONS, stale=True)
        run = store_run(Store(scratch / "store"), made)
        self._run = run.path
        history = run.history_jsonl.read_bytes()
        events = read_history(run.history_jsonl).ops
        write_operations(scratch / "operations.parquet", pair(events), run="t/1")
        self._table = parquet.read_table(scratch / "operations.parquet")
        edn = sorted((ROOT / "tests/data/histories/small").glob("*/0[0-3]*.edn"))
        self._edn = [path.read_bytes() for path in edn]
        self._jsonl = history
        self._documents = {name: json.loads((run.path / name).read_bytes()) for name in ("test.json", "results.json")}
        self._plan = {
            "format": "labrys-plan", "version": 3, "nodes": ["n1", "n2", "n3", "n4", "n5"], "seed": 3, "time_limit_s": 60.0,

            "left_out": [{"kind": "packet-delay", "nodes": ["n1"], "missing": "netem"}],
            "faults": [
                {"id": 0, "kind": "kill", "target": ["n1", "n2"], "start_s": 5.0, "end_s": 9.5, "options": {}},
                {"id": 1, "kind": "partition-leader", "target": "leader", "start_s": 11.0, "end_s": 19,
                 "options": {"side": "alone"}},
                {"id": 2, "kind": "packet-loss", "target": "all", "start_s": 21.0, "end_s": 29,
                 "options": {"probability": 0.5}},
                {"id": 3, "kind": "file-bitflip", "target": ["n3"], "start_s": 31.0, "end_s": 39, "options": {}},
            ],
        }  # fmt: skip
        self.make: Mapping[str, Callable[[Random, Path], Case]] = {
            "edn": self._make_edn,
            "jsonl": lambda rng, folder: self._history(
                rng, folder, mutate.text(rng, self._jsonl, JSONL_WORDS), "jsonl"
            ),
            "console-log": lambda rng, folder: self._history(
                rng, folder, mutate.text(rng, CONSOLE_LOG, LOG_WORDS), "log"
            ),
            "parquet": self._make_parquet,
            "plan": self._make_plan,
            "suite": lambda rng, folder: self._toml(rng, folder, SUITE, ("suite", "--seed", "1", "FILE")),
            "inventory": lambda rng, folder: self._toml(
                rng, folder, INVENTORY, (*_PLAN, "--cluster", "ssh", "--nemesis", "kill", "--inventory", "FILE")
            ),
            "labrys.toml": self._make_config,
            "test.json": lambda rng, folder: self._make_run(rng, folder, "test.json"),
            "results.json": lambda rng, folder: self._make_run(rng, folder, "results.json"),
            NODES: lambda rng, folder: Case(arguments=nodes.arguments(rng, folder), runs=True),
            "system": _make_system,
        }

    def _history(self, rng: Random, folder: Path, content: bytes, ending: str) -> Case:
        name = f"{rng.choice(NAMES)}.{ending}"
        with contextlib.suppress(OSError):  # an impossible file name is a case too
            (folder / name).write_bytes(content)
        options = [
            *(["--format", rng.choice(("text", "json", "edn"))] if rng.random() < 0.6 else []),
            *(["--model", rng.choice(_MODELS)] if rng.random() < 0.4 else []),
            *(["--algorithm", rng.choice(("linear", "wgl", "search", "zones"))] if rng.random() < 0.3 else []),
            *rng.choice(
                ([], [], ["--cross-check"], ["--certificate"], ["--keyed"], ["--no-keyed"], ["--initial", "0"])
            ),
        ]
        return Case(arguments=(*_CHECK, *options, "--", name, *([name] if rng.random() < 0.1 else [])))

    def _make_edn(self, rng: Random, folder: Path) -> Case:
        return self._history(rng, folder, mutate.text(rng, rng.choice(self._edn), EDN_WORDS), "edn")

    def _make_parquet(self, rng: Random, folder: Path) -> Case:
        table = self._table
        for _ in range(rng.choice((1, 1, 2))):
            table = _changed(rng, table)
        file = io.BytesIO()
        try:
            parquet.write_table(table, file, row_group_size=rng.choice((7, 1000)))
            content = file.getvalue()
        except (pa.ArrowException, ValueError):  # a table that cannot be written is not a case
            content = b"PAR1"
        if rng.random() < 0.2:
            content = mutate.text(rng, content, ("PAR1", "\x00\x00\x00\x00"))
        if rng.random() < 0.1:
            content = gzip.compress(content)
        return self._history(rng, folder, content, "parquet")

    def _make_plan(self, rng: Random, folder: Path) -> Case:
        if rng.random() < 0.6:
            content = mutate.as_json(rng, mutate.document(rng, self._plan))
        else:
            content = mutate.text(rng, json.dumps(self._plan, indent=1).encode(), PLAN_WORDS)
        (folder / "plan.json").write_bytes(content)
        return Case(arguments=("plan", "--plan", "plan.json"))

    def _toml(self, rng: Random, folder: Path, original: bytes, arguments: Sequence[str]) -> Case:
        (folder / "id").touch(0o600)
        (folder / "file.toml").write_bytes(mutate.text(rng, original, TOML_WORDS))
        return Case(arguments=[argument.replace("FILE", "file.toml") for argument in arguments])

    def _make_config(self, rng: Random, folder: Path) -> Case:
        (folder / "labrys.toml").write_bytes(mutate.text(rng, TOML_CONFIG, TOML_WORDS))
        (folder / "history.edn").write_bytes(self._edn[0])
        return Case(arguments=rng.choice((_PLAN[:3], ("check", "history.edn"))))

    def _make_run(self, rng: Random, folder: Path, changed: str) -> Case:
        for name in ("test.json", "results.json", "history.jsonl"):
            shutil.copy(self._run / name, folder / name)
        (folder / "plan.json").write_text(json.dumps(self._plan), encoding="utf-8")
        original = self._documents[changed]
        if rng.random() < 0.85:
            content = mutate.as_json(rng, mutate.document(rng, original))
        else:
            content = mutate.text(rng, json.dumps(original, indent=1).encode(), PLAN_WORDS)
        (folder / changed).write_bytes(content)
        return Case(
            plots=rng.random() < PLOTTED,
            arguments=rng.choice(
                (
                    ("report", "."),
                    ("report", "."),
                    ("replay", "."),
                    (*_CHECK, "."),
                    ("replay", ".", "--targets", "name"),
                )
            ),
        )


_MODELS = (
    "register",
    "cas-register",
    "mutex",
    "multi-register",
    "set",
    "counter",
    "fifo-queue",
    "list",
    "kv",
    "noop",
)


def _make_system(rng: Random, folder: Path) -> Case:
    """A system in the simulator whose code misbehaves; and the commands that read the run."""
    shutil.copy(Path(hostile.__file__), folder / "hostile.py")
    workload = rng.choice(("register", "set", "counter", "log", "queue", "lock"))
    faults = rng.choice(("none", "none", "kill", "pause,partition-halves"))
    test = (
        "test", "--cluster", "sim", "--nodes", "2", "--system", "hostile.py:Hostile", "--number", str(rng.randrange(2**32)),
        "--workload", workload, "--nemesis", faults, "--fault-on", "1", "--fault-off", "0.5", "--fault-quiet", "0.5-0.5",
        "--seed", str(rng.randrange(100)), "--time-limit", "4", "--rate", "20", "--recovery-timeout", "5", "--store", "store",
        "--name", "h",
    )  # fmt: skip
    return Case(
        arguments=test,
        breaks_off=True,
        then=(("report", "store/h/latest"), ("explain", "store/h/latest"), (*_CHECK, "store/h/latest/history.edn"))
        if workload != "register"
        else ((*_CHECK, "store/h/latest/history.jsonl"), (*_CHECK, "store/h/latest/operations.parquet")),
    )


def _changed(rng: Random, table: Any) -> Any:  # noqa: PLR0911 - one for each change
    """Returns a table of operations with a change of a column, a value or the metadata."""
    index = rng.randrange(table.num_columns) if table.num_columns else 0
    choice = rng.randrange(10)
    if not table.num_columns:
        return table
    name = table.column_names[index]
    if choice == 0:
        return table.remove_column(index)
    if choice == 1:
        return table.append_column(rng.choice((name, name, "extra", "a\x1b[2Jb")), table.column(index))
    if choice == 2:
        return table.rename_columns(
            [rng.choice((name, "x", "run", "key")) if at == index else n for at, n in enumerate(table.column_names)]
        )
    if choice == 3:
        texts = {
            rng.choice(("labrys.format", "labrys.version", "x")): rng.choice(
                ("labrys-operations", "1", "2", "a\x1b[2J", "x" * 9999)
            )
        }
        return table.replace_schema_metadata(
            {**(table.schema.metadata or {}), **{k.encode(): v.encode() for k, v in texts.items()}}
        )
    if choice == 4:
        rows = [rng.randrange(table.num_rows) for _ in range(rng.choice((0, 1, 5, 60)))] if table.num_rows else []
        return table.take(pa.array(rows, pa.int64()))
    values = table.column(index).to_pylist()
    for _ in range(rng.choice((1, 1, 3, 50))):
        if values:
            values[rng.randrange(len(values))] = _cell(rng)
    try:
        kind = rng.choice((table.schema.field(index).type, table.schema.field(index).type, None))
        return table.set_column(index, name, pa.array(values, kind, from_pandas=False))
    except (pa.ArrowException, ValueError, TypeError, OverflowError):  # mixed types become texts
        return table.set_column(index, name, pa.array([ascii(value) for value in values]))


def _cell(rng: Random) -> Any:
    choice = rng.randrange(5)
    if choice == 0:
        return None
    if choice == 1:
        return rng.choice((0, -1, 1, 2**31, 2**63 - 1, -(2**63), 10**18, 10**15))
    if choice == 2:
        return json.dumps(mutate.value(rng))
    return rng.choice([text for text in mutate.TEXTS if text != "\ud800"])
