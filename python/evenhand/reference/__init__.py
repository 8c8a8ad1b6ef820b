# SPDX-License-Identifier: Apache-2.0
"""The reference router: a DUT about which the truth is known, because it was set by hand."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.predict import NeighborCost
    from evenhand.reference.config import (
        DEFAULT_QUEUE_FRAMES,
        DEFECT_KINDS,
        MAX_ROUTER_ELEMENTS,
        Defects,
        LongerDelay,
        ReferenceDut,
        Stall,
    )
    from evenhand.reference.router import RING_FRAMES, ReferenceRouter, reference_router
else:
    from evenhand.base.lazy_import import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {
            "evenhand.predict": ("NeighborCost",),
            "config": (
                "DEFAULT_QUEUE_FRAMES",
                "DEFECT_KINDS",
                "MAX_ROUTER_ELEMENTS",
                "Defects",
                "LongerDelay",
                "ReferenceDut",
                "Stall",
            ),
            "router": ("RING_FRAMES", "ReferenceRouter", "reference_router"),
        },
    )

__all__ = [
    "DEFAULT_QUEUE_FRAMES",
    "DEFECT_KINDS",
    "MAX_ROUTER_ELEMENTS",
    "RING_FRAMES",
    "Defects",
    "LongerDelay",
    "NeighborCost",
    "ReferenceDut",
    "ReferenceRouter",
    "Stall",
    "reference_router",
]
