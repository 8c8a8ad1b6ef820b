# SPDX-License-Identifier: Apache-2.0
"""Campaign records with a witness's documents in them, as a router with sixteen queues leaves them: its CPUs,
its queues, its facts."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from evenhand.analysis.plans import plan_of
from evenhand.dut.facts_interface import RECEIVES
from evenhand.predict import VERIFICATION_KEY, DeviceModel, predict
from evenhand.run import StoredTrial
from evenhand.run.campaign_record import CampaignRecord, PointRecord
from evenhand.spec.request import Point
from tests.report.campaigns import ELEMENT_FPS, appendix_a

QUEUES = 16
INTERFACES = {"left": "eno1", "right": "eno2"}


def facts(hash_type: str = "type1") -> dict[str, Any]:
    """As `evenhand.dut.facts` reads them, as far as a report needs them."""
    fields = {"type1": "sd", "type2": "sdfn"}[hash_type]
    return {
        "kernel": "6.1.0-18-amd64",
        "cpus": QUEUES,
        "interfaces": {
            side: {
                "name": name,
                "driver": "ixgbe",
                "driver_version": "6.1.0-18-amd64",
                "firmware": "0x8000095c, 16.5.20",
                "pci": "8086:1528",
                "numa_node": 0,
                "mtu": 1500,
                "qdisc": "mq",
                "speed_mbps": 10000,
                "threaded_napi": False,
                "rps": {},
                "rings": {"rx_max": 4096, "tx_max": 4096, "rx": 512, "tx": 512},
                "channels": {"combined_max": 63, "combined": QUEUES},
                "offloads": {
                    "rx-checksumming": "on",
                    "generic-receive-offload": "on",
                    "large-receive-offload": "off",
                },
                "coalescing": {"rx-usecs": "1"},
                "interrupts": [
                    {"irq": 50 + queue, "name": f"{name}-TxRx-{queue}", "cpus": str(queue)}
                    for queue in range(QUEUES)
                ],
                "hash": {
                    "function": "toeplitz",
                    "key": VERIFICATION_KEY.hex(),
                    "table": [entry % QUEUES for entry in range(128)],
                    "is_symmetric": False,
                    "fields": {"udp4": fields, "udp6": fields},
                },
                "answers": {},
            }
            for side, name in INTERFACES.items()
        },
    }


def witnessed(record: CampaignRecord) -> CampaignRecord:
    """The same campaign on a DUT that was looked into: each queue is served by the CPU of its number."""
    chance = random.Random(7)
    testbeds = {
        name: {**testbed, "inside_dut": {"facts": facts()}} for name, testbed in record.testbeds.items()
    }
    return replace(
        record, testbeds=testbeds, points=tuple(_witnessed_point(point, chance) for point in record.points)
    )


def small(version: int = 4) -> CampaignRecord:
    """Appendix A with four repetitions."""
    return witnessed(appendix_a(version, 4))


def _witnessed_point(found: PointRecord, chance: random.Random) -> PointRecord:
    repetitions = []
    for repetition in found.repetitions:
        searches = tuple(
            replace(
                search,
                trials=tuple(_witnessed_trial(found.point, trial, chance) for trial in search.trials),
                setup={**search.setup, "inside_dut": {"facts": facts(found.point.hash_type or "type1")}},
            )
            for search in repetition.searches
        )
        repetitions.append(replace(repetition, searches=searches))
    return replace(found, repetitions=tuple(repetitions))


def _witnessed_trial(point: Point, trial: StoredTrial, chance: random.Random) -> StoredTrial:
    plan = plan_of(point)
    assert plan is not None
    model = DeviceModel(elements=QUEUES, hash_type=point.hash_type or "type1")
    result, shares = trial.result, predict(plan, model, point.directions)
    frames = {direction: counted.offered_frames for direction, counted in result.directions.items()}
    queues = {
        RECEIVES[direction]: [
            max(
                0,
                round(
                    count * float(share)
                    + (chance.gauss(0, (count * float(share)) ** 0.5) if share not in (0, 1) else 0)
                ),
            )
            for share in shares.loads(direction)
        ]
        for direction, count in frames.items()
    }
    duration_s = result.intended_duration_s
    load = [sum(of[queue] for of in queues.values()) / duration_s for queue in range(QUEUES)]
    busy = [min(1.0, 0.004 + fps / ELEMENT_FPS * 0.97) for fps in load]
    lost = sum(direction.lost_frames for direction in result.directions.values())
    document = {
        "error": None,
        "interval_s": duration_s + 7,
        "sending_s": duration_s,
        "cpus": [
            {
                "cpu": cpu,
                "busy_s": share * duration_s,
                "softirq_s": 0.95 * share * duration_s,
                "busy_share": share,
                "softirq_share": 0.95 * share,
            }
            for cpu, share in enumerate(busy)
        ],
        "softnet": [],
        "ip": {"ipv4": {"forwarded_packets": sum(frames.values()) - lost}, "ipv6": {}},
        "interfaces": {
            side: {
                "name": INTERFACES[side],
                "received_packets": sum(of),
                "receive_drops": 0,
                "receive_misses": lost // 2,
                "queues": [{"queue": queue, "received_packets": packets} for queue, packets in enumerate(of)],
            }
            for side, of in queues.items()
        },
        "dropped_packets": lost // 2 * len(queues),
        "lost_frames": lost,
        "unexplained_frames": lost - lost // 2 * len(queues),
    }
    return replace(trial, result=replace(result, raw={**result.raw, "dut": document}))
