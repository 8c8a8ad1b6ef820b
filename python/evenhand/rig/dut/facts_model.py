# SPDX-License-Identifier: Apache-2.0
"""DUT: the facts of an interface as a device that predictions are made for: its own key, table and hash
fields (RSS-01 to RSS-05)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from evenhand.base.errors import RequestError
from evenhand.plan import AddressPlan, Direction, SideName
from evenhand.predict import DeviceModel, HashType, Prediction, predict
from evenhand.rig.dut.places import is_of_side

TYPES: Mapping[str, HashType] = {"sd": "type1", "sdfn": "type2"}
RECEIVES: Mapping[Direction, SideName] = {"forward": "left", "reverse": "right"}
"""The DUT's interface that frames of a direction come to."""


def comes_to(direction: Direction, place: str) -> bool:
    """Whether the interface in this place is one that frames of the direction come to."""
    return is_of_side(place, RECEIVES[direction])


def device_of(
    interface: Mapping[str, Any], ip_version: Literal[4, 6], *, where: str, rate_fps: float | None = None
) -> DeviceModel:
    """The queues of an interface, and how its NIC chooses one.

    Args:
        interface: One of `interfaces` of the facts.
        rate_fps: What one queue forwards, if that is known.

    Raises:
        RequestError: The driver does not report them, with its answer; or it hashes in a way that is not
            predicted.
    """
    reported, protocol = interface["hash"], f"udp{ip_version}"
    if not reported["table"]:
        raise _not_reported(interface, "its indirection table", "table", where)
    if reported["key"] is None:
        raise _not_reported(interface, "its hash key", "key", where)
    if protocol not in reported["fields"]:
        raise _not_reported(
            interface, f"which fields it hashes for UDP over IPv{ip_version}", protocol, where
        )
    fields = reported["fields"][protocol]
    if fields not in TYPES:
        raise RequestError(
            f"{interface['name']} hashes {fields!r} for UDP over IPv{ip_version}, which is"
            " neither type 1 (sd) nor type 2 (sdfn)",
            code="rig.hash-of-other-fields",
            where=where,
            next_step=f"Set it there: ethtool -N {interface['name']} rx-flow-hash {protocol} sd",
        )
    table = tuple(reported["table"])
    return DeviceModel(
        elements=max(table) + 1,
        hash_type=TYPES[fields],
        symmetric=reported["is_symmetric"],
        key=bytes.fromhex(reported["key"]),
        table=table,
        rate_fps=rate_fps,
    )


def predict_queues(
    facts: Mapping[str, Any], plan: AddressPlan, direction: Direction, *, where: str, place: str | None = None
) -> Prediction:
    """The load of each queue of the interface that the frames of this direction come to.

    Args:
        place: This one's place, where there are several such interfaces.

    Raises:
        RequestError: As `device_of`; or fields of the plan count together.
    """
    version = plan.stream_of(direction).sent.ip_version
    interface = facts["interfaces"][place or RECEIVES[direction]]
    return predict(plan, device_of(interface, version, where=where), (direction,))


def _not_reported(interface: Mapping[str, Any], what: str, part: str, where: str) -> RequestError:
    answer = interface["answers"].get(part) or interface["answers"].get("table") or "no answer"
    return RequestError(
        f"the driver of {interface['name']} ({interface['driver'] or 'unknown'}) does not report"
        f" {what}: {answer}",
        code="rig.not-reported-by-nic",
        where=where,
        next_step="Omit --dut, and give what you know about the device: --table, --key, --hash, --elements.",
    )
