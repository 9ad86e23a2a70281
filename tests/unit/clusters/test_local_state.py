"""The states of local clusters: names and subnets are unique, and interrupted claims do no harm."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from clusters.errors import ClusterError, ClusterExists, ClusterInUse, NoSuchCluster
from clusters.local import state
from harness.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory for the states."""
    monkeypatch.setattr(state, "STATE_ROOT", tmp_path / "labrys")
    monkeypatch.setattr(state, "LOCK_FILE", tmp_path / "labrys" / ".lock")
    return tmp_path / "labrys"


def claim(name: str, nodes: int = 5) -> state.State:
    """Claims a name and releases the lock."""
    with state.claimed(name, nodes) as (claimed, _):
        return claimed


def test_a_claim_is_written_down_before_anything_is_made(root: Path) -> None:
    """Other processes of the user can read the state during and after the claim; other users cannot."""
    with state.claimed("one", 3) as (claimed, _):
        assert state.load("one") == claimed
    assert state.load("one") == claimed
    assert (root / "one").stat().st_mode & 0o777 == 0o700
    assert [node.address for node in claimed.members()] == ["10.55.1.11", "10.55.1.12", "10.55.1.13"]
    assert claimed.control_address == "10.55.1.1"


def test_claims_at_the_same_time_get_subnets_of_their_own() -> None:
    """Concurrent claims get different subnets; of claims of the same name, one succeeds."""
    with ThreadPoolExecutor(16) as pool:
        subnets = list(pool.map(lambda number: claim(f"c{number}").subnet, range(16)))
    assert sorted(subnets) == list(range(1, 17))

    def attempt(_: int) -> bool:
        try:
            claim("same")
        except ClusterExists:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(attempt, range(16))).count(True) == 1


def test_a_subnet_is_given_again() -> None:
    """A forgotten cluster's subnet is free, and when all are taken there is a clear error."""
    first = claim("a")
    claim("b")
    state.forget(first)
    assert claim("c").subnet == first.subnet


def test_when_all_subnets_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a clear error when no subnet is left."""
    monkeypatch.setattr(state, "SUBNETS", range(1, 2))
    claim("a")
    with pytest.raises(ClusterError, match="all 1 subnets"):
        claim("b")


def test_a_lock_is_held_until_the_maker_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process can hold a cluster while another one makes it; afterwards any process can."""
    monkeypatch.setattr(state, "LOCK_TIMEOUT_S", 0.0)
    with (
        state.claimed("one", 1) as (claimed, _),
        pytest.raises(ClusterError, match="another process has been making or removing"),
        state.held("one"),
    ):
        pass
    with state.held("one") as there:
        assert there == claimed
    with state.held("other") as there:
        assert there is None


def test_a_lock_outlives_its_process_in_what_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that inherited the lock holds it after the end of the process that made the cluster."""
    monkeypatch.setattr(state, "LOCK_TIMEOUT_S", 0.0)
    with state.claimed("one", 1) as (_, lock):
        inherited = os.dup(lock)
    with pytest.raises(ClusterError, match="another process"), state.held("one"):
        pass
    os.close(inherited)
    with state.held("one") as there:
        assert there is not None


def test_one_test_at_a_time_uses_a_cluster() -> None:
    """The second is refused until the first ends; nobody reserves a cluster that is gone."""
    claimed = claim("one")
    first = state.reserve(claimed)
    with pytest.raises(ClusterInUse, match="another test uses the cluster 'one'"):
        state.reserve(claimed)
    os.close(state.reserve(claim("two")))
    os.close(first)
    os.close(state.reserve(claimed))
    state.forget(claimed)
    with pytest.raises(NoSuchCluster, match="is gone"):
        state.reserve(claimed)


def test_what_was_cut_short_is_no_obstacle(root: Path) -> None:
    """A directory without a state is not a cluster; it can be removed, and its name is free."""
    (root / "half" / "n1").mkdir(parents=True)
    (root / "half" / "state.tmp").write_text('{"na')
    assert state.load_all() == []
    assert claim("half").name == "half"
    assert not (root / "half" / "n1").exists()

    (root / "other" / "n1").mkdir(parents=True)
    assert state.forget_remains("other")
    assert not state.forget_remains("other")
    assert not state.forget_remains("half")
    assert state.load("half")


def test_an_old_object_forgets_nothing_new() -> None:
    """Forgetting an earlier cluster does not remove a later one of the same name."""
    old = claim("one")
    state.forget(old)
    new = claim("one")
    state.forget(old)

    assert state.load("one") == new


@pytest.mark.parametrize("content", ["{", "[]", "null", json.dumps({"name": "one"}), json.dumps({"x": 1})])
def test_a_state_that_cannot_be_understood_is_named(root: Path, content: str) -> None:
    """A broken state file is an error with its path; it is not ignored."""
    (root / "one").mkdir(parents=True)
    (root / "one" / "state.json").write_text(content)
    with pytest.raises(ClusterError, match=r"one/state\.json is not the state of a local cluster"):
        state.load_all()


@pytest.mark.parametrize("nodes", [0, 10, -1])
def test_a_number_of_nodes_that_cannot_be(nodes: int) -> None:
    """No nodes, or more than nine, are refused before anything is written."""
    with pytest.raises(InputError, match="has 1 to 9 nodes"):
        claim("one", nodes)
    assert state.load_all() == []


def test_an_unknown_name_tells_the_known_ones() -> None:
    """The error for an unknown cluster has the existing ones."""
    claim("here")
    with pytest.raises(NoSuchCluster, match="there is no cluster 'there' on this machine; there are: here"):
        state.load("there")
