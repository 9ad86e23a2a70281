"""The scripts of tools/vm refuse what they cannot use, and their suite is one that `labrys suite` takes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import cli

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / "tools" / "vm"
SCRIPTS = sorted(TOOLS.rglob("*.sh"))
INVENTORY = "/labrys-inventory.toml"


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script as this user."""
    return subprocess.run(
        ["sh", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False, timeout=30
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_every_script_parses(script: Path) -> None:
    """The shell accepts each script."""
    assert run("-n", script, cwd=ROOT).stderr == ""


@pytest.mark.parametrize("script", ["box.sh", "lab.sh", "night.sh"])
def test_a_script_without_arguments_shows_its_usage(script: str, tmp_path: Path) -> None:
    """It changes nothing."""
    done = run(TOOLS / script, cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[0].split()[0]) == (254, "usage:")
    assert not any(tmp_path.iterdir())


def test_a_night_without_a_box_says_how_to_make_one(tmp_path: Path) -> None:
    """The folder of the runs is not made."""
    done = run(TOOLS / "night.sh", "night", cwd=tmp_path)
    assert (done.returncode, "`make vm-box` makes it" in done.stderr) == (254, True)
    assert not (tmp_path / "night").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make namespaces")
def test_a_lab_that_does_not_run_takes_no_command(tmp_path: Path) -> None:
    """The error names the command that starts it."""
    (tmp_path / "Vagrantfile").touch()
    done = run(TOOLS / "lab.sh", "run", "true", cwd=tmp_path)
    assert (done.returncode, "`lab.sh up` starts it" in done.stderr) == (254, True)


def test_the_emulator_gets_a_small_translation_cache(tmp_path: Path) -> None:
    """The other arguments pass as they are, those with spaces and stars too."""
    written = (TOOLS / "box" / "emulator.sh").read_text().replace("/usr/bin/qemu-system-x86_64", "printf '<%s>'")
    (tmp_path / "emulator.sh").write_text(written)
    done = run(tmp_path / "emulator.sh", "-name", "a b", "-accel", "tcg", "*", cwd=tmp_path)
    assert done.stdout == "<-name><a b><-accel><tcg,thread=single,tb-size=128><*>"


def test_the_suite_of_the_night_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each case has options that exist, for nodes of the control node's inventory."""
    (tmp_path / "key").touch(mode=0o600)
    hosts = "".join(
        f'[[hosts]]\nname = "n{number}"\nhost = "192.0.2.{number}"\nhost_key = "ssh-ed25519 AAAA"\n'
        for number in range(1, 6)
    )
    (tmp_path / "lab.toml").write_text(f'user = "vagrant"\nkey = "{tmp_path / "key"}"\n{hosts}')
    (tmp_path / "suite.toml").write_text(
        (TOOLS / "suite.toml").read_text().replace(INVENTORY, str(tmp_path / "lab.toml"))
    )
    assert cli.invoke(["suite", str(tmp_path / "suite.toml"), "--dry-run", "--format", "json"]) == 0
    cases = json.loads(capsys.readouterr().out)
    assert {"main", "delay", "skew"} <= {case["name"] for case in cases}
    assert all("--slowness" in case["command"] for case in cases)
