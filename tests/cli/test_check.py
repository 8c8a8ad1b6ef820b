# SPDX-License-Identifier: Apache-2.0
"""`evenhand check`: what it tells, what it refuses, and that its document has the documented shape."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.base.errors import HostError
from evenhand.host import Part
from evenhand.rig import lab_rig
from evenhand.trial import find_engine
from tests.cli.running import TESTBED, Ended
from tests.wire.wire_session import few_probes, versions_of

__all__ = ["few_probes"]  # the fixture
Run = Callable[..., Ended]
Play = Callable[[str], Path]
SCHEMA = Path(__file__).resolve().parents[2] / "contract" / "check.schema.json"
QUICK = ("--watch", "0.1s", "--duration", "0.1s")


def fits(document: Any) -> Any:
    """The document, if its shape is the documented one."""
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
    return document


def finding(document: Any, name: str) -> Any:
    return next(one for one in document["host"]["findings"] if one["name"] == name)


def test_a_check_of_the_host_alone_ends_well_whatever_it_finds(evenhand: Run, engine_playing: Play) -> None:
    engine_playing("fair")
    ended = evenhand("check", *QUICK)
    assert ended.code == 0, ended.err
    for words in (
        "This machine",
        "DPDK 22.11.11",
        "away 3 times, longest 1.52 ms",
        "What can run here",
        "reference router",
    ):
        assert words in ended.out
    assert "Ports" not in ended.out


def test_the_document_has_the_documented_shape(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """The schema of contract/ is for programs that read it."""
    engine_playing("simulated-640000-900000")
    alone = fits(evenhand("check", *QUICK, "--json").json)
    assert alone["testbed"] is None
    assert alone["ceilings"] == []
    assert finding(alone, "clock")["facts"]["ticks"]["error_ppm_raw"] == 0.25
    assert finding(alone, "absences")["facts"]["seconds"] == 0.1
    assert [part["part"] for part in alone["host"]["parts"]] == list(Part)
    whole = fits(evenhand("check", testbed, "--own-loop", *QUICK, "--json").json)
    assert whole["testbed"]["is_dut_resolved"]
    assert whole["testbed"]["ports"]["left"]["receive_queues"] == 1
    assert [ceiling["way"] for ceiling in whole["ceilings"]] == ["dut", "own_loop"]


@pytest.mark.parametrize(("plan", "size"), [("gateway-v4", 64), ("gateway-v6", 84)])
def test_the_ceiling_is_that_of_the_tester_not_of_the_dut(
    evenhand: Run, engine_playing: Play, testbed: Path, plan: str, size: int
) -> None:
    """MLR-14: through a DUT that forwards 640 kfps, a tester of 2.3 Mfps keeps 2.3 Mfps; own_loop, what is
    lost is its own fault."""
    engine_playing("simulated-640000-2300000")
    through, own_loop = fits(evenhand("check", testbed, "--own-loop", "--plan", plan, *QUICK, "--json").json)[
        "ceilings"
    ]
    assert 2.3e6 * 0.95 <= through["ceiling_fps_per_direction"] <= 2.3e6
    assert through["above"]["offered_fps_per_direction"] == pytest.approx(2.3e6, rel=1e-3)
    assert through["above"]["reasons"][0]["code"] == "offered_load"
    assert not through["is_loss_ours"]
    assert 640_000 * 0.95 <= own_loop["ceiling_fps_per_direction"] <= 640_000
    assert own_loop["is_loss_ours"]
    for ceiling in (through, own_loop):
        assert (ceiling["plan"], ceiling["frame_size"]) == (plan, size)
        assert ceiling["directions"] == ["forward", "reverse"]


def test_options_shape_the_ceiling(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    engine_playing("simulated-1-700000")
    line = (
        "--maximum-rate",
        "500kfps",
        "--hosts",
        "10",
        "--frame-size",
        "128",
        "--direction",
        "forward",
        "--precision",
        "1%",
    )
    testbed.write_text(f'{TESTBED}[limits]\nlongest_overdue = "1s"\n')
    (ceiling,) = fits(evenhand("check", testbed, *line, "--overdue-after", "5ms", *QUICK, "--json").json)[
        "ceilings"
    ]
    assert (ceiling["limits"]["overdue_after_us"], ceiling["limits"]["longest_overdue_us"]) == (5000, 1e6)
    assert ceiling["is_at_maximum"]
    assert ceiling["ceiling_fps_per_direction"] == 500_000
    assert ceiling["hosts"] == {"left": 10, "right": 10}
    assert (ceiling["frame_size"], ceiling["directions"]) == (128, ["forward"])


def test_the_line_rate_bounds_the_ceiling(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    """R2544-16: the engine here tells 10 Gbit/s."""
    engine_playing("fair")
    ended = evenhand("check", testbed, "--maximum-rate", "14880953fps", *QUICK)
    assert ended.code == 2
    assert ended.error.code == "rig.above-line-rate"
    assert "14,880,952 fps" in ended.error.what


def test_a_dut_that_does_not_answer_is_a_finding(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    engine_playing("no-dut")
    ended = evenhand("check", testbed, *QUICK)
    assert ended.code == 0, ended.err
    assert "The DUT has not been resolved: left: 10.0.0.1 did not answer ARP" in ended.out
    assert "No trial was made" in ended.err
    document = fits(evenhand("check", testbed, *QUICK, "--json").json)
    assert not document["testbed"]["is_dut_resolved"]
    assert document["ceilings"] == []


def test_ports_only_makes_no_trial(evenhand: Run, engine_playing: Play, testbed: Path) -> None:
    engine_playing("fair")
    document = fits(evenhand("check", testbed, "--ports-only", *QUICK, "--json").json)
    assert document["testbed"]["ports"]["right"]["driver"] == "net_ice"
    assert document["ceilings"] == []


def test_a_host_without_an_engine_is_told_to_build_it(
    evenhand: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EVENHAND_ENGINE", str(tmp_path / "nothing"))
    ended = evenhand("check")
    assert ended.code == 0
    assert "make build" in ended.out
    document = fits(evenhand("check", "--json").json)
    assert not any(part["can_run"] for part in document["host"]["parts"])
    assert evenhand("check", "--own-loop").code == 3


@pytest.mark.parametrize("part", ["no-watch", "crash", "contract-2"])
def test_an_engine_that_cannot_look_is_a_finding_or_a_bug(
    evenhand: Run, engine_playing: Play, part: str
) -> None:
    engine_playing(part)
    ended = evenhand("check", *QUICK)
    assert ended.code == (4 if part == "crash" else 0)
    if part == "no-watch":
        assert '"watch" is none of' in ended.out


def test_nothing_is_opened_without_a_testbed(evenhand: Run, engine_playing: Play, tmp_path: Path) -> None:
    """SEED-80: what the engine is asked without TESTBED opens no port."""
    engine_playing("fair")
    said = tmp_path / "said"
    engine = tmp_path / "engine"
    engine.write_text(engine.read_text().replace("exec ", f'tee "{said}" | exec '))
    assert evenhand("check", *QUICK).code == 0
    assert [json.loads(line)["request"] for line in said.read_text().splitlines()] == ["about", "watch"]


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        (("--ports-only",), "cli.no-testbed", "--ports-only"),
        (("--require", "dut"), "cli.no-testbed", "--require dut"),
        (("--require", "luck"), "base.not-one-of", "--require"),
        (("--watch", "2h"), "cli.out-of-range", "--watch"),
        (("--watch", "soon"), "base.not-a-quantity", "--watch"),
        (("--own-loop", "--duration", "0"), "cli.out-of-range", "--duration"),
        (("--own-loop", "--precision", "0"), "cli.out-of-range", "--precision"),
        (
            ("--own-loop", "--maximum-rate", "1kfps", "--minimum-rate", "2kfps"),
            "cli.minimum-above-maximum",
            "--minimum-rate",
        ),
        (("--frame-size", "63"), "procedure.frame-size-out-of-range", "--frame-size"),
        (("--plan", "gateway-v5"), "plan.unknown-name", "--plan"),
    ],
)
def test_bad_options_start_no_engine(
    evenhand: Run, engine_playing: Play, tmp_path: Path, options: tuple[str, ...], code: str, where: str
) -> None:
    engine_playing("fair")
    ended = evenhand("check", *options)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert not (tmp_path / "engine-was-started").exists()


@pytest.mark.parametrize(
    ("old", "new", "exit_code", "code"),
    [
        ("isolated_test_environment = true", "", 2, "rig.isolation-not-confirmed"),
        ("net_ring0", "net_af_packet0,iface=nothing0", 3, "rig.port-missing"),
        ("net_ring0", "0000:ff:1f.7", 3, "rig.port-missing"),
    ],
)
def test_a_bad_testbed_opens_no_port(
    evenhand: Run,
    engine_playing: Play,
    testbed: Path,
    tmp_path: Path,
    old: str,
    new: str,
    exit_code: int,
    code: str,
) -> None:
    """SEED-80, R6815-01: as in all verbs. What this machine lacks for it is told after what it has."""
    engine_playing("fair")
    testbed.write_text(TESTBED.replace(old, new))
    ended = evenhand("check", testbed, *QUICK)
    assert ended.code == exit_code
    assert ended.error.code == code
    assert re.search(r"(?m)^\s*Ports\s*$", ended.out) is None
    assert (
        ("What can run here" in ended.out) == (tmp_path / "engine-was-started").exists() == (exit_code == 3)
    )


def test_a_lab_that_is_not_up_is_named_with_the_way_to_it(
    evenhand: Run, engine_playing: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_playing("fair")
    monkeypatch.setattr(lab_rig, "lab_status", lambda name: None)  # somebody on this machine may have one
    ended = evenhand("check", "lab:linux")
    assert ended.code == 2
    assert ended.error.code == "rig.lab-not-up"
    assert "evenhand lab up linux --plan gateway-v4" in ended.error.next_step
    assert not (tmp_path / "engine-was-started").exists()


def test_a_direct_plan_with_many_addresses_is_warned_of_before_it_is_sent(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """SEED-06, SEED-80."""
    engine_playing("no-dut")
    assert "Warning: " in evenhand("check", testbed, "--plan", "direct-v4-net16", *QUICK).err


def test_a_port_that_does_not_open_is_an_error_after_the_host_was_shown(
    evenhand: Run, engine_playing: Play, testbed: Path
) -> None:
    """The table above the error often tells why."""
    engine_playing("fault-host_not_ready")
    ended = evenhand("check", testbed, "--watch", "0")
    assert ended.code == 3
    assert "What can run here" in ended.out
    assert (ended.error.code, ended.error.where) == ("engine.no-device", "left.device")


def test_a_port_that_this_host_does_not_have_is_an_error_after_the_host_was_shown(
    evenhand: Run, engine_playing: Play, tmp_path: Path
) -> None:
    """As with a testbed file that was written elsewhere, or imported."""
    engine_playing("fair")
    file = tmp_path / "elsewhere.toml"
    tables = "".join(f'[{side}]\ndevice = "0000:ff:1f.{n}"\n' for n, side in enumerate(("left", "right")))
    file.write_text(f"isolated_test_environment = true\n{tables}[tester]\ncpus = [0]\n")
    ended = evenhand("check", file, "--watch", "0")
    assert ended.code == 3
    assert "What can run here" in ended.out
    assert ended.error.code == "rig.port-missing"
    document = fits(evenhand("check", file, "--watch", "0", "--json").json)
    assert document["error"]["id"] == "rig.port-missing"
    assert "0000:ff:1f.0" in document["error"]["what"]
    assert document["testbed"]["name"] == str(file)
    assert document["host"]["findings"]


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.parametrize("plan", versions_of("gateway-v4", "gateway-v6", proved="v4"))
def test_a_port_that_does_not_open_is_told_in_the_one_document(
    evenhand: Run, tmp_path: Path, plan: str, few_probes: None
) -> None:
    """By the real engine: the host's findings, what --own-loop finds, and the error at the port whose it
    is."""
    try:
        find_engine()
    except HostError as error:
        pytest.skip(f"no engine: {error}")
    socket = tmp_path / "gone" / "dut.sock"
    device = "net_memif{n},role=client,id={n},socket-abstract=no,socket=" + str(socket)
    file = tmp_path / "gone.toml"
    tables = "".join(
        f'[{side}]\ndevice = "{device.format(n=n)}"\nlink_timeout = "1s"\n'
        for n, side in enumerate(("left", "right"))
    )
    file.write_text(f"isolated_test_environment = true\n{tables}[tester]\ncpus = [0]\n")
    line = (
        "check",
        file,
        "--plan",
        plan,
        "--own-loop",
        "--watch",
        "0",
        "--duration",
        "0.1s",
        "--maximum-rate",
        "1kfps",
        "--json",
    )
    ended = evenhand(*line)
    assert ended.code == 3
    document = fits(ended.json)
    assert f"no other end listens on {socket} for id 0: there is no folder" in document["error"]["what"]
    assert document["error"]["next"].startswith("Start the other end first: `evenhand router`, or the DUT")
    assert document["testbed"]["ports"] == {
        "left": {"device": device.format(n=0), "error": document["error"]},
        "right": None,
    }
    assert [ceiling["way"] for ceiling in document["ceilings"]] == ["own_loop"]
    assert finding(document, "engine")["state"] == "good"
    assert ended.err.count("Error:") == 1


def test_require_makes_a_check_fail_after_telling_all(
    evenhand: Run, engine_playing: Play, testbed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine_playing("no-dut")
    ended = evenhand("check", testbed, *QUICK, "--require", "dut", "--json")
    assert ended.code == 3
    assert fits(ended.json)["testbed"]["unresolved"]
    assert ended.error.code == "engine.not-resolved"
    engine_playing("simulated-1000000000")
    line = ("check", testbed, "--ports-only", "--require", "dut", "--require", "reference", *QUICK)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    assert evenhand(*line).code == 0
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    monkeypatch.setattr("os.sched_setaffinity", lambda pid, cpus: None)
    ended = evenhand(*line)
    assert ended.code == 3
    assert ended.error.code == "cli.requirement-unmet"
    assert "reference router (missing: CPUs)" in ended.error.what


def test_a_demo_that_lacks_a_cpu_leads_to_the_check(
    evenhand: Run, engine_playing: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_playing("fair")
    monkeypatch.setenv("EVENHAND_ROUTER", str(engine))
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0})
    ended = evenhand("demo", "--no-run")
    assert ended.code == 3
    assert ended.error.code == "rig.too-few-cpus"
    assert "`evenhand check`" in ended.error.next_step


@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_a_command_line_of_the_dut_that_is_not_reached_is_a_finding(
    evenhand: Run,
    engine_playing: Play,
    testbed: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    plan: str,
) -> None:
    """It ended the check before a port was looked at, and --json had nothing of the host."""
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text("#!/bin/sh\necho 'ssh: connect to host r1 port 22: Connection refused' >&2\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    engine_playing("fair")
    testbed.write_text(f'{TESTBED}[dut]\nssh = "root@r1"\nos = "linux"\nleft = "eth1"\nright = "eth2"\n')
    line = ("check", testbed, "--plan", plan, "--ports-only", *QUICK)
    shown = evenhand(*line)
    assert shown.code == 0, shown.err
    assert "This machine" in shown.out
    assert "The DUT is resolved." in shown.out
    assert "The DUT cannot be reached over SSH:" in shown.out
    assert "Connection refused" in shown.out
    document = fits(evenhand(*line, "--json").json)
    assert "Connection refused" in document["testbed"]["unreached"]
    assert document["testbed"]["is_dut_resolved"]
    assert document["error"] is None
    needed = evenhand(*line, "--require", "dut", "--json")
    assert needed.code == 3
    assert "Connection refused" in fits(needed.json)["error"]["what"]
    measured = evenhand("trial", testbed, "--plan", plan, "--rate", "1kfps", "--no-run")
    assert measured.code == 3
    assert measured.error.code == "rig.dut-does-not-answer"
    assert "Connection refused" in measured.error.what
