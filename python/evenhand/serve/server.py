# SPDX-License-Identifier: Apache-2.0
"""The sockets of the server, and the program that answers on them."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import re
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn

from evenhand.base.errors import HostError, RequestError
from evenhand.base.loopback import is_loopback
from evenhand.serve.access import AccessRules
from evenhand.serve.app import make_app
from evenhand.serve.index import RunIndex
from evenhand.serve.live import Watcher

DEFAULT_PORT = 8740
MOST_CONNECTIONS = 500
NICENESS = 10  # pages wait for measurements on this machine, never the other way round
GRACE_S = 1


def read_place(text: str) -> tuple[str, int]:
    """Address and port of `PORT`, `ADDRESS:PORT`, `[ADDRESS]:PORT` or `ADDRESS`. No address is both of
    loopback. RequestError if it is none."""
    is_bare = text.count(":") > 1 and not text.startswith("[")
    whole = f"localhost:{text}" if text.isdecimal() else f"[{text}]" if is_bare else text
    try:
        parts = urlsplit(f"//{whole}")
        host = "" if parts.hostname == "localhost" else str(ipaddress.ip_address(parts.hostname or ""))
        if re.search(r"[^0-9a-z.:\[\]]|:$", whole):
            raise ValueError
        return host, DEFAULT_PORT if parts.port is None else parts.port
    except ValueError:
        raise RequestError(
            f"{text!r} is not an address to listen on",
            code="serve.not-an-address",
            where="--listen",
            next_step="Write 8740, 127.0.0.1:8740, [::1]:8740, or an address of this machine.",
        ) from None


def serve(
    index: RunIndex,
    *,
    place: tuple[str, int],
    socket_file: Path | None,
    rules: AccessRules,
    say: Callable[[list[str]], None],
) -> None:
    """Answer until SIGINT or SIGTERM.

    Args:
        socket_file: Listen there, and not on `place`.
        say: Is told the addresses, when they are open.

    Raises:
        HostError: A socket cannot be opened, or the folder cannot be read.
        RequestError: Others could reach it without a token.
    """
    is_local = socket_file is not None or not place[0] or is_loopback(place[0])
    if not is_local and rules.token is None:
        raise RequestError(
            f"everybody who can reach {place[0]} could see all runs",
            code="serve.token-needed",
            where="--listen",
            next_step="Give --token-file FILE; or listen on loopback, behind a proxy that asks who is there.",
        )
    index.refresh(is_forced=True)
    with suppress(OSError):
        os.nice(NICENESS)
    config = uvicorn.Config(
        make_app(Watcher(index=index), rules),
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        ws="none",
        http="h11",
        loop="asyncio",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_S,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_worth_saying)
    with _sockets(place, socket_file) as sockets:
        say([_address(each, rules.base_path) for each in sockets])
        uvicorn.Server(config).run(sockets=list(sockets))


def _is_worth_saying(record: logging.LogRecord) -> bool:
    """Pages that are open when the server ends are no error, but uvicorn tells of each with a traceback."""
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, asyncio.CancelledError) or record.getMessage().startswith("Cancel "))


@contextmanager
def _sockets(place: tuple[str, int], socket_file: Path | None) -> Iterator[Sequence[socket.socket]]:
    with ExitStack() as stack:
        if socket_file is not None:
            yield [stack.enter_context(_socket_file(socket_file))]
            return
        found: list[socket.socket] = []
        address, port = place
        for host in [address] if address else ["127.0.0.1", "::1"]:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                found.append(stack.enter_context(socket.create_server((host, port), family=family)))
            except OSError as error:
                if found:
                    continue  # a host without IPv6
                raise HostError(
                    f"port {port} of {host} cannot be opened: {error.strerror}",
                    code="serve.not-listening",
                    where="--listen",
                    next_step="Name another port: --listen 8741; 0 takes any that is free.",
                ) from error
            port = found[0].getsockname()[1]
        yield found


@contextmanager
def _socket_file(path: Path) -> Iterator[socket.socket]:
    """Only its owner and group may open it. One that nobody listens on any more is replaced."""
    with suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode) and not _is_answered(path):
            path.unlink()
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o117)
    try:
        opened.bind(str(path))
        opened.listen()
    except OSError as error:
        opened.close()
        raise HostError(
            f"this socket cannot be made: {error.strerror or error}",
            code="serve.not-listening",
            where=f"--socket {path}",
            next_step="Name a file that does not exist, with a short path, in a folder that you can write.",
        ) from error
    finally:
        os.umask(before)
    try:
        yield opened
    finally:
        opened.close()
        with suppress(OSError):
            path.unlink()


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        return asked.connect_ex(str(path)) == 0


def _address(opened: socket.socket, base_path: str) -> str:
    if opened.family == socket.AF_UNIX:
        return str(opened.getsockname())
    host, port = opened.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{base_path}/"
