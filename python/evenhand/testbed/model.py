# SPDX-License-Identifier: Apache-2.0
"""Testbed file: the user's TOML becomes a checked, frozen `Testbed`. Errors name the key, its place and the
nearest right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from evenhand.base.errors import RequestError
from evenhand.base.units import format_count, format_line_rate
from evenhand.base.validation.checked_file import FileKind, UnfitError, read_toml, refusal
from evenhand.plan import (
    BOTH_DIRECTIONS,
    AddressPlan,
    Direction,
    FrameSize,
    SideCounts,
    SideName,
    Stream,
    describe_size,
    in_tunnels,
    largest_frame,
    mix_request,
    on_one_line,
    whole_octets,
)
from evenhand.testbed.device import read_device
from evenhand.testbed.dut_table import TestbedDut
from evenhand.testbed.resources import LEAST_MEMORY_MB, needed_memory_mb, resources_of
from evenhand.testbed.tester_tables import (
    TestbedEngine,
    TestbedPort,
    Tester,
    check_engines,
    check_one_arm,
    tunnels_of,
)
from evenhand.testbed.tunnel import Tunnel, tunnel_octets
from evenhand.testbed.values import Duration, Networks, Ratio, TomlTable, tag_octets
from evenhand.trial import DirectionRates, highest_load_fps

CONFIRMATION = "isolated_test_environment"


class TestbedLimits(TomlTable):
    """What a trial may show of the tester and still be valid, where this testbed justifies other limits than
    the defaults.

    Every departure from the defaults is named with the result.
    """

    set: Literal["rfc", "host"] = "rfc"
    """`host`: the limits that are not written here are the strictest that this machine can keep."""
    offered_tolerance: Ratio | None = None
    overdue_after: Duration | None = None
    """Seconds. In the file: `"5ms"`."""
    overdue_tolerance: Ratio | None = None
    longest_overdue: Duration | None = None
    clock_ppm: Annotated[float, Field(gt=0, strict=False)] | None = None
    remarked_tolerance: Ratio | None = None
    """0: a DUT that changes DSCP, ECN or flow label of a frame fails."""
    clean_time: bool | None = None
    """Trials are judged by the time in which neither the tester nor its machine was away."""
    invalid_retries: Annotated[int, Field(ge=0, le=1000)] | None = None
    """How often a trial of a search is repeated whose load the tester did not offer."""
    patience: Annotated[int, Field(ge=0, le=1000)] | None = None
    """The same where only a moment of this machine spoiled the trial, and for the trial that confirms the
    result."""
    start_difference: Duration | None = None
    """Seconds between the first of several engines that starts a trial and the last, with what is uncertain
    of that."""


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _limit_set(value: Any) -> Any:
    return {"set": value} if isinstance(value, str) else value


class Testbed(TomlTable):
    """A whole set-up: two ports, and what the tester may use. Only made for a confirmed isolated environment
    (SEED-80)."""

    __test__: ClassVar = False
    """For pytest, which looks for tests in classes of such a name."""

    isolated_test_environment: bool
    isolated_networks: Networks = ()
    """Networks beside those reserved for benchmarking whose addresses cannot leave the lab either: plan files
    may use them (R6815-01)."""
    engine: Annotated[tuple[TestbedEngine, ...], Field(strict=False)] = ()
    """Several engines that are one tester, each with a port pair of the DUT; empty: there is one. In the file
    each is a table `[[engine]]`. `left`, `right` and `tester` are then those of the first."""
    one_armed: bool = False
    """Both sides are on one port, which `left` and `right` both name: the DUT is a router on a stick. They
    are apart by their VLANs or tunnels or, where these are the same, by their networks. Each of
    several engines has one port."""
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
                f"{', '.join(given)} together with [[engine]]: each engine has its own ports and CPUs",
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
        check_engines(self.engine, one_armed=self.one_armed)
        pairs, engines = len(self.dut.interface_pairs), max(len(self.engine), 1)
        if pairs not in (0, engines):
            raise UnfitError(
                f"[dut] left and right name {_counted(pairs, 'pair')} of interfaces for"
                f" {_counted(engines, 'engine')}: each engine has its own pair, in their order",
                code="rig.pairs-of-interfaces",
            )
        return self

    @model_validator(mode="after")
    def _ports_differ(self) -> Testbed:
        if self.one_armed:
            for of, ports in [(f"engine {each.name}: ", each.ports) for each in self.engine] or [
                ("", self.ports)
            ]:
                check_one_arm(ports["left"], ports["right"], of=of)
            return self
        names = [read_device(port.device).name for port in (self.left, self.right)]
        if names[0] == names[1]:
            raise UnfitError(
                f"left and right are the same device {names[0]!r}: name two, or write one_armed = true if the"
                " DUT is a router on a stick",
                code="rig.same-device-twice",
            )
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
    def workers(self) -> list[dict[str, Any]]:
        """The contract's `workers`; of several engines those of the first."""
        return self.tester.workers(one_armed=self.one_armed)

    @property
    def tag_octets(self) -> SideCounts:
        """Octets of the VLAN tags of each link."""
        return tag_octets({side: port.vlan for side, port in self.ports.items()})

    def streams(
        self, plan: AddressPlan, frame_size: FrameSize, directions: Sequence[Direction] = BOTH_DIRECTIONS
    ) -> tuple[Stream, ...]:
        """What is sent and what arrives on these ports."""
        streams = plan.streams(frame_size, directions, tag_octets=self.tag_octets)
        return on_one_line(in_tunnels(streams, tunnel_octets(self.tunnels)), one_armed=self.one_armed)

    @property
    def tunnels(self) -> dict[SideName, Tunnel]:
        """Those of the sides that have one."""
        return tunnels_of(self.ports)

    def highest_load_fps(self, streams: Sequence[Stream], rates: DirectionRates | None = None) -> int | None:
        """The highest load per direction that the ports send, be it an overload of a slower port that
        receives; None if the file gives no line rate."""
        return highest_load_fps(streams, self.line_rates, rates, may_overload=True)

    @property
    def line_rates(self) -> Mapping[SideName, float | None]:
        """Line rates in bit/s, of all engines together; None for a side for which the file gives none."""
        rates: dict[SideName, float | None] = {}
        for side in self.ports:
            of_side = [engine.ports[side].line_rate for engine in self.engine] or [self.ports[side].line_rate]
            known = [rate for rate in of_side if rate is not None]
            # Each engine has the same share.
            rates[side] = min(known) * len(of_side) if len(known) == len(of_side) else None
        return rates

    @property
    def local_ports(self) -> list[TestbedPort]:
        """Those of this machine, of all engines."""
        if not self.engine:
            return list(self.ports.values())
        return [port for engine in self.engine if engine.ssh is None for port in engine.ports.values()]

    def open_request(self, plan: AddressPlan, *, frame_size: FrameSize, seed: int) -> dict[str, Any]:
        """The arguments of the engine's `open`."""
        return self._open_request(self.tester, self.ports, self.dut, plan, frame_size=frame_size, seed=seed)

    def open_requests(self, plan: AddressPlan, *, frame_size: FrameSize, seed: int) -> list[dict[str, Any]]:
        """That of the tester, or those of each of several engines. A DUT on this machine is watched by the
        first engine here."""
        if not self.engine:
            return [self.open_request(plan, frame_size=frame_size, seed=seed)]
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
        workers = tester.workers(one_armed=self.one_armed)
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
            "plan": plan.to_request(),
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
