# SPDX-License-Identifier: Apache-2.0
"""`evenhand router`: options become the router that was asked for, and a tester finds it by the file that is
written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.base.errors import HostError
from evenhand.base.programs import ENGINE, ROUTER, find_program
from evenhand.cli.main import main
from evenhand.reference.router import written_testbed
from tests.cli.running import Ended
from tests.cli.test_json_documents import validate
from tests.errors import raises
from tests.preloaded.commands import evenhand_command
from tests.wire.wire_session import LENIENT_OPTIONS, until, versions_of, was_sent_whole

EVENHAND = [sys.executable, "-m", "evenhand"]
START_S = 300
"""On a machine that is busy, loading a command takes long."""
CONTRACT = Path(__file__).parents[2] / "contract"
Run = Callable[..., Ended]


def test_a_router_on_a_stick_has_one_device_for_both_ports(capsys: pytest.CaptureFixture[str]) -> None:
    """In two VLANs, without which it could not tell its sides apart."""
    assert main(["router", "gateway-v4", "--one-armed", "--vlan", "10,none", "--print-config"]) == 0
    config = json.loads(capsys.readouterr().out)
    jsonschema.validate(config, json.loads((CONTRACT / "router-config.schema.json").read_text()))
    left, right = config["ports"]["left"], config["ports"]["right"]
    assert left["device"] == right["device"]
    assert (left["vlan"], "vlan" in right) == ([10], False)


def test_each_pair_of_a_router_on_a_stick_is_one_device(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["router", "gateway-v6", "--one-armed", "--vlan", "10,20", "--pairs", "2", "--print-config"]
    assert main(words) == 0
    config = json.loads(capsys.readouterr().out)
    first, second = config["ports"], config["more_ports"][0]
    devices = [pair[side]["device"] for pair in (first, second) for side in ("left", "right")]
    assert devices[0] == devices[1] != devices[2] == devices[3]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--one-armed"], "without a VLAN for each side"),
        (["--one-armed", "--vlan", "10"], "without a VLAN for each side"),
    ],
)
def test_what_cannot_be_on_a_stick_is_refused(
    capsys: pytest.CaptureFixture[str], options: list[str], what: str
) -> None:
    assert main(["router", "gateway-v4", *options, "--print-config"]) == 2
    assert what in " ".join(capsys.readouterr().err.split())


def test_the_configuration_is_printed_and_nothing_started(capsys: pytest.CaptureFixture[str]) -> None:
    options = (
        "--elements 36 --rate 50kfps --queue-frames 100 --hash type2 --symmetric --delay 100us"
        " --delayed-load 2Mfps --neighbor-cost 4096,10% --defect loss=0.1%"
    )
    assert main(["router", "gateway-v6", *options.split(), "--print-config"]) == 0
    config = json.loads(capsys.readouterr().out)
    jsonschema.validate(config, json.loads((CONTRACT / "router-config.schema.json").read_text()))
    elements = config["elements"]
    assert (elements["count"], elements["rate_fps"], elements["queue_frames"], elements["hash"]) == (
        36,
        50_000,
        100,
        "type2",
    )
    assert elements["symmetric"]
    assert config["extra_delay_us"] == pytest.approx(100)
    assert config["delayed_load_fps"] == 2e6
    assert config["neighbors"] == {"free_entries": 4096, "growth": 0.1}
    assert config["defects"]["loss"] == {"ratio": 0.001}


def test_each_port_pair_has_ports_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["router", "gateway-v6", "--pairs", "3", "--print-config"]) == 0
    config = json.loads(capsys.readouterr().out)
    pairs = [config["ports"], *config["more_ports"]]
    devices = {pair[side]["device"] for pair in pairs for side in ("left", "right")}
    assert len(devices) == 6
    assert main(["router", "nat44", "--pairs", "2", "--print-config"]) == 0
    config = json.loads(capsys.readouterr().out)
    assert len(config["more_ports"]) == 1
    assert config["nat"]["inside"] == "left"


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        ("--elements 4", "spec.only-together", "--elements, --rate"),
        ("--rate 50kfps", "spec.only-together", "--elements, --rate"),
        ("--elements 1000 --rate 50kfps", "spec.out-of-range", "--elements"),
        ("--defect losses=1%", "spec.not-a-defect", "--defect"),
        ("--neighbor-cost 10%", "spec.not-a-neighbor-cost", "--neighbor-cost"),
        ("--delayed-load 0", "base.out-of-range", "--delayed-load"),
        ("--delay soon", "base.not-a-quantity", "--delay"),
    ],
)
def test_what_makes_no_router_is_refused(evenhand: Run, options: str, code: str, where: str) -> None:
    ended = evenhand("router", "gateway-v4", *options.split(), "--print-config")
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)


def test_a_file_that_is_there_is_refused_and_starts_no_router(evenhand: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("precious")
    for name, code in ((file, "rig.file-exists"), (tmp_path / "none" / "mine.toml", "rig.no-such-folder")):
        ended = evenhand("router", "gateway-v4", "--testbed", name)
        assert (ended.code, ended.error.code) == (2, code)
    assert file.read_text() == "precious"


def test_files_of_others_are_neither_overwritten_nor_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    Path("reference-router.toml").write_text("precious")
    with (
        written_testbed(None, "ours", say=said.append) as second,
        written_testbed(None, "others", say=said.append) as third,
    ):
        assert [str(second), str(third)] == ["reference-router-2.toml", "reference-router-3.toml"]
        assert [second.read_text(), third.read_text()] == ["ours", "others"]
        assert len(said) == 2
        assert all("reference-router.toml already exists" in line for line in said)
        second.write_text("ours, and a note of the user's")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "reference-router-2.toml",
        "reference-router.toml",
    ]
    assert Path("reference-router.toml").read_text() == "precious"
    assert "has been changed" in said[-1]


def test_a_place_that_cannot_be_written_is_a_host_error(tmp_path: Path) -> None:
    with raises("rig.file-not-writable"), written_testbed(tmp_path / "gone" / "a.toml", "ours", say=print):
        pass


@pytest.fixture
def programs() -> None:
    for program in (ENGINE, ROUTER):
        try:
            find_program(program)
        except HostError as error:
            pytest.skip(str(error))


def start_router(
    folder: Path, testbed: str, *options: str, plan: str = "gateway-v4"
) -> subprocess.Popen[str]:
    """A router in this folder; returns when its testbed file is there."""
    router = subprocess.Popen(
        [*EVENHAND, "router", plan, *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    give_up = time.monotonic() + START_S
    while not (folder / testbed).exists():
        assert router.poll() is None, router.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.05)
    return router


def trial(folder: Path, testbed: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *evenhand_command(),
            "trial",
            testbed,
            "--rate",
            "5kfps",
            "--duration",
            "500ms",
            "--waits",
            "short",
            *LENIENT_OPTIONS,
            "--json",
            "--no-run",
            *options,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def whole_trial(folder: Path, testbed: str, *options: str, engines: int = 1) -> dict[str, Any]:
    """The document of a trial in which all engines sent all of their frames and lost none: this machine may
    keep the tester from sending them or an engine from answering, or the router from its CPU until frames
    come too late."""

    def came(document: dict[str, Any]) -> bool:
        return (
            len(document["trial"].get("engines", ("one",))) == engines
            and was_sent_whole(document["trial"])
            and all(direction["lost_frames"] == 0 for direction in document["trial"]["directions"].values())
        )

    def measured() -> dict[str, Any]:
        ended = trial(folder, testbed, *options)
        assert ended.returncode == 0, ended.stderr
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    return until(came, measured)


def end(router: subprocess.Popen[str]) -> tuple[str, str]:
    router.send_signal(signal.SIGINT)
    printed, told = router.communicate(timeout=60)
    assert router.returncode == 0, told
    return printed, told


@pytest.mark.wire
@pytest.mark.two_cpus
@pytest.mark.patient
def test_a_router_that_is_killed_is_told_and_its_file_goes(tmp_path: Path, programs: None) -> None:
    router = start_router(tmp_path, "reference-router.toml")
    (child,) = Path(f"/proc/{router.pid}/task/{router.pid}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
    _, told = router.communicate(timeout=60)
    assert router.returncode == 4
    assert "the router ended with code -9" in told
    assert not (tmp_path / "reference-router.toml").exists()


@pytest.mark.wire
@pytest.mark.two_cpus
@pytest.mark.patient
def test_a_router_that_sigterm_ends_writes_its_counters(tmp_path: Path, programs: None) -> None:
    router = start_router(tmp_path, "reference-router.toml", "--json")
    assert router.stdout is not None
    ready = json.loads(router.stdout.readline())
    router.send_signal(signal.SIGTERM)
    printed, told = router.communicate(timeout=60)
    assert router.returncode == 143
    assert told.splitlines()[-1] == "Terminated."
    last = json.loads(printed)
    assert (ready["event"], last["event"]) == ("ready", "stopped")
    assert last["left"]["received_frames"] == 0
    assert not (tmp_path / "reference-router.toml").exists()


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.two_cpus
@pytest.mark.patient
def test_a_tester_finds_it_and_ctrl_c_ends_it(tmp_path: Path, programs: None) -> None:
    router = start_router(tmp_path, "reference-router.toml", "--elements", "4", "--rate", "100kfps", "--json")
    whole_trial(tmp_path, "reference-router.toml")
    refused = trial(tmp_path, "reference-router.toml", "--plan", "gateway-v6")
    facts = tomllib.loads((tmp_path / "reference-router.toml").read_text())["dut"]["facts"]
    printed, _ = end(router)
    assert facts["machine"].startswith("evenhand-router ")
    assert (facts["cores"], facts["flow_hash"]) == (
        "4 elements of 100000 fps, modelled by one thread",
        "type1",
    )
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["error"]["id"] == "rig.dut-of-other-plan"
    ready, counters = map(json.loads, printed.splitlines())
    for document in (ready, counters):
        validate(document)
    assert (ready["event"], ready["pid"], ready["plan"]) == ("ready", router.pid, "gateway-v4")
    assert ready["testbed"] == str(tmp_path / "reference-router.toml")
    assert ready["predicted_fps_per_direction"] > 100_000
    assert counters["event"] == "stopped"
    with pytest.raises(jsonschema.ValidationError):
        validate({key: value for key, value in ready.items() if key != "testbed"})
    assert counters["left"]["received_frames"] >= 2_500
    assert len(counters["elements"]) == 4
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.two_cpus
@pytest.mark.patient
@pytest.mark.parametrize("plan", versions_of("gateway-v4", "direct-v6", proved="v4"))
def test_the_file_of_a_router_with_several_port_pairs_has_an_engine_for_each(
    tmp_path: Path, programs: None, plan: str
) -> None:
    """On two CPUs the second engine has the router's, which is told."""
    router = start_router(tmp_path, "reference-router.toml", "--pairs", "2", "--hosts", "50", plan=plan)
    document = whole_trial(tmp_path, "reference-router.toml", engines=2)
    counters, told = end(router)
    engines = document["trial"]["engines"]
    assert [each["engine"] for each in engines] == ["pair1", "pair2"]
    for direction in document["trial"]["directions"].values():
        assert direction["foreign_frames"] == 0
    assert ("has the router's CPU" in told) == (len(os.sched_getaffinity(0)) < 3)
    assert [line.split(":")[0] for line in counters.splitlines()] == [
        "left 1",
        "right 1",
        "left 2",
        "right 2",
    ]


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.two_cpus
@pytest.mark.patient
@pytest.mark.parametrize(
    ("plan", "hosts"), versions_of(("nets-v4-gateway", "10"), ("nets-v6-direct", "3,2"), proved="v4")
)
def test_a_trial_with_the_file_fits_the_router_that_wrote_it(
    tmp_path: Path, programs: None, plan: str, hosts: str
) -> None:
    """The file named the plan alone: all but four of its 256 networks were unknown to the router, and every
    frame there was lost."""
    router = start_router(tmp_path, "reference-router.toml", "--hosts", hosts, "--networks", "4", plan=plan)
    document = whole_trial(tmp_path, "reference-router.toml")
    refused = trial(tmp_path, "reference-router.toml", "--networks", "5")
    fewer = json.loads(trial(tmp_path, "reference-router.toml", "--networks", "1", "--hosts", "1").stdout)
    _, told = end(router)
    assert document["networks"] == {"left": 4, "right": 4}
    assert document["hosts"] == ({"left": 10, "right": 10} if hosts == "10" else {"left": 3, "right": 2})
    assert refused.returncode == 2
    assert json.loads(refused.stdout)["error"]["id"] == "rig.too-few-networks-on-dut"
    assert fewer["hosts"] == fewer["networks"] == {"left": 1, "right": 1}
    assert "hosts in 4 x 4 networks" in told


@pytest.mark.wire
@pytest.mark.two_cpus
@pytest.mark.patient
def test_a_router_of_both_ip_versions_forwards_their_mix_and_each_alone(
    tmp_path: Path, programs: None
) -> None:
    """R5180-14: a mix of IP versions could be tried on a Linux lab only, which needs root."""
    router = start_router(tmp_path, "reference-router.toml", "--hosts", "50", plan="gateway-v4+gateway-v6")
    mixed = whole_trial(tmp_path, "reference-router.toml", "--mix", "90/10")
    alone = whole_trial(tmp_path, "reference-router.toml", "--plan", "gateway-v6")
    refused = trial(tmp_path, "reference-router.toml", "--plan", "siit")
    _, told = end(router)
    assert mixed["hosts"] == alone["hosts"] == {"left": 50, "right": 50}
    for document in (mixed, alone):
        for direction in document["trial"]["directions"].values():
            assert direction["foreign_frames"] == 0
    classes = mixed["trial"]["directions"]["forward"]["classes"]
    assert [each["offered_frames"] for each in classes] == [2250, 250]
    assert json.loads(refused.stdout)["error"]["id"] == "rig.dut-of-other-plan"
    assert "gateway-v4+gateway-v6" in told


@pytest.mark.thorough
@pytest.mark.wire
@pytest.mark.two_cpus
@pytest.mark.patient
def test_two_routers_in_one_folder_do_not_meet(tmp_path: Path, programs: None) -> None:
    """The second one takes another name, and outlives the end of the first."""
    first = start_router(tmp_path, "reference-router.toml")
    second = start_router(tmp_path, "reference-router-2.toml")
    end(first)
    assert [path.name for path in tmp_path.iterdir()] == ["reference-router-2.toml"]
    ended = trial(tmp_path, "reference-router-2.toml")
    _, told = end(second)
    assert ended.returncode == 0, ended.stderr
    assert "the testbed file of this router is reference-router-2.toml" in told
    assert "nother reference router, started by process " in told, (
        "the first one's, or that of another user of this machine"
    )
    assert list(tmp_path.iterdir()) == []
