# SPDX-License-Identifier: Apache-2.0
"""`evenhand check`: what this machine offers, what a testbed's ports are, and how much load the tester itself
keeps."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evenhand.base.errors import HostError, RequestError, error_part
from evenhand.base.new_file import check_new
from evenhand.base.option import DURATION, RATIO
from evenhand.base.units import parse_duration, parse_rate, parse_ratio
from evenhand.cli.check_run import CheckRun
from evenhand.cli.common import EngineOption, JsonOption, warn_about, with_options, write_json
from evenhand.cli.error_output import reported
from evenhand.cli.run_options import ProgressOption, progress_display
from evenhand.host import HostSurvey, Part
from evenhand.plan import AddressPlan
from evenhand.procedure import CeilingGoal
from evenhand.procedure.expected_time import ExpectedTime
from evenhand.procedure.maximum import SEARCH, expected_parts, expected_s
from evenhand.rig import Setup, check_rate, read_setup
from evenhand.spec.common_options import DEFAULT_SEED, LimitOptions, SeedOption
from evenhand.spec.frames import FramesOption, read_frames
from evenhand.spec.plan import DirectionOption, PlanOptions, read_directions
from evenhand.trial import DEFAULT_WATCH_S

EXAMPLE = "Example: evenhand check lab.toml --plan gateway-v6 --own-loop"
MOST_WATCH_S = 3600.0


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
    own_loop: Annotated[
        bool,
        typer.Option(
            "--own-loop",
            help="Find the tester's ceiling in its own loop: its two ports are joined to each other inside"
            " its process, and no DUT is needed.",
        ),
    ] = False,
    cable: Annotated[
        Path | None,
        typer.Option(
            "--cable",
            metavar="FILE",
            help="Test the ports of TESTBED with IPv4 and IPv6 while a cable connects them to each other,"
            " without a DUT, and write the results to FILE (JSON).",
        ),
    ] = None,
    pull: Annotated[
        str | None,
        typer.Option(
            "--pull",
            metavar="TIME",
            help="With --cable: time in which you may pull the cable and plug it in again.",
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
    ] = DURATION.write(DEFAULT_WATCH_S),
    plan: PlanOptions,
    frame_size: FramesOption = None,
    direction: DirectionOption = "both",
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
        str, typer.Option("--duration", metavar="TIME", help="Duration of the ceiling's trials.")
    ] = DURATION.write(SEARCH.duration_s),
    precision: Annotated[
        str, typer.Option("--precision", metavar="RATIO", help="Precision at which the ceiling search stops.")
    ] = RATIO.write(SEARCH.precision),
    limits: LimitOptions,
    seed: SeedOption = DEFAULT_SEED,
    engine: EngineOption = None,
    progress_form: ProgressOption = "auto",
    json_output: JsonOption = False,
) -> None:
    """Show what this machine offers, which parts of Evenhand can run on it, and what to do about those that
    cannot. Nothing is changed.

    Without TESTBED and --own-loop nothing is sent. With a TESTBED its ports are opened, its DUT is asked for
    its MACs, and trials through the DUT find the tester's own ceiling: the highest load at which the tester
    keeps its schedule (RFC 9971). --own-loop needs no DUT, and no frame leaves the process.
    """
    required = require or []
    _check_options(testbed, ports_only=ports_only, required=required)
    pull_s = _read_cable(testbed, cable, pull, excluded=own_loop or ports_only or bool(required))
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
    goal = _read_ceiling_goal(
        maximum_rate=maximum_rate, minimum_rate=minimum_rate, duration=duration, precision=precision
    )
    given_limits = limits.read()
    setup, absent = (None, None) if testbed is None else _setup_of(testbed, address_plan)
    if setup is not None:
        size, note = read_frames(address_plan, frame_size, tag_octets=setup.testbed.tag_octets)
    if setup is not None:
        warn_about(address_plan)
        if goal.max_fps is not None:
            limit = setup.testbed.highest_load_fps(
                setup.testbed.streams(address_plan, size, read_directions(direction))
            )
            check_rate(goal.max_fps, limit, line_rate_bps=None, frame_size=size, where="--maximum-rate")
    run = CheckRun(
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
        ways = (setup is not None and not ports_only) + own_loop
        if ways:
            found_s = ExpectedTime.of(goal, expected_s(goal), expected_parts(goal), 0.0, times=ways)
            progress.expect(replace(found_s, seconds=found_s.seconds + watch_s))
        survey = run.survey(watch_s, progress)
        if note is not None and (setup is not None or own_loop):
            progress.say(note)
        if setup is not None and cable is not None:
            run.check_cable(setup, cable, progress, pull_s=pull_s)
        elif setup is not None:
            run.check_testbed(setup, progress, with_ceiling=not ports_only, watch_s=watch_s)
        elif testbed is not None and absent is not None:
            run.take_as_absent(testbed, absent)
        if own_loop:
            run.check_own_loop(setup, progress)
    error = run.unopened or _unmet(survey, required, run)
    if json_output:
        write_json({**run.to_document(), "error": error_part(error)})
    if error is not None:
        raise reported(error)


def _read_ceiling_goal(
    *, maximum_rate: str | None, minimum_rate: str | None, duration: str, precision: str
) -> CeilingGoal:
    """How to look for the ceiling. RequestError names the option."""
    goal = CeilingGoal(
        max_fps=None if maximum_rate is None else parse_rate(maximum_rate, where="--maximum-rate"),
        min_fps=None if minimum_rate is None else parse_rate(minimum_rate, where="--minimum-rate"),
        duration_s=parse_duration(duration, where="--duration"),
        precision=parse_ratio(precision, where="--precision"),
    )
    if goal.duration_s <= 0:
        raise RequestError(
            f"{duration!r} must be greater than 0",
            code="cli.out-of-range",
            where="--duration",
            next_step="Write a duration such as 1s.",
        )
    if not 0 < goal.precision < 1:
        raise RequestError(
            f"{precision!r} must be between 0 and 1",
            code="cli.out-of-range",
            where="--precision",
            next_step="Use 5%.",
        )
    if goal.max_fps is not None and goal.min_fps is not None and goal.min_fps > goal.max_fps:
        raise RequestError(
            f"{minimum_rate!r} is above the maximum rate {maximum_rate!r}",
            code="cli.minimum-above-maximum",
            where="--minimum-rate",
            next_step="Use a lower rate, or omit the option.",
        )
    return goal


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
            "--pull needs a test with a cable",
            code="cli.no-cable",
            where="--pull",
            next_step="Name the file for the results: --cable FILE.",
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
            "a cable joins the ports, so there is no DUT: --cable cannot be combined with other checks",
            code="cli.cable-excludes",
            where="--cable",
            next_step="Leave out --own-loop, --ports-only and --require.",
        )
    check_new(cable, where="--cable")
    return None if pull is None else parse_duration(pull, where="--pull")


def _unmet(survey: HostSurvey, required: list[Requirement], run: CheckRun) -> HostError | None:
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
            f"this machine lacks what is needed for: {lacking} (missing: {names})",
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


def _setup_of(testbed: str, plan: AddressPlan) -> tuple[Setup | None, HostError | None]:
    """The set-up, or what this machine lacks for it: what else the host offers is reported before that.
    RequestError if the file itself is wrong."""
    try:
        setup = read_setup(testbed, plan)
    except HostError as error:
        return None, error
    return setup, None
