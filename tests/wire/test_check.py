# SPDX-License-Identifier: Apache-2.0
"""`evenhand check` with the real engine: ports in their own loop, a lab, a port that does not exist; as root
and as nobody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from evenhand import testbed
from evenhand.lab import linux_lab
from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.procedure import OWN_LOOP_WAY, CeilingGoal, measure_ceiling, open_tester
from evenhand.rig import make_own_loop_setup
from evenhand.trial import Limits, find_engine
from tests.cli.running import run_here
from tests.preloaded.commands import evenhand_command
from tests.wire.wire_session import PATIENT, cpus

pytestmark = pytest.mark.wire
CONTRACT = Path(__file__).resolve().parents[2] / "contract"
PLANS = pytest.mark.parametrize(
    "plan", [gateway_v4(), gateway_v6(), gateway_v6(1)], ids=["v4", "v6", "v6-one-pair"]
)
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
AS_NOBODY = ["unshare", "--user", "--map-user=65534", "--map-group=65534"]
"""A nobody who can read a checkout in root's home: he has the rights of files, and no others. A chroot does
not allow it."""


WITH_FEW_PROBES = (
    "from evenhand.procedure import host_limits\n"
    "host_limits.PROBES, host_limits.PROBE_S = 2, 0.2\n"
    "import evenhand_command\n"
    "evenhand_command.run()"
)


def run(*words: str | Path, prefix: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    """Its engine is the one that was built. With a prefix it is a process that was started by that, with few
    probes."""
    environment = {**os.environ, "EVENHAND_ENGINE": str(find_engine())}
    evenhand = evenhand_command() if prefix is None else (*prefix, sys.executable, "-c", WITH_FEW_PROBES)
    command = [*evenhand, "check", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)


@PLANS
@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.two_cpus)])
def test_ports_in_their_own_loop_need_no_dut(plan: AddressPlan, number: int, tmp_path: Path) -> None:
    """MLR-14: every frame comes back, whatever the addresses; the maximum is kept, since a busy machine is
    forgiven its delays here."""
    setup = make_own_loop_setup(testbed.Tester(cpus=tuple(cpus()[-number:])), tmp_path)
    goal = CeilingGoal(max_fps=20_000.0, min_fps=None, duration_s=0.3, precision=0.05)
    with open_tester(
        setup,
        plan,
        frame_size=plan.smallest_frame_size,
        seed=1,
        directions=("forward", "reverse"),
        engine=None,
    ) as tester:
        entry = measure_ceiling(
            tester, setup.testbed.tester.cpus, goal, way=OWN_LOOP_WAY, limits=Limits(**PATIENT)
        )
    assert entry.ceiling.is_at_maximum, entry.ceiling.reasons_above
    assert entry.ceiling.trials[-1].lost_frames == 0
    assert all(d.received_frames == 6_000 for d in entry.ceiling.trials[-1].directions.values())


def test_more_cpus_get_a_queue_for_each_stream(tmp_path: Path) -> None:
    """A ring of the cable that nobody reads would look like loss."""
    for number in range(1, 14):
        tester = make_own_loop_setup(testbed.Tester(cpus=tuple(range(number))), tmp_path).testbed.tester
        request = make_own_loop_setup(tester, tmp_path).testbed.open_request(
            gateway_v4(), frame_size=64, seed=1
        )
        for side in ("left", "right"):
            streams = [
                s for worker in request["workers"] for s in worker.get("senders", ()) if s["side"] == side
            ]
            queues = [
                r for worker in request["workers"] for r in worker.get("receivers", ()) if r["side"] == side
            ]
            assert len(streams) == len(queues) == max(number // 4, 1)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "user",
    [
        pytest.param("self", marks=pytest.mark.alone),
        pytest.param(
            "nobody",
            marks=[
                pytest.mark.root,
                ROOT,
                pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare"),
            ],
        ),
    ],
)
@pytest.mark.usefixtures("few_probes")
def test_a_check_runs_for_any_user(user: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The document of the real thing fits its schema; nobody may do less than root."""
    line = (
        "--json",
        "--watch",
        "0.2s",
        "--own-loop",
        "--maximum-rate",
        "20kfps",
        "--minimum-rate",
        "10kfps",
        "--duration",
        "0.2s",
    )
    if user == "nobody" and subprocess.run([*AS_NOBODY, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user namespace here, as in a chroot: there is no nobody who can read this checkout")
    if user == "self":
        here = run_here(["check", *line], capsys)
        code, out, err = here.code, here.out, here.err
    else:
        ended = run(*line, prefix=AS_NOBODY)
        code, out, err = ended.returncode, ended.stdout, ended.stderr
    assert code == 0, err
    document = json.loads(out)
    jsonschema.Draft202012Validator(json.loads((CONTRACT / "check.schema.json").read_text())).validate(
        document
    )
    findings = {finding["name"]: finding for finding in document["host"]["findings"]}
    assert findings["engine"]["facts"]["dpdk"]
    is_root = user == "self" and os.geteuid() == 0
    assert findings["privileges"]["facts"]["is_root"] == is_root
    lab = next(part for part in document["host"]["parts"] if part["part"] == "lab")
    if user == "nobody":
        assert "privileges" in lab["missing"]
    (ceiling,) = document["ceilings"]
    assert {trial["intended_fps_per_direction"] for trial in ceiling["trials"]} <= {
        20_000,
        *range(10_000, 20_000),
    }
    absences = findings["absences"]
    if absences["state"] != "unknown":  # an engine that can watch
        assert [cpu["cpu"] for cpu in absences["facts"]["cpus"]] == cpus()
        assert findings["clock"]["facts"]["ticks"]["ticks_per_second"] > 1e6


def test_a_device_that_does_not_open_is_the_hosts_fault(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    device = f"net_pcap0,tx_pcap={tmp_path}/no-such-folder/a.pcap"
    file.write_text(
        f"isolated_test_environment = true\n[left]\ndevice = '{device}'\n[right]\ndevice ="
        f" 'net_ring1'\n[tester]\ncpus = [{cpus()[0]}]\n"
    )
    ended = run(file, "--watch", "0")
    assert ended.returncode == 3
    assert "What can run here" in ended.stdout
    assert "no-such-folder" in ended.stderr
    assert "Next:" in ended.stderr


def test_a_cpu_that_is_not_there_leads_to_the_check(tmp_path: Path) -> None:
    """What the engine refuses for the host's sake, `check` tells more about."""
    file = tmp_path / "wrong.toml"
    file.write_text(
        "isolated_test_environment = true\n[left]\ndevice = 'net_ring0'\n[right]\ndevice ="
        " 'net_ring1'\n[tester]\ncpus = [1023]\n"
    )
    ended = run(file, "--watch", "0")
    assert ended.returncode == 3
    assert "evenhand check shows them" in ended.stderr


@pytest.mark.root
@ROOT
@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=["v4", "v6"])
def test_the_ports_of_a_lab_are_told_with_what_the_kernel_knows(plan: AddressPlan) -> None:
    """SEED-19: the lab's router answers ARP and ND; MTU is that of the veth inside the tester's namespace."""
    name = f"c{os.getpid() % 10_000_000}"
    with linux_lab(plan, name=name):
        ended = run(
            f"lab:{name}", "--plan", plan.title, "--ports-only", "--require", "dut", "--watch", "0", "--json"
        )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)["testbed"]
    assert found["is_dut_resolved"]
    for side in ("left", "right"):
        port = found["ports"][side]
        assert port["driver"] == "net_af_xdp"
        assert port["mtu"] == 1500
        assert port["dut_mac"]
        assert not port["is_dut_mac_static"]


@pytest.mark.thorough
def test_ports_joined_by_a_cable_are_tested_without_a_dut(tmp_path: Path) -> None:
    """R2544-06: with both IP versions every frame comes, and all counters agree; what software ports have not
    is no fault. One file has it, without what only this machine has."""
    cable = f"id=0,socket={tmp_path / 'c'},socket-abstract=no,rsize=11"
    testbed_file, found = tmp_path / "lab.toml", tmp_path / "found.json"
    testbed_file.write_text(
        "isolated_test_environment = true\n"
        f'[left]\ndevice = "net_memif0,role=server,{cable}"\n'
        f'[right]\ndevice = "net_memif1,role=client,{cable}"\n'
        f"[tester]\ncpus = [{cpus()[-1]}]\n"
    )
    words: list[str | Path] = [
        "--cable",
        found,
        "--watch",
        "0s",
        "--duration",
        "0.2s",
        "--maximum-rate",
        "5kfps",
        "--json",
    ]
    done = run(
        testbed_file, *words, "--overdue-after", "50ms", "--offered-tolerance", "5%", "--precision", "50%"
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads((CONTRACT / "check.schema.json").read_text()))
    kept = json.loads(found.read_text())
    assert kept["cable"] == document["cable"]
    states = {check["name"]: check["state"] for check in kept["cable"]["checks"]}
    for what in ("IPv4, 64 octets", "IPv4, 1518 octets", "IPv6, 84 octets", "IPv6, 1518 octets"):
        for direction in ("forward", "reverse"):
            assert states[f"{what}, {direction}: frames"] == "good"
            assert states[f"{what}, {direction}: queues"] == "absent"
        assert states[f"{what}: conserved"] == "good"
    assert (states["left: PAUSE"], states["right: stamps"], states["link"]) == ("absent", "absent", "good")
    text = found.read_text()
    assert str(tmp_path) not in text
    assert all(len(port["mac"]) == len("02:00:00") for port in kept["cable"]["ports"].values())
    again = run(testbed_file, *words)
    assert again.returncode == 2
    assert "already exists" in again.stdout + again.stderr
