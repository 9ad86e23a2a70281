"""The causes of runs: groups by symptoms and experiments, and how often and since when each is seen."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from results.causes.cases import Case, Trial, night_of
from results.causes.grouping import ALIKE, SMALL, Decided, grouped
from results.causes.html import html_of, links_from
from results.causes.known import read_known
from results.causes.reading import Seen, read_stores
from results.causes.standing import Cause, causes_of
from results.causes.symptoms import symptom_of
from results.causes.texts import json_of, markdown_of, page_of, text_of
from results.record.signatures import Signature
from results.store.store import Store
from tests.unit.results.synthetic import STARTED

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Mapping, Sequence

GOLDEN = Path(__file__).parent / "golden"
FIRST = date(2026, 11, 1)
REPAIRS = ("--mend 1", "--mend 2")


def case(
    number: int,
    said: str,
    *,
    night: int = 0,
    repairs: Sequence[str] | None = (),
    seed: int | None = None,
    line: str = "line",
) -> Case:
    """Returns a run that is not as expected."""
    signature = Signature(ended="invalid", parts=["replicas-equal"], sentences=[said])
    trial = Trial(
        run=None, name=f"store/test/{number:05d}", night=FIRST + timedelta(days=night), line=line, system="s", software="s",
        seed=str(number if seed is None else seed), reproduce=f"labrys test --seed {number if seed is None else seed}",
        size=(number, 1.0), repeats=seed is not None,
    )  # fmt: skip
    return Case(
        trial=trial,
        signature=signature,
        symptom=symptom_of(signature, "s"),
        repairs=None if repairs is None else tuple(repairs),
    )


def trial(number: int, night: int, line: str = "line") -> Trial:
    """Returns a run that is as expected."""
    return Trial(
        run=None, name=f"store/right/{number:05d}", night=FIRST + timedelta(days=night), line=line, system="s", software="s"
    )  # fmt: skip


class Oracle:
    """Experiments that know the cause of each run, and count."""

    def __init__(self, causes: Mapping[str, str | None], most: int = 10**9) -> None:
        self.causes, self.most, self.asked = causes, most, list[str]()

    def decide(self, case: Case, first: Sequence[str]) -> Decided | None:
        """Returns the cause of a run."""
        assert set(first) <= set(case.repairs or ())
        if len(self.asked) == self.most:
            return None
        self.asked.append(case.name)
        return Decided(cause=self.causes[case.name], why="it was carried out again")


def shape(groups: Iterable[object]) -> list[tuple[str | None, tuple[str, ...]]]:
    """Returns the causes and the runs of groups."""
    return [(group.cause, tuple(each.name for each in group.cases)) for group in groups]  # type: ignore[attr-defined]


@given(st.lists(st.sampled_from(["logs differ", "a node is gone", "a value is gone"]), max_size=25), st.randoms())
def test_the_order_of_runs_makes_no_difference(said: list[str], draw: random.Random) -> None:
    """The same runs in another order are the same groups, and each run is in one of them."""
    cases = [case(number, text) for number, text in enumerate(said)]
    groups = shape(grouped(cases))
    other = list(cases)
    draw.shuffle(other)
    assert shape(grouped(other)) == groups
    assert sorted(name for _, names in groups for name in names) == [each.name for each in cases]
    assert len(groups) == len(set(said))


def by_definition(cases: Sequence[Case]) -> list[set[str]]:
    """Returns the names of the runs of each group: a key joins the first group that has only keys with alike runs."""
    keys = sorted({case.symptom.key for case in cases})
    runs = {key: [case for case in cases if case.symptom.key == key] for key in keys}
    groups: list[list[str]] = []
    for key in sorted(keys, key=lambda key: (-len(runs[key]), key)):
        for group in groups:
            pairs = [[(one, two) for one in runs[key][:SMALL] for two in runs[other][:SMALL]] for other in group]
            if all(max(one.symptom.likeness(two.symptom) for one, two in each) >= ALIKE for each in pairs):
                group.append(key)
                break
        else:
            groups.append([key])
    return [{case.name for key in group for case in runs[key]} for group in groups]


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=4, unique=True)


@given(st.lists(st.tuples(st.sampled_from(["x", "y", "z"]), WORDS, WORDS), max_size=30))
def test_keys_with_alike_runs_are_one_group(shown: list[tuple[str, list[str], list[str]]]) -> None:
    """The rarest traits miss no pair of keys that are alike."""
    cases = []
    for number, (said, parts, more) in enumerate(shown):
        signature = Signature(ended="invalid", parts=["p", *parts], sentences=["s", said, *parts, *more])
        cases.append(replace(case(number, said), signature=signature, symptom=symptom_of(signature, "s")))
    groups = [{each.name for each in group.cases} for group in grouped(cases)]
    assert sorted(map(sorted, groups)) == sorted(map(sorted, by_definition(cases)))


def test_runs_of_two_programs_are_never_one_group() -> None:
    """A group is of one program, even if the sentences are equal."""
    signature = Signature(ended="invalid", parts=["recovered"], sentences=["It did not work again."])
    assert symptom_of(signature, "a").key != symptom_of(signature, "b").key


def test_an_experiment_divides_and_joins_groups() -> None:
    """Runs with one symptom and two defects are two groups; runs with two symptoms and one defect are one."""
    cases = [
        *(case(number, "logs differ", repairs=["--mend 1"]) for number in range(4)),
        *(case(number, "logs differ", repairs=["--mend 2"]) for number in range(4, 8)),
        *(case(number, "a node is gone", repairs=["--mend 2"]) for number in range(8, 10)),
    ]
    oracle = Oracle({each.name: next(iter(each.repairs or ())) for each in cases})
    groups = grouped(cases, oracle)
    assert {group.cause: len(group.cases) for group in groups} == {"--mend 1": 4, "--mend 2": 6}
    assert len(oracle.asked) == 6  # two of each symptom and build


def test_a_build_with_all_defects_is_decided_run_by_run() -> None:
    """If runs with one symptom have different causes, each of them is carried out again."""
    cases = [case(number, "logs differ", repairs=REPAIRS) for number in range(6)]
    oracle = Oracle({each.name: REPAIRS[number % 2] for number, each in enumerate(cases)})
    groups = grouped(cases, oracle)
    assert {group.cause: len(group.cases) for group in groups} == {"--mend 1": 3, "--mend 2": 3}
    assert len(oracle.asked) == 6


def test_a_budget_that_ends_leaves_the_rest_to_symptoms() -> None:
    """What no experiment decided goes to the run that it is most like, and stays by itself if its build lacks that cause."""
    cases = [
        *(case(number, "logs differ", repairs=["--mend 1"]) for number in range(3)),
        case(3, "logs differ", repairs=["--mend 2"]),
    ]
    groups = grouped(cases, Oracle(dict.fromkeys([each.name for each in cases], "--mend 1"), most=2))
    assert {group.cause: len(group.cases) for group in groups} == {"--mend 1": 3, None: 1}


def test_runs_of_earlier_nights_go_with_the_decided_ones_of_their_case() -> None:
    """Their builds are unknown, and nobody carries them out again; a run of another case or with other symptoms stays apart."""
    cases = [
        *(case(number, "logs differ", repairs=["--mend 1"]) for number in range(2)),
        *(case(number, "logs differ", repairs=None) for number in range(2, 5)),
        case(5, "logs differ", repairs=None, line="other"),
        case(6, "a node is gone", repairs=None),
    ]
    oracle = Oracle(dict.fromkeys([each.name for each in cases], "--mend 1"))
    assert [(group.cause, len(group.cases)) for group in grouped(cases, oracle)] == [
        ("--mend 1", 5),
        (None, 1),
        (None, 1),
    ]
    assert len(oracle.asked) == 2


def test_a_run_that_no_repair_cures_keeps_its_group() -> None:
    """It may be a new defect, so no known one is its cause."""
    cases = [case(number, "logs differ", repairs=REPAIRS) for number in range(3)]
    groups = grouped(cases, Oracle(dict.fromkeys([each.name for each in cases])))
    assert [(group.cause, len(group.cases)) for group in groups] == [(None, 3)]
    assert groups[0].decided


def causes(cases: Sequence[Case], others: Sequence[Trial], known: Path | None = None) -> list[Cause]:
    """Returns the causes of runs on the day after the newest of them."""
    seen = Seen(trials=[*(each.trial for each in cases), *others], cases=list(cases))
    entries = [] if known is None else read_known(known)
    return causes_of(seen, grouped(cases), entries, FIRST + timedelta(days=40))


def test_the_first_night_with_a_cause_makes_it_new() -> None:
    """It is open if an earlier night had it, too."""
    right = [trial(number, number // 4) for number in range(40)]
    assert [each.state for each in causes([case(1, "logs differ", night=9)], right)] == ["new"]
    assert [each.state for each in causes([case(n, "logs differ", night=n) for n in (8, 9)], right)] == ["open"]
    [late] = causes([case(1, "logs differ", night=8)], right)
    assert late.state == "open"
    assert late.chance is not None
    assert late.chance > 0.05


def test_a_cause_is_gone_if_chance_does_not_explain_its_absence() -> None:
    """Eight of eight runs had it, and then twelve runs had not; when it is back, it came back."""
    early = [case(number, "logs differ", night=0) for number in range(8)]
    right = [trial(number, 1 + number // 6) for number in range(12)]
    [gone] = causes(early, right)
    assert (gone.state, gone.absent) == ("gone", 12)
    assert gone.chance is not None
    assert gone.chance < 0.05
    [back] = causes([*early, case(99, "logs differ", night=5)], right)
    assert back.state == "came back"
    assert back.fails


def test_two_nights_with_one_seed_are_one_trial() -> None:
    """The simulator repeats a run, so a second night with its seed tells nothing about the rate; on real nodes it does."""
    [simulated] = causes([case(n, "logs differ", night=n, seed=7) for n in range(5)], [])
    assert (simulated.runs, simulated.trials) == (1, 1)
    assert (simulated.first.night, simulated.last.night) == ("2026-11-01", "2026-11-05")
    [real] = causes([case(n, "logs differ", night=n) for n in range(5)], [])
    assert (real.runs, real.trials) == (5, 5)


def test_a_rate_counts_the_lines_in_which_a_cause_was_seen() -> None:
    """Runs of other cases are no trials of it."""
    [found] = causes(
        [case(1, "logs differ")], [*(trial(n, 0) for n in range(3)), *(trial(n, 0, "other") for n in range(9))]
    )
    assert (found.runs, found.trials) == (1, 4)
    assert 0 < found.low < 0.25 < found.high < 1


def test_a_known_cause_is_no_failure_until_it_expires(tmp_path: Path) -> None:
    """An entry counts for its symptoms, up to its last day."""
    runs = [case(1, "logs differ")]
    key = runs[0].symptom.key
    entry = tmp_path / "logs.toml"
    entry.write_text(f'link = "https://example.org/1"\nsignatures = ["{key}"]\nexpires = "2027-01-01"\n')
    [found] = causes(runs, [], tmp_path)
    assert (found.state, found.known, found.link, found.fails) == ("known", "logs", "https://example.org/1", False)
    entry.write_text(f'link = "https://example.org/1"\nsignatures = ["{key}"]\nexpires = "2026-11-30"\n')
    [found] = causes(runs, [], tmp_path)
    assert (found.state, found.known, found.expired) == ("new", None, "logs")
    entry.write_text('link = "https://example.org/1"\nsignatures = ["0123456789ab"]\nexpires = "2027-01-01"\n')
    assert causes(runs, [], tmp_path)[0].state == "new"


BAD = [
    ('link = 1\nsignatures = []\nexpires = "2027-01-01"', "link"),
    ('link = "x"\nsignatures = []\nexpires = "2027-01-01"', "signatures"),
    ('link = "x"\nsignatures = ["short"]\nexpires = "2027-01-01"', "signatures"),
    ('link = "x"\nsignatures = ["0123456789ab"]\nexpires = "soon"', "expires"),
    ('link = "x"\nsignatures = ["0123456789ab"]\nexpires = 2027-01-01', "expires"),
    ('link = "x"\nsignatures = ["0123456789ab"]\nexpires = "2027-01-01"\nrun = "rm"', "run"),
    ("link = ", "TOML"),
]


@pytest.mark.parametrize(("text", "named"), BAD)
def test_a_malformed_known_cause_is_named(text: str, named: str, tmp_path: Path) -> None:
    """The error names the file and what is wrong."""
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(InputError, match=named) as error:
        read_known(tmp_path)
    assert "bad.toml" in str(error.value)


def stored(store: Path, golden: str, name: str, number: int) -> Path:
    """Copies a run of `golden/` into a store, and returns its folder."""
    folder = store / name / f"20260729T1011{number:02d}.345Z"
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(GOLDEN / golden, folder)
    return folder


def changed(path: Path, **members: object) -> None:
    """Replaces members of a JSON file; a member without a value goes."""
    document = json.loads(path.read_text(encoding="utf-8")) | members
    path.write_text(json.dumps({name: value for name, value in document.items() if value is not ...}), encoding="utf-8")


def test_a_store_is_read(tmp_path: Path) -> None:
    """Runs that are not as expected have signatures, and the others are trials."""
    for number in range(3):
        stored(tmp_path, "valid", "right", number)
    stored(tmp_path, "stale", "wrong", 1)
    seen = read_stores([tmp_path, tmp_path])
    assert (len(seen.trials), [each.signature.parts for each in seen.cases]) == (4, [["linearizable"]])
    assert (seen.unread, seen.computed) == ({}, 0)
    assert seen.cases[0].trial.night == night_of(STARTED) == date(2026, 7, 28)


def test_an_older_store_has_the_same_signatures(tmp_path: Path) -> None:
    """If `results.json` has none, it is computed from the files of the run."""
    folder = stored(tmp_path, "stale", "wrong", 1)
    [new] = read_stores([tmp_path]).cases
    changed(folder / "results.json", signature=..., warnings=...)
    seen = read_stores([tmp_path])
    assert seen.cases[0].signature == new.signature
    assert seen.cases[0].symptom.key == new.symptom.key
    assert seen.computed == 1


def test_a_run_without_a_verdict_is_a_case(tmp_path: Path) -> None:
    """A run that was killed broke off; it is put down to the machine."""
    (stored(tmp_path, "valid", "killed", 1) / "results.json").unlink()
    [found] = read_stores([tmp_path]).cases
    assert (found.signature.ended, found.signature.blame) == ("broken off", "machine")


def test_a_run_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Damaged and hostile files leave the other runs as they are."""
    stored(tmp_path, "stale", "wrong", 1)
    (stored(tmp_path, "valid", "torn", 1) / "test.json").write_text('{"format": "labrys-te')
    (stored(tmp_path, "valid", "deep", 1) / "test.json").write_text("[" * 100_000)
    changed(stored(tmp_path, "stale", "strange", 1) / "results.json", signature={"ended": "eaten"})
    changed(stored(tmp_path, "stale", "long", 1) / "results.json", warnings={"x" * 9_000: 1})
    linked = stored(tmp_path, "valid", "linked", 1) / "test.json"
    linked.unlink()
    linked.symlink_to("/etc/passwd")
    (tmp_path / "empty" / "20260729T101112.345Z").mkdir(parents=True)
    seen = read_stores([tmp_path])
    assert len(seen.cases) == 1
    assert sorted(Path(name).parent.name for name in seen.unread) == [
        "deep", "empty", "linked", "long", "strange", "torn",
    ]  # fmt: skip


def test_a_store_that_grows_or_shrinks_meanwhile_is_read(tmp_path: Path) -> None:
    """A run that goes away is named, one that comes is not seen yet, and one that runs is left out."""
    for number in range(3):
        stored(tmp_path, "stale", "wrong", number)
    running = Store(tmp_path).create_run("running", STARTED)

    def meanwhile(number: int, _: int) -> None:
        if number == 1:
            shutil.rmtree(tmp_path / "wrong" / "20260729T101102.345Z")
            stored(tmp_path, "stale", "later", 1)

    with running.hold():
        seen = read_stores([tmp_path], progress=meanwhile)
    assert (len(seen.cases), len(seen.unread), seen.running) == (2, 1, 1)


def test_a_page_escapes_what_comes_from_stores(tmp_path: Path) -> None:
    """A hostile sentence, name or command is no markup, in HTML and in Markdown, and steers no terminal."""
    hostile = "<script>alert(1)</script> `x` | @all \x1b[31m"
    runs = [case(1, hostile, line=hostile)]
    seen = Seen(trials=[runs[0].trial], cases=runs, unread={hostile: hostile})
    page = page_of([hostile], seen, causes_of(seen, grouped(runs), [], FIRST), "")
    html, markdown = html_of(page, links_from(tmp_path)), "\n".join(markdown_of(page))
    assert "<script>alert" not in html
    assert "<script>" not in markdown
    assert "@all" not in markdown
    assert all("\x1b" not in text for text in (html, markdown, "\n".join(text_of(page))))
    assert json.loads(json.dumps(json_of(page)))["causes"][0]["state"] == "new"


def test_the_smallest_plan_of_a_run_is_its_shape(tmp_path: Path) -> None:
    """What `labrys shrink` left decides the size, the plan and the command."""
    folder = stored(tmp_path, "stale", "wrong", 1)
    (folder / "shrunk.json").write_text(
        json.dumps({"time_limit_s": 5, "faults": [{"kind": "kill"}, {"kind": "pause"}]})
    )
    (folder / "shrunk-command.txt").write_text("labrys test --plan small\n")
    [found] = read_stores([tmp_path]).cases
    assert (found.trial.size, found.trial.reproduce) == ((2, 5.0), "labrys test --plan small")
    assert found.signature.plan == ["kill", "pause"]
