# SPDX-License-Identifier: Apache-2.0
"""`evenhand serve`: a folder of runs in a browser."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated

import typer

from evenhand.base.errors import HostError, RequestError
from evenhand.base.programs import how_to_get_extra
from evenhand.base.token_file import read_token
from evenhand.cli.common import err

EXAMPLE = "Example: evenhand serve runs"


def serve(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder with run files. Default: the current folder.")
    ] = Path("."),
    *,
    follow: Annotated[
        str | None,
        typer.Option(
            "--follow",
            metavar="ssh:HOST[:FOLDER]",
            help="Show the runs of a folder of another machine instead, over your own ssh. No run is changed"
            " there.",
        ),
    ] = None,
    evenhand: Annotated[
        str,
        typer.Option("--evenhand", metavar="COMMAND", help="The command of Evenhand there, for --follow."),
    ] = "evenhand",
    to_follower: Annotated[
        bool, typer.Option("--to-follower", hidden=True, help="Send the runs to --follow, on stdout.")
    ] = False,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="ADDRESS:PORT",
            help="Where to listen. An address other than loopback needs --token-file. Default: port 8740 of"
            " 127.0.0.1 and ::1.",
        ),
    ] = None,
    socket: Annotated[
        Path | None,
        typer.Option(
            "--socket", metavar="FILE", help="Listen on this socket file only, for a proxy on this machine."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="Show runs only to those who know the token in this file's first line.",
        ),
    ] = None,
    base_path: Annotated[
        str,
        typer.Option(
            "--base-path", metavar="PATH", help="What a proxy has before the paths of this server: /lab."
        ),
    ] = "",
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            "--host-name",
            metavar="NAME",
            help="Answer to this name too, which a proxy passes on; repeat the option for several.",
        ),
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="Believe X-Forwarded-Proto, which says whether a browser came by HTTPS."
        ),
    ] = False,
) -> None:
    """Show the runs of a folder in a browser: what is being measured now, results, comparisons, trends and
    metrics.

    It only reads, and starts nothing but the ssh of --follow. Ctrl-C ends it.
    """
    if to_follower:
        from evenhand.serve.following import send_runs

        with suppress(BrokenPipeError, KeyboardInterrupt):
            send_runs(folder, sys.stdin.buffer, sys.stdout.buffer)
        return
    try:
        from evenhand.serve.access import AccessRules
        from evenhand.serve.following import FollowedFolder, following
        from evenhand.serve.index import RunIndex
        from evenhand.serve.server import read_place
        from evenhand.serve.server import serve as serve_folder
    except ModuleNotFoundError as error:
        raise HostError(
            f"the package {error.name} is not installed",
            code="cli.serve-not-installed",
            where="evenhand serve",
            next_step=f"Install what it needs: {how_to_get_extra('serve')}",
        ) from error
    if listen is not None and socket is not None:
        raise RequestError(
            "a server listens on an address or on a socket file",
            code="cli.options-exclude-each-other",
            where="--listen, --socket",
            next_step="Give only one of them.",
        )
    if follow is not None and folder != Path("."):
        raise RequestError(
            "a server shows a folder of this machine or of another one",
            code="cli.options-exclude-each-other",
            where=f"FOLDER {folder}, --follow",
            next_step="Give only one of them: the other host's folder belongs to --follow.",
        )
    if not folder.is_dir():
        raise RequestError(
            "this is not a folder",
            code="cli.no-such-folder",
            where=str(folder),
            next_step="Name a folder with run files.",
        )
    rules = AccessRules(
        base_path=base_path.rstrip("/"),
        token=None if token_file is None else read_token(token_file),
        host_names=tuple(host_name or ()),
        is_behind_proxy=behind_proxy,
        is_socket_file=socket is not None,
    )
    place = read_place("localhost" if listen is None else listen)
    title = str(folder) if follow is None else follow.removeprefix("ssh:")

    def say(addresses: list[str]) -> None:
        err().print(f"Runs of {title}: {' and '.join(addresses)}", markup=False, soft_wrap=True)

    with suppress(KeyboardInterrupt), ExitStack() as stack:  # the usual end
        index = RunIndex.of(folder)
        if follow is not None:
            index = stack.enter_context(following(FollowedFolder.of(follow, evenhand), title))
        serve_folder(index, place=place, socket_file=socket, rules=rules, say=say)
