# SPDX-License-Identifier: Apache-2.0
"""Station 7: an engine's replies and events, looked at before anything is made of them: their form, and
whether they answer what was asked. contract/reply.schema.json says more; this is what the Python half
reads."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from evenhand.trial.clean_time import read_left_out
from evenhand.trial.contract_values import number, whole
from evenhand.trial.load import Load, was_offered

_TOLERANCE = 1e-6
_MAC: Final = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.ASCII)
_UTC: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
_COUNT, _NUMBER, _TEXT, _FLAG, _MAC_ADDRESS, _TIME = "count", "number", "text", "flag", "mac", "time in UTC"
_MAYBE_NUMBER = "number or null"
Form = str | Mapping[str, Any] | list[Any]
"""One of the words above, the members of an object (with `?` where one may be missing), or a list of one."""

_PORT = {
    "device": _TEXT,
    "driver": _TEXT,
    "mac": _MAC_ADDRESS,
    "line_rate_bps": _MAYBE_NUMBER,
    "link_up": _FLAG,
    "receive_ring_frames": _COUNT,
    "transmit_ring_frames": _COUNT,
    "flow_control": _TEXT,
    "hardware_stamps": _TEXT,
}
_OFFSETS = [{"cpu": _COUNT, "offset_us": _NUMBER, "uncertainty_us": _NUMBER}]
_RESOLVED = {"dut_mac": _MAC_ADDRESS, "static": _FLAG}
_COUNTERS = {
    "port": {
        "received_frames": _COUNT,
        "transmitted_frames": _COUNT,
        "missed_frames": _COUNT,
        "link_up": _FLAG,
    },
    "neighbor": {"requests": _COUNT, "answers": _COUNT},
}
_LEARNING_SIDE = {"hosts": _COUNT, "reachable": _COUNT}
_LEARNED_SIDE = {**_LEARNING_SIDE, "rounds": _COUNT, "unreachable": [_TEXT], "questions_answered": _COUNT}
_PROGRESS_DIRECTION = {
    "sent_frames": _COUNT,
    "received_frames": _COUNT,
    "settled_frames": _COUNT,
    "lost_frames": _COUNT,
    "latency": {"mean_ns": _MAYBE_NUMBER, "max_ns": _MAYBE_NUMBER},
    "recent_latency?": {"median_ns": _NUMBER, "p999_ns": _NUMBER},
    "received_of_flows?": [_COUNT],
}
_PART = "part that is left out"
_CODES = [{"code": _TEXT, "text": _TEXT}]
_FAULT = {"code": _TEXT, "kind": _TEXT, "what": _TEXT, "where": _TEXT, "next": _TEXT}
_TRIAL = {
    "contract": _COUNT,
    "trial": _COUNT,
    "verdict": _TEXT,
    "reasons": _CODES,
    "started_at": _TIME,
    "notes?": _CODES,
    "frame_size": _COUNT,
    "intended_fps": _NUMBER,
    "intended_duration_s": _NUMBER,
    "loss_ratio": _NUMBER,
    "directions": {"forward?": {}, "reverse?": {}},
    "ports": {"left": {}, "right": {}},
    "limits": {},
    "clock": {},
}
_RESPONSES: dict[str, Form] = {
    "about": {"version": _TEXT, "contract": _COUNT, "dpdk": _TEXT, "compiler": _TEXT, "build_type": _TEXT},
    "open": {
        "left": _PORT,
        "right": _PORT,
        "ticks_per_second": _NUMBER,
        "session": _COUNT,
        "clock_offsets?": _OFFSETS,
    },
    "resolve": {"left": _RESOLVED, "right": _RESOLVED},
    "counters": {"left": _COUNTERS, "right": _COUNTERS},
    "clock": {"time_unix_ns": _COUNT},
    "link": {"left": {"link_up": _FLAG}, "right": {"link_up": _FLAG}},
    "learn": {"stopped": _FLAG, "rate_share?": _NUMBER, "left?": _LEARNED_SIDE, "right?": _LEARNED_SIDE},
    "trial": _TRIAL,
    "judge": _TRIAL,
    "frames": {
        "frames": [
            {
                "sequence": _COUNT,
                "stream": _COUNT,
                "source": _TEXT,
                "destination": _TEXT,
                "source_port": _COUNT,
                "destination_port": _COUNT,
                "octets": _TEXT,
            }
        ]
    },
}
_EVENTS: dict[str, Form] = {
    "progress": {
        "trial": _COUNT,
        "phase": _TEXT,
        "elapsed_s": _NUMBER,
        "total_s": _NUMBER,
        "sent_frames?": _COUNT,
        "received_frames?": _COUNT,
        "directions?": {"forward?": _PROGRESS_DIRECTION, "reverse?": _PROGRESS_DIRECTION},
        "failing?": {"lost_frames": _COUNT, "allowed_frames": _COUNT},
        "sending_s?": _NUMBER,
        "left_out?": [_PART],
    },
    "learning": {"round": _COUNT, "rate_share?": _NUMBER, "left?": _LEARNING_SIDE, "right?": _LEARNING_SIDE},
    "proving": {"direction": _TEXT, "drawn_frames": _COUNT, "frames": _COUNT},
}
_ECHOED = {
    "trial": ("trial",),
    "prove": ("direction", "seed", "first", "streams", "stream", "generator"),
    "open": ("session",),
}
"""Arguments that a reply repeats, if they were given."""


def check_fault(fault: Any) -> None:
    """ValueError unless that is one."""
    _check(fault, _FAULT, "fault")


def check_event(asked: Mapping[str, Any], event: Mapping[str, Any]) -> None:
    """ValueError unless it has the form of one that an engine may report, and is of the trial that was asked
    for."""
    name = event["event"]
    if not isinstance(name, str) or name not in _EVENTS:
        raise ValueError(f"event is {name!r}")
    _check(event, _EVENTS[name], "")
    if "trial" in event and event["trial"] != asked.get("trial", event["trial"]):
        raise ValueError(f"it reports on trial {event['trial']}, but {asked['trial']} was asked for")


def check_response(name: str, reply: Mapping[str, Any]) -> None:
    """ValueError unless it has the form of a response to a request of this name."""
    _check(reply, _RESPONSES.get(name, {}), "")


def check_answer(
    name: str, asked: Mapping[str, Any], reply: Mapping[str, Any], *, frame_size: int | None
) -> None:
    """ValueError if a reply is one to something else: what an engine repeats must be what it was asked, and
    what it computes must be what its counts are.

    Args:
        frame_size: The size that the ports were opened for; None: not known, or a mix.
    """
    for key in _ECHOED.get(name, ()):
        if asked.get(key) is not None and reply.get(key) != asked[key]:
            raise ValueError(f"{key} is {reply.get(key)!r}, but {asked[key]!r} was asked for")
    if name == "trial":
        _check_trial(asked, reply, frame_size)
    elif name == "judge":
        first = next(each["result"] for each in asked["results"] if "result" in each)
        for key in ("trial", "frame_size", "intended_fps", "intended_duration_s"):
            if reply[key] != first[key]:
                raise ValueError(f"{key} is {reply[key]!r}, but {first[key]!r} was to be judged")
        _check_loss(reply)
    elif name == "open":
        _check_opened(reply)
    elif name == "learn":
        wanted = {{"forward": "right", "reverse": "left"}[each] for each in asked.get("directions", ())}
        found = {side for side in ("left", "right") if side in reply}
        if wanted and found != wanted:
            raise ValueError(f"it has the sides {sorted(found)}, but {sorted(wanted)} were asked for")
    elif name == "frames" and len(reply["frames"]) > asked.get("count", 0):
        raise ValueError(f"it has {len(reply['frames'])} frames, but {asked.get('count')} were asked for")


def _check_trial(asked: Mapping[str, Any], reply: Mapping[str, Any], frame_size: int | None) -> None:
    if frame_size is not None and reply["frame_size"] != frame_size:
        raise ValueError(f"frame_size is {reply['frame_size']}, but the ports were opened for {frame_size}")
    directions = reply["directions"]
    wanted = asked.get("directions") or ("forward", "reverse")
    if set(directions) != set(wanted):
        raise ValueError(f"directions are {sorted(directions)}, but must be {sorted(wanted)}")
    if not was_offered(Load.from_contract(asked), reply):
        raise ValueError(
            f"it intended {reply['intended_fps']:g} fps for {reply['intended_duration_s']:g} s, which is not"
            " the load that was asked for"
        )
    for name, direction in directions.items():
        _check_own_load(name, direction, asked)
        _check_rates(name, direction, reply)
    for key, limit in (asked.get("limits") or {}).items():
        found = reply["limits"].get(key, limit)
        if not math.isclose(number(found), limit, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            raise ValueError(f"limits.{key} is {found!r}, but {limit!r} was asked for")
    _check_loss(reply)
    _check_verdict(reply)


def _check_own_load(name: str, direction: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    part = (asked.get("relative_rates") or {}).get(name)
    found = direction.get("intended_fps")
    if (part is None) != (found is None):
        raise ValueError(f"{name}.intended_fps is {found!r}, but relative_rates has {part!r}")
    if part is not None and asked.get("then") is None:
        wanted = asked["rate_fps"] * part
        if not math.isclose(number(found), wanted, rel_tol=_TOLERANCE):
            raise ValueError(f"{name}.intended_fps is {found!r}, but {wanted!r} was asked for")


def _check_opened(reply: Mapping[str, Any]) -> None:
    rates = {f"{side}.line_rate_bps": reply[side]["line_rate_bps"] for side in ("left", "right")}
    for place, value in {**rates, "ticks_per_second": reply["ticks_per_second"]}.items():
        if value is not None and not number(value) > 0:
            raise ValueError(f"{place} is {value!r}, but must be more than 0")


def _check_rates(name: str, direction: Mapping[str, Any], reply: Mapping[str, Any]) -> None:
    """EngineError unless the rates of a direction are what its frames make in the time in which they were
    sent, which may have taken longer than it was to."""
    offered, intended = whole(direction, "offered_frames"), whole(direction, "intended_frames")
    if offered > intended:
        raise ValueError(f"{name}.offered_frames is {offered}, but {intended} were intended")
    early_s, clean = reply.get("stopped_early_s"), reply.get("clean")
    usual_s = reply["intended_duration_s"] if clean is None else clean["sent_s"]
    sending_s = number(usual_s if early_s is None else early_s)
    if sending_s <= 0:
        raise ValueError(f"it sent for {sending_s:g} s")
    most_fps, offered_fps = offered / sending_s, number(direction["offered_fps"])
    if not 0 <= offered_fps <= most_fps * (1 + _TOLERANCE) + _TOLERANCE:
        raise ValueError(f"{name}.offered_fps is {offered_fps:g}, but its frames give {most_fps:g}")
    fastest, slowest = direction["latency"]["min_ns"], direction["latency"]["max_ns"]
    if None not in (fastest, slowest) and number(fastest) > number(slowest):
        raise ValueError(f"{name}.latency has the least of {fastest:g} ns, but the most of {slowest:g} ns")
    found_fps = number(direction["forwarding_rate_fps"])
    forwarded_fps = whole(direction, "received_frames") / sending_s
    if not math.isclose(found_fps, forwarded_fps, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
        raise ValueError(
            f"{name}.forwarding_rate_fps is {found_fps:g}, but its frames give {forwarded_fps:g}"
        )


def _check_verdict(reply: Mapping[str, Any]) -> None:
    """What only an engine writes that runs; `TrialResult` checks what stored trials have to keep, too."""
    directions, codes = reply["directions"], {each["code"] for each in reply["reasons"]}
    if reply["verdict"] == "PASS" and codes:
        raise ValueError(f"it is PASS, but has the reasons {_shown(sorted(codes))}")
    unlike = [name for name, each in directions.items() if each["offered_frames"] != each["intended_frames"]]
    if reply["verdict"] == "PASS" and unlike and not _is_judged_by_clean_time(reply):
        raise ValueError(f"it is PASS, but not all of the load was offered ({', '.join(unlike)})")
    has_lost = any(each["offered_frames"] != each["received_frames"] for each in directions.values())
    if reply["verdict"] == "FAIL" and codes == {"loss"} and not has_lost:
        raise ValueError("it is FAIL for loss, but has lost no frame")


def _is_judged_by_clean_time(reply: Mapping[str, Any]) -> bool:
    """What was not sent in time is left out of it."""
    return (reply.get("clean") or {}).get("is_enough") is True


def _check_loss(reply: Mapping[str, Any]) -> None:
    directions = reply["directions"]
    is_clean = _is_judged_by_clean_time(reply)
    judged = [each["clean"] if is_clean else each for each in directions.values()]
    offered = sum(whole(each, "frames" if is_clean else "offered_frames") for each in judged)
    lost = sum(whole(each, "lost_frames") for each in judged)
    ratio = lost / offered if offered else reply["loss_ratio"]
    if not math.isclose(ratio, reply["loss_ratio"], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
        raise ValueError(f"loss_ratio is {reply['loss_ratio']:g}, but its counts give {ratio:g}")


def _check(value: Any, form: Form, place: str) -> None:
    if isinstance(form, Mapping):
        if not isinstance(value, dict):
            raise ValueError(f"{place or 'it'} is {_shown(value)}, but must be an object")
        for key, inner in form.items():
            name = key.removesuffix("?")
            if name in value:
                _check(value[name], inner, f"{place}.{name}".lstrip("."))
            elif name == key:
                raise ValueError(f"it lacks {f'{place}.{name}'.lstrip('.')}")
    elif isinstance(form, list):
        if not isinstance(value, list):
            raise ValueError(f"{place} is {_shown(value)}, but must be a list")
        for index, each in enumerate(value):
            _check(each, form[0], f"{place}[{index}]")
    elif not _is(value, form):
        raise ValueError(f"{place} is {_shown(value)}, but must be a {form}")


def _is(value: Any, form: str) -> bool:
    if form == _COUNT:
        return type(value) is int and 0 <= value < 1 << 64
    if form in (_NUMBER, _MAYBE_NUMBER):
        if value is None:
            return form == _MAYBE_NUMBER
        return type(value) is float or (type(value) is int and abs(value) < 1 << 64)
    if form == _MAC_ADDRESS:
        return isinstance(value, str) and _MAC.fullmatch(value) is not None
    if form == _PART:
        return _is_left_out(value)
    if form == _TIME:
        return isinstance(value, str) and _UTC.fullmatch(value) is not None
    return isinstance(value, bool if form == _FLAG else str)


def _is_left_out(value: Any) -> bool:
    try:
        return bool(read_left_out([value]))
    except (ValueError, TypeError):
        return False


def _shown(value: Any) -> str:
    """Its beginning: it may be as long as a line."""
    if isinstance(value, dict | list):
        return f"{type(value).__name__} of {len(value)}"
    text = f"a number of {value.bit_length()} bits" if type(value) is int and value >> 64 else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
