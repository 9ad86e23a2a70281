"""Options of a kind of fault of the user's own are drawn by a hunt, and made smaller by a shrink, as its kind declares."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from typing import TYPE_CHECKING

import pytest

import cli
from commands.hunt.draws import Chooser, Space
from nemesis.errors import PlanError
from nemesis.fault import Fault
from nemesis.faults.process import Pause
from nemesis.kinds import Kind, use
from nemesis.options import integer
from nemesis.real.process import PauseOnNodes
from nemesis.targets import ONE
from tests.slow_faults import forget_plugins
from tests.trials import TOY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("without_plots")
OUTAGE = '''
"""Power losses of a strength: a weak one kills the process, and its disk keeps everything."""

from nemesis.faults.disk import PowerLoss
from nemesis.kinds import Kind
from nemesis.options import choice, integer
from nemesis.real.disk import PowerLossOnNodes
from nemesis.simulated.process import Killed, PowerLost
from nemesis.targets import ONE


class Weak(PowerLost):
    def inject(self, name):
        if self.fault.options["strength"] >= 5:
            super().inject(name)
        else:
            Killed.inject(self, name)

    def further(self, name):
        return super().further(name) if name in self._lost else ""


class Outage(PowerLoss):
    OPTIONS = {
        "strength": integer(40, 1, 100, "How strong it is.", hunted=(30, 80), shrinks_to=1),
        "colour": choice("red", ("red", "blue"), "Its colour.", hunted=("red", "blue")),
        "shade": integer(1, 0, 9, "A number that is drawn with the colour.", hunted=(2, 7), drawn_with="colour"),
    }


OUTAGE = Kind(name="outage", fault=Outage, on_nodes=PowerLossOnNodes, simulated=Weak, target=ONE)
'''


@pytest.fixture
def own_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The place of the kind, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "faults.py").write_text(OUTAGE)
    yield "faults.py:OUTAGE"
    forget_plugins()


def test_a_hunt_draws_the_options_of_an_own_kind(own_kind: str) -> None:
    """Each value is drawn. An option that is drawn with another one has its value at the same place."""
    use(own_kind)
    chooser = Chooser(Space(kinds=("kill", "outage")), seed=1, guided=False)
    drawn = [draw.fault_options for draw in (chooser.draw() for _ in range(80))]
    assert all("kill" not in options for options in drawn)
    own = [options["outage"] for options in drawn if "outage" in options]
    assert {values["strength"] for values in own} == {30, 80}
    assert {(values["colour"], values["shade"]) for values in own} == {("red", 2), ("blue", 7)}


def test_an_option_is_drawn_only_with_one_of_as_many_values() -> None:
    """The kind is refused when it is made, with a sentence that says what to change."""
    bad = {
        "colour": integer(1, 0, 9, "A colour.", hunted=(1, 2, 3)),
        "shade": integer(1, 0, 9, "A shade.", hunted=(2, 7), drawn_with="colour"),
    }
    with pytest.raises(PlanError, match="'shade' with 'colour', which must be another option with as many values"):
        Kind(name="bad", fault=type("Bad", (Fault,), {"OPTIONS": bad}), on_nodes=PauseOnNodes, target=ONE)
    with pytest.raises(ValueError, match="takes a whole number from 0 to 9, and hunts or shrinks would give it 12"):
        integer(1, 0, 9, "A number.", hunted=(1, 12))


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (
            type("Old", (Fault,), {"begin": PauseOnNodes.begin}),
            "move `begin`, `prove`, `again` and `end` into a class below",
        ),
        (
            type("Old", (Fault,), {"SIMULATED": None}),
            "name the actors in the Kind: `on_nodes` in place of these methods, and",
        ),
        (
            Pause,
            "the kind of fault 'old' has no actor for real nodes; give `on_nodes`, a class below nemesis.actor.OnNodes",
        ),
    ],
)
def test_a_fault_that_acts_itself_is_refused_with_what_to_change(fault: type[Fault], sentence: str) -> None:
    """A plug-in for an earlier version has the methods of its actor in the class of the fault."""
    with pytest.raises(PlanError, match=re.escape(sentence)):
        Kind(name="old", fault=fault, target=ONE)


def test_a_find_of_an_own_kind_has_its_drawn_option_and_is_made_smaller(
    own_kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reproduce line of the find has the drawn values. The smallest run has the weakest outage that still loses data."""
    own = ["--fault", own_kind, "--store", str(tmp_path)]
    assert cli.invoke(["hunt", *TOY, *own, "--among", "outage", "--forgets", "--seed", "1", "--jobs", "1"]) == 1
    line = next(line for line in capsys.readouterr().out.splitlines() if "labrys test --seed" in line)
    values = dict(re.findall(r"outage\.(\w+)=(\w+)", line))
    assert values in [
        {"strength": strength, "colour": colour, "shade": shade}
        for strength in ("30", "80")
        for colour, shade in (("red", "2"), ("blue", "7"))
    ]
    (report,) = [path for path in tmp_path.glob("*/*/report.html") if not path.parent.is_symlink()]
    system = ["--system", "tests.toy_register:ToyRegisters"]
    with contextlib.redirect_stderr(None):
        assert cli.invoke(["shrink", str(report.parent), *system, *own, "--minutes", "3"]) == 1
    (fault,) = json.loads((report.parent / "shrunk.json").read_text())["faults"]
    assert fault["options"] == {"strength": 5, "colour": values["colour"], "shade": int(values["shade"])}
