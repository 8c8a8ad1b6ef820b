# SPDX-License-Identifier: Apache-2.0
"""Help at 80 columns: no option is cut, no argument has two pairs of brackets, and options by other names
lead to ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.main import get_command

from evenhand.cli.main import app_of
from evenhand.cli.verbs import OTHER_NAMES
from evenhand.plan import TOPOLOGIES, plan_title
from tests.cli.running import Ended

Run = Callable[..., Ended]


def verbs(words: tuple[str, ...], command: Any) -> Iterator[tuple[str, Any]]:
    yield " ".join(words), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from verbs((*words, name), inner)


VERBS = dict(verbs((), get_command(app_of())))


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("verb", VERBS)
def test_no_option_is_cut_in_a_narrow_help(
    evenhand: Run, monkeypatch: pytest.MonkeyPatch, verb: str, columns: int
) -> None:
    """`--fixed-source-n…` cannot be typed."""
    monkeypatch.setenv("COLUMNS", str(columns))
    ended = evenhand(*verb.split(), "--help")
    assert ended.code == 0
    assert "…" not in ended.out
    assert "[[" not in ended.out
    assert max(map(len, ended.out.splitlines())) <= columns
    words = set(re.split(r"[\s,│]+", ended.out))
    titles = re.findall(r"╭─ (.+?) ─*╮", ended.out)
    for parameter in VERBS[verb].params:
        if not parameter.hidden:
            assert {
                name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")
            } <= words
            assert parameter.rich_help_panel in (None, *titles)


@pytest.mark.parametrize(
    ("line", "next_step"),
    [
        ("import siitperf.conf --testbed a.toml", "Did you mean --output?"),
        ("report a.evenhand --page a.html", "Did you mean --output?"),
        ("recovery lab.toml --rate 1kfps", "Did you mean --throughput?"),
        ("throughput lab.toml --rate 1kfps", "Did you mean --maximum-rate?"),
        (
            "back-to-back lab.toml --maximum-rate 1kfps",
            "Name a run with the throughput (--after RUN): this verb has no highest load of its own.",
        ),
        ("trial lab.toml --maximum-rate 1kfps", "Did you mean --rate?"),
        ("export a.evenhand --csv", "Did you mean --format csv?"),
        (
            "throughput lab.toml --csv a.csv",
            "To write a run to such a file: evenhand export FILE --format csv --output FILE",
        ),
        ("trial lab.toml --output a", "Did you mean --run?"),
        ("show a.evenhand --output a", "Results go to stdout: add `> FILE` at the end of the command."),
        ("trial --testbed lab.toml", "Write TESTBED without an option, after the name of the command."),
        ("report --run a.evenhand", "Write FILE without an option, after the name of the command."),
        ("predict gateway-v4 --testbed lab.toml", "Did you mean --dut?"),
        ("predict gateway-v4 --queues 4", "Did you mean --elements?"),
        ("trial lab.toml --ipv6", "Name an IPv6 plan: --plan gateway-v6."),
        ("plan show --ipv4", "Name an IPv4 plan, such as gateway-v4."),
        ("trial lab.toml --seeds 3", "Did you mean --seed?"),
        ("plan prove gateway-v6 --count 1M", "Did you mean --frames?"),
        (
            "learn lab.toml --waits short",
            "There are no trials here, so there is only one wait: --wait TIME, after each round.",
        ),
        ("learn lab.toml --no-run", "Learning is not a measurement and is not stored."),
        ("trial lab.toml --xyzzy", "`evenhand trial --help` lists the possible values."),
        ("lab up", "Use linux or vm. Example: sudo evenhand lab up linux --plan gateway-v6"),
        ("predict", "One of: gateway-v4, gateway-v6,"),
    ],
)
def test_an_option_by_another_name_leads_to_ours(evenhand: Run, line: str, next_step: str) -> None:
    """`--rate` and `--after` share their dashes and two letters, which is no likeness."""
    ended = evenhand(*line.split(), "--json")
    assert ended.code == 2
    assert ended.json["error"]["next"].startswith(next_step)


def test_whatever_another_name_leads_to_is_there() -> None:
    """An option that was renamed must not live on in advice."""
    known = {
        name
        for command in VERBS.values()
        for parameter in command.params
        for name in parameter.opts
        if name.startswith("-")
    }
    arguments = {parameter.metavar for command in VERBS.values() for parameter in command.params}
    for name, instead in OTHER_NAMES.items():
        verb, _, option = name.rpartition(" ")
        assert verb in VERBS
        assert option.startswith("-")
        assert {needed for needed, _ in instead} <= {"", *known, *arguments}
        if verb:
            assert all(
                needed in {"", *(o for each in VERBS[verb].params for o in each.opts)}
                for needed, _ in instead
            )


def test_plan_show_without_a_name_lists_the_plans(evenhand: Run) -> None:
    """SEED-05: what `--plan` sends people to."""
    shown = evenhand("plan", "show")
    assert shown.code == 0
    assert [line.split()[0] for line in shown.out.splitlines()[2:-1]] == [
        plan_title(name) for name in TOPOLOGIES
    ]
    listed = {plan["plan"]: plan for plan in evenhand("plan", "show", "--json").json["plans"]}
    assert listed["gateway-v4"]["hosts"] == 65534
    assert (listed["nets-v6-gateway"]["ip_version"], listed["nets-v6-gateway"]["networks"]) == (6, 256)
    refused = evenhand("plan", "show", "--hosts", "4")
    assert refused.code == 2
    assert refused.error.code == "cli.no-plan"
