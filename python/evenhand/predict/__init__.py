# SPDX-License-Identifier: Apache-2.0
"""Before any station: what a device that shares its load by a hash will make of a plan. Sends nothing, needs
no engine (D13)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.predict.hosts_needed import (
        NeighborCost,
        doubling_series,
        even_limit,
        has_listed_hosts,
        maximum_hosts,
        neighbor_entries,
        smallest_even_hosts,
        with_hosts,
    )
    from evenhand.predict.loads import Prediction, element_of, hash_input, hash_octets, predict
    from evenhand.predict.model import (
        COMMON_TABLE_SIZE,
        OPENBSD_SEED,
        VERIFICATION_KEY,
        DeviceModel,
        HashType,
        round_robin_table,
        symmetric_key,
    )
else:
    from evenhand.base.lazy_import import lazy_names

    # The same, each loaded when it is first used: most verbs need a few of them.
    __getattr__ = lazy_names(
        __name__,
        {
            "hosts_needed": (
                "NeighborCost",
                "doubling_series",
                "even_limit",
                "has_listed_hosts",
                "maximum_hosts",
                "neighbor_entries",
                "smallest_even_hosts",
                "with_hosts",
            ),
            "loads": ("Prediction", "element_of", "hash_input", "hash_octets", "predict"),
            "model": (
                "COMMON_TABLE_SIZE",
                "OPENBSD_SEED",
                "VERIFICATION_KEY",
                "DeviceModel",
                "HashType",
                "round_robin_table",
                "symmetric_key",
            ),
        },
    )

__all__ = [
    "COMMON_TABLE_SIZE",
    "OPENBSD_SEED",
    "VERIFICATION_KEY",
    "DeviceModel",
    "HashType",
    "NeighborCost",
    "Prediction",
    "doubling_series",
    "element_of",
    "even_limit",
    "has_listed_hosts",
    "hash_input",
    "hash_octets",
    "maximum_hosts",
    "neighbor_entries",
    "predict",
    "round_robin_table",
    "smallest_even_hosts",
    "symmetric_key",
    "with_hosts",
]
