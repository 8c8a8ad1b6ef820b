# SPDX-License-Identifier: Apache-2.0
"""`evenhand check`: what this host offers, what a testbed's ports are, and how much load the tester itself
keeps."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.base.new_file import check_new, write_new
from evenhand.base.units import format_duration, parse_duration
from evenhand.base.version import VERSION
from evenhand.cli.ceiling import read_ceiling_goal
from evenhand.cli.check_engines import CheckedEngines
from evenhand.cli.common import (
    DEFAULT_SEED,
    EngineOption,
    JsonOption,
    SeedOption,
    out,
    warn_about,
    write_json,
)
from evenhand.cli.error_output import error_part, told
from evenhand.cli.options import with_options
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.cli.progress_option import ProgressForm, ProgressOption, progress_display
from evenhand.plan import SIDES, AddressPlan, Direction, FrameSize, gateway_v4, gateway_v6, largest_octets
from evenhand.procedure import (
    DUT_WAY,
    LOOPED_WAY,
    Began,
    CeilingEntry,
    CeilingGoal,
    OpenTester,
    limits_of,
    measure_cable,
    measure_ceiling,
    measure_host_limits,
    open_tester,
)
from evenhand.procedure.ceiling import expected_parts, expected_s
from evenhand.procedure.expected_time import ExpectedTime
from evenhand.report.check import (
    advice_lines,
    cable_table,
    ceiling_lines,
    dut_line,
    host_table,
    nic_lines,
    nics_table,
    parts_table,
    ports_table,
    unreached_line,
)
from evenhand.report.trial import describe_clock_offsets
from evenhand.rig import Setup, looped_setup, read_setup
from evenhand.rig.host import HostSurvey, Part, survey_host
from evenhand.rig.host.ports import InterfaceFacts, PortFacts, port_facts, read_interface
from evenhand.rig.host.programs import busiest_programs, read_process_times
from evenhand.rig.testbed import TestbedEngine, Tester, check_rate, lay_out_workers
from evenhand.spec.frames import FramesOption, read_frames
from evenhand.spec.limits import LimitOptions
from evenhand.spec.plan import DirectionName, DirectionOption, PlanOptions, read_directions
from evenhand.trial import EngineSession, Watch, find_engine, read_clock_offsets, watch

EXAMPLE = "Example: evenhand check lab.toml --plan gateway-v6 --looped"
MOST_WATCH_S = 3600.0
SCHEMA = 1
"""Version of the document (contract/check.schema.json)."""


class Requirement(StrEnum):
    """What `--require` may name."""

    REFERENCE = "reference"
    LAB = "lab"
    INTERFACES = "interfaces"
    NICS = "nics"
    DUT = "dut"


@with_options
def check(
    testbed: Annotated[
        str | None,
        typer.Argument(
            metavar="TESTBED",
            help="A testbed file (TOML), or lab:linux; its ports and its DUT are checked as well.",
        ),
    ] = None,
    *,
    looped: Annotated[
        bool,
        typer.Option(
            "--looped",
            help="Find the tester's ceiling with its two ports looped to each other inside this"
            " machine; no DUT is needed.",
        ),
    ] = False,
    cable: Annotated[
        Path | None,
        typer.Option(
            "--cable",
            metavar="FILE",
            help="The ports of TESTBED are connected to each other by a cable, and there is no DUT: test the"
            " ports with IPv4 and IPv6, and write all that was found into FILE (JSON).",
        ),
    ] = None,
    pull: Annotated[
        str | None,
        typer.Option(
            "--pull",
            metavar="TIME",
            help="With --cable: for so long you may pull the cable and plug it in again.",
        ),
    ] = None,
    ports_only: Annotated[
        bool,
        typer.Option(
            "--ports-only", help="Open the ports and look for the DUT, but make no trials through it."
        ),
    ] = False,
    require: Annotated[
        list[Requirement] | None,
        typer.Option(
            "--require",
            metavar="PART",
            help=(f"Exit with code 3 unless this can run here: {', '.join(Requirement)}. May be repeated."),
        ),
    ] = None,
    watch_time: Annotated[
        str,
        typer.Option(
            "--watch", metavar="TIME", help="Time for which to watch the CPUs and the clock; 0 skips this."
        ),
    ] = "5s",
    plan: PlanOptions,
    frame_size: FramesOption = None,
    direction: DirectionOption = DirectionName.BOTH,
    maximum_rate: Annotated[
        str | None,
        typer.Option(
            "--maximum-rate",
            metavar="RATE",
            help="Maximum rate of the ceiling's trials. Default: the line rate.",
        ),
    ] = None,
    minimum_rate: Annotated[
        str | None,
        typer.Option(
            "--minimum-rate", metavar="RATE", help="Minimum rate. Default: a hundredth of the first load."
        ),
    ] = None,
    duration: Annotated[
        str, typer.Option("--duration", metavar="TIME", help="Of the ceiling's trials.")
    ] = "1s",
    precision: Annotated[str, typer.Option("--precision", metavar="RATIO", help="Of the ceiling.")] = "5%",
    limits: LimitOptions,
    seed: SeedOption = DEFAULT_SEED,
    engine: EngineOption = None,
    progress_form: ProgressOption = ProgressForm.AUTO,
    json_output: JsonOption = False,
) -> None:
    """Show what this host offers, which parts of Evenhand can run on it, and what to do about those that
    cannot. Nothing is changed.

    Without TESTBED and --looped nothing is sent. With a TESTBED its ports are opened, its DUT is asked for
    its MACs, and trials through the DUT find the tester's own ceiling: the highest load at which the tester
    keeps its schedule (RFC 9971). --looped needs no DUT, and no frame leaves the process.
    """
    required = require or []
    _check_options(testbed, ports_only=ports_only, required=required)
    pull_s = _read_cable(testbed, cable, pull, excluded=looped or ports_only or bool(required))
    address_plan = plan.read(testbed)
    size, note = read_frames(address_plan, frame_size)
    watch_s = parse_duration(watch_time, where="--watch")
    if watch_s > MOST_WATCH_S:
        raise RequestError(
            f"{watch_time!r} is longer than an hour",
            code="cli.out-of-range",
            where="--watch",
            next_step="Write a duration such as 60s.",
        )
    goal = read_ceiling_goal(
        maximum_rate=maximum_rate, minimum_rate=minimum_rate, duration=duration, precision=precision
    )
    given_limits = limits.read()
    setup, absent = (None, None) if testbed is None else _setup_of(testbed, address_plan)
    if cable is not None:
        _refuse_with_engines(testbed, setup)
    if setup is not None:
        size, note = read_frames(address_plan, frame_size, tag_octets=setup.testbed.tag_octets)
    if setup is not None:
        warn_about(address_plan)
        if goal.max_fps is not None:
            limit = setup.testbed.max_theoretical_fps(
                setup.testbed.streams(address_plan, size, read_directions(direction))
            )
            check_rate(goal.max_fps, limit, line_rate_bps=None, frame_size=size, where="--maximum-rate")
    run = _Run(
        plan=address_plan,
        frame_size=size,
        seed=seed,
        directions=read_directions(direction),
        engine=engine,
        goal=goal,
        limits=given_limits,
        is_json=json_output,
    )
    with progress_display(progress_form) as progress:
        ways = (setup is not None and not ports_only) + looped
        if ways:
            found_s = ExpectedTime.of(goal, expected_s(goal), expected_parts(goal), 0.0, times=ways)
            progress.expect(replace(found_s, seconds=found_s.seconds + watch_s))
        survey = run.survey(watch_s, progress)
        if note is not None and (setup is not None or looped):
            progress.say(note)
        if setup is not None and cable is not None:
            run.check_cable(setup, cable, progress, pull_s=pull_s)
        elif setup is not None:
            run.check_testbed(setup, progress, with_ceiling=not ports_only, watch_s=watch_s)
        elif testbed is not None and absent is not None:
            run.take_as_absent(testbed, absent)
        if looped:
            run.check_looped(setup, progress)
    error = run.unopened or _unmet(survey, required, run)
    if json_output:
        write_json({**run.to_document(), "error": error_part(error)})
    if error is not None:
        raise told(error)


_TOLD_OF_THE_HOST = ("system", "engine", "CPUs", "isolation", "frequency", "clock", "hugepages")
"""Findings that go into the file of --cable: none names a program, an interface or an address."""
_UNOPENED = {"is_dut_resolved": False, "unresolved": "its ports have not been opened", "unreached": None}


class _Run:
    """One check: what it found so far; for people it is shown as it comes, since the next step may end in an
    error."""

    def __init__(
        self,
        *,
        plan: AddressPlan,
        frame_size: FrameSize,
        seed: int,
        directions: tuple[Direction, ...],
        engine: Path | None,
        goal: CeilingGoal,
        limits: dict[str, Any],
        is_json: bool,
    ) -> None:
        self._plan = plan
        self._frame_size = frame_size
        self._seed = seed
        self._directions = directions
        self._engine = engine
        self._goal = goal
        self._limits = limits
        self._is_json = is_json
        self._survey: HostSurvey | None = None
        self._testbed: dict[str, Any] | None = None
        self._ceilings: list[CeilingEntry] = []
        self._host_limits: dict[str, Any] | None = None
        self._cable: dict[str, Any] | None = None
        self.unopened: EvenhandError | None = None
        """Why the testbed's ports were not opened; what else is checked is not in their way."""
        self.unresolved: HostError | None = None
        self.unreached: HostError | None = None

    def survey(self, watch_s: float, progress: ProgressDisplay) -> HostSurvey:
        """The host itself; first of all, since it tells why the rest may fail."""
        if watch_s:
            progress.on_event(
                Began(
                    what=f"watching the CPUs and the clock for {format_duration(watch_s)}",
                    remaining_s=watch_s,
                )
            )
        before = read_process_times()
        about, watched = _ask_engine(self._engine, watch_s)
        programs = busiest_programs(before, read_process_times()) if watch_s else ()
        survey = survey_host(about=about, watched=watched, programs=programs)
        self._survey = survey
        if not self._is_json:
            console = out()
            console.print(host_table(survey))
            console.print()
            console.print(parts_table(survey))
            nics = nics_table(survey)
            if nics is not None:
                console.print()
                console.print(nics)
                _print_lines(nic_lines(survey))
            lines = list(advice_lines(survey))
            if lines:
                console.print("\n[bold]What to do[/]")
                _print_lines(lines)
        return survey

    def check_testbed(
        self, setup: Setup, progress: ProgressDisplay, *, with_ceiling: bool, watch_s: float
    ) -> None:
        """Ports, DUT, and the ceiling through it; of several engines the hosts of those elsewhere first."""
        engines = CheckedEngines(setup) if setup.testbed.engine else None
        if engines is not None:
            progress.on_event(Began(what="looking at the engines' hosts", remaining_s=watch_s))
            self._show(engines.survey(watch_s))
        with ExitStack() as stack:
            try:
                tester = stack.enter_context(self._open(setup, needs_dut=False))
            except EvenhandError as error:
                self.unopened = error
                self._testbed = {
                    **_unopened_document(setup, error),
                    **({} if engines is None else {"engines": engines.to_document()}),
                }
                return
            if engines is not None:
                self._show(engines.look(tester))
            ports = _ports(setup, tester) if engines is None else engines.ports
            offsets = read_clock_offsets(tester.opened.get("clock_offsets") or ())
            self.unresolved, self.unreached = tester.unresolved, tester.unreached
            self._testbed = {
                "name": setup.name,
                "is_dut_resolved": tester.unresolved is None,
                "unresolved": None if tester.unresolved is None else str(tester.unresolved),
                "unreached": None if tester.unreached is None else str(tester.unreached),
                # Of several engines those of the first one, as in every document.
                "ports": {port.side: port.to_document() for port in ports[: len(SIDES)]},
                "clock_offsets": [asdict(offset) for offset in offsets],
                **({} if engines is None else {"engines": engines.to_document()}),
            }
            if not self._is_json:
                console = out()
                if engines is None:
                    console.print()
                    console.print(ports_table(ports))
                    if len(offsets) > 1:
                        console.print(describe_clock_offsets(offsets), markup=False)
                console.print(dut_line(tester.unresolved, ports), markup=False)
                if tester.unreached is not None:
                    console.print(unreached_line(tester.unreached), markup=False)
            if with_ceiling and tester.unresolved is None:
                self._find_ceiling(DUT_WAY, setup, tester, progress)
            elif with_ceiling:
                progress.say("No trial was made through the DUT: see above.")

    def _show(self, parts: Iterable[Table | str]) -> None:
        """Take in what is found as it comes; people see it at once."""
        for part in parts:
            if not self._is_json:
                out().print()
                if isinstance(part, str):
                    out().print(part, markup=False)
                else:
                    out().print(part)

    def check_cable(
        self, setup: Setup, file: Path, progress: ProgressDisplay, *, pull_s: float | None
    ) -> None:
        """The two ports joined by a cable, with both IP versions; one file has all of it."""
        test = measure_cable(
            setup,
            (gateway_v4(), gateway_v6()),
            self._goal,
            seed=self._seed,
            engine=self._engine,
            limits=limits_of(setup.testbed.limits, loss_ratio=0.0, given=self._limits),
            pull_s=pull_s,
            on_event=progress.on_event,
        )
        self._cable = test.to_document()
        assert self._survey is not None
        document = {
            "command": "check --cable",
            "schema": SCHEMA,
            "version": VERSION,
            "host": {
                finding.name: finding.found
                for finding in self._survey.findings
                if finding.name in _TOLD_OF_THE_HOST
            },
            "cable": self._cable,
        }
        content = (json.dumps(document, indent=1) + "\n").encode()
        write_new(file, content, where="--cable")
        if not self._is_json:
            console = out()
            console.print()
            console.print(cable_table(test))
            bad = len(test.bad)
            console.print(
                f"{len(test.checks)} checks, {bad} bad. All of it is in {file}: counts of frames and of the"
                " ports, names of drivers, versions, and this host's system and CPU; no addresses of this"
                " host, no names of its users or programs. You may send it to Evenhand's maintainers.",
                markup=False,
            )

    def take_as_absent(self, testbed: str, error: HostError) -> None:
        """A testbed whose ports, or whose lab, this host does not have."""
        self.unopened = error
        self._testbed = {"name": testbed, **_UNOPENED, "ports": {"left": None, "right": None}}

    def check_looped(self, setup: Setup | None, progress: ProgressDisplay) -> None:
        """The ceiling without a DUT, on the CPUs of the testbed, or on all but the first, which a DUT on this
        host would have; of several engines all at once, on their hosts."""
        if setup is None:
            allowed = sorted(os.sched_getaffinity(0))
            tester = Tester(cpus=tuple(allowed[1:] or allowed))
        else:
            tester = setup.testbed.tester
        engines = () if setup is None else setup.testbed.engine
        limits = None if setup is None else setup.testbed.limits
        octets = largest_octets(self._frame_size)
        with (
            looped_setup(tester, engines, limits=limits, largest_octets=octets) as looped,
            self._open(looped, needs_dut=True) as opened,
        ):
            self._find_ceiling(LOOPED_WAY, looped, opened, progress)
        self._find_limits(tester, engines, progress)

    def _find_limits(
        self, tester: Tester, engines: Sequence[TestbedEngine], progress: ProgressDisplay
    ) -> None:
        """What `--limits host` would take. That a host keeps none is a finding here, and no error."""
        try:
            found = measure_host_limits(
                tester, engines=engines, engine=self._engine, on_event=progress.on_event
            )
        except HostError as error:
            self._host_limits = {"unknown": error.what}
            line = f"This host keeps no limits. {error.what[0].upper()}{error.what[1:]}. {error.next_step}"
        else:
            self._host_limits = found.to_document()
            line = f"{found.line()} Use them with: --limits host"
        if not self._is_json:
            out().print()
            out().print(line, markup=False)

    def to_document(self) -> dict[str, Any]:
        """As contract/check.schema.json says."""
        assert self._survey is not None
        return {
            "command": "check",
            "schema": SCHEMA,
            "version": VERSION,
            "host": self._survey.to_document(),
            "testbed": self._testbed,
            "ceilings": [entry.to_document() for entry in self._ceilings],
            "host_limits": self._host_limits,
            **({} if self._cable is None else {"cable": self._cable}),
        }

    def _open(self, setup: Setup, *, needs_dut: bool) -> Any:
        return open_tester(
            setup,
            self._plan,
            frame_size=self._frame_size,
            seed=self._seed,
            directions=self._directions,
            engine=self._engine,
            needs_dut=needs_dut,
        )

    def _find_ceiling(self, way: str, setup: Setup, tester: OpenTester, progress: ProgressDisplay) -> None:
        limits = limits_of(setup.testbed.limits, loss_ratio=0.0, given=self._limits)
        testbed = setup.testbed
        cpus = CheckedEngines(setup).cpus if testbed.engine else testbed.tester.cpus
        entry = measure_ceiling(tester, cpus, self._goal, way=way, on_event=progress.on_event, limits=limits)
        self._ceilings.append(entry)
        if not self._is_json:
            console = out()
            console.print()
            for line in ceiling_lines(entry):
                console.print(line)


def _check_options(testbed: str | None, *, ports_only: bool, required: list[Requirement]) -> None:
    if testbed is not None:
        return
    if ports_only:
        raise RequestError(
            "there are no ports to open",
            code="cli.no-testbed",
            where="--ports-only",
            next_step="Name a testbed file, or lab:linux.",
        )
    if Requirement.DUT in required:
        raise RequestError(
            "there is no DUT to look for",
            code="cli.no-testbed",
            where="--require dut",
            next_step="Name a testbed file, or lab:linux.",
        )


def _read_cable(testbed: str | None, cable: Path | None, pull: str | None, *, excluded: bool) -> float | None:
    """How long the cable may be pulled; None: not at all. RequestError where --cable makes no sense."""
    if cable is None:
        if pull is None:
            return None
        raise RequestError(
            "there is no cable to pull",
            code="cli.no-cable",
            where="--pull",
            next_step="Name the file for what is found: --cable FILE.",
        )
    if testbed is None or testbed.startswith("lab:"):
        raise RequestError(
            "there are no ports that a cable could join",
            code="cli.no-testbed",
            where="--cable",
            next_step="Name a testbed file with the two ports.",
        )
    if excluded:
        raise RequestError(
            "the ports are joined by a cable: there is no DUT, and no other check of them",
            code="cli.cable-excludes",
            where="--cable",
            next_step="Leave out --looped, --ports-only and --require.",
        )
    check_new(cable, where="--cable")
    return None if pull is None else parse_duration(pull, where="--pull")


def _unmet(survey: HostSurvey, required: list[Requirement], run: _Run) -> HostError | None:
    """What is wrong if something that was required cannot run; what was found has been shown by then."""
    parts = [Part(name) for name in required if name is not Requirement.DUT]
    unmet = survey.unmet(parts)
    if unmet:
        names = ", ".join(finding.name for finding in unmet)
        lacking = ", ".join(
            readiness.part.label
            for readiness in survey.parts
            if readiness.part in parts and not readiness.can_run
        )
        steps = " ".join([unmet[0].advice, *unmet[0].commands])
        return HostError(
            f"this host lacks what is needed for: {lacking} (missing: {names})",
            code="cli.requirement-unmet",
            where="--require",
            next_step=steps,
        )
    why = run.unresolved or run.unreached
    if Requirement.DUT in required and why is not None:
        return HostError(
            why.what, code=why.code, where=f"--require dut: {why.where}", next_step=why.next_step
        )
    return None


def _unopened_document(setup: Setup, error: EvenhandError) -> dict[str, Any]:
    """What stands under `testbed` where a port did not open: its error; the other port was not tried, or is
    not known to have opened."""
    ports = {
        side: {"device": port.device, "error": error_part(error)}
        if error.where.startswith(f"{side}.")
        else None
        for side, port in setup.testbed.ports.items()
    }
    return {"name": setup.name, **_UNOPENED, "ports": ports}


def _setup_of(testbed: str, plan: AddressPlan) -> tuple[Setup | None, HostError | None]:
    """Or what this host lacks for it: what else the host offers is told before that. RequestError if the file
    itself is wrong."""
    try:
        setup = read_setup(testbed, plan)
    except HostError as error:
        return None, error
    return setup, None


def _refuse_with_engines(testbed: str | None, setup: Setup | None) -> None:
    """RequestError if the testbed has several engines: --cable is about two ports of this host."""
    if setup is not None and setup.testbed.engine:
        raise RequestError(
            "--cable is for one engine",
            code="cli.check-of-several-engines",
            where=f"{testbed}: [[engine]]",
            next_step="Run it on the host of each, with a testbed file that has its ports and CPUs as [left],"
            " [right] and [tester].",
        )


def _ask_engine(
    engine: Path | None, watch_s: float
) -> tuple[Mapping[str, Any] | EvenhandError, Watch | EvenhandError | None]:
    """What the engine is, and what it saw; the errors themselves where it is not there, or cannot look. Both
    are findings here."""
    try:
        session = EngineSession([find_engine(engine)])
    except EvenhandError as error:
        return error, error if watch_s else None
    with session:
        if not watch_s:
            return session.about, None
        try:
            return session.about, watch(session, cpus=sorted(os.sched_getaffinity(0)), seconds=watch_s)
        except (
            RequestError,
            HostError,
        ) as error:  # one that was built before there was such a request, or may not use a CPU
            return session.about, error


def _ports(setup: Setup, tester: OpenTester) -> list[PortFacts]:
    testbed = setup.testbed

    def read() -> dict[str, InterfaceFacts]:
        return {side: read_interface(port.device) for side, port in testbed.ports.items()}

    interfaces = setup.at_the_ports(read)
    workers = lay_out_workers(testbed.tester.cpus, testbed.tester.receive_queues)
    return [
        port_facts(
            side, opened=tester.opened, resolved=tester.resolved, workers=workers, interface=interfaces[side]
        )
        for side in testbed.ports
    ]


def _print_lines(lines: Iterable[str]) -> None:
    """Those that begin with blanks are commands, and are not folded."""
    for line in lines:
        out().print(line, markup=False, soft_wrap=line.startswith(" ") or None)
