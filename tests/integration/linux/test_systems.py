"""Systems as they are released, in virtual time: the same seed gives the same execution, and faults have their effect."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import cli
from harness.errors import InputError
from tests.catches.hunts import Hunt

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]
QUICK = ("redis", "etcd")
POSTGRES = ("--system", "postgres", "--workload", "list-append", "--nodes", "2")
SHORT = ("--rate", "10", "--time-limit", "4", "--fault-on", "0.5-1", "--fault-off", "0.5-1", "--fault-quiet", "1-2")


def invoked(store: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Carries out a run. Returns its exit code and its `results.json`."""
    before = set(store.glob("*/2*"))
    nodes = () if "--nodes" in words else ("--nodes", "3")
    code = cli.invoke(["test", "--cluster", "sim", *nodes, *words, "--store", str(store)])
    (folder,) = set(store.glob("*/2*")) - before
    return code, json.loads((folder / "results.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "words",
    [
        ("--system", "redis", "--nemesis", "kill,partition-random-halves"),
        ("--system", "etcd", "--nemesis", "kill,partition-random-halves"),
        ("--system", "zookeeper", "--nemesis", "kill"),
        (*POSTGRES, "--nemesis", "kill:standby,partition-random-halves"),
        pytest.param(("--system", "dledger", "--carrier", "programs", "--nemesis", "pause"), marks=pytest.mark.night),
        pytest.param(("--system", "nacos", "--nemesis", "kill", "--mix", "2:1:0"), marks=pytest.mark.night),
    ],
    ids=lambda words: words[1],
)
def test_a_seed_repeats_the_execution(words: tuple[str, ...], tmp_path: Path) -> None:
    """Two runs of a seed have equal digests of all calls. Another seed has another one, as the quick systems show."""
    seeds = ("1", "1", "2") if words[1] in QUICK else ("1", "1")
    runs = [invoked(tmp_path, *words, *SHORT, "--seed", seed) for seed in seeds]
    one, again, *others = (results["execution"] for _, results in runs)
    assert one == again
    assert [other for other in others if other["digest"] == one["digest"]] == []
    for _, results in runs:
        valid = {name: part["valid"] for name, part in results["parts"].items()}
        (judged,) = {"linearizable", "settled", "list-append"} & set(valid)
        assert valid[judged] is True
        assert valid["faults-effective"] is True
    first, second = (path.read_bytes() for path in sorted(tmp_path.glob("*/2*/history.jsonl"))[:2])
    assert first == second


BOOKIES = ("--system", "bookkeeper", "--workload", "ledger", "--nodes", "5", "--nemesis", "pause:client")
BROKERS = ("--system", "kafka", "--workload", "log", "--nemesis", "pause:broker")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("words", [BOOKIES, BROKERS], ids=["bookkeeper", "kafka"])
def test_clients_that_are_programs_run_by_seed(words: tuple[str, ...], tmp_path: Path) -> None:
    """Clients in Java and librdkafka run in the simulation, and so do the tools that format disks and metadata."""
    code, results = invoked(tmp_path, *words, *SHORT, "--seed", "1")
    unknown = {name: part["reason"] for name, part in results["parts"].items() if part["valid"] is not True}
    assert (code, unknown) == (0, {})


@pytest.mark.night
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("words", [BOOKIES, BROKERS], ids=["bookkeeper", "kafka"])
def test_a_seed_repeats_clients_that_are_programs(words: tuple[str, ...], tmp_path: Path) -> None:
    """Two runs of a seed have equal digests of all calls, and equal histories."""
    runs = [invoked(tmp_path, *words, *SHORT, "--seed", "1")[1]["execution"] for _ in range(2)]
    assert runs[0] == runs[1]
    first, second = (path.read_bytes() for path in sorted(tmp_path.glob("*/2*/history.jsonl")))
    assert first == second


GROUP = ("--system", "rocketmq", "--workload", "log", "--no-linearizable", "--nodes", "6", "--nemesis", "none")
FEW = ("--rate", "5", "--time-limit", "3", "--seed", "1")


@pytest.mark.timeout(1200)
def test_brokers_of_rocketmq_run_by_seed(tmp_path: Path) -> None:
    """A thread of each broker computes while it waits for an acknowledgement, and time passes for it."""
    code, results = invoked(tmp_path, *GROUP, *FEW)
    unknown = {name: part["reason"] for name, part in results["parts"].items() if part["valid"] is not True}
    assert (code, unknown) == (0, {})


@pytest.mark.night
@pytest.mark.timeout(2400)
def test_a_seed_repeats_brokers_of_rocketmq(tmp_path: Path) -> None:
    """Two runs of a seed have equal digests of all calls, and equal histories."""
    runs = [invoked(tmp_path, *GROUP, *FEW)[1]["execution"] for _ in range(2)]
    assert runs[0] == runs[1]
    first, second = (path.read_bytes() for path in sorted(tmp_path.glob("*/2*/history.jsonl")))
    assert first == second


KINDS = (
    "kill", "pause", "partition-one-way", "packet-loss", "packet-delay", "packet-duplicate", "packet-corrupt", "packet-reorder",
    "clock-skew",
)  # fmt: skip


def test_faults_have_their_effect_on_programs(tmp_path: Path) -> None:
    """Each kind is proved by what the controller and the programs say."""
    faults = [
        {
            "id": number,
            "kind": kind,
            "target": ["n2"],
            "start_s": 1.0 + 2 * number,
            "end_s": 2.6 + 2 * number,
            "options": {"offset_ms": 5000} if kind == "clock-skew" else {},
        }
        for number, kind in enumerate(KINDS)
    ]
    plan = {
        "format": "labrys-plan",
        "version": 2,
        "nodes": ["n1", "n2", "n3"],
        "seed": 1,
        "time_limit_s": 20,
        "faults": faults,
    }
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    words = ("--system", "redis", "--plan", str(path), "--rate", "5", "--time-limit", "20", "--seed", "1")
    _, results = invoked(tmp_path, *words)
    unproven = {fault["kind"]: fault["error"] for fault in results["faults"] if not fault["effective"]}
    assert unproven == {}
    assert len(results["faults"]) == len(KINDS)


@pytest.mark.parametrize(("fsync", "loses"), [("everysec", True), ("always", False)])
def test_a_power_loss_takes_what_was_not_synced(fsync: str, loses: bool, tmp_path: Path) -> None:
    """Redis acknowledges before it syncs, unless it syncs each write."""
    words = ("--system", "redis", "--fsync", fsync, "--nemesis", "power-loss:all", "--rate", "20", "--time-limit", "12")
    rhythm = ("--fault-on", "1-2", "--fault-off", "1-2", "--fault-quiet", "1-2")
    code, results = invoked(tmp_path, *words, *rhythm, "--seed", "1")
    assert (code == 1) is loses
    (power, *_) = results["faults"]
    assert power["effective"]
    assert bool(re.search(r"[1-9]\d* bytes in all", power["proof"]["reason"])) is loses


def test_a_full_disk_and_damaged_files_are_proven(tmp_path: Path) -> None:
    """A member of etcd logs that its disk is full, and ends. What a fault has damaged is read again."""
    rhythm = ("--fault-on", "2-3", "--fault-off", "1-2", "--fault-quiet", "1-2")
    words = ("--system", "etcd", "--rate", "60", "--time-limit", "6", *rhythm)
    _, results = invoked(tmp_path, *words, "--nemesis", "disk-full:all", "--seed", "1")
    (full,) = results["faults"]
    assert full["effective"]
    assert full["proof"]["reason"] == "n1 refuses a small file; n2 refuses a small file; n3 refuses a small file."
    logs = [path.read_text(errors="replace") for path in tmp_path.glob("*/2*/nodes/*/etcd.log")]
    assert any("no space left on device" in log for log in logs)
    for kind, shown in (("file-bitflip", "differ by a bit"), ("file-truncate", "was cut from")):
        _, results = invoked(tmp_path, "--system", "redis", *SHORT, "--nemesis", kind, "--seed", "1")
        (damaged, *_) = results["faults"]
        assert damaged["effective"]
        assert shown in damaged["proof"]["reason"]
        assert "/var/lib/labrys/redis/" in damaged["proof"]["reason"]


@pytest.mark.parametrize(
    ("system", "options", "shown", "says"),
    [
        (
            ("etcd",),
            "file=*.wal,nth=3",
            r"fdatasync 3 of member/wal/\S+\.wal by etcd returned EIO .* ended, and was started again",
            "failed to save Raft hard state and entries",
        ),
        (
            ("redis", "--fsync", "always"),
            "file=*.aof,nth=3",
            r"fdatasync 3 of \S+\.aof by redis-server returned EIO",
            "",
        ),
    ],
    ids=["etcd", "redis"],
)
def test_an_error_of_a_sync_is_proven(
    system: tuple[str, ...], options: str, shown: str, says: str, tmp_path: Path
) -> None:
    """The controller names the call that failed, and the program ends."""
    words = ("--system", *system, "--rate", "20", "--time-limit", "6", "--nemesis", "disk-error", "--seed", "1")
    given = ",".join(f"disk-error.{option}" for option in options.split(","))
    rhythm = ("--fault-on", "2-3", "--fault-off", "1-2", "--fault-quiet", "1-2", "--fault-options", given)
    code, results = invoked(tmp_path, *words, *rhythm)
    (failed,) = results["faults"]
    assert failed["effective"]
    assert re.search(shown, failed["proof"]["reason"])
    assert code == 0
    assert results["parts"]["processes"]["reason"].startswith(f"The process {system[0]} of ")
    logs = [path.read_text(errors="replace") for path in tmp_path.glob("*/2*/nodes/*/*.log")]
    assert any(says in log for log in logs)


@pytest.mark.night
def test_a_power_loss_takes_pages_of_mapped_files(tmp_path: Path) -> None:
    """DLedger maps its log and its index for writing."""
    words = ("--system", "dledger", "--carrier", "programs", "--nemesis", "power-loss:all", *SHORT, "--seed", "1")
    _, results = invoked(tmp_path, *words)
    (power, *_) = results["faults"]
    assert power["effective"]
    assert re.search(r"[1-9]\d* of \d+ files lost unsynced data", power["proof"]["reason"])


@pytest.mark.night
@pytest.mark.timeout(1200)
def test_nacos_meets_kills_cuts_and_losses_of_power(tmp_path: Path) -> None:
    """All of them have their effect, and the group works again. The findings in Nacos say what it keeps."""
    kinds = {"kill", "partition-random-halves", "power-loss"}
    rhythm = ("--time-limit", "10", "--fault-on", "1-2", "--fault-off", "1-2", "--fault-quiet", "1-2")
    words = (
        "--system",
        "nacos",
        "--nemesis",
        ",".join(sorted(kinds)),
        "--rate",
        "10",
        *rhythm,
        "--recovery-timeout",
        "90",
    )
    _, results = invoked(tmp_path, *words, "--seed", "1")
    assert {fault["kind"] for fault in results["faults"] if fault["effective"]} == kinds
    assert results["parts"]["faults-effective"]["valid"] is True
    assert results["parts"]["recovered"]["valid"] is True


@pytest.mark.parametrize("system", ["redis", "zookeeper"])
def test_an_empty_disk_comes_with_a_new_process(system: str, tmp_path: Path) -> None:
    """`wipe` removes the data of the processes that do not run, and of no other ones. Then it prepares the new disk."""
    _, results = invoked(tmp_path, "--system", system, "--nemesis", "wipe", *SHORT, "--seed", "1")
    (wiped, *_) = results["faults"]
    assert wiped["effective"], wiped
    assert results["parts"]["recovered"]["valid"] is True


def test_lines_of_a_log_have_the_time_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`labrys logs` prints the lines of a time."""
    words = ("--system", "redis", "--nemesis", "leader-kill", *SHORT, "--seed", "3")
    invoked(tmp_path, *words)
    capsys.readouterr()
    (folder,) = tmp_path.glob("*/2*")
    assert cli.invoke(["logs", str(folder), "--from", "0", "--to", "8", "--store", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "Connecting to MASTER" in output or "MASTER MODE enabled" in output


def test_a_fault_begins_with_a_line_of_a_log(tmp_path: Path) -> None:
    """The restarted node logs who leads, and then loses packets."""
    trigger = {"name": "log-line", "limit_s": 8, "parameters": {"line": "elected"}}
    faults = [
        {"id": 0, "kind": "leader-kill", "target": "leader", "start_s": 2, "end_s": 5, "options": {}},
        {
            "id": 1,
            "kind": "packet-loss",
            "target": ["n2"],
            "start_s": 1.5,
            "end_s": 11.5,
            "trigger": trigger,
            "options": {},
        },
    ]
    plan = {
        "format": "labrys-plan",
        "version": 2,
        "nodes": ["n1", "n2", "n3"],
        "seed": 1,
        "time_limit_s": 14,
        "faults": faults,
    }
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    words = ("--system", "etcd", "--plan", str(path), "--rate", "10", "--time-limit", "14", "--seed", "1")
    _, results = invoked(tmp_path, *words)
    (lost,) = [fault for fault in results["faults"] if fault["kind"] == "packet-loss"]
    assert "elected leader" in lost["fired"]["what"]
    assert lost["effective"]


def test_a_hunt_leaves_the_disks_alone() -> None:
    """As of Java programs: it takes the power by default, and fills disks or damages files only if `--among` names the kind."""
    words = ("--cluster", "sim", "--nodes", "3")
    kinds = Hunt(words, seed=1, system="etcd").space.kinds
    assert "power-loss" in kinds
    assert not {"disk-full", "disk-error", "file-bitflip", "file-truncate"}.intersection(kinds)
    named = Hunt(words, seed=1, among="disk-full,disk-error,file-bitflip", system="etcd").space.kinds
    assert set(named) == {"disk-full", "disk-error", "file-bitflip"}


def test_what_cannot_run_there_is_refused_before_anything_starts() -> None:
    """The error says why, and which systems can."""
    with pytest.raises(InputError, match="runs as programs with pipes only: give --cluster pipes, not --cluster sim"):
        cli.invoke(["test", "--cluster", "sim", "--system", "maelstrom", "--workload", "echo"])
    with pytest.raises(InputError, match="whose messages are bytes to Labrys"):
        cli.invoke(["test", "--cluster", "sim", "--system", "redis", "--nemesis", "kill", "--fault-wait", "0.5"])
    with pytest.raises(InputError, match="needs --cluster sim or --cluster pipes --virtual, not --cluster local"):
        cli.invoke(["test", "--cluster", "local", "--system", "redis", "--carrier", "programs"])
    with pytest.raises(InputError, match="is no program, but code of the simulator"):
        cli.invoke(["test", "--cluster", "sim", "--system", "sim-raft", "--carrier", "programs"])
