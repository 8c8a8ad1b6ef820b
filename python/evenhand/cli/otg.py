# SPDX-License-Identifier: Apache-2.0
"""`evenhand otg`: a server for scripts of the Open Traffic Generator API."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from evenhand.base.token_file import read_token
from evenhand.cli.common import TestbedArgument, err
from evenhand.cli.run_options import RunOption, run_file

EXAMPLE = "Example: evenhand otg lab.toml"


def otg(
    testbed: TestbedArgument,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Where it listens; for more than this machine a token is needed.",
        ),
    ] = "127.0.0.1",
    https_port: Annotated[
        int, typer.Option("--https-port", metavar="PORT", min=0, max=65535, help="0: any that is free.")
    ] = 8443,
    http_port: Annotated[
        int | None,
        typer.Option("--http-port", metavar="PORT", min=0, max=65535, help="Also plain HTTP. Default: not."),
    ] = None,
    grpc_port: Annotated[
        int, typer.Option("--grpc-port", metavar="PORT", min=0, max=65535, help="0: any that is free.")
    ] = 40051,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="A file with the token that each request must bear: Authorization: Bearer TOKEN.",
        ),
    ] = None,
    locations: Annotated[
        str | None,
        typer.Option(
            "--locations",
            metavar="LEFT,RIGHT",
            help="What scripts call the left and the right port, such as localhost:5555,localhost:5556.",
        ),
    ] = None,
    run: RunOption = None,
) -> None:
    """Serve the Open Traffic Generator API until Ctrl-C, so that existing snappi scripts drive this tester:
    REST over HTTPS with a certificate of its own, and gRPC.

    The flows of each start are a trial, which is stored in the run file. What of a configuration cannot be
    sent is refused with its key: docs/reference/otg.md has what can. TESTBED may be reference as well: then
    each configuration starts a reference router.
    """
    from evenhand.otg.server import Places, otg_server

    places = Places(
        host=host,
        https_port=https_port,
        http_port=http_port,
        grpc_port=grpc_port,
        locations=tuple((locations or "").split(",")) if locations else (),
        token=None if token_file is None else read_token(token_file),
    )
    path = run_file("otg", run, False)
    assert path is not None
    with otg_server(testbed, places, run=path, command=["evenhand", *sys.argv[1:]]) as running:
        console = err()
        for kind, where in (("HTTPS", running.https), ("HTTP", running.http), ("gRPC", running.grpc)):
            if where is not None:
                console.print(f"{kind}: {where}", markup=False, soft_wrap=True)
        console.print(
            f"Trials are stored in {path}. Press Ctrl-C to end the server and what it sends.",
            markup=False,
            soft_wrap=True,
        )
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
