# SPDX-License-Identifier: Apache-2.0
"""Specification: the reference router that the table `[reference]` of a campaign describes."""

from __future__ import annotations

from evenhand.base.option import fill
from evenhand.rig import ReferenceDut
from evenhand.spec.file import Reference
from evenhand.spec.request import HashType
from evenhand.spec.router import ReferenceOptions


def reference_dut(reference: Reference, hash_type: HashType | None = None) -> ReferenceDut:
    """The DUT while a point is measured. RequestError names the option.

    Args:
        hash_type: Hash type of the point; None: that of the table.
    """
    written = reference.to_document()
    # Without elements nothing is hashed, whatever the point says of the DUT.
    if hash_type is not None and reference.elements is not None:
        written["hash"] = hash_type
    if reference.table is not None:
        written["table"] = reference.table  # a tuple, which the document has as a list
    if reference.largest_frame is not None:
        written["largest-frame"] = str(reference.largest_frame)
    return fill(ReferenceOptions, written).dut()
