"""Node programs with threads, timers and clocks of their own: a controller carries them, and the seed repeats them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

import cli
from harness.errors import InputError, LabrysError

pytestmark = pytest.mark.integration

# It answers each request by a thread, after a drawn time, and says what the clock shows.
NODE = """#!/usr/bin/python3
import json, random, sys, threading, time
lock, me = threading.Lock(), ""

def send(dest, **body):
    with lock:
        print(json.dumps({"src": me, "dest": dest, "body": body}), flush=True)

def late(message):
    body = message["body"]
    time.sleep(random.random() / 20)
    more = {"clock": time.time(), "draw": random.random()}
    send(message["src"], type="echo_ok", echo=body["echo"], in_reply_to=body["msg_id"], **more)

for line in sys.stdin:
    message = json.loads(line)
    body = message["body"]
    if body["type"] == "init":
        me = body["node_id"]
        print("started", file=sys.stderr, flush=True)
        open("starts", "a").write("x")
        send(message["src"], type="init_ok", in_reply_to=body["msg_id"], starts=len(open("starts").read()))
    else:
        threading.Thread(target=late, args=[message]).start()
"""
RHYTHM = ("--fault-on", "0.5-1", "--fault-off", "0.5-1", "--fault-quiet", "0.5-1")


def carried_out(program: Path, store: Path, seed: int, *words: str) -> tuple[dict[str, Any], str]:
    """Carries out a run of two nodes. Returns its results, and what the first node read and wrote."""
    cli.invoke(
        [
            "test", "--cluster", "pipes", "--virtual", "--system", "maelstrom", "--bin", str(program), "--workload", "echo",
            "--nodes", "2", "--rate", "10", "--time-limit", "3", "--nemesis", "kill:n1,pause:n0", *RHYTHM, *words,
            "--seed", str(seed), "--store", str(store),
        ]
    )  # fmt: skip
    (folder,) = store.glob("*/2*")
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return results, "".join((folder / "nodes" / node / "messages.log").read_text() for node in ("n0", "n1"))


def test_the_seed_repeats_threads_timers_clocks_and_chance(tmp_path: Path) -> None:
    """Without a controller, the same program says something else in each run."""
    program = tmp_path / "node" / "main.py"
    program.parent.mkdir()
    program.write_text(NODE)
    program.chmod(0o755)
    carrier = ("--carrier", "programs")
    results, said = carried_out(program, tmp_path / "one", 1, *carrier)
    verdicts = {name: part["valid"] for name, part in results["parts"].items()}
    assert verdicts["repeatable"] is True, results["parts"]["repeatable"]
    assert verdicts["echo"] is True
    assert verdicts["faults-effective"] is True
    assert verdicts["protocol"] is True
    assert '"starts": 2' in said  # the folder of a node outlives a kill
    assert carried_out(program, tmp_path / "again", 1, *carrier)[1] == said
    assert carried_out(program, tmp_path / "other", 2, *carrier)[1] != said
    assert carried_out(program, tmp_path / "alone", 1)[0]["parts"]["repeatable"]["valid"] == "unknown"


def test_what_cannot_run_there_is_refused(tmp_path: Path) -> None:
    """The program's folder would take the place of one of the nodes; or the carrier is another one."""
    words = [
        "test",
        "--cluster",
        "pipes",
        "--virtual",
        "--system",
        "maelstrom",
        "--workload",
        "echo",
        "--store",
        str(tmp_path),
    ]
    with pytest.raises(InputError, match="--carrier own needs --cluster sim, not --cluster pipes"):
        cli.invoke([*words, "--bin", "/bin/true", "--carrier", "own"])
    with tempfile.NamedTemporaryFile(suffix=".sh") as program:
        Path(program.name).chmod(0o755)
        with pytest.raises(LabrysError, match="in a folder below another one, not in /tmp"):
            cli.invoke([*words, "--bin", program.name, "--carrier", "programs"])
