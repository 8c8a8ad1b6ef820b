# SPDX-License-Identifier: Apache-2.0
"""The smallest XDP program there is, and how it gets onto an interface.

On veth, a frame of an AF_XDP or AF_PACKET sender keeps the sender's buffer until the DUT frees it: a slow
DUT would throttle the tester. With any XDP program on the DUT's end the kernel copies the frame first, so
the set-up is open loop. The program passes every frame; two instructions need no compiler at run time.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evenhand.base.errors import HostError
from evenhand.base.lazy_import import lazy_import

if TYPE_CHECKING:
    import pyroute2
else:
    pyroute2 = lazy_import("pyroute2")

_BPF_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
_BPF_PROG_LOAD = 5
_BPF_PROG_TYPE_XDP = 6
_BPF_F_XDP_HAS_FRAGS = 1 << 5
_XDP_PASS = 2
_XDP_FLAGS_UPDATE_IF_NOEXIST = 1 << 0
_XDP_FLAGS_DRV_MODE = 1 << 2
_XDP_ATTACHED_DRV = 1

_INSTRUCTIONS = struct.pack(
    "<BBhi BBhi",
    0xB7,
    0,
    0,
    _XDP_PASS,  # BPF_ALU64 | BPF_MOV | BPF_K: r0 = XDP_PASS
    0x95,
    0,
    0,
    0,  # BPF_JMP | BPF_EXIT: return r0
)


class _ProgramLoad(ctypes.Structure):
    """First members of `union bpf_attr` for BPF_PROG_LOAD (linux/bpf.h)."""

    _fields_ = (
        ("prog_type", ctypes.c_uint32),
        ("insn_cnt", ctypes.c_uint32),
        ("insns", ctypes.c_uint64),
        ("license", ctypes.c_uint64),
        ("log_level", ctypes.c_uint32),
        ("log_size", ctypes.c_uint32),
        ("log_buf", ctypes.c_uint64),
        ("kern_version", ctypes.c_uint32),
        ("prog_flags", ctypes.c_uint32),
        ("prog_name", ctypes.c_char * 16),
    )


@contextmanager
def pass_program(*, has_fragments: bool = False) -> Iterator[int]:
    """Load the program and yield its descriptor. The program lives on where it is attached.

    Args:
        has_fragments: Say that it can do with packets of several pages, so that an interface with a large MTU
            takes it.

    Raises:
        HostError: This kernel or this user may not load BPF programs.
    """
    number = _BPF_SYSCALL.get(platform.machine())
    if number is None:
        raise HostError(
            f"Evenhand does not support BPF on {platform.machine()}",
            code="rig.bpf-not-supported",
            next_step="Use x86_64, aarch64 or riscv64.",
        )
    instructions = ctypes.create_string_buffer(_INSTRUCTIONS, len(_INSTRUCTIONS))
    program_license = ctypes.create_string_buffer(b"Apache-2.0")
    request = _ProgramLoad(
        prog_type=_BPF_PROG_TYPE_XDP,
        insn_cnt=len(_INSTRUCTIONS) // 8,
        insns=ctypes.addressof(instructions),
        license=ctypes.addressof(program_license),
        prog_flags=_BPF_F_XDP_HAS_FRAGS if has_fragments else 0,
        prog_name=b"evenhand_pass",
    )
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(
        ctypes.c_long(number),
        ctypes.c_int(_BPF_PROG_LOAD),
        ctypes.byref(request),
        ctypes.c_uint(ctypes.sizeof(request)),
    )
    if descriptor < 0:
        raise HostError(
            f"the kernel rejects a BPF program: {os.strerror(ctypes.get_errno())}",
            code="rig.bpf-rejected",
            where="XDP",
            next_step="The kernel needs CONFIG_BPF_SYSCALL, and the user root with CAP_BPF and"
            " CAP_NET_ADMIN.",
        )
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def attach_xdp(ip: pyroute2.IPRoute, interface: str, program: int) -> None:
    """Attach the program in native mode, and look whether it is there. HostError if not."""
    index = ip.link_lookup(ifname=interface)[0]
    flags = _XDP_FLAGS_DRV_MODE | _XDP_FLAGS_UPDATE_IF_NOEXIST
    next_step = "Native XDP on veth needs Linux 4.19 or newer with CONFIG_BPF_SYSCALL and CONFIG_VETH."
    try:
        ip.link("set", index=index, xdp={"attrs": [("IFLA_XDP_FD", program), ("IFLA_XDP_FLAGS", flags)]})
    except pyroute2.netlink.exceptions.NetlinkError as error:
        raise HostError(
            f"the XDP program cannot be attached: {os.strerror(error.code)}",
            code="rig.xdp-not-attached",
            where=interface,
            next_step=next_step,
        ) from error
    if not is_native_xdp(ip, interface):
        raise HostError(
            "the XDP program is not attached in native mode",
            code="rig.xdp-not-attached",
            where=interface,
            next_step=next_step,
        )


def is_native_xdp(ip: pyroute2.IPRoute, interface: str) -> bool:
    """Whether an XDP program runs in the driver of the interface."""
    link: Any = ip.get_links(ip.link_lookup(ifname=interface)[0])[0]
    xdp = link.get_attr("IFLA_XDP")
    # pyroute2 turns the mode number into the word that `ip link` prints.
    return xdp is not None and xdp.get_attr("IFLA_XDP_ATTACHED") in (_XDP_ATTACHED_DRV, "xdp")
