# SPDX-License-Identifier: Apache-2.0
"""An engine that plays a part: speaks the contract from golden replies, or breaks it in the way that argv
names."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FEW_BUCKETS = 20
OPENED: dict[str, Any] = {}
"""The request by which the ports were opened."""
GOLDEN = ROOT / "contract" / "golden" / "replies.jsonl"


def say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


@cache
def device_and_its_load() -> tuple[Any, Any, Any]:
    """Without the package's `__init__`, which takes six times as long to load as what is needed: tests start
    thousands of engines."""
    package = sys.modules.setdefault("evenhand", ModuleType("evenhand"))
    package.__path__ = [str(ROOT / "python" / "evenhand")]
    from evenhand.trial import DelayWish, Load, SimulatedMeasurer

    return SimulatedMeasurer, Load, DelayWish


def simulate(limits: str, request: dict[str, Any]) -> dict[str, Any]:
    """A trial on a device that forwards up to a limit, by a tester that offers up to another: `640000`, or
    `640000-900000`.

    A third number is the frames that the device holds back: `640000--512`; a fourth the buckets of each
    histogram, of which a real one has hundreds: `640000---500`; a fifth the connections that it holds; a
    sixth the share of the frames that it loses at any load: `3000000-----0.0001`; a seventh the share of the
    time in which the tester is away, which is left out where clean time was asked for: `640000------0.02`.
    """
    if "relative_rates" in request:
        return simulate_unlike(limits, request)
    SimulatedMeasurer, Load, DelayWish = device_and_its_load()  # noqa: N806
    delays = request.get("delays")
    limit, ceiling, buffer, buckets, table, floor, away = [*limits.split("-"), *[""] * 6][:7]
    device = SimulatedMeasurer(
        limit_fps=float(limit),
        tester_ceiling_fps=float(ceiling or "inf"),
        buffer_frames=float(buffer or "0"),
        table_connections=int(table) if table else None,
        floor_loss_ratio=float(floor or "0"),
        directions=tuple(request["directions"]),
        loss_ratio_limit=request["limits"]["loss_ratio"],
        delays=delays
        and DelayWish(
            from_s=delays["from_s"], tagged_frames=delays["tagged_frames"], has_variation=delays["variation"]
        ),
    )
    is_clean = "clean" in request and away != ""
    duration_s = request["duration_s"]
    if is_clean:
        request = {**request, "duration_s": duration_s / (1 - float(away))}
    raw = dict(device.offer(Load.from_contract(request)).raw)
    if is_clean:
        leave_out(raw, request, wanted_s=duration_s)
    for direction in raw["directions"].values():
        direction["latency"]["buckets"] = [[1000.0 + i, 1] for i in range(int(buckets or FEW_BUCKETS))]
    size = OPENED.get("frame_size", raw["frame_size"])
    return {**raw, "id": request["id"], "trial": request["trial"], "frame_size": size}


def simulate_unlike(limits: str, request: dict[str, Any]) -> dict[str, Any]:
    """Each direction with a load of its own, through a device with that limit in each."""
    parts = {}
    for direction in request["directions"]:
        own = {
            key: value for key, value in request.items() if key not in ("relative_rates", "stop_when_failed")
        }
        own |= {
            "directions": [direction],
            "rate_fps": request["rate_fps"] * request["relative_rates"][direction],
        }
        parts[direction] = simulate(limits, own)
        of = parts[direction]["directions"][direction]
        of |= {"intended_fps": own["rate_fps"], "offered_fps": of["offered_frames"] / own["duration_s"]}
        of["forwarding_rate_fps"] = of["received_frames"] / own["duration_s"]
    directions = {name: part["directions"][name] for name, part in parts.items()}
    offered, lost = (sum(of[key] for of in directions.values()) for key in ("offered_frames", "lost_frames"))
    worst = max(parts.values(), key=lambda part: ["PASS", "FAIL", "INVALID"].index(part["verdict"]))
    return {
        **worst,
        "intended_fps": request["rate_fps"],
        "loss_ratio": lost / offered,
        "directions": directions,
    }


def leave_out(raw: dict[str, Any], request: dict[str, Any], *, wanted_s: float) -> None:
    """The sender was overdue once, in the middle: what it sent then is not judged."""
    sent_s = request["duration_s"]
    left_out_s = sent_s - wanted_s
    raw["intended_duration_s"] = wanted_s
    raw["clean"] = {
        "wanted_s": wanted_s,
        "at_most_s": request["clean"]["at_most_s"],
        "sent_s": sent_s,
        "clean_s": wanted_s,
        "is_enough": True,
        "pieces": 2,
        "lapses": {"sender_overdue": 1, "receiver_away": 0, "dut_away": 0},
        "left_out": [[wanted_s / 2, wanted_s / 2 + left_out_s, ["sender_overdue"]]],
    }
    lost = frames = 0
    for direction in raw["directions"].values():
        judged, lost_of_it = (
            math.ceil(direction[key] * wanted_s / sent_s) for key in ("offered_frames", "lost_frames")
        )
        direction["clean"] = {"frames": judged, "lost_frames": lost_of_it}
        lost, frames = lost + direction["clean"]["lost_frames"], frames + judged
    raw["loss_ratio"] = lost / frames
    text = "what the tester's or its machine's lapses may have touched is not judged; sent for longer instead"
    raw["deviations"] = [*raw["deviations"], {"requirement": "R2544-20", "text": text}]


def watched(request: dict[str, Any]) -> dict[str, Any]:
    """The last of the CPUs was away three times."""
    quiet = {"absences": 0, "longest_us": 0.0, "away_us": 0.0, "stolen_us": 0.0}
    cpus = [{"cpu": cpu, **quiet} for cpu in request["cpus"]]
    cpus[-1] |= {"absences": 3, "longest_us": 1520.0, "away_us": 3000.0, "stolen_us": 10.0}
    clock = {
        "source": "tsc",
        "ticks_per_second": 2596110000.0,
        "error_ppm_raw": 0.25,
        "error_ppm_monotonic": -12.5,
    }
    return {
        "id": request["id"],
        "response": "watch",
        "seconds": request["seconds"],
        "cpus": cpus,
        "clock": clock,
    }


def answer_of(request: dict[str, Any], part: str, by_response: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The golden reply; in a simulation ports know the line rate that they are told, if any, and learning
    reaches everybody."""
    name = request["request"]
    reply = by_response[name]
    if name == "trial":
        return simulate("1e12", request)
    if name == "judge":
        return {**next(each["result"] for each in request["results"]), "response": "judge"}
    if name == "open":
        reply = {**reply, "session": request.get("session", reply["session"])}
    if name == "prove":
        keys = ("direction", "seed", "first", "streams", "stream", "generator")
        return {**reply, **{key: request[key] for key in keys if key in request}}
    if name == "learn":
        wanted = {{"forward": "right", "reverse": "left"}[each] for each in request["directions"]}
        reply = {
            **{key: value for key, value in reply.items() if key not in ("left", "right")},
            **{side: reply[side] for side in ("left", "right") if side in wanted},
        }
    if name == "open" and (part.startswith("simulated-") or part == "port-stops"):
        sides = ("left", "right")
        return {
            **reply,
            **{
                side: {**reply["left"], "line_rate_bps": request["ports"][side].get("line_rate_bps")}
                for side in sides
            },
        }
    if name == "learn" and (part.startswith("simulated-") or part == "port-stops"):
        learned = [side for side in ("left", "right") if side in reply]
        return {
            **reply,
            **{
                side: {**reply[side], "reachable": reply[side]["hosts"], "unreachable": []}
                for side in learned
            },
        }
    return reply


def main(part: str, log: str | None = None) -> None:
    """`log`: a file that keeps each request."""
    replies = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    by_response = {reply["response"]: reply for reply in reversed(replies) if "response" in reply}
    faults = [reply for reply in replies if "fault" in reply]
    print("EAL: scripted engine speaks to people", file=sys.stderr, flush=True)
    trials: list[int] = []
    """Trials of this process."""
    if part == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        if log is not None:
            with Path(log).open("a") as file:
                file.write(line)
        if not line.strip():
            continue  # a sign of life
        request = json.loads(line)
        name, request_id = request["request"], request["id"]
        if name == "open":
            OPENED.update(request)
        if name == "about":
            about = {**by_response["about"], "id": request_id}
            if part.startswith("lies-"):
                about |= json.loads(part.removeprefix("lies-")).get("about", {})
            if part == "contract-2":
                about["contract"] = 2
            say(about)
        elif part == "crash":
            print("PANIC in rte_eal_init(): no memory", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        elif part == "quit":
            sys.exit(9)
        elif part == "garbage":
            print("Segmentation fault", flush=True)
        elif part == "wrong-id":
            say({**by_response["close"], "id": 99})
        elif part == "odd-fault":
            say({"id": request_id, "fault": "no"})
        elif part == "endless-line":
            while True:
                sys.stdout.write("x" * 65536)
        elif part == "endless-events":
            while True:
                say(
                    {**next(reply for reply in replies if reply.get("event") == "progress"), "id": request_id}
                )
        elif part == "nested":
            print("[" * 1_000_000, flush=True)
        elif part.startswith("lies-"):
            lies = json.loads(part.removeprefix("lies-"))
            for event in lies.get("events", ()) if name == "trial" else ():
                say({**event, "id": request_id})
            port = {"line_rate_bps": None}
            ports = {"ports": {"left": port, "right": port}, **request}
            answer = answer_of(ports, "simulated-", by_response)
            say({**answer, "id": request_id, **lies.get(name, {})})
        elif part == "silent":
            time.sleep(600)
        elif part.startswith("fault-"):
            kind = part.removeprefix("fault-")
            fault = next(
                reply for reply in faults if reply["fault"]["kind"] == kind and reply["id"] is not None
            )
            say({**fault, "id": request_id})
        elif name == "watch" and part == "no-watch":
            fault = {
                "code": "bad_request",
                "kind": "bad_request",
                "what": '"watch" is none of ["about"]',
                "where": "request",
                "next": "",
            }
            say({"id": request_id, "fault": fault})
        elif name == "watch":
            say(watched(request))
        elif name == "resolve" and part == "no-dut":
            say(
                {
                    **next(reply for reply in faults if reply["fault"]["code"] == "not_resolved"),
                    "id": request_id,
                }
            )
        elif name == "trial" and part.startswith("simulated-"):
            say(simulate(part.removeprefix("simulated-"), request))
        elif name == "trial" and part == "port-stops":
            # From its second trial on, until the port is opened anew.
            trials.append(request["trial"])
            stops = [{"code": "port_stopped", "text": "forward: the tester's receiving port has stopped"}]
            spoiled = {"verdict": "INVALID", "reasons": stops} if len(trials) > 1 else {}
            say({**simulate("640000", request), **spoiled})
        elif name == "trial" and part.startswith("stuck-trial-"):
            if request["trial"] < int(part.removeprefix("stuck-trial-")):
                say(simulate("640000", request))
            else:
                sys.stdin.read()  # goes on until its stdin ends, like the engine's own trials
        else:
            for reply in replies:
                if name == "trial" and reply.get("event") == "progress":
                    say({**reply, "id": request_id, "trial": request["trial"]})
                elif name == "prove" and reply.get("event") == "proving":
                    say({**reply, "id": request_id, "direction": request["direction"]})
                elif name == "learn" and reply.get("event") == "learning":
                    say({**reply, "id": request_id})
            say({**answer_of(request, part, by_response), "id": request_id})
    if part == "deaf":
        time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
