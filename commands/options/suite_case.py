"""The hidden option `--suite-case`, by which a suite passes a case and its expected verdict to the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from harness.errors import InputError

if TYPE_CHECKING:
    from click import Context, Parameter

    from harness.suites.expectation import SuiteCase

SUITE_CASE = "suite_case"


class SuiteCaseType(click.ParamType["SuiteCase | str"]):
    """A case as JSON, in the form that `test.json` has."""

    name = "json"

    def convert(self, value: SuiteCase | str, param: Parameter | None, ctx: Context | None) -> SuiteCase:
        """Reads a case."""
        from harness.console.members import read
        from harness.suites.expectation import SuiteCase

        if not isinstance(value, str):
            return value
        try:
            return read(json.loads(value), SuiteCase, "")
        except (ValueError, RecursionError) as error:
            self.fail(f"expected JSON: {error}", param, ctx)
        except InputError as error:
            self.fail(str(error), param, ctx)
