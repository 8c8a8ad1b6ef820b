# SPDX-License-Identifier: Apache-2.0
"""Requests that the engine must refuse, and configurations that the reference router must: those that need
neither root nor a port that somebody has."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.plan import make_plan

GOLDEN = Path(__file__).resolve().parents[2] / "contract" / "golden"
_GONE = object()
"""In place of a value: the key is taken away."""

Document = dict[str, Any]
Changes = dict[str, Any]
"""Other values of a document: `ports.0.mac` is a key of the first element of a list."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A line to the engine."""

    line: str
    is_refused: bool = True


def sessions() -> Iterator[list[Asked]]:
    """Sessions of the engine: without ports, with a plan, and with one that has state."""
    yield [Asked(line) for line in _without_ports()]
    yield _with_ports("gateway_v4", _TRIALS)
    yield _with_ports("nat44", _TRIALS_WITH_STATE)


def configurations() -> Iterator[str]:
    """Configurations of the router."""
    yield from ("{", "[]", "[" * 100)
    for config, changes in _CONFIGURATIONS:
        yield json.dumps(_changed(config, changes))


def own_cpu() -> int:
    """That the engine may use."""
    return min(os.sched_getaffinity(0))


def _changed(document: Document, changes: Changes) -> Document:
    changed = copy.deepcopy(document)
    for path, value in changes.items():
        *places, last = (int(step) if step.isdigit() else step for step in path.split("."))
        inner: Any = changed
        for place in places:
            inner = inner[place]
        if value is _GONE:
            del inner[last]
        else:
            inner[last] = value
    return changed


def _below(key: str, changes: Changes) -> Changes:
    return {f"{key}.{path}": value for path, value in changes.items()}


def _golden(name: str) -> list[Document]:
    return [json.loads(line) for line in (GOLDEN / f"{name}.jsonl").read_text().splitlines()]


def _golden_request(number: int) -> Document:
    return next(request for request in _golden("requests") if request["id"] == number)


def _without_ports() -> Iterator[str]:
    yield from (bad["line"] for bad in _golden("bad-requests"))
    for each in _golden("devices"):
        if not each["is_allowed"]:
            change = (
                {"ports.left.device": each["device"]}
                if "device" in each
                else {"host.extra_eal_arguments": each["eal"]}
            )
            yield json.dumps(_changed(_OPEN, change))
    for request in ({"request": "resolve"}, {"request": "learn"}, _TRIAL):
        yield json.dumps({"id": 1, **request})
    yield json.dumps({"id": 1, "request": "watch", "seconds": 1, "cpus": [_NO_CPU]})
    for document, changes in _CHANGES:
        yield json.dumps(_changed(document, changes))


def _with_ports(plan: str, trials: Iterable[Changes]) -> list[Asked]:
    request = json.dumps(_OPEN | {"plan": make_plan(plan).to_contract()})
    return [
        Asked(request, is_refused=False),
        Asked(request),
        *(Asked(json.dumps(_changed(_TRIAL, changes))) for changes in trials),
        Asked(json.dumps({"id": 1, "request": "close"}), is_refused=False),
    ]


_NO_CPU = 65535
_OPEN = _changed(_golden_request(4), {"workers.0.cpu": own_cpu()})
_TRIAL = {"id": 1, "request": "trial", "trial": 1, "rate_fps": 1000, "duration_s": 1}
_JUDGE = _golden_request(702)
_MIX = _OPEN | {key: _golden_request(45)[key] for key in ("mix", "frame_size")}
_WORKER = _OPEN["workers"][0]
_QUEUE = {"side": "left", "queue": 0}


_OPENS: tuple[Changes, ...] = (
    {"ports.right.device": "net_ring0"},
    {"workers.0.cpu": _NO_CPU},
    {"workers": [_WORKER, _WORKER]},
    {"workers.0.receivers": [_QUEUE, _QUEUE, {**_QUEUE, "side": "right"}]},
    {"workers.0.receivers": [_QUEUE]},
    {"workers.0.senders.1.stream": 1},
    {"frame_size": 63},
    {"frame_size": 65, "ports.left.vlan": [7, 8]},
)
_MIXES: tuple[Changes, ...] = (
    {"mix.classes": []},
    {"mix.cycle": []},
    {"mix.cycle": [0, 2]},
    {"mix.cycle": [0]},
    {"mix.classes.1.plan": 0},
    {"mix.classes.1.frame_size": 83},
    {"mix.other_plan": _GONE},
    {"mix.other_plan": make_plan("gateway_v4").to_contract()},
    {"mix.other_plan": make_plan("direct_v6").to_contract()},
)
_RESULTS: tuple[Changes, ...] = (
    {"1": _GONE},
    {"0": _GONE},
    {"1.engine": "a"},
    {"1.engine": ""},
    {"1.result.share.first": 0},
    {"1.result.share": _GONE},
    {"1.result.share.stride": 3},
    {"1.result.trial": 8},
    {"1.result.intended_fps": 7},
    {"1.result.limits.loss_ratio": 0.5},
    {"1.result.start": _GONE},
    {"1.result.directions": {}},
)
_CHANGES: list[tuple[Document, Changes]] = [
    *((_OPEN, changes) for changes in _OPENS),
    *((_MIX, changes) for changes in _MIXES),
    *((_JUDGE, _below("results", changes)) for changes in _RESULTS),
    (_JUDGE, {"results": []}),
]
_DELAYS = {"from_s": 0.5, "tagged_frames": 500, "variation": False}
_TRIALS: tuple[Changes, ...] = (
    {"rate_fps": 1e8},
    {"rate_fps": 0.1},
    {"share": {"first": 1, "stride": 2}, "duration_s": 0.001},
    {"delays": _DELAYS, "stop_when_failed": True},
    {"delays": {**_DELAYS, "from_s": 1}},
    {"delays": {**_DELAYS, "tagged_frames": 501}},
    {"connections": {"use": "established"}},
)
_ESTABLISH = {"use": "establish", "count": 1000}
_FORWARD = {"directions": ["forward"]}
_TRIALS_WITH_STATE: tuple[Changes, ...] = (
    {},
    {"request": "learn", "trial": _GONE, "duration_s": _GONE},
    {"connections": {"use": "established"}},
    {"connections": _ESTABLISH},
    {"connections": {**_ESTABLISH, "count": 999}, **_FORWARD},
)

_CONFIG: Document = {
    "ports": {
        "left": {"device": "net_ring0", "addresses": ["10.0.0.1/24", "2001:2:0:1000::1/64"]},
        "right": {"device": "net_ring1", "mac": "02:00:00:00:d0:02", "addresses": ["10.0.1.1/24"]},
    },
    "cpu": 0,
    "routes": [{"network": "198.18.0.0/16", "via": "10.0.0.2"}],
    "elements": {
        "count": 4,
        "rate_fps": 50000,
        "queue_frames": 512,
        "hash": "type2",
        "key": "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa",
    },
    "neighbors": {"static": [{"address": "10.0.0.2", "mac": "02:00:00:00:00:01"}]},
    "defects": {"loss": {"ratio": 0.01}, "reordering": {"at": [7, 9]}},
    "longer_delay": {"every": 100, "us": 500},
    "stall": {"every_ms": 1000, "for_ms": 20, "queue_frames": 64},
}
_MAPPING = {"ipv4": "198.18.0.0/16", "ipv6": "2001:2::/112"}
_TRANSLATION = _CONFIG | {"translation": {"prefix": "2001:2:0:64::/96", "mappings": [_MAPPING]}}
_NAT = _CONFIG | {
    "nat": {
        "inside": "left",
        "pool": {"first": "198.18.1.0", "count": 2},
        "prefix": "2001:2:0:64::/96",
        "ports": {"first": 7, "last": 7},
        "other_address_every": 3,
    }
}
_CONFIGS: tuple[Changes, ...] = (
    {"prots": 1},
    {"cpu": _GONE},
    {"ports.left.device": ""},
    {"ports.left.device": "net_failsafe0,exec(reboot)"},
    {"ports.left.addresses": []},
    {"ports.left.addresses": [7]},
    {"ports.left.addresses": ["10.0.0.1"]},
    {"ports.left.addresses": ["10.0.0.1/33"]},
    {"ports.right.mac": "02:00"},
    {"ports.right.vlan": [1, 2, 3]},
    {"ports.right.vlan": [4095]},
    {"more_ports": [_CONFIG["ports"]] * 4},
    {"host": {"extra_eal_arguments": ["--vdev=net_null9"]}},
    {"routes.0.via": "nowhere"},
    {"routes.0.network": "198.18.0.1/16"},
    {"elements.count": 0},
    {"elements.rate_fps": 0},
    {"elements.hash": "typ2"},
    {"elements.key": "6d5a"},
    {"elements.table": [0, 1, 2]},
    {"elements.table": [0, 36]},
    {"defects.losses": {}},
    {"defects.loss.ratio": 1.5},
    {"defects.loss.ratio": 1e-10},
    {"defects.reordering.at": [-1]},
    {"neighbors.static.0.mac": "x"},
    {"longer_delay.every": 0},
    {"longer_delay.ms": 1},
    {"stall.every_ms": 0},
    {"stall.for_ms": 1000},
)
_TRANSLATIONS: tuple[Changes, ...] = (
    {"prefix": "2001:2::/80"},
    {"prefix": "198.18.0.0/16"},
    {"prefix": "2001:2::1/96"},
    {"prefix": "2001:2:0:0:100::/96"},
    {"mappings.0.ipv4": "198.18.0.0/15"},
    {"mappings.0.ipv6": "10.0.0.0/16"},
)
_NATS: tuple[Changes, ...] = (
    {"pool": {"first": "2001:2::1:0", "count": 9}},
    {"pool.count": 65281},
    {"pool.offset": 3},
    {"pool.first": "198.18.0.0"},
    {"pool.first": "10.0.0.1"},
    {"ports.last": 6},
    {"when_full": "drop"},
)
_CONFIGURATIONS: list[tuple[Document, Changes]] = [
    *((_CONFIG, changes) for changes in _CONFIGS),
    *((_TRANSLATION, _below("translation", changes)) for changes in _TRANSLATIONS),
    *((_NAT, _below("nat", changes)) for changes in _NATS),
    (_NAT, {"translation": {"prefix": "2001:2:0:64::/96", "mappings": []}}),
]
