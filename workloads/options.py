"""What can be chosen about what clients do, as options of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import workloads
from harness.parameters import Number, Whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.workload import Workload

OPTIONS = (
    click.option(
        "--workload",
        "workload_name",
        type=click.Choice(list(workloads.FACTORIES)),
        default="register",
        show_default=True,
        help="What clients do.",
    ),
    click.option(
        "--values",
        type=click.Choice(["unique", "small"]),
        default="unique",
        show_default=True,
        help="Whether no value is written twice, which makes checking fast, or all are from 0 to 4, as in Jepsen.",
    ),
    click.option(
        "--mix",
        default="2:1:1",
        show_default=True,
        help="Reads, writes and compare-and-sets, in parts of each other.",
    ),
    click.option(
        "--hot-keys",
        type=Whole(0, 1000),
        default=2,
        show_default=True,
        help="Keys that are used all the time.",
    ),
    click.option(
        "--hot-share",
        type=Number(0, 1),
        default=0.5,
        show_default=True,
        help="The share of operations that are on hot keys.",
    ),
    click.option(
        "--ops-per-key",
        type=Whole(1, 1_000_000_000),
        default=100,
        show_default=True,
        help="The most operations on each of the other keys, which come one after the other.",
    ),
)


def make_workload(options: Mapping[str, Any]) -> Workload:
    """Makes the workload that the options name.

    Raises:
        InputError: It cannot be what the options say.
    """
    return workloads.make(options["workload_name"], options)
