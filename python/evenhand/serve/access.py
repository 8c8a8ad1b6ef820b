# SPDX-License-Identifier: Apache-2.0
"""Who may see the pages, and what a browser may do with them: around everything that the server answers."""

from __future__ import annotations

import hashlib
import hmac
import re
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
OWN_PATHS = ("api", "compare", "events", "login", "metrics", "run", "static", "trend")
"""What paths of this server begin with. One of them as base path would be taken away from its own pages."""
MOST_OCTETS = 4096  # the most that is sent to the login


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """As the user has set them.

    `base_path`: what a proxy has before the paths of this server, such as `/lab`. `token`: None if everybody
    who can connect sees everything. `host_names`: names under which a browser may ask, besides those of
    loopback. `is_behind_proxy`: X-Forwarded-Proto is believed. `is_socket_file`: who may open the file may
    see everything; no browser can be misled to it.
    """

    base_path: str = ""
    token: str | None = None
    host_names: tuple[str, ...] = ()
    is_behind_proxy: bool = False
    is_socket_file: bool = False

    def __post_init__(self) -> None:
        """RequestError for a base path that is none, or that pages have of their own."""
        is_own = self.base_path.split("/")[1:2] in ([name] for name in OWN_PATHS)
        if is_own or not re.fullmatch(r"(/[A-Za-z0-9._~-]+)*", self.base_path):
            raise RequestError(
                f"{self.base_path!r} is not a base path",
                code="serve.not-a-base-path",
                where="--base-path",
                next_step="Write it as /lab: it begins with a slash, does not end with one, and is none of"
                f" /{', /'.join(OWN_PATHS)}.",
            )


@dataclass(slots=True)
class GuardedApp:
    """The outermost of the server: paths, hosts, token, headers."""

    app: ASGIApp
    rules: AccessRules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # A proxy may have taken the base path away, or left it.
        path = re.sub(f"^{re.escape(self.rules.base_path)}(?=/|$)", "", scope["path"]) or "/"

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                is_static = path.startswith("/static/") and message["status"] < 400
                headers["cache-control"] = f"private, max-age={DAY_S}" if is_static else "no-store"
            await send(message)

        scope = {**scope, "path": path, "raw_path": path.encode()}
        answer = await self._answer(Request(scope, receive))
        await answer(scope, receive, with_headers)

    async def _answer(self, request: Request) -> ASGIApp:
        """What answers: the server behind this, or a refusal."""
        path, token = request.scope["path"], self.rules.token
        if not self._is_host_known(request.headers.get("host", "")):
            return PlainTextResponse(
                "This server does not answer to that name. If it should, start it with --host-name.\n", 421
            )
        if path == "/login" and request.method == "POST" and token is not None:
            return await self._log_in(request, token)
        if token is None or path.startswith("/static/") or _knows(request, token):
            return self.app
        if "text/html" in request.headers.get("accept", ""):
            query = request.scope["query_string"] if path == "/login" else b""
            at = {"path": "/login", "raw_path": b"/login", "query_string": query}
            return lambda scope, receive, send: self.app({**scope, **at}, receive, send)
        return PlainTextResponse("A token is needed.\n", 401, {"www-authenticate": "Bearer"})

    def _is_host_known(self, host: str) -> bool:
        """Another site may give its name the address of loopback, and its script then asks this server. It
        has no cookie of ours, so where there is a token this does not matter."""
        name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0].lower()
        return (
            self.rules.token is not None
            or self.rules.is_socket_file
            or is_loopback(name)
            or name in ("localhost", *map(str.lower, self.rules.host_names))
        )

    async def _log_in(self, request: Request, token: str) -> Response:
        body = b""
        with suppress(ClientDisconnect):
            async for part in request.stream():
                body += part
                if len(body) > MOST_OCTETS:
                    return PlainTextResponse("That is too much.\n", 413)
        given = ""
        with suppress(ValueError):  # too many fields
            given = parse_qs(body.decode("latin-1"), max_num_fields=4).get("token", [""])[0].strip()
        if not _are_same(given, token):
            return RedirectResponse(f"{self.rules.base_path}/login?wrong=1", 303)
        is_https = self.rules.is_behind_proxy and request.headers.get("x-forwarded-proto") == "https"
        answer = RedirectResponse(f"{self.rules.base_path}/", 303)
        answer.set_cookie(
            COOKIE,
            _proof(token),
            max_age=30 * DAY_S,
            path=self.rules.base_path or "/",
            secure=is_https or request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return answer


def _knows(request: Request, token: str) -> bool:
    """Whether a program or a browser has shown that it knows the token."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    is_program = kind.lower() == "bearer" and _are_same(given.strip(), token)
    return is_program or _are_same(request.cookies.get(COOKIE, ""), _proof(token))


def _proof(token: str) -> str:
    """What a browser keeps: it proves that it had the token, and does not contain it."""
    return hmac.new(token.encode(), b"evenhand serve", hashlib.sha256).hexdigest()


def _are_same(given: str, wanted: str) -> bool:
    """In a time that says nothing of where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())
