# SPDX-License-Identifier: Apache-2.0
"""Who may see the pages, and what a browser may do with them: around everything that the server answers."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from evenhand.base.errors import RequestError
from evenhand.base.loopback import is_loopback

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action"
    " 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, and nothing that stands in a page itself."""
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
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
        headers = {name.lower(): value for name, value in reversed(scope["headers"])}

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = [(name, value) for name, value in message.get("headers", []) if name != b"server"]
                named = {name.lower() for name, _ in own}
                caching = [] if b"cache-control" in named else [(b"cache-control", b"no-store")]
                message["headers"] = [*own, *HEADERS, *caching]
            await send(message)

        path = self._path(scope["path"])
        if path is None:
            await _answer(with_headers, 404, "There is no such page.")
        elif not self._is_host_known(headers.get(b"host", b"")):
            await _answer(
                with_headers,
                421,
                "This server does not answer to that name. If it should, start it with --host-name.",
            )
        elif path == "/login" and scope["method"] == "POST" and self.rules.token is not None:
            await self._log_in(scope, receive, with_headers, headers)
        elif scope["method"] not in ("GET", "HEAD"):
            await _answer(with_headers, 405, "This server only shows.", (b"allow", b"GET, HEAD"))
        elif self._may_see(headers) or path.startswith("/static/"):
            await self.app({**scope, "path": path, "raw_path": path.encode()}, receive, with_headers)
        elif b"text/html" in headers.get(b"accept", b""):
            query = scope["query_string"] if path == "/login" else b""
            await self.app({**scope, "path": "/login", "query_string": query}, receive, with_headers)
        else:
            await _answer(with_headers, 401, "A token is needed.", (b"www-authenticate", b"Bearer"))

    def _path(self, path: str) -> str | None:
        """Without the base path, which a proxy may have taken away or left."""
        base = self.rules.base_path
        if not base or not (path == base or path.startswith(f"{base}/")):
            return path
        return path.removeprefix(base) or "/"

    def _is_host_known(self, host: bytes) -> bool:
        """Another site may give its name the address of loopback, and its script then asks this server. It
        has no cookie of ours, so where there is a token this does not matter."""
        if self.rules.token is not None or self.rules.is_socket_file:
            return True
        name = host.decode("ascii", "replace").lower()
        name = name[1 : name.find("]")] if name.startswith("[") else name.partition(":")[0]
        if name == "localhost" or name in map(str.lower, self.rules.host_names):
            return True
        return is_loopback(name)

    def _may_see(self, headers: MutableMapping[bytes, bytes]) -> bool:
        token = self.rules.token
        if token is None:
            return True
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and hmac.compare_digest(given.strip(), token.encode()):
            return True
        try:
            cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), _proof(token).encode())

    async def _log_in(
        self, scope: Scope, receive: Receive, send: Send, headers: MutableMapping[bytes, bytes]
    ) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if message["type"] != "http.request" or len(body) > MOST_OCTETS:
                await _answer(send, 413, "That is too much.")
                return
            if not message.get("more_body"):
                break
        given = parse_qs(body.decode("latin-1"), max_num_fields=4).get("token", [""])[0].strip()
        token = self.rules.token
        assert token is not None
        base = self.rules.base_path
        if not hmac.compare_digest(given.encode(), token.encode()):
            await _answer(send, 303, "", (b"location", f"{base}/login?wrong=1".encode()))
            return
        is_secure = self.rules.is_behind_proxy and headers.get(b"x-forwarded-proto") == b"https"
        cookie = f"{COOKIE}={_proof(token)}; Path={base or '/'}; HttpOnly; SameSite=Strict; Max-Age=2592000"
        cookie += "; Secure" if is_secure or scope.get("scheme") == "https" else ""
        await _answer(
            send, 303, "", (b"location", f"{base}/".encode()), (b"set-cookie", cookie.encode("latin-1"))
        )


def _proof(token: str) -> str:
    """What a browser keeps: it proves that it had the token, and does not contain it."""
    return hmac.new(token.encode(), b"evenhand serve", hashlib.sha256).hexdigest()


async def _answer(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    body = f"{text}\n".encode()
    kind = (b"content-type", b"text/plain; charset=utf-8")
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [kind, length, *headers]})
    await send({"type": "http.response.body", "body": body})
