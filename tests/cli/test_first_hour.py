# SPDX-License-Identifier: Apache-2.0
"""What new users tried in their first hour, and what it says: nothing is ignored, and each error tells what
to do."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from evenhand.base.errors import HostError
from evenhand.cli.usage import as_typed
from evenhand.lab import linux
from evenhand.plan import SideCounts, make_plan
from evenhand.procedure import Profile, choose_frame_size
from evenhand.procedure.single_trial import SingleTrial
from evenhand.rig import default_plan_of
from evenhand.run import read_run
from evenhand.spec.plan import read_directions
from evenhand.trial import Deviation
from evenhand.trial.engine_session import place_in_testbed
from evenhand.trial.simulated import SimulatedMeasurer
from tests.cli.running import Ended
from tests.errors import raises

Run = Callable[..., Ended]
Play = Callable[[str], Path]
CONTRACT = Path(__file__).resolve().parents[2] / "contract"
NOBODY = 65534
TABLE = "RX flow hash indirection table for eth0 with 2 RX ring(s):\n    0:      0     1     0     1\n"
KEY = "RSS hash key:\n" + ":".join(["6d"] * 40) + "\n"
FUNCTION = "RSS hash function:\n    toeplitz: on\n    xor: off\n"


def predict_from(evenhand: Run, folder: Path, text: str, *options: str) -> Ended:
    (folder / "nic.txt").write_text(text)
    return evenhand("predict", "gateway-v4", "--table", folder / "nic.txt", "--json", *options)


def test_symmetric_xor_of_ethtool_is_taken_over(evenhand: Run, tmp_path: Path) -> None:
    """RSS-05: what calls itself exact must not leave out what the file says."""
    for state, symmetric in (("on", True), ("off", False)):
        text = f"{TABLE}{KEY}{FUNCTION}RSS input transformation:\n    symmetric-xor: {state}\n"
        assert predict_from(evenhand, tmp_path, text).json["device"]["symmetric"] is symmetric


@pytest.mark.parametrize(
    ("text", "code", "named", "next_step"),
    [
        (
            TABLE + KEY + "RSS hash function:\n    toeplitz: off\n    xor: on\n",
            "predict.hash-not-toeplitz",
            "xor",
            "hfunc toeplitz",
        ),
        (
            TABLE + KEY + FUNCTION + "RSS input transformation:\n    symmetric-or-xor: on\n",
            "predict.hash-input-transformed",
            "symmetric-or-xor",
            "xfrm none",
        ),
        (
            TABLE + "RSS hash key:\nOperation not supported\n" + FUNCTION,
            "spec.hash-key-unknown",
            "Operation not supported",
            "--key",
        ),
        (TABLE, "spec.hash-key-unknown", "the output has none", "--key common"),
    ],
)
def test_a_hash_that_is_not_predicted_is_refused(
    evenhand: Run, tmp_path: Path, text: str, code: str, named: str, next_step: str
) -> None:
    """RSS-03, RSS-04: the default key in place of one that is not known would be a number about another
    device."""
    ended = predict_from(evenhand, tmp_path, text)
    assert ended.code == 2
    assert ended.json["error"]["id"] == code
    assert named in ended.json["error"]["what"]
    assert next_step in ended.json["error"]["next"]
    if "--key" in next_step:
        assert predict_from(evenhand, tmp_path, text, "--key", "common").code == 0


def test_the_document_of_a_trial_has_all_deviations_at_the_top() -> None:
    """R2544-23: a script that finds none there concludes full conformance."""
    deviation = Deviation(requirement="R2544-20", text="sent for 1 s instead of 60 s")
    result = replace(SimulatedMeasurer(limit_fps=1e6).measure(1.0, 1e3), deviations=(deviation,))
    profile = Profile(plan=make_plan("gateway_v4"), frame_size=64, seed=1, directions=("forward",))
    assert SingleTrial(profile=profile, trial=result).to_document()["deviations"] == [deviation.to_document()]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("plan frames gateway-v4 --format pcap --json", "cli.options-exclude-each-other"),
        ("plan frames gateway-v4 --output f.csv --json", "cli.options-exclude-each-other"),
        ("plan frames gateway-v4 --output f.txt", "cli.format-needs-a-terminal"),
        ("demo --dut linux --plan gateway-v6", "cli.option-not-here"),
        ("router gateway-v4 --hash type2 --print-config", "spec.elements-needed"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    evenhand: Run, engine_playing: Play, line: str, code: str, tmp_path: Path
) -> None:
    engine_playing("simulated-640000")
    ended = evenhand(*line.split())
    assert ended.code == 2
    assert ended.error.code == code
    assert not list(tmp_path.glob("f.*"))


def test_a_testbed_that_names_its_plan_is_tested_with_it(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """Refused for the default plan: nobody had asked for that."""
    engine_playing("simulated-640000")
    testbed.write_text(testbed.read_text() + '[dut]\nplan = "gateway-v6"\n')
    line = ("trial", testbed, "--rate", "1kfps", "--duration", "1s", "--no-run", "--json")
    assert evenhand(*line).json["plan"] == "gateway-v6"
    assert default_plan_of("none.toml") == "gateway-v4"


def test_a_testbed_that_names_its_addresses_is_tested_with_them(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """What a reference router was started with: more would be sent to nobody."""
    engine_playing("simulated-640000")
    testbed.write_text(
        testbed.read_text() + '[dut]\nplan = "nets-v4-gateway"\nhosts = [9, 4]\nnetworks = 3\n'
    )
    line = ("trial", testbed, "--rate", "1kfps", "--duration", "1s", "--no-run", "--json")
    own = evenhand(*line).json
    assert (own["hosts"], own["networks"]) == ({"left": 9, "right": 4}, {"left": 3, "right": 3})
    given = evenhand(*line, "--plan", "nets_v4_gateway", "--hosts", "20").json
    assert (given["hosts"], given["networks"]) == ({"left": 20, "right": 20}, {"left": 3, "right": 3})
    learnt = evenhand("learn", testbed, "--json").json
    assert (learnt["hosts"], learnt["networks"]) == (own["hosts"], own["networks"])
    refused = evenhand(*line, "--networks", "3,4")
    assert refused.code == 2
    assert refused.json["error"]["where"] == f"{testbed}: dut.networks"
    assert refused.json["error"]["id"] == "rig.too-few-networks-on-dut"
    assert "3 networks on the right side, not for 4" in refused.json["error"]["what"]


@pytest.mark.parametrize(
    ("keys", "code", "named"),
    [
        ("hosts = 9", "rig.hosts-without-plan", ""),
        ('plan = "gateway-v4"\nhosts = 70000', "plan.count-out-of-range", "70000"),
        ('plan = "gateway-v4"\nnetworks = 2', "plan.one-network-only", "2"),
        ('plan = "gateway-v4"\nhosts = [1, 2, 3]', "base.too-long", "3"),
        ('plan = "gateway-v4"\nhosts = 0', "base.out-of-range", "0"),
        ('plan = "gateway-v4"\nhosts = "9"', "base.not-a-list", "9"),
    ],
)
def test_addresses_that_a_testbeds_plan_has_not_are_refused(
    evenhand: Run, engine_playing: Play, testbed: Path, keys: str, code: str, named: str
) -> None:
    engine_playing("simulated-640000")
    testbed.write_text(f"{testbed.read_text()}[dut]\n{keys}\n")
    ended = evenhand("trial", testbed, "--rate", "1kfps", "--duration", "1s", "--no-run", "--json")
    assert ended.code == 2
    error = ended.json["error"]
    assert error["id"] == code
    assert named in error["what"]
    assert error["where"].startswith(f"{testbed}: dut")
    assert error["next"]


@pytest.mark.root
def test_labs_are_shown_without_a_name(evenhand: Run) -> None:
    assert [lab["lab"] for lab in evenhand("lab", "status", "--json").json["labs"]] == ["linux", "vm"]
    assert evenhand("lab", "status").code == 0


def test_a_lab_is_entered_by_root_only() -> None:
    """`nsenter: Operation not permitted ... Please report this` is no advice."""
    lab = linux.LinuxLab(
        name="none",
        plan="gateway_v6",
        ip_version=6,
        hosts=SideCounts(1, 1),
        networks=SideCounts(1, 1),
        dut_cpu=0,
        tester_cpus=(1,),
    )
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        with raises("rig.root-needed"):
            lab.engine_command(Path("engine"))
    finally:
        if is_root:
            os.seteuid(0)


@pytest.mark.parametrize(
    ("line", "where", "next_step"),
    [
        ("plan frames gateway-v4 --frame-size 9300", "--frame-size", "Use 9216 or less."),
        ("plan frames gateway-v6 --frame-size 70", "--frame-size", "Use 84 or more."),
        ("router gateway-v4 --elements 4 --rate 50kfps --table-size 3", "--table-size", "power of two"),
        ("predict gateway-v4 --table-size 0", "--table-size", "power of two"),
        ("predict gateway-v4 --key 6d5a", "--key", "whole key"),
        ("predict gateway-v4 --elements 0", "--elements", "from 1 to 4096"),
        ("predict gateway-v4 --table 0,1,2", "--table 0,1,2", "whole table"),
        ("plan show gateway-v4 --hosts 0", "--hosts", "Use 1 to 65534."),
        ("plan show gateway-v6 --networks=0", "--networks", "Use 1."),
        ("plan show gateway-v4 --network-mode fixed", "--network-mode", "Omit it"),
        ("throughput {testbed} --maximum-rate 1Mfps --precision 0", "--precision", "Use 0.5%."),
        (
            "throughput {testbed} --maximum-rate 1Mfps --duration 9s --final-duration 1s",
            "--final-duration",
            "at least as long",
        ),
        ("lab up vpp", "NAME", "Use linux or vm."),
    ],
)
def test_advice_names_what_there_is(
    evenhand: Run, line: str, where: str, next_step: str, engine_playing: Play, testbed: Path
) -> None:
    """What the library calls `final duration` is the option that was typed."""
    engine_playing("simulated-640000")
    ended = evenhand(*line.format(testbed=testbed).split(), "--json")
    assert ended.code == 2
    error = ended.json["error"]
    assert error["where"] == where
    assert next_step in error["next"]


def test_what_stands_between_colons_is_no_emoji(evenhand: Run, tmp_path: Path) -> None:
    """Rich reads `:x:` as a cross and `:b:` as a button, which an IPv6 address and a line of a file may
    have."""
    (tmp_path / "passwd").write_text("root:x:0:b:root")
    assert "'root:x:0:b:root'" in evenhand("predict", "gateway-v4", "--table", tmp_path / "passwd").err


def test_a_place_in_a_request_to_the_engine_is_the_option_that_was_typed() -> None:
    for where, typed in (
        ("limits.overdue_after_us", "--overdue-after"),
        ("rate_fps", "--rate"),
        ("duration_s", "--duration=1e9s"),
    ):
        assert (
            as_typed(
                HostError("no", code="engine.no-device", where=where), ["trial", "lab.toml", typed, "1"]
            ).where
            == typed.partition("=")[0]
        )
    assert as_typed(HostError("no", code="engine.no-device", where="rate_fps"), ["demo"]).where == "rate_fps"


@pytest.mark.parametrize(
    ("engine_says", "place"),
    [
        ("workers", "tester.cpus"),
        ("ports", "left.device, right.device"),
        ("ports.left.device", "left.device"),
        ("ports.right", "right"),
        ("host.memory_mb", "tester.memory"),
        ("learning", "learning"),
    ],
)
def test_a_fault_of_the_engine_names_the_key_of_the_testbed_file(engine_says: str, place: str) -> None:
    """Nobody who wrote `cpus` knows what a worker is."""
    assert place_in_testbed(engine_says) == place


def test_the_smallest_frame_is_the_default_without_a_word_about_64() -> None:
    """R5180-10: nobody had asked for 64."""
    assert choose_frame_size(make_plan("gateway_v6"), None) == (84, None)
    size, note = choose_frame_size(make_plan("gateway_v6"), 64)
    assert size == 84
    assert note is not None


@pytest.mark.parametrize(
    "line",
    [
        "predict gateway-v4 --hash type3",
        "plan frames gateway-v4 --count 0",
        "plan frames gateway-v4 --count x",
        "tiral",
        "trial",
        "trial a.toml",
        "trial --seeds 3",
        "plan show --hosts",
        "plan show gateway-v4 extra",
        "lab up vpp",
        "plan show none",
        "trial none.toml --rate 1kfps",
    ],
)
def test_every_refusal_has_three_lines_and_a_document(evenhand: Run, line: str) -> None:
    """Boxes had no Where and no Next, and a script got nothing."""
    ended = evenhand(*line.split())
    titles = [text.split(":")[0] for text in ended.err.splitlines()]
    assert titles == ["Error", "Where", "Next"]
    assert ended.out == ""
    ended = evenhand(*line.split(), "--json")
    jsonschema.Draft202012Validator(json.loads((CONTRACT / "error.schema.json").read_text())).validate(
        ended.json
    )
    assert ended.json["error"]["code"] == ended.code == 2
    assert "input should" not in ended.err.lower()


def test_a_trial_is_stored_like_all_others(
    evenhand: Run, engine_playing: Play, testbed: Path, tmp_path: Path
) -> None:
    """`--run` and `--no-run` mean the same everywhere."""
    engine_playing("simulated-640000")
    line = ("trial", testbed, "--rate", "1kfps", "--duration", "1s", "--waits", "short")
    stored = evenhand(*line, "--json").json["run"]
    assert read_run(tmp_path / stored).searches
    assert evenhand(*line, "--no-run", "--json").json["run"] is None
    assert len(list(tmp_path.glob("*.evenhand"))) == 1


@pytest.mark.parametrize(
    ("testbed", "code", "named", "next_step"),
    [
        ("lab:foo", "rig.not-a-lab", "'foo'", "lab:linux, lab:vm"),
        ("lab:linus", "rig.not-a-lab", "'linus'", "Did you mean lab:linux?"),
        ("reference", "rig.reference-not-here", "", "`evenhand router gateway-v4 --testbed router.toml`"),
    ],
)
def test_testbeds_that_there_are_not_are_told_from_those_that_there_are(
    evenhand: Run, testbed: str, code: str, named: str, next_step: str
) -> None:
    ended = evenhand("trial", testbed, "--rate", "1kfps", "--json")
    assert ended.code == 2
    assert ended.json["error"]["id"] == code
    assert named in ended.json["error"]["what"]
    assert ended.json["error"]["where"] == testbed
    assert next_step in ended.json["error"]["next"]


def test_directions_have_one_name_in_all_verbs() -> None:
    assert read_directions("both") == ("forward", "reverse")
    assert read_directions("reverse") == ("reverse",)


def test_a_limit_on_file_sizes_is_told_and_is_no_bug(evenhand: Run, tmp_path: Path) -> None:
    """SIGXFSZ ends the engine, whose memory is a file."""
    (tmp_path / "shell").write_text("#!/bin/sh\nkill -XFSZ $$\n")
    (tmp_path / "shell").chmod(0o755)
    ended = evenhand("plan", "frames", "gateway-v4", "--engine", tmp_path / "shell")
    assert (ended.code, ended.error.code) == (3, "trial.file-size-limit")
    assert "ulimit -f unlimited" in ended.error.next_step
