# SPDX-License-Identifier: Apache-2.0
"""The shell over the system's own ssh: what it refuses, what it says of a DUT that cannot be reached, and
what it leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.dut.readings_queues import run_each
from evenhand.dut.ssh import open_shell, open_ssh
from evenhand.testbed import TestbedDut as KnownDut
from evenhand.testbed import make_testbed
from evenhand.testbed.workers import check_destination
from tests.dut.namespace_dut import NamespaceDut, namespace_dut, why_not
from tests.errors import raises

needs_dut = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
DUT = KnownDut(ssh="root@192.0.2.2", os="linux", left=("left",), right=("right",))
HEAD = {
    "isolated_test_environment": True,
    "left": {"device": "net_null0"},
    "right": {"device": "net_null1"},
    "tester": {"cpus": [0]},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceDut]:
    with namespace_dut(tmp_path_factory.mktemp("dut")) as dut:
        yield dut


@pytest.fixture
def dut(made: NamespaceDut, monkeypatch: pytest.MonkeyPatch) -> NamespaceDut:
    for name in ("PATH", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, made.environment[name])
    return made


@pytest.mark.parametrize(
    "text",
    [
        "root@r1",
        "r1",
        "router.lab",
        "root@192.0.2.1",
        "ssh://root@[2001:db8::1]:2222",
        "root@2001:db8::1",
        "a_b",
    ],
)
def test_hosts_pass(text: str) -> None:
    assert check_destination(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "-oProxyCommand=touch /tmp/x",
        "root@-oProxyCommand=x",
        "",
        " ",
        "r1 reboot",
        "root@r1;reboot",
        "root@`id`",
        "$(id)@r1",
        "r1\n",
        "r1\x00",
        "'r1'",
        '"r1"',
        "root@r1|x",
        "-r1",
        "ssh://-r1",
        "ssh://r1/etc",
        "a@b@c",
        "r1&",
        "rö1",
        "x" * 400,
    ],
)
def test_what_could_be_more_than_a_host_is_refused(text: str) -> None:
    """A testbed file may be somebody else's: it never makes ssh take an option or a shell run a command."""
    with raises("rig.not-an-ssh-destination"):
        check_destination(text)
    with raises("rig.not-an-ssh-destination", match="ssh: "):
        make_testbed(
            {**HEAD, "dut": {"ssh": text, "os": "linux", "left": "eth1", "right": "eth2"}}, where="lab.toml"
        )


@pytest.mark.parametrize(
    ("keys", "code", "named"),
    [
        ({"ssh": "r1"}, "rig.only-together", "os, left, right missing"),
        ({"left": "eth1", "right": "eth2", "os": "linux"}, "rig.only-together", "ssh missing"),
        ({"ssh": "r1", "os": "linux", "left": "eth1", "right": "eth1"}, "rig.same-interface-twice", "'eth1'"),
        (
            {"ssh": "r1", "os": "linux", "left": "eth1; reboot", "right": "eth1"},
            "rig.not-an-interface-name",
            "'eth1; reboot'",
        ),
        ({"ssh": "r1", "os": "windows", "left": "eth1", "right": "eth2"}, "base.not-one-of", "linux"),
        (
            {"ssh": "r1", "os": "linux", "left": "eth1", "right": "eth2", "proxy_command": "x"},
            "base.unknown-key",
            "'proxy_command'",
        ),
    ],
)
def test_what_the_testbed_says_of_the_way_is_checked(keys: dict[str, str], code: str, named: str) -> None:
    with raises(code) as refused:
        make_testbed({**HEAD, "dut": keys}, where="lab.toml")
    assert named in f"{refused.value} {refused.value.next_step}"


@pytest.mark.thorough
@pytest.mark.root
@needs_dut
def test_one_connection_carries_all_and_leaves_nothing(
    dut: NamespaceDut, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what is long, and what is cut: a script that did not arrive whole runs not at all."""
    own = Path(tempfile.mkdtemp(prefix="own-"))
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    with open_shell(DUT) as shell:
        assert shell.host.address == "192.0.2.2"
        assert shell.host.peer == "192.0.2.1"
        answer = shell.run("cat; echo to the other >&2; exit 7", input_text="one\n" * 50_000)
        assert (answer.exit_code, answer.stdout, answer.stderr) == (7, "one\n" * 50_000, "to the other\n")
        assert shell.run("exit 255").exit_code == 255
        assert [
            each.stdout
            for each in run_each(shell, ["echo one; false", "echo 'a b' >&2", "cat <<'END'\nthree\nEND"])
        ] == ["one", "a b", "three"]
        ways = dut.inside("ss", "-Htn", "state", "established", "sport", "=", ":22")
        assert len(ways.splitlines()) == 1
        cut = shell.run("exec sh -s", input_text="main() {\necho it runs\n")
        assert "it runs" not in cut.stdout
        with raises("rig.no-answer-in-time", match=r"0\.5 s .*sleep 60"):
            shell.run("sleep 60", timeout_s=0.5)
        [folder] = own.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
    own.rmdir()


@pytest.mark.root
@needs_dut
def test_a_dut_that_cannot_be_had_says_why(dut: NamespaceDut, tmp_path: Path) -> None:
    """Each reason has its own way on; a password is never asked for."""

    def assert_refused(code: str, destination: str = "root@192.0.2.2") -> None:
        with raises(code) as refused, open_ssh(destination):
            pass
        assert refused.value.next_step

    assert_refused("rig.dut-does-not-answer", "ssh://root@192.0.2.2:23")
    assert_refused("rig.dut-does-not-answer", "root@nothing.invalid")
    known, authorized = dut.folder / "known", dut.folder / "authorized"
    for file, text, code in (
        (known, "", "rig.host-key-unknown"),
        (
            known,
            f"192.0.2.2 {(dut.folder / 'user.pub').read_text().rpartition(' ')[0]}\n",
            "rig.host-key-changed",
        ),
        (authorized, "", "rig.ssh-key-refused"),
    ):
        right = file.read_text()
        file.write_text(text)
        try:
            assert_refused(code)
        finally:
            file.write_text(right)


@pytest.mark.root
@needs_dut
def test_another_system_is_refused(dut: NamespaceDut) -> None:
    with (
        raises("rig.other-system-on-dut", match="'freebsd' .* Linux"),
        open_shell(DUT.model_copy(update={"os": "freebsd"})),
    ):
        pass


def test_who_is_not_root_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is a script here, which answers as a host would where the user has the id 1000."""
    (tmp_path / "ssh").write_text(
        "#!/bin/sh\necho evenhand-ready Linux 1000 192.0.2.1 192.0.2.2\nexec cat > /dev/null\n"
    )
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with raises("rig.not-root-on-dut", match="1000"), open_shell(DUT):
        pass


@pytest.mark.root
@needs_dut
def test_a_connection_that_is_lost_in_the_middle_is_told(dut: NamespaceDut) -> None:
    with open_shell(DUT) as shell:
        threading.Timer(0.5, dut.stop).start()
        try:
            with raises("rig.connection-lost"):
                shell.run("sleep 60")
            with raises("rig.connection-lost"):
                shell.run("true")
        finally:
            dut.start()


@pytest.mark.root
@needs_dut
def test_the_connection_ends_with_a_killed_process(dut: NamespaceDut) -> None:
    """What nobody can take back leaves nothing that holds the DUT."""
    code = (
        "from evenhand.dut.ssh import open_ssh; import os\nwith open_ssh('root@192.0.2.2'):"
        " os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    end = time.monotonic() + 60
    while dut.inside("ss", "-Htn", "state", "established", "sport", "=", ":22").strip():
        assert time.monotonic() < end
        time.sleep(0.1)
