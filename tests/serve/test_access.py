# SPDX-License-Identifier: Apache-2.0
"""Who may see the pages: names, tokens, base paths, methods."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import pytest

from evenhand.base.errors import EvenhandError
from evenhand.cli.main import main
from evenhand.serve.access import AccessRules
from evenhand.serve.server import _socket_file, read_place
from tests.serve.served import LOCAL, Served, recorded_folder, server_process

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:8740", 200),
        ("127.0.0.1:8740", 200),
        ("[::1]:8740", 200),
        ("lab.example.org", 200),
        ("evil.example.org", 421),
        ("evil.example.org:8740", 421),
        ("127.0.0.1.evil.example.org", 421),
        ("192.0.2.1", 421),
        ("[2001:db8::1]", 421),
        ("", 421),
    ],
)
def test_only_known_names_are_answered(tmp_path: Path, host: str, status: int) -> None:
    """A site that gives its name the address of loopback does not get to see the runs."""
    mine = Served.of(tmp_path, host_names=("lab.example.org",))
    assert mine.get("/", headers={"host": host}).status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_nothing_can_be_changed(tmp_path: Path, method: str) -> None:
    mine = Served.of(tmp_path)
    for address in ("/", "/run/a.evenhand", "/login", "/api/runs"):
        assert mine.get(address, method=method).status == 405


def test_without_the_token_nothing_is_seen(tmp_path: Path) -> None:
    mine = Served.of(tmp_path, token=TOKEN)
    for address in ("/", "/api/runs", "/metrics", "/events", "/run/a.evenhand"):
        assert mine.get(address).status == 401
        for given in ("Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"):
            assert mine.get(address, headers={**LOCAL, "authorization": given}).status == 401
    assert mine.get("/api/runs", headers={**LOCAL, "authorization": f"Bearer {TOKEN}"}).status == 200
    page = mine.get("/", headers={**LOCAL, "accept": "text/html"})
    assert (page.status, 'type="password"' in page.text) == (401, True)


def test_a_browser_logs_in_once(tmp_path: Path) -> None:
    mine = Served.of(tmp_path, token=TOKEN, base_path="/lab", is_behind_proxy=True)
    wrong = mine.get("/lab/login", method="POST", body=b"token=nonsense")
    assert (wrong.status, wrong.headers["location"]) == (303, "/lab/login?wrong=1")
    assert "set-cookie" not in wrong.headers
    right = mine.get(
        "/lab/login",
        method="POST",
        body=f"token={TOKEN}".encode(),
        headers={**LOCAL, "x-forwarded-proto": "https"},
    )
    cookie = right.headers["set-cookie"]
    assert (right.status, right.headers["location"]) == (303, "/lab/")
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=strict", "Secure", "Path=/lab"} <= set(cookie.split("; "))
    value = cookie.partition(";")[0]
    assert mine.get("/lab/", headers={**LOCAL, "cookie": value}).status == 200
    assert mine.get("/lab/", headers={**LOCAL, "cookie": f"{value}0"}).status == 401
    assert mine.get("/lab/login", method="POST", body=b"x" * 100_000).status == 413
    many = mine.get("/lab/login", method="POST", body=b"a=1&b=2&c=3&d=4&token=x")
    assert (many.status, many.headers["location"]) == (303, "/lab/login?wrong=1")
    assert "content-security-policy" in many.headers


def test_forwarded_headers_are_believed_only_where_told(tmp_path: Path) -> None:
    mine = Served.of(tmp_path, token=TOKEN)
    headers = {**LOCAL, "x-forwarded-proto": "https", "x-forwarded-host": "evil.example.org"}
    answer = mine.get("/login", method="POST", body=f"token={TOKEN}".encode(), headers=headers)
    assert "Secure" not in answer.headers["set-cookie"]
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize("path", ["/lab/", "/lab", "/"])
def test_a_proxy_may_take_the_base_path_away_or_leave_it(tmp_path: Path, path: str) -> None:
    answer = Served.of(tmp_path, base_path="/lab").get(path)
    assert answer.status == 200
    assert 'href="/lab/static/style.css' in answer.text
    assert 'href="/static' not in answer.text


def test_no_redirect_loses_the_base_path(tmp_path: Path) -> None:
    mine = Served.of(recorded_folder(tmp_path), base_path="/lab")
    for path in ("/lab/compare/?run=campaign-v4.evenhand", "/lab/run/campaign-v4.evenhand/"):
        assert mine.get(path).status == 404


@pytest.mark.parametrize("base", ["lab", "/lab/", "/a b", '/"', "//evil", "/<", "/run", "/api/x"])
def test_a_base_path_that_is_none_is_refused(base: str) -> None:
    with pytest.raises(EvenhandError) as refused:
        AccessRules(base_path=base)
    assert refused.value.code == "serve.not-a-base-path"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("8741", ("", 8741)),
        ("localhost", ("", 8740)),
        ("localhost:1", ("", 1)),
        ("127.0.0.1:9", ("127.0.0.1", 9)),
        ("[::1]:9", ("::1", 9)),
        ("[2001:db8::1]", ("2001:db8::1", 8740)),
        ("::1", ("::1", 8740)),
    ],
)
def test_places_to_listen_on(text: str, place: tuple[str, int]) -> None:
    assert read_place(text) == place


@pytest.mark.parametrize(
    "text", ["", "lab", "1:2:3:x", "127.0.0.1:65536", "127.0.0.1:-1", "[::1]9", "999.0.0.1:1"]
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(EvenhandError) as refused:
        read_place(text)
    assert refused.value.code == "serve.not-an-address"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--listen", "0.0.0.0:0"], "token"),
        (["--listen", "[::]:0"], "token"),
        (["--listen", "1", "--socket", "s"], "socket file"),
    ],
)
def test_the_network_is_not_served_by_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["serve", str(tmp_path), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "none")]) == 2


def test_a_socket_file_is_its_owners_and_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "s"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()  # nobody listens there any more
    with _socket_file(path):
        assert path.stat().st_mode & 0o007 == 0
        with pytest.raises(EvenhandError) as refused, _socket_file(path):
            pass
        assert refused.value.code == "serve.not-listening"
    assert not path.exists()


def test_both_loopback_addresses_answer(tmp_path: Path) -> None:
    """Until the server is ended, which it is while a page waits for news."""
    with ExitStack() as open_pages, server_process(tmp_path) as address:
        open_pages.enter_context(urlopen(f"{address}/events"))
        for host in ("127.0.0.1", "[::1]") if socket.has_ipv6 else ("127.0.0.1",):
            with urlopen(address.replace("127.0.0.1", host) + "/") as answer:
                assert answer.status == 200


def test_without_the_extra_the_verb_says_what_to_install(tmp_path: Path) -> None:
    """The plain installation loads nothing of it."""
    blocked = "import sys; sys.modules['uvicorn'] = None; from evenhand.cli.main import main;"
    done = subprocess.run(
        [sys.executable, "-c", f"{blocked} sys.exit(main(['serve', {str(tmp_path)!r}]))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert ".venv/bin/pip install --requirement requirements-serve.lock" in done.stderr
