# SPDX-License-Identifier: Apache-2.0
"""Stations 3 to 7: jumbo frames through routers and on ports that do not take them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from evenhand.lab import linux_lab
from evenhand.plan import AddressPlan, gateway_v4, gateway_v6
from evenhand.reference import ReferenceDut
from evenhand.rig import make_lab_setup
from tests.errors import raises
from tests.wire.wire_session import (
    engine,
    measure,
    memif_cable,
    open_ports,
    router_beside_tester,
    setup_beside_tester,
)

pytestmark = pytest.mark.wire


@pytest.mark.thorough
@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
def test_the_reference_router_forwards_jumbo_frames_where_it_is_told_to(plan: AddressPlan) -> None:
    """R8219-01, R5180-09, R8219-20: 9216 octets through a real router; one that takes less is known to before
    anything is sent."""
    with router_beside_tester(plan, ReferenceDut(largest_frame_size=9216)) as router:
        assert ",bsize=9216" in router.device("left")
        assert measure(setup_beside_tester(router), plan, 9216).verdict == "PASS"
    too_large = raises("rig.frame-too-large", match="1518 .*2048")
    with router_beside_tester(plan) as router, too_large:
        measure(setup_beside_tester(router), plan, 2048)


@pytest.mark.root
@pytest.mark.two_cpus
@pytest.mark.parametrize(
    ("plan", "largest", "driver"), [(gateway_v4(), 9216, "af_packet"), (gateway_v6(), 2048, "af_xdp")]
)
def test_the_kernel_forwards_jumbo_frames_where_its_links_take_them(
    plan: AddressPlan, largest: int, driver: str
) -> None:
    """R8219-01, R8219-20: the MTU of both links, at both ends."""
    with linux_lab(plan, name="jumbo", largest_frame_size=largest) as lab:
        setup = make_lab_setup(lab)
        assert f"net_{driver}0" in setup.testbed.left.device
        assert measure(setup, plan, largest).verdict == "PASS"
        if largest < 9216:
            with raises("rig.frame-too-large", match=f"{largest} octets"):
                measure(setup, plan, largest + 1)


@pytest.mark.root
@pytest.mark.two_cpus
@pytest.mark.parametrize(("driver", "largest"), [("af_xdp", 1518), ("af_packet", 1518)])
def test_a_port_that_does_not_take_a_size_says_how_large_its_frames_are(
    driver: Literal["af_xdp", "af_packet"], largest: int
) -> None:
    """R8219-20: nothing is sent, and the interface of the kernel keeps the MTU that its host gave it."""
    plan = gateway_v4()
    with linux_lab(plan, name="jumbo") as lab:
        setup = make_lab_setup(lab)
        devices = {
            side: getattr(setup.testbed, side).model_copy(update={"device": lab.device(side, driver)})
            for side in ("left", "right")
        }
        dut = setup.testbed.dut.model_copy(update={"largest_frame_size": None})
        setup = replace(setup, testbed=setup.testbed.model_copy(update={**devices, "dut": dut}))
        with raises("engine.bad-frame-size", match=f"takes {largest} ") as caught:
            measure(setup, plan, 1522)
        assert "mtu 1504" in caught.value.next_step


def test_a_cable_of_small_buffers_refuses_large_frames(tmp_path: Path) -> None:
    """R8219-20: a frame in several buffers is one that newer DPDK hands over in pieces."""
    with engine() as session, raises("engine.bad-frame-size", match="takes 2052 ") as caught:
        open_ports(session, gateway_v4(), *memif_cable(tmp_path), frame_size=9216)
    assert "bsize" in caught.value.next_step
