"""Systems and workloads of other packages and of the user's modules are used like those of Labrys."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

import pytest

import cli
from commands.options import choosing, subjects
from commands.options.choosing import MOST_USED
from commands.options.run_options import RunOptions
from harness.cluster import Paper
from harness.console import plugins
from harness.declare import Topic
from harness.errors import ExitCode
from nemesis import triggers
from nemesis.errors import PlanError
from nemesis.kinds import registry
from tests.examples import DEFAULT
from workloads.lock import LockOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from harness.cluster import Cluster

MODULE = """
from dataclasses import dataclass
from harness.daemon import Daemon
from harness.declare import option
from harness.service import Service
from harness.system import OneServiceSystem, System
from workloads.register.workload import RegisterWorkload

@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    lease_ms: int = option(50, "How long a lease is.", low=1, high=1000)
    fsync: bool = option(True, "Whether the store syncs.")

class Part(Service):
    def __init__(self, system, role, nodes):
        super().__init__(system, nodes)
        self.role = role
        self.serves_clients = role == "back"

    def daemon(self, node):
        return Daemon(role=self.role, argv=["x"], pattern="^x", ports=[1], data_dir="/x", log_files=["/x"])

    async def until_ready(self, nodes, timeout_s): ...

class Store(System):
    name = "kv"
    summary = "a store of one's own"
    Options = Options
    serves = {"register": "GET and PUT"}

    def services(self):
        return [Part(self, "front", self.cluster.nodes[:1]), Part(self, "back", None)]

    def install(self, node): ...
    def client(self, process, node, *, pinned=False): ...

class Other:
    name, summary, Options = "other", "no system", Options

class Greedy(Store):
    name = "greedy"

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options:
        rate: int = option(1, "A name that is taken.", low=1, high=2)

class Half(OneServiceSystem):
    name = "half"
    summary = "a class that is not done"
    serves = {"register": "GET"}

    def daemon(self, node): ...

class Loose(Store):
    name = "loose"

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options:
        size: int = option(1, "A number without ends.")
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Works in an empty folder, and clears the caches of plug-ins before and after."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    plugins.plugins.cache_clear()
    registry.cache_clear()
    triggers.registry.cache_clear()
    yield tmp_path
    plugins.plugins.cache_clear()
    registry.cache_clear()
    triggers.registry.cache_clear()
    for name in ("kvpack", "kvmine", "mischief", "wreck", "twin", "minute"):
        sys.modules.pop(name, None)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns a function that makes a package with entry points for `importlib.metadata`."""

    def install(name: str, points: str, module: str = "") -> None:
        site = tmp_path / f"site-{name}"
        info = site / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(points)
        if module:
            (site / f"{name}.py").write_text(module)
        monkeypatch.syspath_prepend(str(site))
        plugins.plugins.cache_clear()

    return install


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs the command line in this process; returns its exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Runs a command that is refused; returns its standard error as one line."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (ExitCode.BAD_ARGUMENTS, "")
    assert "Traceback" not in err
    return " ".join(err.split())


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Returns the document that `labrys plan --format json` prints."""
    code, out, err = run(capsys, "plan", "--format", "json", *arguments)
    assert code == ExitCode.VALID, err
    document = json.loads(out)
    assert isinstance(document, dict)
    return document


def test_a_system_of_another_package_brings_its_options(
    capsys: pytest.CaptureFixture[str], package: Callable[..., None]
) -> None:
    """The help, the command line, the reproduce line and `labrys systems` have them."""
    package("kvpack", "[labrys.systems]\nkv = kvpack:Store\n", MODULE)
    _, out, _ = run(capsys, "test", "--system", "kv", "--help")
    assert "Options of the system kv" in out
    assert "--lease-ms" in out
    assert "--read-mode" not in out
    line = planned(capsys, "--system", "kv", "--seed", "1", "--lease-ms", "70", "--no-fsync")["reproduce"]
    assert line == "labrys test --seed 1 --system kv --lease-ms 70 --no-fsync"
    rows = {row["name"]: row for row in json.loads(run(capsys, "systems", "--format", "json")[1])}
    assert rows["kv"] == {
        "name": "kv", "package": "kvpack", "summary": "a store of one's own", "workloads": {"register": "GET and PUT"},
        "places": ["--cluster local", "--cluster vagrant", "--cluster ssh", "--cluster sim"], "tier": None, "on_damage": None,
    }  # fmt: skip


def test_options_come_from_the_environment_and_the_file(
    capsys: pytest.CaptureFixture[str],
    package: Callable[..., None],
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each option has the name of its flag, as those of Labrys."""
    package("kvpack", "[labrys.systems]\nkv = kvpack:Store\n", MODULE)
    (elsewhere / "labrys.toml").write_text('[test]\nsystem = "kv"\nlease-ms = 90\n')
    monkeypatch.setenv("LABRYS_TEST_FSYNC", "no")
    assert planned(capsys, "--seed", "1")["reproduce"].endswith("--system kv --lease-ms 90 --no-fsync")
    (elsewhere / "labrys.toml").write_text('[test]\nsystem = "kv"\nlease-ms = "long"\n')
    assert "'long' is not a whole number" in refused(capsys, "plan")


def test_an_option_of_another_system_is_refused_with_its_owner(
    capsys: pytest.CaptureFixture[str], package: Callable[..., None], elsewhere: Path
) -> None:
    """The option is on the command line or in `labrys.toml`."""
    package("kvpack", "[labrys.systems]\nkv = kvpack:Store\n", MODULE)
    expected = f"is an option of the system kv, and this is a test of the system {DEFAULT} with the workload register"
    assert f"--lease-ms {expected}" in refused(capsys, "plan", "--lease-ms", "3")
    assert f"--no-fsync {expected}" in refused(capsys, "test", "--no-fsync")
    assert f"of the system {DEFAULT}" in refused(capsys, "test", "--system", "kv", "--read-mode", "unsafe")
    (elsewhere / "labrys.toml").write_text("[test]\nlease-ms = 90\n")
    assert f"[test] lease-ms {expected}" in refused(capsys, "plan")


def test_a_broken_plugin_is_named_and_affects_no_other(
    capsys: pytest.CaptureFixture[str], package: Callable[..., None]
) -> None:
    """The error has its package and its cause, and the list of systems has the same line."""
    package("kvpack", "[labrys.systems]\nbroken = kvpack:Nothing\nkv = kvpack:Store\n", MODULE)
    error = "the system broken of the package kvpack cannot be loaded from kvpack:Nothing: AttributeError"
    assert error in refused(capsys, "test", "--system", "broken")
    assert planned(capsys, "--system", "kv", "--seed", "1")
    code, out, _ = run(capsys, "systems")
    assert code == ExitCode.VALID
    assert error in out
    assert "a store of one's own" in out


def test_two_plugins_of_one_name_cannot_be_chosen(
    capsys: pytest.CaptureFixture[str], package: Callable[..., None]
) -> None:
    """The message names both packages; all other plug-ins work."""
    package("kvpack", "[labrys.systems]\nkv = kvpack:Store\n", MODULE)
    package("other", "[labrys.systems]\nkv = other:Store\n")
    err = refused(capsys, "plan", "--system", "kv")
    assert "several packages have a system named kv" in err
    assert "kvpack" in err
    assert "other" in err
    assert planned(capsys, "--seed", "1")


MISCHIEF = """
from nemesis import targets
from nemesis.faults.process import Pause
from nemesis.kinds import Kind
from nemesis.real.process import PauseOnNodes

def kinds():
    return [
        Kind(name="nap", fault=Pause, on_nodes=PauseOnNodes, target=targets.ONE, aliases=("doze",)),
        Kind(name="coma", fault=Pause, on_nodes=PauseOnNodes, target=None),
    ]
"""


def test_kinds_of_faults_of_another_package(capsys: pytest.CaptureFixture[str], package: Callable[..., None]) -> None:
    """They work beside those of Labrys; a broken package is named and affects no other."""
    package("mischief", "[labrys.faults]\nmischief = mischief:kinds\n", MISCHIEF)
    package("wreck", "[labrys.faults]\nwreck = wreck:KINDS\n", "raise RuntimeError('no luck today')\n")
    package("odd", "[labrys.faults]\nodd = math:pi\n")
    registry.cache_clear()
    faults = planned(capsys, "--seed", "1", "--nemesis", "doze,kill", "--time-limit", "200")["plan"]["faults"]
    assert {fault["kind"] for fault in faults} == {"nap", "kill"}
    assert {len(fault["target"]) for fault in faults if fault["kind"] == "nap"} == {1}
    _, out, err = run(capsys, "faults")
    assert "SIGSTOP" in next(line for line in out.splitlines() if line.startswith("nap "))
    assert "package wreck cannot be loaded from wreck:KINDS: RuntimeError: no luck today" in err
    assert "package odd cannot be loaded from math:pi: TypeError" in err
    code, _, err = run(capsys, "plan", "--nemesis", "nop")
    assert code == ExitCode.BAD_ARGUMENTS
    assert "unknown fault 'nop'. Did you mean 'nap'?" in err
    assert "Also, the kind of fault wreck of the package wreck cannot be loaded from wreck:KINDS: RuntimeError" in err
    code, _, err = run(capsys, "plan", "--nemesis", "coma")
    assert "coma needs the names of its nodes" in err


MINUTE = """
from harness.faults import Fired
from nemesis.options import integer
from nemesis.triggers import Condition, TriggerKind

class Minute(Condition):
    SUMMARY = "A full minute of the run."
    OPTIONS = {"minutes": integer(None, 1, 60, "The number of minutes.")}

    async def fires(self):
        clock = self.sight.clock
        await clock.sleep_until_s(60 * self.trigger.parameters["minutes"])
        return Fired(time_ns=clock.now_ns(), what="with a full minute")

MINUTE = TriggerKind(name="minute", condition=Minute)
"""


def test_triggers_of_another_package(capsys: pytest.CaptureFixture[str], package: Callable[..., None]) -> None:
    """They work beside those of Labrys; a broken package is named, and two of one name are refused."""
    package("minute", "[labrys.triggers]\nminute = minute:MINUTE\n", MINUTE)
    package("odd", "[labrys.triggers]\nodd = math:pi\n")
    triggers.registry.cache_clear()
    made = triggers.make_trigger("minute", 60.0, {"minutes": 2})
    assert str(made) == "minute:2"
    _, out, err = run(capsys, "faults")
    assert "A full minute of the run." in next(line for line in out.splitlines() if line.startswith("minute "))
    assert "the triggers odd of the package odd cannot be loaded from math:pi: TypeError" in err
    _, out, _ = run(capsys, "faults", "minute")
    assert "minutes: The number of minutes. Takes a whole number from 1 to 60" in out
    with pytest.raises(PlanError, match="the trigger minute needs 'minutes', a whole number from 1 to 60"):
        triggers.make_trigger("minute", 60.0)
    with pytest.raises(PlanError, match=r"unknown trigger 'minut'\. Did you mean 'minute'"):
        triggers.make_trigger("minut", 60.0)
    package("other", "[labrys.triggers]\nother = minute:MINUTE\n")
    triggers.registry.cache_clear()
    with pytest.raises(PlanError, match="several packages have a trigger named 'minute': minute, other"):
        triggers.make_trigger("minute", 60.0, {"minutes": 2})


def test_a_kind_that_two_packages_have_is_refused(
    capsys: pytest.CaptureFixture[str], package: Callable[..., None]
) -> None:
    """The message names both packages; all other kinds work."""
    package(
        "twin",
        "[labrys.faults]\ntwin = twin:KIND\n",
        MISCHIEF + 'KIND = Kind(name="kill", fault=Pause, on_nodes=PauseOnNodes, target=None)\n',
    )
    registry.cache_clear()
    code, _, err = run(capsys, "plan", "--nemesis", "kill")
    assert code == ExitCode.BAD_ARGUMENTS
    assert "several packages have a kind of fault named 'kill': labrys, twin; uninstall all but one" in err
    assert planned(capsys, "--nemesis", "pause")["plan"]["faults"]


def test_an_abstract_class_is_refused(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """The message names the missing methods, before a cluster is opened."""
    (elsewhere / "kvmine.py").write_text(MODULE)
    error = refused(capsys, "plan", "--system", "kvmine:Half")
    assert "lacks client, install, until_ready; see docs/guide/new-system.md" in error


@pytest.mark.parametrize(
    ("services", "expected"),
    [
        (
            '[Part(self, "back", None), Part(self, "back", None)]',
            "two services of kv have the same role; their roles are: back",
        ),
        ('[Part(self, "a", None), Part(self, "b", None)]', "expected one service of kv for clients, not none"),
    ],
)
def test_services_that_do_not_fit_together_are_refused(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, services: str, expected: str
) -> None:
    """A role names one service, and clients use one service."""
    declared = '[Part(self, "front", self.cluster.nodes[:1]), Part(self, "back", None)]'
    (elsewhere / "kvmine.py").write_text(MODULE.replace(declared, services))
    assert expected in refused(capsys, "plan", "--system", "kvmine:Store")


def test_a_system_whose_roles_lack_a_parameter_gets_an_error_with_it(
    capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    """`roles` has the options of the workload too."""
    old = "    @classmethod\n    def roles(cls, nodes, options, workload): return {}\n    def client"
    (elsewhere / "kvmine.py").write_text(MODULE.replace("    def client", old, 1))
    error = refused(capsys, "plan", "--system", "kvmine:Store")
    assert "defines roles without the parameter workload_options" in error
    assert "add `workload_options: Any = None` at its end" in error


def test_a_class_in_a_module_needs_no_package(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """MODULE:CLASS names a class in the working folder or in an installed module."""
    (elsewhere / "kvmine.py").write_text(MODULE)
    line = planned(capsys, "--system", "kvmine:Store", "--seed", "1", "--lease-ms", "7")["reproduce"]
    assert line == "labrys test --seed 1 --system kvmine:Store --lease-ms 7"
    assert "and the command itself both have an option --rate" in refused(capsys, "plan", "--system", "kvmine:Greedy")
    assert "not a subclass of harness.system.System" in refused(capsys, "plan", "--system", "kvmine:Other")
    assert "number without bounds" in refused(capsys, "plan", "--system", "kvmine:Loose")
    assert "No module named 'nowhere'" in refused(capsys, "plan", "--system", "nowhere:Store")


def test_a_class_in_a_file_needs_no_package(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """FILE.py:CLASS names a class in a file, and the reproduce line has the same place."""
    (elsewhere / "workloads").mkdir()
    (elsewhere / "workloads" / "kv.py").write_text(MODULE)
    line = planned(capsys, "--system", "workloads/kv.py:Store", "--seed", "1", "--lease-ms", "7")["reproduce"]
    assert line == "labrys test --seed 1 --system workloads/kv.py:Store --lease-ms 7"
    assert "expected FILE.py:CLASS" in refused(capsys, "plan", "--system", "workloads/kv.py")


def test_a_module_that_a_room_hides_is_named_as_a_file(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """The error has the place that works."""
    (elsewhere / "workloads").mkdir()
    (elsewhere / "workloads" / "kv.py").write_text(MODULE)
    err = refused(capsys, "plan", "--system", "workloads.kv:Store")
    assert "an installed package has a module workloads too, and Python takes that one" in err
    assert "name the file: workloads/kv.py:Store" in err


@pytest.mark.parametrize("place", ["kvmine:Store", "sub/kvmine.py:Store"])
def test_a_file_of_defaults_names_no_code(capsys: pytest.CaptureFixture[str], elsewhere: Path, place: str) -> None:
    """Otherwise the author of the file could run any code."""
    for folder in (elsewhere, elsewhere / "sub"):
        folder.mkdir(exist_ok=True)
        (folder / "kvmine.py").write_text("raise SystemExit(7)\n")
    (elsewhere / "labrys.toml").write_text(f'[test]\nsystem = "{place}"\n')
    assert f"labrys never takes a {plugins.form(place)} from a file" in refused(capsys, "plan")


def test_a_system_that_cannot_serve_the_workload_is_refused(
    capsys: pytest.CaptureFixture[str], package: Callable[..., None]
) -> None:
    """The message has the workloads of the system, and the systems for the workload."""
    package("kvpack", "[labrys.workloads]\nvault = kvpack:Bank\n", BANK)
    err = refused(capsys, "plan", "--workload", "vault")
    assert f"the system {DEFAULT} serves register, not vault; no installed system serves vault" in err


BANK = """
from workloads.register.workload import RegisterWorkload

class Bank(RegisterWorkload):
    name = "vault"
"""


def test_an_unknown_name_is_refused_with_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    """Systems and workloads have suggestions."""
    assert f"Did you mean '{DEFAULT}'?" in refused(capsys, "test", "--system", f"{DEFAULT}r")
    assert "Did you mean 'register'?" in refused(capsys, "plan", "--workload", "registr")


def test_faults_aim_at_the_roles_of_a_system(
    capsys: pytest.CaptureFixture[str], package: Callable[..., None], elsewhere: Path
) -> None:
    """A plan names the role; the error for an unknown role lists the roles of the system."""
    package("kvpack", "[labrys.systems]\nkv = kvpack:Store\n", MODULE)
    drawn = planned(capsys, "--system", "kv", "--seed", "1", "--nemesis", "kill:front,pause:back+minority")
    faults = {fault["kind"]: fault for fault in drawn["plan"]["faults"]}
    assert (faults["kill"]["role"], faults["kill"]["target"]) == ("front", ["n1"])
    assert (faults["pause"]["role"], len(faults["pause"]["target"])) == ("back", 2)
    assert "front" in refused(capsys, "plan", "--system", "kv", "--nemesis", "kill:frnt")
    (elsewhere / "plan.json").write_text(json.dumps(drawn["plan"]))
    assert "unknown role 'back'; the roles are: node on n1" in refused(capsys, "plan", "--plan", "plan.json")


LEASES = """
from harness.errors import InputError

class Leases(Store):
    name = "leases"
    serves = {"lock": "SET NX with a time to live", "register": "GET and PUT"}

    def services(self):
        if self.workload != "lock":
            return super().services()
        if self.workload_options.lease_s is None:
            raise InputError("leases frees a lock after its lease; give --lease-s")
        part = Part(self, f"locks-{self.workload_options.lease_s * 1000:g}", None)
        part.serves_clients = True
        return [part]
"""


def test_a_system_sees_the_options_of_the_workload(
    capsys: pytest.CaptureFixture[str], package: Callable[..., None]
) -> None:
    """So a lease is given once. The system may need an option that the workload leaves open."""
    package("kvpack", "[labrys.systems]\nleases = kvpack:Leases\n", MODULE + LEASES)
    lock = ("--system", "leases", "--workload", "lock", "--nemesis", "kill:locks-2500", "--seed", "1")
    drawn = planned(capsys, *lock, "--lease-s", "2.5")
    assert {fault["role"] for fault in drawn["plan"]["faults"]} == {"locks-2500"}
    assert "leases frees a lock after its lease; give --lease-s" in refused(capsys, "plan", *lock)
    options = {
        choosing.SYSTEM: "leases",
        choosing.WORKLOAD: "lock",
        "lease_ms": 50,
        "fsync": True,
        **asdict(LockOptions(lease_s=2.5)),
    }
    system = subjects.system_of(cast("Cluster", Paper(["n1"])), RunOptions.of(options))
    assert system.workload_options == LockOptions(lease_s=2.5)
    assert [daemon.role for daemon in system.daemons(system.cluster.nodes[0])] == ["locks-2500"]


def test_the_help_has_each_option_once_and_twenty_at_the_beginning(capsys: pytest.CaptureFixture[str]) -> None:
    """The headings are the topics of the options; the options of the system and the workload follow."""
    _, out, _ = run(capsys, "test", "--help")
    headings = re.findall(r"^(\S.*):$", out, re.MULTILINE)
    assert headings == [
        MOST_USED,
        *Topic,
        f"Options of the system {DEFAULT}",
        "Options of the workload register",
    ]
    flags = re.findall(r"^  (?:-h, )?(--[a-z-]+)", out, re.MULTILINE)
    assert sorted(flags) == sorted(set(flags))
    assert len(re.findall(r"^  --", out[: out.index(f"{Topic.CLUSTER}:")], re.MULTILINE)) == 20


def test_the_help_of_labrys_has_each_command_under_one_heading(capsys: pytest.CaptureFixture[str]) -> None:
    """A command that is in two groups, or in none, would be found twice or never."""
    _, out, _ = run(capsys, "--help")
    names = [name for commands in cli.GROUPS.values() for name in commands]
    assert sorted(names) == sorted(set(names)) == sorted(cli.COMMANDS)
    places = [out.index(f"\n{heading}:\n") for heading in cli.GROUPS]
    assert places == sorted(places)
    assert all(f"\n  {name} " in out for name in names)
