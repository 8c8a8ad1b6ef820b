# SPDX-License-Identifier: Apache-2.0
"""`evenhand check` with several engines: each engine's host, ports and clock, by the engine's name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from evenhand.base.errors import HostError
from evenhand.base.table import Table
from evenhand.plan import SIDES
from evenhand.procedure import OpenTester
from evenhand.report.check import advice_lines, far_lines, host_table, ports_table
from evenhand.report.check_engines import clock_lines, engine_title
from evenhand.report.trial import describe_clock_offsets
from evenhand.rig import Setup
from evenhand.rig.host import HostSurvey
from evenhand.rig.host.ports import InterfaceFacts, PortFacts, port_facts, read_interface
from evenhand.rig.host.survey_there import survey_over_ssh
from evenhand.trial import ComparedClock, EngineGroup, read_clock_offsets


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
                    workers=engine.workers,
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
