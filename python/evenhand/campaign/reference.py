# SPDX-License-Identifier: Apache-2.0
"""Campaign: the reference router that `[reference]` describes, as `evenhand router` reads the same
options."""

from __future__ import annotations

from evenhand.campaign.file import Reference
from evenhand.cli.common import read_largest_frame
from evenhand.cli.device import DeviceOptions, HashName
from evenhand.cli.router import read_dut
from evenhand.rig import ReferenceDut, parse_vlans
from evenhand.series.campaign import HashType


def reference_dut(reference: Reference, hash_type: HashType | None = None) -> ReferenceDut:
    """The DUT while a point is measured. RequestError names the option.

    Args:
        hash_type: Of the point; None: that of the table.
    """
    # Without elements nothing is hashed, whatever the point says of the DUT.
    chosen = hash_type if hash_type is not None and reference.elements is not None else reference.hash
    device = DeviceOptions(
        rate=reference.rate,
        hash_type=HashName(chosen),
        symmetric=reference.symmetric,
        key=reference.key,
        table_size=reference.table_size,
        table=None if reference.table is None else ",".join(map(str, reference.table)),
    )
    return read_dut(
        reference.elements,
        device,
        reference.queue_frames,
        delay=reference.delay,
        neighbor_cost=reference.neighbor_cost,
        defects=list(reference.defect),
        largest_frame_size=read_largest_frame(
            None if reference.largest_frame is None else str(reference.largest_frame)
        ),
        vlans={} if reference.vlan is None else parse_vlans(reference.vlan, where="--vlan"),
    )
