"""Ids for nodes of any name, in lists where an id ends at a hyphen."""

from __future__ import annotations

import random

import pytest

from clusters.systems.dledger.members import NAME, Members
from harness.errors import InputError
from harness.node import Node


def members(*names: str) -> Members:
    """Returns the members that nodes of these names make."""
    return Members([Node(name=name, address="db-1.example.com") for name in names], port=7, system="S")


def test_a_name_that_is_an_id_stays_as_it_is() -> None:
    """A name with dots and underscores is its own id; a host can have hyphens, since it comes after the first one."""
    assert members("n1", "a.b_c").text == "n1-db-1.example.com:7;a.b_c-db-1.example.com:7"


def test_a_name_with_a_hyphen_gets_an_id_of_its_own() -> None:
    """Other nodes keep their names, in any order; an id of no node is returned unchanged."""
    group = members("db-1", "db_1", "db\u00e9-1", "db--1")
    assert [group.id_of(name) for name in ("db-1", "db_1", "db\u00e9-1", "db--1")] == [
        "db_1_2",
        "db_1",
        "db__1",
        "db__1_2",
    ]
    assert (group.name_of("db_1_2"), group.name_of("db_1"), group.name_of("who")) == ("db-1", "db_1", "who")


@pytest.mark.parametrize("seed", range(30))
def test_each_node_has_one_id_and_each_id_one_node(seed: int) -> None:
    """Names over a small alphabet, so that many would get the same id."""
    draws = random.Random(seed)
    names = list({"".join(draws.choices("a-_.1", k=draws.randint(1, 3))) for _ in range(20)})
    group = members(*names)
    ids = [group.id_of(name) for name in names]
    assert len(set(ids)) == len(names)
    assert all(NAME.fullmatch(own_id) for own_id in ids)
    assert [group.name_of(own_id) for own_id in ids] == names
    assert [member.split("-")[0] for member in group.text.split(";")] == ids


def test_an_address_with_a_colon_is_refused() -> None:
    """The error says what to do."""
    with pytest.raises(InputError, match=r"S cannot use the node n1 at 'fd00::1'.*give the node an IPv4 address"):
        Members([Node(name="n1", address="fd00::1")], port=7, system="S")
