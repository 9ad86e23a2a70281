"""The nightly: its scripts do what docs/guide/nightly.md says, and its workflows name what exists.

actionlint reads the workflows where it is installed. The stand-ins for `labrys` and `gh` write down what they are asked.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
import textwrap
import tomllib
from pathlib import Path

import pytest

import cli
from tests.stand_ins import asked, nightly, stand_in
from tests.suites import PLACES, SUITES

ROOT = Path(__file__).parents[3]
REGRESSIONS = "clusters/systems/my_store/regressions"
TOOLS = ROOT / "tools" / "nightly"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OUTSIDE = TOOLS / "github.yml"  # a workflow to copy
ACTION = ROOT / ".github" / "actions" / "suite" / "action.yml"
PAGE = (ROOT / "docs" / "guide" / "nightly.md").read_text()


@pytest.mark.parametrize(
    ("regressions", "suite", "worst"),
    [(0, 0, 0), (0, 2, 2), (255, 2, 255), (1, 255, 1), (2, 1, 1), (254, 0, 255), (None, 2, 2), (255, 0, 255)],
)
def test_a_night_begins_with_the_regressions_and_ends_with_the_worst(
    tmp_path: Path, regressions: int | None, suite: int, worst: int
) -> None:
    """A wrong verdict goes before an error, and that before an unknown; both have the same seed."""
    programs = tmp_path / "bin"
    stand_in(programs, "labrys", f'case "$2" in */regressions) exit {regressions} ;; esac\nexit {suite}')
    if regressions is not None:
        (tmp_path / REGRESSIONS).mkdir(parents=True)
    done = nightly("night.sh", "suites/smoke.toml", 77, "night/smoke", cwd=tmp_path, programs=programs)
    assert done.returncode == worst, done.stderr
    assert (tmp_path / "night/smoke/exit-code").read_text() == f"{worst}\n"
    files = [REGRESSIONS, "suites/smoke.toml"] if regressions is not None else ["suites/smoke.toml"]
    assert asked(programs) == [
        f"suite {file} --fail-on new --seed 77 --store night/smoke/store --format text" for file in files
    ]
    assert (
        nightly("night.sh", "suites/smoke.toml", 77, "night/smoke", cwd=tmp_path, programs=programs).returncode == 254
    )


def test_a_suite_has_regressions_of_its_own(tmp_path: Path) -> None:
    """Those on real nodes run before one suite, and not before each."""
    programs = tmp_path / "bin"
    stand_in(programs, "labrys", "exit 0")
    (tmp_path / REGRESSIONS).mkdir(parents=True)
    before = f"{Path(REGRESSIONS).parent}/before-nightly"
    (tmp_path / before).mkdir()
    for suite, own in (("smoke", []), ("nightly", [before])):
        (programs / "asked").unlink(missing_ok=True)
        nightly("night.sh", f"suites/{suite}.toml", 1, suite, cwd=tmp_path, programs=programs)
        assert [line.split()[1] for line in asked(programs)] == [REGRESSIONS, *own, f"suites/{suite}.toml"]


def test_the_folders_of_regressions_are_suites(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each case has its plan beside it, and `labrys test` would take it."""
    monkeypatch.chdir(ROOT)
    suites = {path.stem for path in ROOT.glob("suites/*.toml")}
    folders = [path for name in ("regressions", "before-*") for path in ROOT.glob(f"clusters/systems/*/{name}")]
    assert {folder.name for folder in folders} <= {"regressions", *(f"before-{name}" for name in suites)}
    assert len(folders) >= 2
    for folder in folders:
        assert cli.invoke(["suite", str(folder.relative_to(ROOT)), "--dry-run", "--format", "json"]) == 0
        cases = json.loads(capsys.readouterr().out)
        assert len(cases) >= 3
        assert all("--repeat" in case["command"] and "--plan" in case["command"] for case in cases)


def test_an_interruption_ends_a_night(tmp_path: Path) -> None:
    """The suite does not start after Ctrl-C in the regressions."""
    programs = tmp_path / "bin"
    stand_in(programs, "labrys", "exit 130")
    (tmp_path / REGRESSIONS).mkdir(parents=True)
    assert nightly("night.sh", "suites/smoke.toml", 1, "night", cwd=tmp_path, programs=programs).returncode == 130
    assert len(asked(programs)) == 1


@pytest.mark.parametrize("code", [0, 1, 2, 255])
def test_a_hunt_of_a_night_keeps_its_find_and_what_it_says(tmp_path: Path, code: int) -> None:
    """The artifact of a hunt has the same files as that of a suite."""
    programs = tmp_path / "bin"
    stand_in(
        programs, "labrys", f"mkdir -p night/hunt/store; echo '· 2 runs' >&2; echo '7 runs in 9 s' >&2; exit {code}"
    )
    done = nightly("hunt.sh", "hunt.toml", 77, "night/hunt", cwd=tmp_path, programs=programs, MINUTES="5")
    assert done.returncode == code, done.stderr
    assert "· 2 runs" in done.stdout
    assert asked(programs) == ["--config hunt.toml hunt --seed 77 --minutes 5 --runs 10000000 --store night/hunt/store"]
    assert nightly("pack.sh", "night/hunt", cwd=tmp_path, programs=programs).returncode == 0
    assert (tmp_path / "night/hunt/summary.md").read_text() == (
        "Hunt of `hunt.toml` with seed 77:\n\n    7 runs in 9 s\n"
    )
    assert (tmp_path / "night/hunt/exit-code").read_text() == f"{code}\n"
    assert (tmp_path / "night/hunt/store.tar.gz").is_file()
    assert nightly("hunt.sh", "hunt.toml", 77, "night/hunt", cwd=tmp_path, programs=programs).returncode == 254


@pytest.mark.parametrize(
    "file", sorted((ROOT / "clusters").glob("systems/*/tests/hunt.toml")), ids=lambda file: file.parts[-3]
)
def test_a_hunt_of_a_night_is_one_of_its_system(file: Path) -> None:
    """The workflow takes the name of the folder for that of the system."""
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    assert document.keys() == {"hunt"}
    assert document["hunt"]["system"] == file.parts[-3]
    assert document["hunt"]["cluster"] == "sim"


def test_what_a_killed_night_left_is_packed(tmp_path: Path) -> None:
    """Without an exit code it is an error, and a night without a case says so."""
    programs = tmp_path / "bin"
    programs.mkdir()
    assert nightly("pack.sh", "none", cwd=tmp_path, programs=programs).returncode == 0
    assert "No run came to its end" in (tmp_path / "none/summary.md").read_text()
    assert (tmp_path / "none/exit-code").read_text() == "255\n"

    suite = tmp_path / "night/store/suites/smoke/20261122T010203.000Z"
    suite.mkdir(parents=True)
    (suite / "summary.md").write_text("## smoke\n")
    (tmp_path / "night/exit-code").write_text("1\n")
    assert nightly("pack.sh", "night", cwd=tmp_path, programs=programs).returncode == 0
    assert (tmp_path / "night/summary.md").read_text() == "## smoke\n"
    assert (tmp_path / "night/exit-code").read_text() == "1\n"
    with tarfile.open(tmp_path / "night/store.tar.gz") as packed:
        assert f"store/suites/smoke/{suite.name}/summary.md" in packed.getnames()


def test_the_causes_of_all_nights_are_one_page(tmp_path: Path) -> None:
    """The trend folder comes first, then each store; issues and the address of the night are given on if they are there."""
    programs = tmp_path / "bin"
    stand_in(programs, "labrys", "echo '# Causes'")
    for name in ("one", "two"):
        (tmp_path / name / "store").mkdir(parents=True)
    (tmp_path / "trend").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/issues.json").write_text("[]")
    done = nightly(
        "causes.sh", "out", "trend", "one", "two", cwd=tmp_path, programs=programs, URL="https://example.org/5"
    )
    assert done.returncode == 0, done.stderr
    (call,) = asked(programs)
    assert call == (
        "triage trend one/store two/store --issues out/issues.json --link https://example.org/5 --html out/causes.html "
        "--actions out/actions.json --format markdown"
    )
    assert (tmp_path / "out/causes.md").read_text() == "# Causes\n"
    (tmp_path / "empty").mkdir()
    assert nightly("causes.sh", "none", "trend", "empty", cwd=tmp_path, programs=programs).returncode == 0
    assert nightly("issue.sh", "carry-out", "none/actions.json", cwd=tmp_path, programs=programs).stdout == ""


def test_a_part_of_a_suite_is_run(tmp_path: Path) -> None:
    """The first part has the regressions."""
    programs = tmp_path / "bin"
    stand_in(programs, "labrys", "exit 0")
    (tmp_path / REGRESSIONS).mkdir(parents=True)
    for number in (1, 2):
        nightly("night.sh", "suites/a.toml", 7, f"n{number}", cwd=tmp_path, programs=programs, SHARD=f"{number}/2")
    assert [line.partition(" --fail-on")[0] for line in asked(programs)] == [
        f"suite {REGRESSIONS}", "suite suites/a.toml --shard 1/2", "suite suites/a.toml --shard 2/2",
    ]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (1, 0), (2, 0), (254, 254), (255, 255)])
def test_the_trend_page_gets_each_night_with_a_store(tmp_path: Path, code: int, expected: int) -> None:
    """A verdict is no error of the page; an error of the command is one."""
    programs = tmp_path / "bin"
    stand_in(programs, "labrys", f"exit {code}")
    for name in ("smoke", "nightly"):
        (tmp_path / name / "store").mkdir(parents=True)
        with tarfile.open(tmp_path / name / "store.tar.gz", "w:gz") as packed:
            packed.add(tmp_path / name / "store", "store")
    (tmp_path / "nightly/store").rmdir()
    (tmp_path / "empty").mkdir()
    done = nightly("trend.sh", "trend", "smoke", "empty", "nightly", cwd=tmp_path, programs=programs)
    assert done.returncode == expected
    assert asked(programs) == ["analyze smoke/store nightly/store --out trend --incremental"]
    assert (tmp_path / "nightly/store").is_dir()


def test_no_store_at_all_leaves_the_trend_page(tmp_path: Path) -> None:
    """`labrys analyze` is not asked."""
    (tmp_path / "empty").mkdir()
    done = nightly("trend.sh", "trend", "empty", cwd=tmp_path, programs=tmp_path)
    assert (done.returncode, "stays as it was" in done.stderr) == (0, True)


def test_the_newest_trend_page_is_fetched(tmp_path: Path) -> None:
    """Nights that have none are passed over; the first night has none at all."""
    programs = tmp_path / "bin"
    stand_in(
        programs,
        "gh",
        'case "$1 $2" in "run list") echo 9; echo 8; echo 7 ;; *) [ "$3" = 8 ] && mkdir -p trend ;; esac',
    )
    done = nightly("last-artifact.sh", "trend", "nightly.yml", "main", "trend", cwd=tmp_path, programs=programs)
    assert (done.returncode, done.stdout) == (0, "the artifact trend of run 8 goes on\n")
    assert [line.split()[2] for line in asked(programs)[1:]] == ["9", "8"]
    stand_in(programs, "gh", "exit 0")
    done = nightly("last-artifact.sh", "trend", "nightly.yml", "main", "other", cwd=tmp_path, programs=programs)
    assert (done.returncode, "a new one begins" in done.stdout) == (0, True)


def test_a_night_without_a_server(tmp_path: Path) -> None:
    """It runs the suite, packs it and adds it to the trend page; the code is the suite's; once a day."""
    programs = tmp_path / "bin"
    stand_in(programs, "labrys", 'case $1 in suite) mkdir -p "$8"; exit 2 ;; triage) echo "# Causes" ;; esac')
    done = nightly("one-night.sh", "smoke", tmp_path / "var", cwd=tmp_path, programs=programs)
    assert done.returncode == 2, done.stderr
    assert [line.split()[0] for line in asked(programs)] == ["suite", "analyze", "triage"]
    assert not (tmp_path / "var/causes/issues.json").exists()
    again = nightly("one-night.sh", "smoke", tmp_path / "var", cwd=tmp_path, programs=programs)
    assert (again.returncode, "is there already" in again.stderr) == (254, True)


def test_a_night_without_a_server_opens_issues_and_keeps_its_disk_small(tmp_path: Path) -> None:
    """Both if it is asked to; a store that is left out of the packed files is still there as a folder."""
    programs = tmp_path / "bin"
    stand_in(programs, "gh", "echo '[]'")
    actions = '{"actions": [{"do": "close", "number": 4, "title": "", "body": "Gone."}], "left": []}'
    stand_in(
        programs, "labrys",
        f"""case $1 in suite) mkdir -p "$8/suites" ;; triage) echo '{actions}' >"$8" && echo "# Causes" ;; esac""",
    )  # fmt: skip
    settings = {"TRACKER": "github", "KEEP_SIZE": "20G"}
    done = nightly("one-night.sh", "smoke", tmp_path / "var", cwd=tmp_path, programs=programs, **settings)
    assert done.returncode == 0, done.stderr
    calls = [" ".join(line.replace(str(tmp_path), "").split()[:3]) for line in asked(programs)]
    (night,) = (tmp_path / "var/nights").glob("*/smoke")
    assert calls == [
        "suite suites/smoke.toml --fail-on", f"analyze /var/nights/{night.parent.name}/smoke/store --out",
        "issue list --label", f"triage /var/nights/{night.parent.name}/smoke/store --issues", "label create labrys",
        "issue comment 4", "issue close 4", f"store prune /var/nights/{night.parent.name}/smoke/store",
    ]  # fmt: skip
    assert asked(programs)[-1].endswith(" --any-verdict --keep-size 20G")
    assert ((night / "store").is_dir(), (night / "store.tar.gz").exists()) == (True, False)


@pytest.mark.parametrize("script", sorted(path.name for path in TOOLS.glob("*.sh")))
def test_each_script_says_its_usage(tmp_path: Path, script: str) -> None:
    """Without arguments it changes nothing."""
    done = nightly(script, cwd=tmp_path, programs=tmp_path)
    assert (done.returncode, done.stderr.startswith(f"usage: {script} ")) == (254, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="actionlint is not installed; CI installs it")
def test_actionlint_passes() -> None:
    """It knows the syntax, the expressions and the well-known actions, and the inputs of the action here."""
    done = subprocess.run(
        ["actionlint", *map(str, (*WORKFLOWS, OUTSIDE))], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")


def steps_of_the_action() -> dict[str, str]:
    """Returns the script of each step of the action that has one."""
    steps = re.findall(
        r"- name: ([^\n]+)\n(?:(?!    - )[^\n]*\n)*?      run: \|\n((?:        [^\n]*\n)+)", ACTION.read_text()
    )
    return {name: textwrap.dedent(script) for name, script in steps}


def run_step(name: str, cwd: Path, programs: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a step of the action as a runner does."""
    return subprocess.run(
        ["bash", "-e", "-c", steps_of_the_action()[name]],
        cwd=cwd,
        env={
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GITHUB_ACTION_PATH": str(ACTION.parent),
            "GITHUB_STEP_SUMMARY": str(cwd / "summary"),
            "GITHUB_ENV": str(cwd / "env"),
            "SHARD": "1/1",
            "RUNNER_TEMP": str(cwd / "temp"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def test_the_action_installs_labrys_with_the_packages(tmp_path: Path) -> None:
    """In a repository without Labrys, from the clone that the action is in; any number of packages."""
    programs = tmp_path / "bin"
    stand_in(programs, "make", "exit 0")
    stand_in(programs, "python3", f'mkdir -p "$3/bin" && cp "{programs}/python" "{programs}/labrys" "$3/bin"')
    for name in ("python", "labrys"):
        stand_in(programs, name, "exit 0")
    wheel = tmp_path / "labrys-1-any.whl"
    wheel.touch()
    for packages in ("", "./one ./two"):
        (programs / "asked").unlink(missing_ok=True)
        done = run_step("Install", tmp_path, programs, PACKAGES=packages, WHEEL=str(wheel))
        assert done.returncode == 0, done.stderr
        made, again, pip, version = asked(programs)
        assert (made, version) == (f"-m venv {tmp_path}/temp/labrys", "--version")
        assert again.endswith(f" --force-reinstall --no-deps {wheel}")
        assert pip == f"-m pip install --quiet --disable-pip-version-check {wheel} {packages}".strip()


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_action_runs_a_suite_and_keeps_its_reports(tmp_path: Path, code: int) -> None:
    """The suite's code ends its step; the next one packs what is there, and the artifact has the name of the suite."""
    programs = tmp_path / "bin"
    stand_in(programs, "sudo", 'exec "$@"')
    stand_in(
        programs,
        "labrys",
        'mkdir -p "$8/suites/own/20261122T010203.000Z" && echo "## own" >"$8/suites/own/20261122T010203.000Z/summary.md"\n'
        f"exit {code}",
    )
    done = run_step(
        "Regressions and suite", tmp_path, programs,
        SUITE="suites/own.toml", SEED="77", MINUTES="5", LABRYS=str(programs / "labrys"),
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "suite suites/own.toml --fail-on new --seed 77 --store night/own/store --format github" in asked(programs)
    assert (tmp_path / "env").read_text() == "NIGHT=own\n"
    packed = run_step("Pack", tmp_path, programs, NIGHT="own")
    assert packed.returncode == 0, packed.stderr
    assert (tmp_path / "summary").read_text() == "## own\n"
    kept = re.findall(r"night/\$\{\{ env\.NIGHT \}\}/(\S+)", ACTION.read_text())
    assert [(tmp_path / "night" / "own" / file).is_file() for file in kept] == [True] * 3


def test_a_suite_that_takes_too_long_is_interrupted(tmp_path: Path) -> None:
    """As by Ctrl-C, so that Labrys heals its nodes; the reports are kept."""
    programs = tmp_path / "bin"
    stand_in(programs, "sudo", 'exec "$@"')
    stand_in(programs, "labrys", f"trap 'echo healed >{tmp_path}/healed; exit 130' INT\nsleep 20 & wait")
    done = run_step(
        "Regressions and suite", tmp_path, programs,
        SUITE="suites/own.toml", SEED="77", MINUTES="0.01", LABRYS=str(programs / "labrys"),
    )  # fmt: skip
    assert done.returncode == 124
    assert (tmp_path / "healed").is_file()


@pytest.mark.parametrize("script", ["night.sh", "trend.sh", "hunt.sh"])
@pytest.mark.parametrize("where", ["LABRYS", ".venv", "PATH"])
def test_the_scripts_find_labrys(tmp_path: Path, script: str, where: str) -> None:
    """The variable first, then the environment of the working folder, then the PATH."""
    folders = {"LABRYS": tmp_path / "named", ".venv": tmp_path / ".venv" / "bin", "PATH": tmp_path / "bin"}
    there = list(folders)[list(folders).index(where) :]
    for name in there:
        folders[name].mkdir(parents=True)
        stand_in(folders[name], "labrys", "exit 0")
    (tmp_path / "night" / "store").mkdir(parents=True)
    (tmp_path / "night" / "store.tar.gz").touch()
    arguments = {
        "night.sh": ("suites/own.toml", "1", "new"),
        "trend.sh": ("trend", "night"),
        "hunt.sh": ("hunt.toml", "1", "new"),
    }[script]
    environment = {"LABRYS": str(folders["LABRYS"] / "labrys")} if where == "LABRYS" else {"LABRYS": ""}
    done = nightly(script, *arguments, cwd=tmp_path, programs=folders["PATH"], **environment)
    assert done.returncode == 0, done.stderr
    assert [name for name in there if (folders[name] / "asked").exists()] == [where]


@pytest.mark.parametrize("workflow", [*WORKFLOWS, OUTSIDE, ACTION, TOOLS / "gitlab-ci.yml"], ids=lambda path: path.name)
def test_a_workflow_names_what_exists(workflow: Path) -> None:
    """Scripts, targets of make, and files; actions have a version, or are in this repository."""
    text = workflow.read_text()
    for script in re.findall(r"tools/nightly/[\w-]+\.sh", text):
        assert (ROOT / script).is_file(), script
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^ +[^#\n]*\bmake ([\w-]+)", text, re.MULTILINE)
    assert targets or workflow in {OUTSIDE, ACTION}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for action in re.findall(r"uses: (\S+)", text):
        if action.startswith("./"):  # outside, the repository is in a folder `labrys`
            assert (ROOT / action.removeprefix("./labrys/") / "action.yml").is_file(), action
            continue
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", action), action


def test_the_workflows_have_the_least_permissions() -> None:
    """Reading, but for the one job that writes issues."""
    for workflow in (*WORKFLOWS, OUTSIDE):
        text = workflow.read_text()
        assert "\npermissions:\n  contents: read\n\n" in text
        wanted = re.findall(r"^ +(\S+): write$", text, re.MULTILINE)
        assert wanted == (["issues"] if workflow.name != "ci.yml" else [])
    for file in (*WORKFLOWS, OUTSIDE, ACTION):
        for script in re.findall(r"run: (?:\|\n(?: {8,}.*\n)+|.*)", file.read_text()):
            assert "${{" not in script, "a value of others in a shell line; give it by env"


def test_gitlab_runs_every_suite() -> None:
    """Its matrix cannot be made from the folder."""
    (listed,) = re.findall(r"SUITE: \[(.*)\]", (TOOLS / "gitlab-ci.yml").read_text())
    assert sorted(listed.split(", ")) == sorted(SUITES)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd")
def test_systemd_takes_the_units() -> None:
    """Every key is known, and every value is understood."""
    units = [str(TOOLS / f"labrys-nightly.{kind}") for kind in ("service", "timer")]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False, timeout=60
    )
    assert "labrys-nightly" not in done.stderr, done.stderr


def commands() -> list[str]:
    """Every line of the shell blocks of docs/guide/nightly.md."""
    return [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


@pytest.mark.parametrize("line", commands())
def test_a_command_of_the_page_can_be_run(
    line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files exist, and `labrys` knows its options. Other commands name files and artifacts that exist."""
    words = shlex.split(line)
    for word in words:
        word = word.removeprefix("/opt/labrys/")  # noqa: PLW2901 - the clone of the page
        if word.startswith(("tools/", "suites/")) or word == "Containerfile":
            assert (ROOT / word).is_file(), word
    nightly = (ROOT / ".github" / "workflows" / "nightly.yml").read_text()
    match words:
        case ["make", target]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        case ["gh", "run", "download", "--name", artifact, *_]:
            assert artifact.removeprefix("night-") in SUITES
            assert f"printf '%s\\n' {' '.join(PLACES)} | jq" in nightly
            assert "suite: ${{ matrix.suite }}" in nightly
            assert "name: night-${{ env.NIGHT }}" in ACTION.read_text()
        case ["gh", "workflow", "run", workflow]:
            assert (ROOT / ".github" / "workflows" / workflow).is_file()
        case ["docker", "run", *rest]:
            words = rest[rest.index("labrys") :]
        case (
            ["sh", *_]
            | ["cp", *_]
            | ["cat", *_]
            | ["tar", *_]
            | ["systemctl", *_]
            | ["journalctl", *_]
            | ["labrys", *_]
        ):
            pass
        case ["docker", "build", *_]:
            pass
        case _:
            pytest.fail(f"no rule for {line!r}")
    if words[0] == "labrys":
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as ended:
            cli.main([*words[1:], "--help"])
        assert (ended.value.code, "Usage: labrys" in capsys.readouterr().out) == (0, True)


def test_the_version_stands_in_one_place() -> None:
    """Cargo.toml has it; the package takes it from there, and the newest release of CHANGELOG.md is of it."""
    version = tomllib.loads((ROOT / "checker/kernel/Cargo.toml").read_text())["package"]["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ("version" in project, project["dynamic"]) == (False, ["version"])
    locked = tomllib.loads((ROOT / "checker/kernel/Cargo.lock").read_text())["package"]
    assert [package["version"] for package in locked if package["name"] == "labrys-kernel"] == [version]
    newest = re.search(r"^## (?!Unreleased$)(\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == version
