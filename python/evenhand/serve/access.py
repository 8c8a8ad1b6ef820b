# SPDX-License-Identifier: Apache-2.0
"""Who may see the pages, and what a browser may do with them: around everything that the server answers."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from evenhand.base.errors import RequestError
from evenhand.base.loopback import is_loopback

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action"
    " 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, and nothing that stands in a page itself."""
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
DAY_S = 86_400
COOKIE = "evenhand"
MOST_OCTETS = 4096
"""The most that is sent to the login."""
_BASE = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """As the user has set them."""

    base_path: str = ""
    """What a proxy has before the paths of this server, such as `/lab`; empty: nothing."""
    token: str | None = None
    """None: everybody who can connect sees everything."""
    host_names: tuple[str, ...] = ()
    """Names under which a browser may ask, besides those of loopback."""
    is_behind_proxy: bool = False
    """X-Forwarded-Proto is believed."""
    is_socket_file: bool = False
    """Who may open the file may see everything; no browser can be misled to it."""

    def check(self) -> None:
        """RequestError for a base path that is none."""
        if not _BASE.fullmatch(self.base_path):
            raise RequestError(
                f"{self.base_path!r} is not a base path",
                code="serve.not-a-base-path",
                where="--base-path",
                next_step="Write it as /lab: it begins with a slash, and does not end with one.",
            )


@dataclass(slots=True)
class GuardedApp:
    """The outermost of the server: paths, hosts, token, headers."""

    app: App
    rules: AccessRules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = self._path(scope["path"])

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                is_static = path.startswith("/static/") and message["status"] < 400
                headers["cache-control"] = f"private, max-age={DAY_S}" if is_static else "no-store"
            await send(message)

        answer = await self._answer(Request(scope, receive), path)
        await answer({**scope, "path": path, "raw_path": path.encode()}, receive, with_headers)

    async def _answer(self, request: Request, path: str) -> App:
        """What answers: the server behind this, or a refusal."""
        if not self._is_host_known(request.headers.get("host", "")):
            return _text(
                421, "This server does not answer to that name. If it should, start it with --host-name."
            )
        if path == "/login" and request.method == "POST" and self.rules.token is not None:
            return await self._log_in(request, self.rules.token)
        if request.method not in ("GET", "HEAD"):
            return _text(405, "This server only shows.", {"allow": "GET, HEAD"})
        if self._may_see(request) or path.startswith("/static/"):
            return self.app
        if "text/html" in request.headers.get("accept", ""):
            query = request.scope["query_string"] if path == "/login" else b""
            return lambda scope, receive, send: self.app(
                {**scope, "path": "/login", "raw_path": b"/login", "query_string": query}, receive, send
            )
        return _text(401, "A token is needed.", {"www-authenticate": "Bearer"})

    def _path(self, path: str) -> str:
        """Without the base path, which a proxy may have taken away or left."""
        base = self.rules.base_path
        if not base or not (path == base or path.startswith(f"{base}/")):
            return path
        return path.removeprefix(base) or "/"

    def _is_host_known(self, host: str) -> bool:
        """Another site may give its name the address of loopback, and its script then asks this server. It
        has no cookie of ours, so where there is a token this does not matter."""
        if self.rules.token is not None or self.rules.is_socket_file:
            return True
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0].lower()
        return is_loopback(name) or name in ("localhost", *map(str.lower, self.rules.host_names))

    def _may_see(self, request: Request) -> bool:
        token = self.rules.token
        if token is None:
            return True
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        cookie = request.cookies.get(COOKIE, "")
        return (kind.lower() == "bearer" and _are_same(given.strip(), token)) or _are_same(
            cookie, _proof(token)
        )

    async def _log_in(self, request: Request, token: str) -> Response:
        body = b""
        with suppress(ClientDisconnect):
            async for part in request.stream():
                body += part
                if len(body) > MOST_OCTETS:
                    return _text(413, "That is too much.")
        given = parse_qs(body.decode("latin-1"), max_num_fields=4).get("token", [""])[0].strip()
        base = self.rules.base_path
        if not _are_same(given, token):
            return RedirectResponse(f"{base}/login?wrong=1", 303)
        is_https = self.rules.is_behind_proxy and request.headers.get("x-forwarded-proto") == "https"
        answer = RedirectResponse(f"{base}/", 303)
        answer.set_cookie(
            COOKIE,
            _proof(token),
            max_age=30 * DAY_S,
            path=base or "/",
            secure=is_https or request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer


def _proof(token: str) -> str:
    """What a browser keeps: it proves that it had the token, and does not contain it."""
    return hmac.new(token.encode(), b"evenhand serve", hashlib.sha256).hexdigest()


def _are_same(given: str, wanted: str) -> bool:
    """In a time that says nothing of where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def _text(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers)
