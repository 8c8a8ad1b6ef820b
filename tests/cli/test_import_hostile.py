# SPDX-License-Identifier: Apache-2.0
"""Files that a stranger has sent: `evenhand import` only reads them, within bounds, and nothing of them
reaches a shell or DPDK."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.base.errors import RequestError
from evenhand.exchange.siitperf_read import KEYS, MOST_OCTETS, read_siitperf
from tests.cli.running import Ended
from tests.exchange.confs import ROUTER_KEYS, write_conf

Run = Callable[..., Ended]
GOOD = "".join(f"{key} {value}\n" for key, value in ROUTER_KEYS.items())


@pytest.mark.parametrize(
    ("content", "code", "named"),
    [
        (b"\0" * 100, "exchange.not-text", ""),
        (GOOD.encode() + b"Forward\x001\n", "exchange.not-text", ""),
        (GOOD.encode() + b"# \x1b]0;title\x07\n", "exchange.not-text", ""),
        (GOOD.encode() + "# \u202eturned\n".encode(), "exchange.not-text", ""),
        (b"\xff\xfe" + GOOD.encode(), "exchange.not-text", "UTF-8"),
        (b"#" * (MOST_OCTETS + 1), "exchange.file-too-large", "65,536"),
        (b"", "exchange.not-siitperf", ""),
        (b"# only words\n\n   \n", "exchange.not-siitperf", ""),
        (GOOD.encode() + b"IP-L-Ver 6\n", "exchange.unknown-key", "IP-L-Vers?"),
        (GOOD.encode() + b"--vdev net_pcap0,tx_pcap=/etc/passwd\n", "exchange.unknown-key", "'--vdev'"),
        (GOOD.encode() + b"x" * 5000 + b" 1\n", "exchange.unknown-key", "'xxx"),
        (GOOD.encode() + b"IP-L-Vers 6\n", "exchange.key-twice", "IP-L-Vers"),
        (GOOD.encode() + b"Forward 1 2\n", "exchange.text-after-value", "'2'"),
        (GOOD.encode() + b"Forward 0\nReverse 0\n", "exchange.nothing-sent", "Forward"),
        (
            GOOD.encode() + b"IP-L-var 3\nIP-L-min 9\nIP-L-max 8\nIPv4-L-offset 2\n",
            "exchange.keys-contradict",
            "IP-L-min 9",
        ),
        (GOOD.encode() + b"IP-L-var 3\nIP-L-min 9\nIP-L-max 18\n", "exchange.key-missing", "IPv4-L-offset"),
        (GOOD.encode() + b"IP-L-var 3\nIPv4-L-offset 2\n", "exchange.key-missing", "IP-L-min"),
        (
            GOOD.encode() + b"IP-L-var 3\nIP-L-min 2\nIP-L-max 9\nIPv4-L-offset 2\nNum-R-Nets 2\n",
            "exchange.keys-contradict",
            "IP-L-var",
        ),
        (b"IP-L-Vers 4\nIP-R-Vers 4\n", "exchange.key-missing", "IPv4-L-Real"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_a_file_that_is_none_is_refused_in_three_parts(
    evenhand: Run, tmp_path: Path, content: bytes, code: str, named: str
) -> None:
    conf = tmp_path / "siitperf.conf"
    conf.write_bytes(content)
    ended = evenhand("import", conf)
    assert ended.code == 2
    assert ended.error.code == code
    assert named in f"{ended.error.what} {ended.error.next_step}"
    assert len(ended.err) < 1000
    assert "\x1b" not in ended.err
    assert [line.partition(":")[0] for line in ended.err.splitlines()] == ["Error", "Where", "Next"]
    assert os.listdir(tmp_path) == ["siitperf.conf"]


def test_what_is_no_file_is_refused_without_waiting(evenhand: Run, tmp_path: Path) -> None:
    """A pipe without a writer would be waited for."""
    os.mkfifo(tmp_path / "pipe.conf")
    for name in ("pipe.conf", ".", "nowhere.conf", "/dev/zero"):
        ended = evenhand("import", name, "--output", "a.toml")
        assert ended.code == 2
        assert ended.error.code in ("exchange.not-a-file", "exchange.file-not-readable")
        assert "siitperf.conf" in ended.error.next_step


def test_nothing_that_is_there_is_overwritten(evenhand: Run, tmp_path: Path) -> None:
    conf = write_conf(tmp_path / "siitperf.conf", ROUTER_KEYS)
    (tmp_path / "siitperf.toml").write_text("mine")
    assert evenhand("import", conf).code == 2
    assert (tmp_path / "siitperf.toml").read_text() == "mine"
    (tmp_path / "link.toml").symlink_to(tmp_path / "elsewhere")
    assert evenhand("import", conf, "--output", "link.toml").code == 2
    assert not (tmp_path / "elsewhere").exists()


def test_no_word_of_a_comment_is_carried_over(evenhand: Run, tmp_path: Path) -> None:
    conf = tmp_path / "siitperf.conf"
    conf.write_text(GOOD.replace("\n", ' # device = "net_pcap0" [dut]\n'))
    assert evenhand("import", conf).code == 0
    text = (tmp_path / "siitperf.toml").read_text()
    assert "net_pcap" not in text
    assert set(tomllib.loads(text)) == {"isolated_test_environment", "left", "right", "tester", "dut"}


@pytest.mark.parametrize(
    ("options", "code", "where"),
    [
        (("--left", "net_failsafe0,exec(reboot)"), "rig.driver-refused", "--left"),
        (("--left", "0000:01:00.0,evil=1"), "rig.device-key-unknown", "--left"),
        (("--cpus", "1;2"), "cli.not-a-cpu-list", "--cpus"),
        (
            ("--cpus", "1,1", "--left", "net_ring0", "--right", "net_ring1", "--isolated-test-environment"),
            "rig.cpu-twice",
            "a siitperf.conf: tester",
        ),
        (
            ("--left", "net_ring0", "--right", "net_ring0", "--cpus", "1", "--isolated-test-environment"),
            "rig.same-device-twice",
            "a siitperf.conf",
        ),
    ],
)
def test_the_users_own_options_are_checked_too(
    evenhand: Run, tmp_path: Path, options: tuple[str, ...], code: str, where: str
) -> None:
    ended = evenhand("import", write_conf(tmp_path / "siitperf.conf", ROUTER_KEYS), *options)
    assert ended.code == 2
    assert (ended.error.code, ended.error.where) == (code, where)
    assert not (tmp_path / "siitperf.toml").exists()


KEYED = st.tuples(st.sampled_from(sorted(KEYS)), st.text(max_size=30)).map(" ".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=400),
        st.lists(st.one_of(KEYED, st.text(max_size=40)), max_size=8).map(
            lambda lines: "\n".join(lines).encode()
        ),
    )
)
def test_whatever_is_in_a_file_ends_in_keys_or_a_refusal(tmp_path: Path, content: bytes) -> None:
    conf = tmp_path / "any.conf"
    conf.write_bytes(content)
    try:
        assert read_siitperf(conf).settings
    except RequestError as error:
        told = (error.where, error.next_step)
        assert all(told)
