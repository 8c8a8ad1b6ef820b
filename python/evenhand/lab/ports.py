# SPDX-License-Identifier: Apache-2.0
"""How a tester's engine gets at the ports of a lab: its command line, and devices for EAL."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.lab.build import PACKET_HEAD_OCTETS, USUAL_MAX_FRAME_SIZE
from evenhand.lab.linux_programs import require_root
from evenhand.lab.namespaces import namespace_path
from evenhand.lab.napi import MOST_URGENT

PAGE_OCTETS = os.sysconf("SC_PAGE_SIZE")


def engine_command_inside(namespace: str, engine: Path) -> list[str]:
    """See `LinuxLab.engine_command`. The tester is as urgent as the DUT's threads: else other work of the
    host makes its load late, and a busy machine has no valid trial."""
    require_root("to enter its network namespace")
    mount_and_run = 'mount -t sysfs sysfs /sys && mount -t bpf bpf /sys/fs/bpf && exec nice -n "$0" "$@"'
    enter = ["nsenter", f"--net={namespace_path(namespace)}", "unshare", "--mount"]
    return [*enter, "sh", "-c", mount_and_run, str(MOST_URGENT), str(engine)]


def af_packet_device(number: int, interface: str, largest_frame_size: int) -> str:
    """EAL device string of a port on this interface, whose ring has room for frames of this size."""
    options = ""
    if largest_frame_size > USUAL_MAX_FRAME_SIZE:
        # DPDK takes the frames of a ring to follow one another without gaps, whatever the blocks.
        slot = -(-(largest_frame_size + PACKET_HEAD_OCTETS) // PAGE_OCTETS) * PAGE_OCTETS
        options = f",blocksz={slot},framesz={slot}"
    return f"net_af_packet{number},iface={interface}{options}"
