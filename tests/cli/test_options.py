# SPDX-License-Identifier: Apache-2.0
"""Groups of options: Typer sees their fields, the verb gets them filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from evenhand.cli.options import with_options


@dataclass(frozen=True, kw_only=True)
class Loads:
    rate: Annotated[str, typer.Option("--rate")]
    step: Annotated[int, typer.Option("--step")] = 10


@dataclass(frozen=True, kw_only=True)
class OtherLoads:
    rate: Annotated[str, typer.Option("--other-rate")] = ""


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer()

    @app.command()
    @with_options
    def verb(
        name: Annotated[str, typer.Argument()],
        *,
        loads: Loads,
        is_loud: Annotated[bool, typer.Option("--loud")] = False,
    ) -> None:
        print(name, loads, is_loud)

    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


def test_the_fields_of_a_group_are_options() -> None:
    assert run("a", "--rate", "5", "--loud") == (0, "a Loads(rate='5', step=10) True\n")
    assert run("a", "--step", "3", "--rate", "5") == (0, "a Loads(rate='5', step=3) False\n")


def test_a_field_without_a_default_is_required() -> None:
    code, output = run("a")
    assert code == 2
    assert "--rate" in output


def test_one_name_in_two_groups_is_refused() -> None:
    """Each would take the other's value."""

    def verb(loads: Loads, others: OtherLoads) -> None: ...

    with pytest.raises(TypeError, match="rate"):
        with_options(verb)
