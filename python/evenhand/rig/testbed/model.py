# SPDX-License-Identifier: Apache-2.0
"""Testbed file: the user's TOML becomes a checked, frozen `Testbed`. Errors name the key, its place and the
nearest right one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from evenhand.base.errors import EvenhandError, RequestError
from evenhand.base.units import (
    DURATION,
    LINE_RATE,
    MEMORY,
    RATIO,
    format_count,
    format_line_rate,
    parse_duration,
    parse_line_rate,
    parse_memory,
    parse_ratio,
)
from evenhand.base.validation.checked_file import (
    FileKind,
    RefusedError,
    UnfitError,
    read_toml,
    refusal,
    with_unit,
)
from evenhand.plan import (
    BOTH_DIRECTIONS,
    AddressPlan,
    Direction,
    FrameSize,
    SideCounts,
    SideName,
    Stream,
    describe_size,
    largest_frame,
    make_plan,
    mix_request,
    theoretical_fps,
    whole_octets,
)
from evenhand.rig.testbed.device import read_device
from evenhand.rig.testbed.eal_arguments import check_eal_arguments
from evenhand.rig.testbed.engines import check_engines
from evenhand.rig.testbed.memory import LEAST_MEMORY_MB, needed_memory_mb
from evenhand.rig.testbed.resources import resources_of
from evenhand.rig.testbed.ssh_destination import check_destination
from evenhand.rig.testbed.vlan import LARGEST_VLAN, MOST_TAGS, as_vlans, tag_octets
from evenhand.rig.testbed.workers import lay_out_workers

CONFIRMATION = "isolated_test_environment"
_MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
_INTERFACE = re.compile(r"[A-Za-z][A-Za-z0-9._/:-]{0,63}")


def _plan_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return make_plan(value).name
    except EvenhandError as error:
        raise RefusedError(error) from error


def _as_pair(value: Any) -> Any:
    """`10` of a file as left and right alike; what is neither a number nor a list is left to the model's
    checks."""
    return (value, value) if isinstance(value, int) and not isinstance(value, bool) else value


def _mac(value: Any) -> Any:
    """In lower case. A group address is nobody's own, and frames from it would be dropped by every DUT."""
    if not isinstance(value, str):
        return value
    text = value.lower()
    if not _MAC.fullmatch(text):
        raise RefusedError(
            RequestError(
                f"{value!r} is not a MAC",
                code="rig.not-a-mac",
                next_step="Write it in the form 02:00:00:00:00:01.",
            )
        )
    if int(text[:2], 16) & 1 or not int(text.replace(":", ""), 16):
        kind = "a group address" if int(text[:2], 16) & 1 else "no address"
        raise RefusedError(
            RequestError(
                f"{value!r} is {kind}, which no port can have",
                code="rig.not-a-mac-of-a-port",
                next_step="Write it in the form 02:00:00:00:00:01.",
            )
        )
    return text


def _device(value: Any) -> Any:
    try:
        if isinstance(value, str) and value:
            read_device(value)
    except EvenhandError as error:
        raise RefusedError(error) from error
    return value


def _destination(value: Any) -> Any:
    try:
        return check_destination(value) if isinstance(value, str) else value
    except EvenhandError as error:
        raise RefusedError(error) from error


def _interface(value: Any) -> Any:
    if isinstance(value, str) and not _INTERFACE.fullmatch(value):
        raise RefusedError(
            RequestError(
                f"{value!r} is not an interface name",
                code="rig.not-an-interface-name",
                next_step="Name it as the DUT does: letters, digits and ._/:-, beginning with a letter.",
            )
        )
    return value


def _eal_arguments(value: Any) -> Any:
    try:
        if isinstance(value, (list, tuple)) and all(isinstance(argument, str) for argument in value):
            check_eal_arguments(value, where="")
    except EvenhandError as error:
        raise RefusedError(error) from error
    return value


Duration = Annotated[float, with_unit(DURATION, parse_duration), Field(gt=0)]
Ratio = Annotated[float, with_unit(RATIO, parse_ratio), Field(gt=0)]
LineRate = Annotated[float, with_unit(LINE_RATE, parse_line_rate)]
Memory = Annotated[int, with_unit(MEMORY, parse_memory), Field(ge=64)]
Mac = Annotated[str, BeforeValidator(_mac)]
Fact = Annotated[str, Field(min_length=1, max_length=300)]
DutInterface = Annotated[str, BeforeValidator(_interface)]
DutSystem = Literal["linux", "openbsd", "freebsd", "vpp"]
"""What a DUT may run that is reached over SSH."""
Pair = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...],
    Field(min_length=2, max_length=2, strict=False),
    BeforeValidator(_as_pair),
]
RingFrames = Annotated[int, Field(ge=64, le=16384)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TestbedPort(_Table):
    """One port of the tester."""

    device: Annotated[str, Field(min_length=1), BeforeValidator(_device)]
    """A DPDK device that is allowed (drivers.py): `0000:01:00.0`, or `net_memif0,role=client,...`."""
    mac: Mac | None = None
    """The tester's own; default that of the port."""
    dut_mac: Mac | None = None
    """Static MAC of the DUT; default: found by ARP or ND."""
    line_rate: LineRate | None = None
    """Bits per second, for ports that do not know it. In the file: `"10Gbps"`."""
    receive_ring_frames: RingFrames | None = None
    transmit_ring_frames: RingFrames | None = None
    link_timeout: Annotated[Duration, Field(le=600)] | None = None
    """How long to wait for the link when the port is opened, in seconds; default 30 for a PCI device, else
    10. In the file: `"60s"`."""
    vlan: Annotated[
        tuple[Annotated[int, Field(ge=1, le=LARGEST_VLAN)], ...],
        Field(max_length=MOST_TAGS, strict=False),
        BeforeValidator(as_vlans),
    ] = ()
    """Tags of all frames on this link: `100`, or `[200, 100]` for an outer one of 802.1ad and an inner one of
    802.1Q."""

    def to_contract(self) -> dict[str, Any]:
        port = {
            "device": self.device,
            "mac": self.mac,
            "dut_mac": self.dut_mac,
            "line_rate_bps": self.line_rate,
            "receive_ring_frames": self.receive_ring_frames,
            "transmit_ring_frames": self.transmit_ring_frames,
            "vlan": list(self.vlan) or None,
            "link_timeout_s": self.link_timeout,
        }
        return {key: value for key, value in port.items() if value is not None}


class Tester(_Table):
    """What the tester may use of its host."""

    cpus: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, strict=False)]
    """Each gets one busy thread. Keep them free of other work."""
    receive_queues: Annotated[int, Field(ge=1, le=64)] = 1
    """Of each side. With more than two CPUs each of several has its own, and the port spreads the frames over
    them."""
    memory: Memory | None = None
    """Mebibytes; default: what the buffers take, at least 512. In the file: `"512MB"`."""
    hugepages: bool = False
    extra_eal_arguments: Annotated[tuple[str, ...], Field(strict=False), BeforeValidator(_eal_arguments)] = ()
    """Options of DPDK that are allowed (eal_arguments.py)."""

    @model_validator(mode="after")
    def _cpus_differ(self) -> Tester:
        if len(set(self.cpus)) != len(self.cpus):
            raise UnfitError(f"cpus {list(self.cpus)} names a CPU twice", code="rig.cpu-twice")
        lay_out_workers(self.cpus, self.receive_queues)
        return self


class TestbedEngine(Tester):
    """One of several engines that are one tester: its host, what it may use there, and both ends of its own
    port pair."""

    __test__ = False  # no test, whatever its name

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]
    ssh: Annotated[str, BeforeValidator(_destination)] | None = None
    """Where it runs: `ssh SSH evenhand-engine`. None: on this host."""
    left: TestbedPort
    right: TestbedPort

    @property
    def ports(self) -> dict[SideName, TestbedPort]:
        return {"left": self.left, "right": self.right}

    @property
    def workers(self) -> list[dict[str, Any]]:
        return lay_out_workers(self.cpus, self.receive_queues)

    @property
    def streams(self) -> int:
        """Of each side."""
        return sum(
            len([s for s in worker.get("senders", ()) if s["side"] == "left"]) for worker in self.workers
        )


class DutFacts(_Table):
    """What a report says of the DUT, in the user's words; nothing is read from it, and no verdict uses it
    (SEED-07, SEED-81, SEED-84)."""

    machine: Fact | None = None
    """Maker and model."""
    system: Fact | None = None
    """Operating system and version."""
    kernel: Fact | None = None
    cpu_model: Fact | None = None
    sockets: Fact | None = None
    cores: Fact | None = None
    """That forward; and how many there are, if that is not the same."""
    clock: Fact | None = None
    """Fixed at what, or free."""
    turbo: Fact | None = None
    hyper_threading: Fact | None = None
    memory_size: Fact | None = None
    nic: Fact | None = None
    driver: Fact | None = None
    kernel_parameters: Fact | None = None
    """Limits such as maxcpus."""
    flow_hash: Fact | None = None
    """Fields that the NICs hash: type 1, type 2, symmetric; as read back (RSS-02, RSS-05)."""
    policing: Fact | None = None
    """What of the DUT may police the traffic, and is on: a firewall's state table, storm control, neighbour
    rate limits (SEED-81)."""

    def told(self) -> dict[str, str]:
        """What is known, in order."""
        return {name: value for name in type(self).model_fields if (value := getattr(self, name)) is not None}

    def missing(self) -> list[str]:
        return [name for name in type(self).model_fields if getattr(self, name) is None]


class TestbedDut(_Table):
    """What is known of the DUT before it is tested. Nothing here says how it works (SEED-07).

    CPUs are for a DUT on this host, so that the host's doings can be told from its own.
    """

    plan: Annotated[str, BeforeValidator(_plan_name)] | None = None
    """The address plan that it is set up for; None if that is not known here."""
    hosts: Pair | None = None
    """Left, right: of this plan, where a command line names no others. None: the plan's maximum."""
    networks: Pair | None = None
    """The same of its networks; the DUT knows no more of them."""
    cpus: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(strict=False)] = ()
    """Of this host, that the DUT runs on; none for a DUT elsewhere."""
    ring_frames: Annotated[int, Field(ge=1, le=1 << 24)] | None = None
    """Frames of one direction that wait without loss while the DUT does not run."""
    threads: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False)] = ()
    """Ids of the DUT's threads; their waiting for a CPU counts as an absence too. One that is bound to a CPU
    is watched there."""
    largest_frame_size: Annotated[int, Field(ge=1518, le=9216)] | None = None
    """Octets with FCS that its interfaces take; None if that is not known here (R8219-20)."""
    ssh: Annotated[str, BeforeValidator(_destination)] | None = None
    """Where its command line is: what the system's own `ssh` is given, and nothing else. None if nobody sets
    it up from here."""
    os: DutSystem | None = None
    left: DutInterface | None = None
    """The DUT's interface to the tester's left port, as the DUT names it; `right` likewise."""
    right: DutInterface | None = None
    empty_connections: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """A command of this host that empties the DUT's table of connections, where it keeps state (R9693-07)."""
    connection_timeout: Duration | None = None
    """After so many seconds without a frame it forgets a connection; None if that is not known here."""
    facts: DutFacts = DutFacts()

    @model_validator(mode="after")
    def _counts_fit_the_plan(self) -> TestbedDut:
        if self.plan is None:
            if self.hosts is not None or self.networks is not None:
                raise UnfitError(
                    "hosts and networks belong to a plan: name the plan with plan",
                    code="rig.hosts-without-plan",
                )
            return self
        try:
            make_plan(self.plan, self.pair("hosts"), networks=self.pair("networks"))
        except EvenhandError as error:
            raise RefusedError(error) from error
        return self

    def pair(self, name: Literal["hosts", "networks"]) -> SideCounts | None:
        """`hosts` or `networks`, of left and right."""
        counts = getattr(self, name)
        return None if counts is None else SideCounts(counts[0], counts[1])

    @model_validator(mode="after")
    def _is_reachable(self) -> TestbedDut:
        reach = {"ssh": self.ssh, "os": self.os, "left": self.left, "right": self.right}
        missing = [name for name, value in reach.items() if value is None]
        if missing and len(missing) < len(reach):
            raise UnfitError(
                f"{', '.join(missing)} missing: ssh, os, left and right must be given together",
                code="rig.only-together",
            )
        if self.left is not None and self.left == self.right:
            raise UnfitError(
                f"left and right are the same interface {self.left!r}", code="rig.same-interface-twice"
            )
        return self

    @model_validator(mode="after")
    def _cpus_differ(self) -> TestbedDut:
        if len(set(self.cpus)) != len(self.cpus):
            raise UnfitError(f"cpus {list(self.cpus)} names a CPU twice", code="rig.cpu-twice")
        if bool(self.cpus) != (self.ring_frames is not None):
            raise UnfitError(
                "cpus and ring_frames must be given together: they determine how long the DUT's ring"
                " lasts while its CPU is away",
                code="rig.only-together",
            )
        return self

    def to_contract(self) -> dict[str, Any] | None:
        """For the engine's `open`; None for a DUT elsewhere."""
        if not self.cpus:
            return None
        threads: dict[int, list[int]] = {cpu: [] for cpu in self.cpus}
        for thread in self.threads:
            threads[self._cpu_of(thread)].append(thread)
        return {
            "ring_frames": self.ring_frames,
            "cpus": [{"cpu": cpu, "threads": threads[cpu]} for cpu in self.cpus],
        }

    def _cpu_of(self, thread: int) -> int:
        try:
            allowed = os.sched_getaffinity(thread)
        except OSError:  # gone: the engine watches what is there
            return self.cpus[0]
        return next((cpu for cpu in self.cpus if allowed == {cpu}), self.cpus[0])


class TestbedLimits(_Table):
    """What a trial may show of the tester and still be valid, where this testbed justifies other limits than
    the defaults.

    Every departure from the defaults is named with the result.
    """

    set: Literal["rfc", "host"] = "rfc"
    """`host`: the limits that are not written here are the strictest that this host can keep."""
    offered_tolerance: Ratio | None = None
    overdue_after: Duration | None = None
    """Seconds. In the file: `"5ms"`."""
    overdue_tolerance: Ratio | None = None
    longest_overdue: Duration | None = None
    clock_ppm: Annotated[float, Field(gt=0, strict=False)] | None = None
    invalid_retries: Annotated[int, Field(ge=0, le=1000)] | None = None
    """How often a trial of a search is repeated whose load the tester did not offer."""
    patience: Annotated[int, Field(ge=0, le=1000)] | None = None
    """The same where only a moment of this host spoiled the trial, and for the trial that confirms the
    result."""
    start_difference: Duration | None = None
    """Seconds between the first of several engines that starts a trial and the last, with what is uncertain
    of that."""


def _limit_set(value: Any) -> Any:
    return {"set": value} if isinstance(value, str) else value


class Testbed(_Table):
    """A whole set-up: two ports, and what the tester may use. Only made for a confirmed isolated environment
    (SEED-80)."""

    isolated_test_environment: bool
    engine: Annotated[tuple[TestbedEngine, ...], Field(strict=False)] = ()
    """Several engines that are one tester, each with a port pair of the DUT; empty: there is one. In the file
    each is a table `[[engine]]`. `left`, `right` and `tester` are then those of the first."""
    left: TestbedPort
    right: TestbedPort
    tester: Tester
    dut: TestbedDut = TestbedDut()
    limits: Annotated[TestbedLimits, BeforeValidator(_limit_set)] = TestbedLimits()
    """In the file a table, or the name of a set: `limits = "host"`."""

    @model_validator(mode="before")
    @classmethod
    def _first_engine(cls, document: Any) -> Any:
        if not isinstance(document, dict) or not document.get("engine"):
            return document
        given = [key for key in ("left", "right", "tester") if key in document]
        if given:
            raise UnfitError(
                f"{', '.join(given)} beside [[engine]]: each engine has its own ports and CPUs",
                code="rig.engine-and-tester",
            )
        first = document["engine"][0] if isinstance(document["engine"], list) else None
        if not isinstance(first, dict):
            return document
        of_tester = {key: value for key, value in first.items() if key in Tester.model_fields}
        ports = {side: first[side] for side in ("left", "right") if side in first}
        return {**document, **ports, "tester": of_tester}

    @model_validator(mode="after")
    def _engines_go_together(self) -> Testbed:
        check_engines(self.engine)
        if not self.engine:
            return self
        if self.dut.ssh is not None:
            raise UnfitError(
                "the DUT cannot be looked into, or set up, over SSH with several engines yet: leave out"
                " [dut] ssh, os, left and right",
                code="rig.not-with-several-engines",
            )
        return self

    @model_validator(mode="after")
    def _ports_differ(self) -> Testbed:
        names = [read_device(port.device).name for port in (self.left, self.right)]
        if names[0] == names[1]:
            raise UnfitError(f"left and right are the same device {names[0]!r}", code="rig.same-device-twice")
        shared = set(resources_of(self.left.device)) & set(resources_of(self.right.device))
        if shared:
            raise UnfitError(
                f"left and right both use {shared.pop().label}", code="rig.ports-share-a-resource"
            )
        return self

    @property
    def ports(self) -> dict[SideName, TestbedPort]:
        return {"left": self.left, "right": self.right}

    @property
    def tag_octets(self) -> SideCounts:
        """Of the VLAN tags of each link."""
        return tag_octets({side: port.vlan for side, port in self.ports.items()})

    def streams(
        self, plan: AddressPlan, frame_size: FrameSize, directions: Sequence[Direction] = BOTH_DIRECTIONS
    ) -> tuple[Stream, ...]:
        """What is sent and what arrives on these ports."""
        return plan.streams(frame_size, directions, tag_octets=self.tag_octets)

    def max_theoretical_fps(self, streams: Sequence[Stream]) -> int | None:
        """Of the slower port, per direction; None if the file gives no line rate."""
        rates: dict[SideName, float | None] = {}
        for side in self.ports:
            of_side = [engine.ports[side].line_rate for engine in self.engine] or [self.ports[side].line_rate]
            known = [rate for rate in of_side if rate is not None]
            # Each engine has the same share.
            rates[side] = min(known) * len(of_side) if len(known) == len(of_side) else None
        return theoretical_fps(streams, rates)

    @property
    def local_ports(self) -> list[TestbedPort]:
        """Those of this host, of all engines."""
        if not self.engine:
            return list(self.ports.values())
        return [port for engine in self.engine if engine.ssh is None for port in engine.ports.values()]

    def open_request(self, plan: AddressPlan, *, frame_size: FrameSize, seed: int) -> dict[str, Any]:
        """The arguments of the engine's `open`."""
        return self._open_request(self.tester, self.ports, self.dut, plan, frame_size=frame_size, seed=seed)

    def open_requests(self, plan: AddressPlan, *, frame_size: FrameSize, seed: int) -> list[dict[str, Any]]:
        """Those of each of several engines. A DUT on this host is watched by the first engine here."""
        here = next((engine for engine in self.engine if engine.ssh is None), None)
        return [
            self._open_request(
                engine,
                engine.ports,
                self.dut if engine is here else TestbedDut(),
                plan,
                frame_size=frame_size,
                seed=seed,
            )
            for engine in self.engine
        ]

    def _open_request(
        self,
        tester: Tester,
        of_ports: Mapping[SideName, TestbedPort],
        of_dut: TestbedDut,
        plan: AddressPlan,
        *,
        frame_size: FrameSize,
        seed: int,
    ) -> dict[str, Any]:
        workers = lay_out_workers(tester.cpus, tester.receive_queues)
        ports = {side: port.to_contract() for side, port in of_ports.items()}
        # With hugepages DPDK takes more when it needs more.
        needed = (
            LEAST_MEMORY_MB
            if tester.hugepages
            else needed_memory_mb(workers, ports, largest_frame(self.streams(plan, frame_size)))
        )
        host: dict[str, Any] = {"memory_mb": tester.memory or needed, "hugepages": tester.hugepages}
        if tester.extra_eal_arguments:
            host["extra_eal_arguments"] = list(tester.extra_eal_arguments)
        dut = of_dut.to_contract()
        return {
            "host": host,
            "ports": ports,
            "workers": workers,
            "plan": plan.to_contract(),
            "frame_size": whole_octets(frame_size),
            **mix_request(plan, frame_size),
            "seed": seed,
            **({} if dut is None else {"dut": dut}),
        }


def read_testbed(path: Path) -> Testbed:
    """Read and check a testbed file; touches nothing but the file.

    Raises:
        RequestError: It cannot be read, a key is unknown, missing or wrong, or the confirmation is missing.
    """
    return make_testbed(read_toml(path, kind=FileKind.TESTBED), where=str(path))


def make_testbed(document: dict[str, Any], *, where: str) -> Testbed:
    """Check a document of the testbed file's shape. RequestError as in `read_testbed`."""
    try:
        testbed = Testbed.model_validate(document)
    except ValidationError as error:
        raise _refusal(error, where) from error
    if not testbed.isolated_test_environment:
        raise _unconfirmed(where)
    return testbed


def check_rate(
    rate_fps: float,
    limit_fps: float | None,
    *,
    line_rate_bps: float | None,
    frame_size: FrameSize,
    where: str,
) -> None:
    """Refuse a rate above the line rate, if that is known (R2544-15, R2544-16)."""
    if limit_fps is None or rate_fps <= limit_fps:
        return
    line = "the line rate" if line_rate_bps is None else format_line_rate(line_rate_bps)
    raise RequestError(
        f"{format_count(rate_fps)} fps is above the maximum frame rate of {line} with"
        f" {describe_size(frame_size)},"
        f" {format_count(limit_fps)} fps per direction",
        code="rig.above-line-rate",
        where=where,
        next_step=f"Use at most {format_count(limit_fps).replace(',', '')}fps.",
    )


def _refusal(error: ValidationError, where: str) -> RequestError:
    missing = [
        problem["loc"] for problem in error.errors() if problem["type"] in ("missing", "extra_forbidden")
    ]
    if missing == [(CONFIRMATION,)]:
        return _unconfirmed(where)
    return refusal(
        error,
        Testbed,
        where=where,
        place=lambda loc: ".".join(map(str, loc)),
        advice={CONFIRMATION: f"{_HOW_TO_CONFIRM}."},
    )


_HOW_TO_CONFIRM = (
    f"If no frame can leave your lab (RFC 6815), write `{CONFIRMATION} = true` at the top of the file"
)


def _unconfirmed(where: str) -> RequestError:
    return RequestError(
        "nothing is sent until you have confirmed an isolated test environment",
        code="rig.isolation-not-confirmed",
        where=f"{where}: {CONFIRMATION}",
        next_step=f"{_HOW_TO_CONFIRM}.",
    )
