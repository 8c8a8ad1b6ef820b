# SPDX-License-Identifier: Apache-2.0
"""`evenhand check`: the looks at this machine, at the testbed's ports and at the tester's own loop."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evenhand.base.errors import EvenhandError, HostError, RequestError, error_part
from evenhand.base.new_file import write_new
from evenhand.base.table import Table
from evenhand.base.units import format_duration
from evenhand.base.version import VERSION
from evenhand.cli.common import out
from evenhand.cli.progress.line import ProgressDisplay
from evenhand.host import HostSurvey, survey_host
from evenhand.host.devices import InterfaceFacts, PortFacts, port_facts, read_interface
from evenhand.host.programs import busiest_programs, read_process_times
from evenhand.host.survey import survey_over_ssh
from evenhand.plan import SIDES, AddressPlan, Direction, FrameSize, gateway_v4, gateway_v6, largest_octets
from evenhand.procedure import (
    DUT_WAY,
    OWN_LOOP_WAY,
    Began,
    CableTest,
    CeilingEntry,
    CeilingGoal,
    OpenTester,
    limits_of,
    measure_cable,
    measure_ceiling,
    measure_host_limits,
    open_tester,
)
from evenhand.report.check import (
    advice_lines,
    cable_table,
    ceiling_lines,
    clock_lines,
    dut_line,
    engine_title,
    far_lines,
    host_table,
    nic_lines,
    nics_table,
    parts_table,
    ports_table,
    unreached_line,
)
from evenhand.report.trial import describe_clock_offsets
from evenhand.rig import Setup, TestbedEngine, Tester, own_loop_setup
from evenhand.trial import ComparedClock, EngineGroup, EngineSession, Watch, find_engine, read_clock_offsets
from evenhand.trial.watch import watch


class CheckedEngines:
    """What was found of each of several engines."""

    def __init__(self, setup: Setup) -> None:
        """For a testbed with `[[engine]]`; no engine is asked yet."""
        self._setup = setup
        self._surveys: dict[str, HostSurvey | HostError] = {}
        self._ports: dict[str, list[PortFacts]] = {}
        self._opened: Mapping[str, Any] = {}
        self._clocks: Mapping[str, ComparedClock] = {}

    @property
    def cpus(self) -> list[int]:
        """CPUs of all engines, in their order."""
        return [cpu for engine in self._setup.testbed.engine for cpu in engine.cpus]

    def survey(self, watch_s: float) -> Iterator[Table | str]:
        """Look at the hosts of those elsewhere, one after the other; each host once. What is to be shown."""
        seen: dict[str, str] = {}
        for engine in self._setup.testbed.engine:
            if engine.ssh is None:
                continue
            title = engine_title(engine.name, engine.ssh)
            if engine.ssh in seen:
                self._surveys[engine.name] = self._surveys[seen[engine.ssh]]
                yield f"The host of {title}, is that of engine {seen[engine.ssh]}."
                continue
            seen[engine.ssh] = engine.name
            try:
                survey = survey_over_ssh(engine.ssh, watch_s=watch_s)
            except HostError as error:
                self._surveys[engine.name] = error
                yield f"The host of {title}: {error.what}. {error.next_step}"
                continue
            self._surveys[engine.name] = survey
            yield host_table(survey, title=f"The host of {title}")
            if advice := list(advice_lines(survey)):
                yield "\n".join(["What to do there", *advice])

    def look(self, tester: OpenTester) -> Iterator[Table | str]:
        """Look at what the engines reported of their ports, and at their clocks. Yields what is to be
        shown."""
        session = tester.session
        assert isinstance(session, EngineGroup)
        self._opened, self._clocks = tester.opened["engines"], session.clocks
        resolved = tester.resolved.get("engines", {})
        for engine in self._setup.testbed.engine:
            opened = self._opened[engine.name]
            self._ports[engine.name] = [
                port_facts(
                    side,
                    opened=opened,
                    resolved=resolved.get(engine.name, {}),
                    workers=engine.workers(one_armed=self._setup.testbed.one_armed),
                    # What the kernel of another host says of a port is not asked.
                    interface=read_interface(engine.ports[side].device)
                    if engine.ssh is None
                    else InterfaceFacts(),
                )
                for side in SIDES
            ]
            ports, title = self._ports[engine.name], f"Ports of {engine_title(engine.name, engine.ssh)}"
            yield ports_table(ports, title=title)
            yield from far_lines(ports)
            offsets = read_clock_offsets(opened.get("clock_offsets") or ())
            if len(offsets) > 1:
                yield describe_clock_offsets(offsets)
        yield from clock_lines(self._clocks, session.start_difference_us)

    @property
    def ports(self) -> list[PortFacts]:
        """Ports of all engines, once they have been looked at."""
        return [port for of_engine in self._ports.values() for port in of_engine]

    def to_document(self) -> list[dict[str, Any]]:
        """`testbed.engines` of contract/check.schema.json."""
        return [
            {
                "engine": engine.name,
                "ssh": engine.ssh,
                **self._host_document(engine.name),
                "clock": None if engine.name not in self._clocks else self._clocks[engine.name].to_contract(),
                "clock_offsets": [
                    asdict(offset)
                    for offset in read_clock_offsets(
                        self._opened.get(engine.name, {}).get("clock_offsets") or ()
                    )
                ],
                "ports": {port.side: port.to_document() for port in self._ports.get(engine.name, ())}
                or dict.fromkeys(SIDES),
            }
            for engine in self._setup.testbed.engine
        ]

    def _host_document(self, name: str) -> dict[str, Any]:
        survey = self._surveys.get(name)
        if isinstance(survey, HostError):
            return {"host": None, "unchecked": survey.what}
        return {"host": None if survey is None else survey.to_document(), "unchecked": None}


SCHEMA = 1
"""Version of the document (contract/check.schema.json)."""
_OF_THE_HOST = ("system", "engine", "CPUs", "isolation", "frequency", "clock", "hugepages")
"""Findings that go into the file of --cable: none names a program, an interface or an address."""
_UNOPENED = {"is_dut_resolved": False, "unresolved": "its ports have not been opened", "unreached": None}


class CheckRun:
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
        self._cable: dict[str, Any] = {}
        self.unopened: EvenhandError | None = None
        """Why the testbed's ports were not opened; what else is checked is not in their way."""
        self.unresolved: HostError | None = None
        self.unreached: HostError | None = None

    def survey(self, watch_s: float, progress: ProgressDisplay) -> HostSurvey:
        """The host itself; first of all, since it shows why the rest may fail."""
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
                # With several engines, those of the first one, as in every document.
                "ports": {port.side: port.to_document() for port in ports[: len(SIDES)]},
                "clock_offsets": [asdict(offset) for offset in offsets],
                **({} if engines is None else {"engines": engines.to_document()}),
            }
            if not self._is_json:
                console = out()
                if engines is None:
                    console.print()
                    console.print(ports_table(ports))
                    for line in far_lines(ports):
                        console.print(line, markup=False)
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
        """The two ports joined by a cable, with both IP versions; one file has all of it. With several
        engines, one after the other."""
        alone = setup.each_alone()
        tests: dict[str, CableTest] = {}
        for name, each in (alone or {"": setup}).items():
            if name:
                progress.say(f"The ports of engine {name}, joined by a cable.")
            tests[name] = measure_cable(
                each,
                (gateway_v4(), gateway_v6()),
                self._goal,
                seed=self._seed,
                engine=self._engine,
                limits=limits_of(setup.testbed.limits, loss_ratio=0.0, given=self._limits),
                pull_s=pull_s,
                on_event=progress.on_event,
            )
        found = {name: test.to_document() for name, test in tests.items()}
        self._cable = {"cables": found} if alone else {"cable": found[""]}
        assert self._survey is not None
        document = {
            "command": "check --cable",
            "schema": SCHEMA,
            "version": VERSION,
            "host": {
                finding.name: finding.found
                for finding in self._survey.findings
                if finding.name in _OF_THE_HOST
            },
            **self._cable,
        }
        content = (json.dumps(document, indent=1) + "\n").encode()
        write_new(file, content, where="--cable")
        if not self._is_json:
            console = out()
            for name, test in tests.items():
                console.print()
                console.print(cable_table(test, engine=name))
            checks = sum(len(test.checks) for test in tests.values())
            bad = sum(len(test.bad) for test in tests.values())
            console.print(
                f"{checks} checks, {bad} bad. The results are in {file}: frame and port counters, driver"
                " names, versions, and this machine's system and CPU. The file contains no addresses of this"
                " machine and no names of its users or programs. You may send it to Evenhand's maintainers.",
                markup=False,
            )

    def take_as_absent(self, testbed: str, error: HostError) -> None:
        """A testbed whose ports, or whose lab, this machine does not have."""
        self.unopened = error
        self._testbed = {"name": testbed, **_UNOPENED, "ports": {"left": None, "right": None}}

    def check_own_loop(self, setup: Setup | None, progress: ProgressDisplay) -> None:
        """The ceiling without a DUT, on the CPUs of the testbed, or on all but the first, which a DUT on this
        machine would have; of several engines all at once, on their hosts."""
        if setup is None:
            allowed = sorted(os.sched_getaffinity(0))
            tester = Tester(cpus=tuple(allowed[1:] or allowed))
        else:
            tester = setup.testbed.tester
        engines = () if setup is None else setup.testbed.engine
        limits = None if setup is None else setup.testbed.limits
        octets = largest_octets(self._frame_size)
        with (
            own_loop_setup(tester, engines, limits=limits, largest_octets=octets) as own_loop,
            self._open(own_loop, needs_dut=True) as opened,
        ):
            self._find_ceiling(OWN_LOOP_WAY, own_loop, opened, progress)
        self._find_limits(tester, engines, progress)

    def _find_limits(
        self, tester: Tester, engines: Sequence[TestbedEngine], progress: ProgressDisplay
    ) -> None:
        """What `--limits host` would take. If a host keeps none, that is a finding here, and not an error."""
        try:
            found = measure_host_limits(
                tester, engines=engines, engine=self._engine, on_event=progress.on_event
            )
        except HostError as error:
            self._host_limits = {"unknown": error.what}
            line = f"This machine keeps no limits. {error.what[0].upper()}{error.what[1:]}. {error.next_step}"
        else:
            self._host_limits = found.to_document()
            line = f"{found.line()} Use them with: --limits host"
        if not self._is_json:
            out().print()
            out().print(line, markup=False)

    def to_document(self) -> dict[str, Any]:
        """The document, as contract/check.schema.json describes it."""
        assert self._survey is not None
        return {
            "command": "check",
            "schema": SCHEMA,
            "version": VERSION,
            "host": self._survey.to_document(),
            "testbed": self._testbed,
            "ceilings": [entry.to_document() for entry in self._ceilings],
            "host_limits": self._host_limits,
            **self._cable,
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


def _unopened_document(setup: Setup, error: EvenhandError) -> dict[str, Any]:
    """What is written under `testbed` where a port did not open: its error; the other port was not tried, or
    is not known to have opened."""
    ports = {
        side: {"device": port.device, "error": error_part(error)}
        if error.where.startswith(f"{side}.")
        else None
        for side, port in setup.testbed.ports.items()
    }
    return {"name": setup.name, **_UNOPENED, "ports": ports}


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
    workers = testbed.workers
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
