# SPDX-License-Identifier: Apache-2.0
"""What is sent if nothing is asked for, what is warned of before it is sent, and that the engine gets what a
result states."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.run import read_run
from tests.cli.running import TESTBED, Ended

Run = Callable[..., Ended]
Play = Callable[[str], Path]
SEARCH = ("--maximum-rate", "1Mfps", "--duration", "1s", "--final-duration", "1s", "--waits", "short")
TRIAL = ("--rate", "1kfps", "--duration", "1s", "--waits", "short")
CHECK = ("--watch", "0", "--maximum-rate", "1Mfps")
LOSS = ("--maximum-rate", "1Mfps", "--duration", "1s", "--waits", "short")
DELAY = ("--rate", "1kfps", "--duration", "1s", "--repetitions", "1", "--waits", "short")
BURSTS = (
    "--rate",
    "1Mfps",
    "--throughput",
    "640kfps",
    "--max-burst",
    "1ms",
    "--repetitions",
    "1",
    "--waits",
    "short",
)
VERBS: dict[str, tuple[str, ...]] = {
    "throughput": SEARCH,
    "loss": LOSS,
    "latency": (*DELAY, "--from", "0s"),
    "pdv": DELAY,
    "back-to-back": BURSTS,
    "burst": (
        "--burst",
        "16",
        "--rate",
        "1Mfps",
        "--duration",
        "1s",
        "--final-duration",
        "1s",
        "--waits",
        "short",
    ),
    "recovery": (
        "--throughput",
        "640kfps",
        "--duration",
        "1s",
        "--observe",
        "1s",
        "--repetitions",
        "1",
        "--waits",
        "short",
    ),
    "trial": TRIAL,
    "learn": (),
    "check": CHECK,
}
"""Every verb that sends to a DUT by an address plan, with options that are none of the plan."""
DEVICE = "simulated-640000--64"
"""It holds back what bursts need, so that each of them finds a number."""
EVERY_VERB = pytest.mark.parametrize("verb", VERBS)


def opened(folder: Path) -> dict[str, Any]:
    """The last `open` that the engine was asked for."""
    requests = [json.loads(line) for line in (folder / "engine-requests.jsonl").read_text().splitlines()]
    found: dict[str, Any] = [request for request in requests if request["request"] == "open"][-1]
    return found


@EVERY_VERB
@pytest.mark.parametrize(
    ("options", "plan", "hosts"),
    [((), "gateway_v4", 65534), (("--plan", "gateway-v6"), "gateway_v6", 65536)],
    ids=["none", "v6"],
)
def test_without_address_options_all_hosts_behind_gateways_are_sent_to(
    evenhand: Run,
    engine_playing: Play,
    testbed: Path,
    tmp_path: Path,
    verb: str,
    options: tuple[str, ...],
    plan: str,
    hosts: int,
) -> None:
    """SEED-05: the engine is asked for it, by each verb; drawn, and none of them fixed (SEED-40)."""
    engine_playing(DEVICE)
    ended = evenhand(verb, testbed, *VERBS[verb], *options)
    assert ended.code == 0, ended.err
    sent = opened(tmp_path)["plan"]
    assert sent["name"] == plan
    for side in ("left", "right"):
        assert "gateway" in sent[side]
        assert (sent[side]["hosts"]["host"]["count"], sent[side]["hosts"]["host"]["mode"]) == (
            hosts,
            "pseudorandom",
        )


def test_a_search_without_address_options_states_the_gateway_plan_with_all_hosts(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """SEED-05: text, document and run file."""
    engine_playing("simulated-640000")
    run = tmp_path / "a.evenhand"
    document = evenhand("throughput", testbed, *SEARCH, "--run", run, "--json").json
    assert document["plan"] == "gateway-v4"
    assert document["hosts"] == {"left": 65534, "right": 65534}
    assert read_run(run).searches[0].plan["name"] == "gateway_v4"
    assert "65,534 x 65,534 addresses" in evenhand("throughput", testbed, *SEARCH, "--no-run").out


@pytest.mark.parametrize(
    ("verb", "plan", "hosts", "is_warned"),
    [
        *((verb, "direct-v4-net16", "2049", True) for verb in VERBS),
        *((verb, "direct-v6", "2048", False) for verb in VERBS),
        ("trial", "direct-v4-net16", "1,2049", True),
        ("trial", "direct-v4-net16", "2048", False),
        ("trial", "direct-v6", "2049", True),
        ("trial", "gateway-v4", "65534", False),
        ("trial", "gateway-v6", "65536", False),
    ],
)
def test_every_verb_that_sends_warns_of_many_hosts_on_the_links(
    evenhand: Run, engine_playing: Play, testbed: Path, verb: str, plan: str, hosts: str, is_warned: bool
) -> None:
    """SEED-06, SEED-80: above 2,048 on a side; never behind gateways."""
    engine_playing(DEVICE)
    ended = evenhand(verb, testbed, *VERBS[verb], "--plan", plan, "--hosts", hosts)
    assert ended.code == 0, ended.err
    assert (ended.err.count("Warning: The DUT must resolve every host by ") == 1) == is_warned
    assert ("isolated test environments only" in ended.err) == is_warned


def test_the_warning_comes_before_a_testbed_without_confirmation_is_refused(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """SEED-06, SEED-80: so nothing was sent yet."""
    engine_playing("simulated-640000")
    testbed.write_text(TESTBED.replace("isolated_test_environment = true", ""))
    for verb in ("throughput", "trial", "learn"):
        ended = evenhand(verb, testbed, *VERBS[verb], "--plan", "direct-v6")
        assert ended.code == 2
        assert "Warning: The DUT must resolve every host by Neighbour Discovery" in ended.err
    assert not (tmp_path / "engine-was-started").exists()


@EVERY_VERB
@pytest.mark.parametrize("seed", [None, str(2**64 - 1)])
def test_the_engine_draws_from_the_seed_that_was_asked_for(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, verb: str, seed: str | None
) -> None:
    """R4814-01, SEED-44: else a result would state a seed from which its frames cannot be had again."""
    engine_playing("simulated-640000")
    evenhand(verb, testbed, *VERBS[verb], *(() if seed is None else ("--seed", seed)))
    assert opened(tmp_path)["seed"] == (1 if seed is None else int(seed))


@pytest.mark.parametrize(("verb", "options"), [("throughput", SEARCH), ("trial", TRIAL)])
def test_a_result_states_the_seed_that_the_engine_drew_from(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path, verb: str, options: tuple[str, ...]
) -> None:
    """R4814-01, SEED-44: text, document and run file."""
    engine_playing("simulated-640000")
    for seed in (None, "424242"):
        asked = () if seed is None else ("--seed", seed)
        run = tmp_path / f"{seed}.evenhand"
        document = evenhand(verb, testbed, *options, *asked, "--run", run, "--json").json
        drawn_from = opened(tmp_path)["seed"]
        assert document["seed"] == drawn_from
        assert read_run(run).searches[0].seed == drawn_from
        text = evenhand(verb, testbed, *options, *asked, "--run", tmp_path / f"{seed}-text.evenhand").out
        assert f"seed {drawn_from}" in text


def test_facts_of_the_dut_change_no_verdict(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """SEED-07: a search with them goes the same way, trial by trial, whatever they say."""
    engine_playing("simulated-640000")

    def trials() -> list[tuple[Any, ...]]:
        document = evenhand("throughput", testbed, *SEARCH, "--json", "--no-run").json
        found = (document["outcome"], document["throughput_fps_per_direction"])
        return [
            found,
            *(
                (t["purpose"], t["result"]["intended_fps"], t["result"]["verdict"])
                for t in document["trials"]
            ),
        ]

    plain = trials()
    assert plain[0][0] == "found"
    for facts in (
        'system = "OpenBSD 7.6"\ncores = "1"\nflow_hash = "sd/sd"\n',
        'system = "Linux"\ncores = "128"\nclock = "1 Hz"\npolicing = "drops everything above 1 fps"\n',
    ):
        testbed.write_text(f"{TESTBED}[dut.facts]\n{facts}")
        assert trials() == plain
