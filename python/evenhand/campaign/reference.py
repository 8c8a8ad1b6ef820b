# SPDX-License-Identifier: Apache-2.0
"""Campaign: the reference router that `[reference]` describes, as `evenhand router` reads the same options."""

from __future__ import annotations

from evenhand.campaign.file import Reference
from evenhand.cli.common import read_largest_frame
from evenhand.cli.predict import HashName
from evenhand.cli.router import read_dut
from evenhand.reference import ReferenceDut
from evenhand.series.campaign import HashType
from evenhand.testbed.vlan import parse_vlans


def reference_dut(reference: Reference, hash_type: HashType | None = None) -> ReferenceDut:
    """The DUT while a point is measured. RequestError names the option.

    Args:
        hash_type: Of the point; None: that of the table.
    """
    return read_dut(
        reference.elements, reference.rate, reference.queue, HashName(hash_type or reference.hash), symmetric=reference.symmetric,
        key=reference.key, table_size=reference.table_size, delay=reference.delay, neighbor_cost=reference.neighbor_cost,
        defects=list(reference.defect),
        largest_frame_size=read_largest_frame(None if reference.largest_frame is None else str(reference.largest_frame)),
        vlans={} if reference.vlan is None else parse_vlans(reference.vlan, where="--vlan"),
    )  # fmt: skip
