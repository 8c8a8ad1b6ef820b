# SPDX-License-Identifier: Apache-2.0
"""The sockets of the server, and the program that answers on them."""

from __future__ import annotations

import ipaddress
import os
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from evenhand.base.errors import HostError, RequestError
from evenhand.base.loopback import is_loopback
from evenhand.serve.access import AccessRules
from evenhand.serve.index import RunIndex

DEFAULT_PORT = 8740
MOST_CONNECTIONS = 500
NICENESS = 10
"""Pages wait for measurements on this machine, never the other way round."""
GRACE_S = 1


@dataclass(frozen=True, slots=True)
class ListenPlace:
    """An address to listen on."""

    host: str
    """Without brackets; empty: both loopback addresses."""
    port: int

    @property
    def is_loopback(self) -> bool:
        return not self.host or is_loopback(self.host)


def read_place(text: str) -> ListenPlace:
    """`PORT`, `ADDRESS:PORT`, `[ADDRESS]:PORT` or `ADDRESS`. RequestError if it is none."""
    host, port = text, str(DEFAULT_PORT)
    if text.isascii() and text.isdecimal():
        host, port = "", text
    elif text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or port if rest[:1] in ("", ":") else "?"
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if host == "localhost":
        host = ""
    try:
        if host or not text:
            ipaddress.ip_address(host)
        number = int(port) if port.isascii() and port.isdecimal() else -1
        if not 0 <= number <= 65535:
            raise ValueError
    except ValueError:
        raise RequestError(
            f"{text!r} is not an address to listen on",
            code="serve.not-an-address",
            where="--listen",
            next_step="Write 8740, 127.0.0.1:8740, [::1]:8740, or an address of this machine.",
        ) from None
    return ListenPlace(host, number)


def serve(
    folder: Path,
    *,
    place: ListenPlace,
    socket_file: Path | None,
    rules: AccessRules,
    say: Callable[[list[str]], None],
    title: str = "",
    trouble: Callable[[], str] = str,
) -> None:
    """Answer until SIGINT or SIGTERM.

    Args:
        title: What the folder is called. Default: its name.
        trouble: See `Watcher`.
        socket_file: Listen there, and not on `place`.
        say: Is told the addresses, when they are open.

    Raises:
        HostError: A socket cannot be opened, or the folder cannot be read.
        RequestError: Others could reach it without a token.
    """
    import uvicorn

    from evenhand.serve.app import make_app

    if socket_file is None and not place.is_loopback and rules.token is None:
        raise RequestError(
            f"everybody who can reach {place.host} could see all runs",
            code="serve.token-needed",
            where="--listen",
            next_step="Give --token-file FILE; or listen on loopback, behind a proxy that asks who is there.",
        )
    index = RunIndex.of(folder, title)
    index.refresh(is_forced=True)
    with suppress(OSError):
        os.nice(NICENESS)
    config = uvicorn.Config(
        make_app(index, rules, trouble),
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
    with _sockets(place, socket_file) as sockets:
        say(_addresses(sockets, rules))
        uvicorn.Server(config).run(sockets=list(sockets))


@contextmanager
def _sockets(place: ListenPlace, socket_file: Path | None) -> Iterator[Sequence[socket.socket]]:
    with ExitStack() as stack:
        if socket_file is not None:
            yield [stack.enter_context(_socket_file(socket_file))]
            return
        hosts = [place.host] if place.host else ["127.0.0.1", "::1"]
        found: list[socket.socket] = []
        port = place.port
        for host in hosts:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                opened = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
                opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                opened.bind((host, port))
                opened.listen()  # who has read the address may connect at once
            except OSError as error:
                if found and host == "::1":
                    continue  # a host without IPv6
                raise HostError(
                    f"port {port} of {host} cannot be opened: {error.strerror}",
                    code="serve.not-listening",
                    where="--listen",
                    next_step="Name another port: --listen 8741; 0 takes any that is free.",
                ) from error
            port = opened.getsockname()[1]
            found.append(opened)
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
        try:
            asked.connect(str(path))
        except OSError:
            return False
    return True


def _addresses(sockets: Sequence[socket.socket], rules: AccessRules) -> list[str]:
    shown = []
    for each in sockets:
        if each.family == socket.AF_UNIX:
            shown.append(str(each.getsockname()))
            continue
        host, port = each.getsockname()[:2]
        shown.append(f"http://{f'[{host}]' if ':' in host else host}:{port}{rules.base_path}/")
    return shown
