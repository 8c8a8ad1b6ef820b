# SPDX-License-Identifier: Apache-2.0
"""`evenhand worker`: one testbed for campaigns that are run elsewhere (dask.distributed)."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from evenhand.base.folders import without_folders
from evenhand.cli.common import EngineOption, err
from evenhand.cli.progress.contained import contained
from evenhand.procedure import ProcedureEvent
from evenhand.run.campaign.dut_setup import check_testbed
from evenhand.run.campaign.events import CampaignEvent, HookEnded, PointBegan, PointEnded, RepetitionEnded
from evenhand.trial import find_engine

EXAMPLE = "Example: evenhand worker tcp://192.0.2.1:8786 lab.toml --name munich"


def worker(
    address: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="Address of dask's scheduler, such as tcp://192.0.2.1:8786."),
    ],
    testbed: Annotated[
        str, typer.Argument(metavar="TESTBED", help="A testbed file, lab:linux, or reference.")
    ],
    *,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Name of this testbed in results. Default: the name of its file."
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help=(
                "Address of this machine to listen on. Default: the one from which the scheduler is reached."
            ),
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="NUMBER", min=1, max=65535, help="Port to listen on. Default: any that is free."
        ),
    ] = None,
    engine: EngineOption = None,
    certificate_from_stdin: Annotated[
        bool,
        typer.Option(
            "--certificate-from-stdin",
            help=(
                "Read the certificate of one run from stdin: evenhand run --workers hands it to the workers"
                " that it starts."
            ),
        ),
    ] = False,
) -> None:
    """Measure points of campaigns on this testbed, one at a time, as a worker of dask.distributed; until
    Ctrl-C.

    A scheduler can make its workers run any program. Use your own scheduler, in your lab's network.
    """
    # Takes longer to load than most commands to run.
    from evenhand.run.campaign.dask_security import import_distributed, read_certificate
    from evenhand.run.campaign.worker import Bed, WorkerProcess, describe_repetition

    import_distributed()
    security = read_certificate(sys.stdin).security() if certificate_from_stdin else None
    check_testbed(testbed)
    find_engine(engine)
    console = err()

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True)

    @contained
    def on_event(event: CampaignEvent | ProcedureEvent) -> None:
        match event:
            case PointBegan(point=point, place=place):
                say(f"{point.key}:" if place is None or place.rounds == 1 else f"{point.key} ({place}):")
            case RepetitionEnded():
                say(f"  {describe_repetition(event)}")
            case HookEnded(failure=str(failure)):
                say(f"  {failure}")
            case PointEnded(reason=str(reason)):
                say(f"  no more repetitions: {reason}")
            case _:
                pass

    bed = Bed(name=name or without_folders(testbed), testbed=testbed, engine=engine)
    WorkerProcess(bed, on_event).serve(address, host=host, port=port, say=say, security=security)
