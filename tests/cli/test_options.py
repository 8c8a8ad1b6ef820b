# SPDX-License-Identifier: Apache-2.0
"""Groups of options: Typer sees their fields, the verb gets them filled in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from evenhand.base.option import Option, options_of
from evenhand.cli.common import with_options
from evenhand.cli.main import app_of
from evenhand.plan import gateway_v4
from evenhand.spec.common_options import REPETITIONS, SEED
from evenhand.spec.file import Suite, make_campaign
from evenhand.spec.frames import FRAME_SIZES, read_frame_size, read_frames
from evenhand.spec.plan import CountOptions
from evenhand.trial import LARGEST_SEED
from tests.errors import raises

OF_EACH_VERB = {
    # What is measured, and until when, is the procedure's own: the same name, the same form.
    *("--connections", "--duration", "--final-duration", "--from", "--loss-verification", "--maximum-rate"),
    *("--minimum-rate", "--precision", "--rate", "--repetitions", "--step", "--throughput"),
    # One size, a mix or several, as the procedure takes them.
    "--frame-size",
    # A file that is read or written, which is another one in each verb.
    *("--after", "--format", "--html", "--output", "--run", "--table", "--testbed"),
    # What `check` measures alone, other verbs measure in front of what they measure.
    "--own-loop",
    # JSON documents of a verb that goes on, line by line.
    "--json",
    # What is shown, deleted or done in spite of something.
    *("--anyway", "--dry-run", "--force"),
    # The point that is shown, or the one that is searched over builds; rows, or measurements.
    *("--most", "--point"),
    # A name that is stored, or that a server answers to; what the token is for.
    *("--host-name", "--token-file"),
    # The default plan, or number of elements, that the verb has.
    *("--elements", "--plan"),
    # A device that is computed, or the DUT's NICs; ports, or interfaces.
    *("--dut", "--hash", "--key", "--left", "--right"),
    # A lab that is set up now, or the lab of a campaign, which can find out how many it takes.
    "--rules",
    # What a gate does: it ends the command, or makes test cases.
    *("--against", "--fail-below"),
    # Where a worker is reached, or a server listens.
    "--host",
}
"""Options that do not mean the same in all verbs that have them."""


@dataclass(frozen=True, kw_only=True)
class Loads:
    rate: Annotated[str, typer.Option("--rate")]
    step: Annotated[int, typer.Option("--step")] = 10


@dataclass(frozen=True, kw_only=True)
class OtherLoads:
    rate: Annotated[str, typer.Option("--other-rate")] = ""


@dataclass(frozen=True, kw_only=True)
class Numbers:
    number: Annotated[int, Option(least=2, most=3, help="A number.")] = 2


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


def test_an_option_that_means_the_same_everywhere_is_declared_once() -> None:
    """Two declarations differ sooner or later, and one of the help texts is then wrong."""
    texts: dict[str, set[str]] = {}
    commands = [app_of().built]
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        for option in (each for each in command.params if each.param_type_name == "option"):
            texts.setdefault(option.opts[0], set()).add(option.help)
    assert {name for name, found in texts.items() if len(found) > 1} == OF_EACH_VERB


def test_a_suite_has_the_options_of_the_shell_and_few_keys_of_its_own() -> None:
    """What verbs have too is made from the verbs' options."""
    options = {each.key for each in (*options_of(CountOptions), FRAME_SIZES, REPETITIONS)} | {"plan"}
    assert options == {"hosts", "networks", "frame-sizes", "repetitions", "plan"}
    own = {
        "name",
        "procedure",
        "hash-types",
        "rounds",
        "inner-repetitions",
        "one-pair-first",
        "hooks",
        "routes",
    }
    assert {field.alias or name for name, field in Suite.model_fields.items()} == options | own


def test_bounds_of_an_option_hold_in_the_shell_and_in_a_file() -> None:
    app = typer.Typer()

    @app.command()
    @with_options
    def verb(*, numbers: Numbers) -> None:
        print(numbers.number)

    assert [CliRunner().invoke(app, ["--number", str(n)]).exit_code for n in (1, 2, 3, 4)] == [2, 0, 0, 2]
    document = {"name": "x", "suite": [{"name": "s"}]}
    for seed in (0, LARGEST_SEED):
        assert make_campaign({**document, "seed": seed}, where="x").seed == seed
    for seed in (-1, LARGEST_SEED + 1):
        with raises("base.out-of-range"):
            make_campaign({**document, "seed": seed}, where="x")
    assert make_campaign(document, where="x").seed == SEED.default


@pytest.mark.parametrize("read", [read_frame_size, read_frames])
@pytest.mark.parametrize("text", ["64,1518", "64, 128B", "64 1518", "all"])
def test_several_frame_sizes_where_one_is_taken_lead_to_the_verbs_that_take_several(
    read: Any, text: str
) -> None:
    """64,1518 is no 64.1518 with a comma."""
    with raises("spec.several-sizes", match=text) as error:
        read(gateway_v4(), text)
    assert "throughput" in error.value.next_step
    assert "64.1518" not in error.value.next_step
