# SPDX-License-Identifier: Apache-2.0
"""`evenhand demo`: the main job from end to end, on a router inside this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from evenhand.base.errors import RequestError
from evenhand.base.new_file import check_new
from evenhand.cli.common import EngineOption, JsonOption, with_options
from evenhand.cli.demo_linux import linux_demo
from evenhand.cli.demo_parts import reference_demo
from evenhand.cli.run_options import HostNameOption, NoRunOption, RunOption, run_file
from evenhand.rig import DEFAULT_PLAN
from evenhand.spec.common_options import DEFAULT_SEED, SeedOption
from evenhand.trial import find_engine

WITHOUT_RESULT = 1
"""Exit code: it came to its end, but not to what it was to show, as on a host that spoils too many trials."""
EXAMPLE = "Example: evenhand demo --html demo.html"


@with_options
def demo(
    dut: Annotated[
        Literal["reference", "linux"],
        typer.Option(
            "--dut",
            metavar="reference|linux",
            help="The reference router (default, any user), or the kernel's router in a namespace (root).",
        ),
    ] = "reference",
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="NAME",
            help=(
                "The plan for the reference router: gateway-v4 (default) or gateway-v6; linux measures both."
            ),
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Use shorter trials and a coarser precision; takes about one minute."),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help=(
                "Write the reference router's page to this file. Default: next to the run file, with the"
                " same name."
            ),
        ),
    ] = None,
    seed: SeedOption = DEFAULT_SEED,
    run: RunOption = None,
    no_run: NoRunOption = False,
    host_name: HostNameOption = False,
    engine: EngineOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show how a router that hashes addresses only appears when it is measured with one address pair, and
    with many addresses. No frame leaves this machine.

    The exit code is 1 if there is no verdict or, on the kernel's router, if a search has no number.
    """
    find_engine(engine)  # before anything is set up
    run = run_file("demo", run, no_run)
    if dut == "linux":
        if plan is not None:
            raise RequestError(
                "the demo on the kernel's router always measures gateway-v4 and gateway-v6",
                code="cli.option-not-here",
                where="--plan",
                next_step="Leave it out.",
            )
        if html is not None:
            raise RequestError(
                "the demo on the kernel's router does not write a page",
                code="cli.option-not-here",
                where="--html",
                next_step="Leave it out.",
            )
        has_numbers = linux_demo(
            quick=quick, seed=seed, run=run, host_name=host_name, engine=engine, json_output=json_output
        )
        if not has_numbers:
            raise typer.Exit(WITHOUT_RESULT)
        return
    if html is not None and not html.parent.is_dir():
        raise RequestError(
            f"{html} cannot be written: the folder {html.parent} does not exist",
            code="cli.no-such-folder",
            where="--html",
            next_step="Name a file in an existing folder.",
        )
    page = html or (None if run is None else run.with_suffix(".html"))
    if page is not None:
        check_new(page, where=f"--html {page}")  # now, and not after two minutes of trials
    has_verdict = reference_demo(
        plan or DEFAULT_PLAN,
        quick=quick,
        seed=seed,
        run=run,
        page=page,
        host_name=host_name,
        engine=engine,
        json_output=json_output,
    )
    if not has_verdict:
        raise typer.Exit(WITHOUT_RESULT)
