# SPDX-License-Identifier: Apache-2.0
"""`evenhand check` and `--limits host` with several real engines: each host, port pair and clock by its
engine's name. An `ssh` of this test's own runs here what it is given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evenhand.base.errors import HostError
from evenhand.host.survey import survey_over_ssh
from evenhand.plan import SIDES, AddressPlan, gateway_v4, gateway_v6
from evenhand.procedure import host_limits
from evenhand.trial import find_engine
from tests.cli.running import run_here
from tests.errors import raises
from tests.preloaded.commands import evenhand_command
from tests.wire.several_engines import setup_of
from tests.wire.wire_session import NOBODY, Document, cpus, until, versions_of

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.patient]
SCHEMA = json.loads((Path(__file__).parents[2] / "contract" / "check.schema.json").read_text())
PLANS = pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
FILE = """isolated_test_environment = true
[[engine]]
name = "near"
cpus = [{near}]
left = {{ device = "net_null0,no-rx=1", dut_mac = "{macs[0]}" }}
right = {{ device = "net_null1,no-rx=1", dut_mac = "{macs[1]}" }}
[[engine]]
name = "far"
ssh = "root@tester2"
cpus = [{far}]
left = {{ device = "net_null0,no-rx=1", dut_mac = "{macs[0]}" }}
right = {{ device = "net_null1,no-rx=1", dut_mac = "{macs[1]}" }}
"""


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """First on PATH. Its last argument is the command line, as OpenSSH's."""
    script = tmp_path / "bin" / "ssh"
    script.parent.mkdir()
    script.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    (script.parent / "evenhand-engine").symlink_to(find_engine())
    evenhand = script.parent / "evenhand"
    evenhand.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m evenhand "$@"\n')
    for program in (script, evenhand):
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("EVENHAND_ENGINE", str(find_engine()))
    return evenhand


def file_of_two(folder: Path) -> Path:
    file = folder / "two.toml"
    available = cpus()
    file.write_text(FILE.format(near=available[0], far=available[-1], macs=NOBODY))
    return file


def check(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [*evenhand_command(), "check", str(file_of_two(folder)), "--watch", "0", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.usefixtures("ssh")
@PLANS
def test_each_engine_is_checked_by_its_name(plan: AddressPlan, tmp_path: Path) -> None:
    ended = check(tmp_path, "--ports-only", "--json", "--plan", plan.name)
    assert ended.returncode == 0, ended.stderr
    document = json.loads(ended.stdout)
    jsonschema.validate(document, SCHEMA)
    near, far = document["testbed"]["engines"]
    assert (near["engine"], near["ssh"], near["host"]) == ("near", None, None)
    assert (far["engine"], far["ssh"], far["unchecked"]) == ("far", "root@tester2", None)
    # The host that `ssh` leads to is this one.
    assert [each["name"] for each in far["host"]["findings"]] == [
        each["name"] for each in document["host"]["findings"]
    ]
    assert near["clock"] == {"offset_us": 0.0, "uncertainty_us": 0.0}
    assert far["clock"]["uncertainty_us"] > 0
    assert abs(far["clock"]["offset_us"]) <= far["clock"]["uncertainty_us"] + 1
    for engine in (near, far):
        for side, mac in zip(SIDES, NOBODY, strict=True):
            port = engine["ports"][side]
            assert (port["driver"], port["dut_mac"], port["is_dut_mac_static"]) == ("net_null", mac, True)
            assert port["transmit_queues"] == 1
    assert document["testbed"]["ports"] == near["ports"]


def test_people_read_each_engines_part(ssh: Path, tmp_path: Path) -> None:
    ended = check(tmp_path, "--ports-only")
    assert ended.returncode == 0, ended.stderr
    words = " ".join(ended.stdout.split())
    for expected in (
        "The host of engine far, on root@tester2",
        "Ports of engine near, on this machine",
        "Ports of engine far, on root@tester2",
        "Clock of engine far, against this machine's:",
        "The DUT's MACs are taken from the testbed file",
    ):
        assert expected in words
    # A host without Evenhand's own command is no reason not to look at its ports.
    ssh.write_text("#!/bin/sh\necho no such thing >&2\nexit 7\n")
    ended = check(tmp_path, "--ports-only")
    assert ended.returncode == 0, ended.stderr
    words = " ".join(ended.stdout.split())
    assert "The host of engine far, on root@tester2: the host root@tester2 is not checked" in words
    assert "exit code 7: no such thing" in words
    assert "Ports of engine far" in words
    with raises("rig.host-not-checked", match="exit code 7"):
        survey_over_ssh("root@tester2", watch_s=0)
    ssh.write_text('#!/bin/sh\necho "{\\"host\\": {\\"findings\\": [{}]}}"\n')
    with raises("rig.host-not-checked", match="KeyError|TypeError"):
        survey_over_ssh("root@tester2", watch_s=0)


@pytest.mark.thorough
@pytest.mark.usefixtures("ssh", "few_probes")
@pytest.mark.parametrize("plan", versions_of("gateway-v4", "gateway-v6", proved="v6"))
def test_the_ceiling_without_a_dut_is_that_of_all_engines_at_once(
    plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each has a cable of its own, on its machine; no port of the testbed is opened for it."""
    goal = (
        "--maximum-rate",
        "20kfps",
        "--minimum-rate",
        "10kfps",
        "--precision",
        "90%",
        "--duration",
        "0.2s",
    )
    line = ("check", file_of_two(tmp_path), "--watch", "0", "--ports-only", "--own-loop", "--json")
    ended = run_here([*line, "--plan", plan, *goal], capsys)
    assert ended.code == 0, ended.err
    document = ended.json
    jsonschema.validate(document, SCHEMA)
    (own_loop,) = document["ceilings"]
    assert own_loop["way"] == "own_loop"
    assert own_loop["cpus"] == [cpus()[0], cpus()[-1]]
    assert document["host_limits"] is not None


def engines(*ssh_of: str | None) -> list[Document]:
    return [
        {
            "name": name,
            **({} if ssh is None else {"ssh": ssh}),
            "cpus": [cpu],
            **{side: {"device": f"net_ring{2 * number + i}"} for i, side in enumerate(SIDES)},
        }
        for number, (name, ssh, cpu) in enumerate(zip("ab", ssh_of, cpus()[:2], strict=True))
    ]


@pytest.mark.usefixtures("ssh", "few_probes")
def test_the_limits_of_all_hosts_are_those_of_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every engine sends its probes at once, on its machine, over a cable of its own: no port of the testbed
    is opened."""
    told: list[Any] = []

    def keep(self: object, trial: Any, engines: Any) -> host_limits.Probe:
        told.append((trial, engines))
        return found(trial, engines)

    found = host_limits.Probe._of_engines
    monkeypatch.setattr(host_limits.Probe, "_of_engines", classmethod(keep))
    testbed = setup_of(engines(None, "root@tester2"), limits="host").testbed

    def measured() -> list[host_limits.Probe] | None:
        told.clear()
        try:
            return host_limits._probe(
                testbed.tester, testbed.engine, engine=None, on_event=lambda event: None, is_urgent=False
            )
        except HostError:
            return None  # a busy host kept an engine from its results for too long

    probes = until(lambda found: found is not None, measured)
    assert probes is not None
    assert len(probes) == len(told) == 2
    for probe, (trial, of_engines) in zip(probes, told, strict=True):
        assert [each["engine"] for each in of_engines] == ["a", "b"]
        directions = [of for each in of_engines for of in each["directions"].values()]
        assert all(of["intended_frames"] == 0.2 * host_limits.PROBE_FPS for of in directions)
        assert all(of["received_frames"] > 0 for of in directions), "the cable carries frames"
        assert probe.longest_overdue_us == max(of["max_overdue_us"] for of in directions)
        assert trial.intended_fps == 2 * host_limits.PROBE_FPS
