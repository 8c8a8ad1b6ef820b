# SPDX-License-Identifier: Apache-2.0
"""What a run tells of its owner: what a measurement depends on, and no more."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.base.folders import sentence_without_folders, without_folders
from evenhand.dut.kernel_parameters import kept_parameters
from evenhand.host.finding import read_host_facts
from evenhand.plan import make_plan
from evenhand.run import RunStore, read_run
from evenhand.search import Role, SearchHead

BENCH_RESULTS = Path(__file__).parents[2] / "bench" / "results"
HOST = "alices-notebook.lab.example"


@pytest.fixture
def owned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write a run on a host that has a name, with folders that have an owner."""
    monkeypatch.setattr(platform, "node", lambda: HOST)

    def write(*, host_name: bool = False) -> Path:
        path = tmp_path / f"{host_name}.evenhand"
        command = [
            "evenhand",
            "trial",
            "/home/alice/acme/mine.toml",
            "--engine=/home/alice/bin/engine",
            "--run",
            "../alice/a.evenhand",
        ]
        device = "net_memif0,role=client,id=0,socket=/tmp/evenhand-alice/left.sock,rsize=11"
        setup = {
            "name": "/home/alice/acme/mine.toml",
            "opened": {"left": {"device": device}},
            "dut": {"addresses": ["198.18.0.1/16"]},
        }
        plan = make_plan("gateway-v4").to_contract()
        with (
            RunStore.create(path, command=command, host_name=host_name) as store,
            store.search(
                SearchHead(
                    label="s",
                    kind="trial",
                    role=Role.TRIAL,
                    plan=plan,
                    frame_size=64,
                    seed=1,
                    setup=setup,
                    goal={},
                )
            ) as writer,
        ):
            writer.finish_with("PASS")
        return path

    return write


def test_a_run_tells_neither_host_name_nor_command_line_nor_folders(owned: Callable[..., Path]) -> None:
    """Looked for in the octets of the file, where every other column would show as well."""
    path = owned()
    octets = path.read_bytes()
    assert HOST.encode() not in octets
    assert b"alice" not in octets
    command_line = Path("/proc/cmdline").read_text().strip()
    kept = kept_parameters(command_line)
    assert command_line.encode() not in octets or command_line.split() == kept
    for parameter in set(command_line.split()) - set(kept):
        if len(parameter) > 8:  # shorter ones, such as `quiet`, stand elsewhere by chance
            assert parameter.encode() not in octets, parameter
    (search,) = read_run(path).searches
    assert read_run(path).command == [
        "evenhand",
        "trial",
        "mine.toml",
        "--engine=engine",
        "--run",
        "a.evenhand",
    ]
    assert search.setup["name"] == "mine.toml"
    assert search.setup["opened"]["left"]["device"] == "net_memif0,role=client,id=0,socket=left.sock,rsize=11"
    assert search.setup["dut"]["addresses"] == ["198.18.0.1/16"]


def test_the_host_name_is_stored_where_it_is_asked_for(owned: Callable[..., Path]) -> None:
    assert read_run(owned(host_name=True)).host["hostname"] == HOST


def test_kernel_parameters_are_kept_by_name_and_in_their_order(tmp_path: Path) -> None:
    """`hugepages` belongs to the `hugepagesz` before it; the kernel takes - for _; what follows -- is told to
    init."""
    line = (
        'BOOT_IMAGE=/vmlinuz-6.1 root=UUID=0d-alice ro isolcpus=2-5 nohz-full=2-5 secret="alice isolcpus=7"'
        " hugepagesz=1G hugepages=4"
        " hugepagesz=2M hugepages=9 nosmt intel_idle.max_cstate=0 ip=192.0.2.7 -- mitigations=off"
    )
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cmdline").write_text(line + "\n")
    assert read_host_facts(tmp_path)["kernel_parameters"] == [
        "isolcpus=2-5",
        "nohz-full=2-5",
        "hugepagesz=1G",
        "hugepages=4",
        "hugepagesz=2M",
        "hugepages=9",
        "nosmt",
        "intel_idle.max_cstate=0",
    ]


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("mine.toml", "mine.toml"),
        ("lab:linux", "lab:linux"),
        ("/home/alice smith/acme/mine.toml", "mine.toml"),
        ("customers/acme/mine.toml", "mine.toml"),
        ("/home/alice/", "alice"),
        ("0000:01:00.0,fw=/opt/acme/a.fw", "0000:01:00.0,fw=a.fw"),
        (
            "net_pcap0,rx_pcap=/home/alice/in.pcap,tx_pcap=../out.pcap",
            "net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap",
        ),
        ("198.18.0.0/16", "198.18.0.0/16"),
        ("2001:2::/49", "2001:2::/49"),
        ("siit@2001:db8::/40", "siit@2001:db8::/40"),
        ("gateway-v6+siit@2001:db8:64::/96", "gateway-v6+siit@2001:db8:64::/96"),
        ("--plan=nat64@2001:db8::/96", "--plan=nat64@2001:db8::/96"),
        ("the route 2001:db8::/40 via 10.0.1.2", "the route 2001:db8::/40 via 10.0.1.2"),
        ("/home/alice/siit@2001:db8::/40", "siit@2001:db8::/40"),
        ("siit@2001:db8::/40/alice", "alice"),
        ("alice@cafe/12", "12"),
        ("90/10", "90/10"),
        ("4096,10%", "4096,10%"),
        ("Debian GNU/Linux 12 (bookworm)", "Debian GNU/Linux 12 (bookworm)"),
    ],
)
def test_names_stay_and_folders_go(text: str, stored: str) -> None:
    assert without_folders(text) == stored
    assert without_folders({"deep": [(text, 1)]}) == {"deep": [[stored, 1]]}


@pytest.mark.parametrize(
    ("sentence", "stored"),
    [
        (
            "it has no [dut] table (/home/alice/mine.toml: dut.plan)",
            "it has no [dut] table (mine.toml: dut.plan)",
        ),
        ("customers/acme/mine.toml: dut.plan is missing.", "mine.toml: dut.plan is missing."),
        ("the file '/home/alice smith/mine.toml' is gone", "the file 'mine.toml' is gone"),
        ("Error: ~/bin/nat.sh, ../alice/x: not found", "Error: nat.sh, x: not found"),
        ('File "/home/alice/hook.py", line 3', 'File "hook.py", line 3'),
        ("socket=/tmp/evenhand-alice/left.sock", "socket=left.sock"),
        ("no route to 198.18.0.0/16 and 2001:2::/49.", "no route to 198.18.0.0/16 and 2001:2::/49."),
        (
            "siit@2001:db8::/40: 90/10 of frames/s and/or N/A",
            "siit@2001:db8::/40: 90/10 of frames/s and/or N/A",
        ),
        ("cannot read /sys/class/net/eth1/mtu", "cannot read /sys/class/net/eth1/mtu"),
        ("Debian GNU/Linux 12 / 13", "Debian GNU/Linux 12 / 13"),
        ("see https://example.org/a/b.html", "see https://example.org/a/b.html"),
    ],
)
def test_folders_go_from_sentences_too(sentence: str, stored: str) -> None:
    assert sentence_without_folders(sentence) == stored


@pytest.mark.parametrize("path", sorted(BENCH_RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_bench_results_tell_no_more_than_runs(path: Path) -> None:
    host = json.loads(path.read_text())["host"]
    assert host.keys() <= read_host_facts().keys()
    assert host["kernel_parameters"] == kept_parameters(" ".join(host["kernel_parameters"]))
    assert re.search(r'"[^"]*/(home|tmp|root)/', path.read_text()) is None
