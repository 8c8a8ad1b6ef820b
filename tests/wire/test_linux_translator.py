# SPDX-License-Identifier: Apache-2.0
"""A translator that nobody here wrote: TAYGA as the DUT of a Linux lab. Skipped where it is not installed,
since its package changes the network of the host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from evenhand.base.errors import HostError
from evenhand.lab import LinuxLab, linux_lab
from evenhand.lab.linux_life import lab_down
from evenhand.lab.state import plan_name
from evenhand.lab.translator import check_translator, translator_processes
from evenhand.plan import AddressPlan, make_plan, mix_request, mix_versions
from evenhand.rig import make_lab_setup
from evenhand.trial import EngineSession, find_engine
from tests.errors import raises
from tests.plan.routed import PREFIXES
from tests.wire.wire_session import Document, dut_of, engine, open_to_dut, thorough, valid_trial

pytestmark = [pytest.mark.wire, pytest.mark.root]
LAB = "siittest"
LOAD_FPS = 2_000


@pytest.fixture(autouse=True)
def _needs_tayga() -> None:
    try:
        check_translator()
    except HostError as error:
        pytest.skip(str(error))


@pytest.fixture(
    params=[
        "siit",
        "siit-eam",
        "siit-eam@2001:db8::/40",
        *thorough(*(f"siit@{prefix}" for prefix in PREFIXES)),
    ]
)
def rig(request: pytest.FixtureRequest) -> Iterator[tuple[AddressPlan, LinuxLab, EngineSession, Document]]:
    plan = make_plan(request.param)
    with linux_lab(plan, name=LAB) as lab, engine(lab.engine_command(find_engine())) as session:
        opened = open_to_dut(session, plan, lab.device("left"), lab.device("right"), dut=dut_of(lab))
        yield plan, lab, session, opened
    assert translator_processes(LAB) == []


def test_each_frame_comes_back_as_it_must_be_translated(
    rig: tuple[AddressPlan, LinuxLab, EngineSession, Document],
) -> None:
    """R8219-01, R8219-08, RFC 7915: exactly its addresses, ports and traffic class, in both directions."""
    _, lab, session, _ = rig
    document = valid_trial(session, rate_fps=LOAD_FPS, duration_s=1)
    for direction in document["directions"].values():
        assert direction["received_frames"] > 0.9 * LOAD_FPS
        assert direction["mistranslated_frames"] == {
            "no_checksum": 0,
            "traffic_class": 0,
            "address_or_port": 0,
        }
        assert direction["corrupted_frames"] == direction["wrong_length_frames"] == 0
    assert lab.facts()["translator"] == "TAYGA"
    assert translator_processes(LAB)[0] in lab.dut_threads()
    lab.set_forwarding(False)
    silent = valid_trial(session, trial=50, rate_fps=LOAD_FPS, duration_s=0.2)
    assert [d["received_frames"] for d in silent["directions"].values()] == [0, 0]


@pytest.mark.parametrize("name", ["siit+gateway-v6", "siit-eam+gateway-v6", "gateway-v6+siit"])
def test_native_traffic_is_forwarded_beside_what_tayga_translates(name: str) -> None:
    """R8219-05: the kernel forwards what is not behind the prefix; each kind is counted."""
    first, second = name.split("+")
    plan = mix_versions(make_plan(first), make_plan(second), (3, 1))
    with linux_lab(plan, name=LAB) as lab, engine(lab.engine_command(find_engine())) as session:
        assert lab.ip_versions == (6, 4)
        ports = {"dut": dut_of(lab), **mix_request(plan, 84)}
        open_to_dut(session, plan, lab.device("left"), lab.device("right"), **ports)
        found = valid_trial(session, rate_fps=LOAD_FPS, duration_s=1)
        assert lab.facts()["plan"] == plan_name(plan)
        with raises("rig.lab-of-other-plan"):
            make_lab_setup(lab, make_plan(first))
        assert make_lab_setup(lab, mix_versions(make_plan(second), make_plan(first), (9, 1))).lab == lab
    for direction in found["directions"].values():
        assert not any(direction["mistranslated_frames"].values())
        assert direction["corrupted_frames"] == direction["wrong_length_frames"] == 0
        for kind, share in zip(direction["classes"], (3, 1), strict=True):
            assert kind["offered_frames"] == LOAD_FPS * share / 4
            assert kind["received_frames"] > 0.9 * kind["offered_frames"]


def test_a_lab_whose_maker_was_killed_is_taken_down_with_its_translator() -> None:
    program = (
        "import os, signal\n"
        "from evenhand.plan import make_plan\n"
        "from evenhand.lab import linux_lab\n"
        f"with linux_lab(make_plan('siit'), name={LAB!r}): os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended = subprocess.run([sys.executable, "-c", program], env=os.environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(translator_processes(LAB)) == 1
    assert lab_down(LAB)
    assert translator_processes(LAB) == []
    assert not lab_down(LAB)
