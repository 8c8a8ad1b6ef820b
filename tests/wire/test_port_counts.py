# SPDX-License-Identifier: Apache-2.0
"""What the ports of a tester count, held against what its receivers saw; and its CPUs' clocks, held against
each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.plan import SIDES, AddressPlan, gateway_v4, gateway_v6
from tests.wire.test_streams import two_workers
from tests.wire.wire_session import NOBODY, engine, memif_cable, open_ports, run_trial

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus]


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
def test_receivers_see_every_frame_that_a_software_port_counts(plan: AddressPlan, tmp_path: Path) -> None:
    """R2544-39: whatever else a trial met, no frame vanished between a port and its receivers, and each CPU's
    clock is known."""
    with engine() as session:
        ports = {
            side: {"device": device, "dut_mac": mac, "link_timeout_s": 20}
            for side, device, mac in zip(SIDES, memif_cable(tmp_path), NOBODY, strict=True)
        }
        opened = session.request(
            "open",
            ports=ports,
            workers=two_workers(receive_queues=2),
            plan=plan.to_contract(),
            frame_size=plan.smallest_frame_size,
            seed=1,
        )
        document = run_trial(session, rate_fps=2_000)
    for side in SIDES:
        assert (opened[side]["receive_count"], opened[side]["flow_control"]) == ("exact", "none")
        before, after = (document["ports"][side][moment] for moment in ("before", "after"))
        assert (
            after["seen_frames"] - before["seen_frames"]
            == after["received_frames"] - before["received_frames"]
            > 0
        )
        assert after["counts_pause"] is False
        assert not any(after["hidden_drops"].values())
    assert "receive_unseen" not in {reason["code"] for reason in document["reasons"]}
    # A cable lowers no hop limit, and the trial says so; nothing else is worth a note.
    assert {note["code"] for note in document["notes"]} == {"hop_limit"}
    assert document["clock"]["offsets"] == opened["clock_offsets"]
    # A CPU that never had a turn was not measured; the first is what the others are held against.
    assert opened["clock_offsets"][0]["offset_us"] == 0
    assert all(offset["uncertainty_us"] >= 0 for offset in opened["clock_offsets"])


@pytest.mark.parametrize("plan", [gateway_v4(), gateway_v6()], ids=lambda p: p.name)
def test_control_frames_have_a_queue_where_it_leads_to_the_same_wire(
    plan: AddressPlan, tmp_path: Path
) -> None:
    """A memif's second queue leads to one that nobody reads at the other end, so answers would vanish there;
    of net_null it leads to the same nothing, and all test frames leave beside it."""
    for devices, queue in (
        (memif_cable(tmp_path), "shared"),
        (("net_null0,no-rx=1", "net_null1,no-rx=1"), "own"),
    ):
        with engine() as session:
            opened = open_ports(session, plan, *devices)
            document = run_trial(session, rate_fps=2_000, duration_s=0.2)
        for side in SIDES:
            assert (opened[side]["control_queue"], opened[side]["fast_free"]) == (queue, False)
            before, after = (document["ports"][side][moment] for moment in ("before", "after"))
            assert after["transmitted_frames"] - before["transmitted_frames"] >= 400
