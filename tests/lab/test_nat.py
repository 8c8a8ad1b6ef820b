# SPDX-License-Identifier: Apache-2.0
"""A Linux lab that is a NAT: its rules, what it needs, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from evenhand.cli import lab as verb
from evenhand.cli.main import main
from evenhand.dut import nat as told
from evenhand.lab import (
    LinuxLab,
    borrow,
    lab_down,
    lab_status,
    lab_up,
    linux_lab,
    linux_programs,
    machine,
    nft,
    translator,
    vm,
)
from evenhand.lab.namespaces import namespace_path
from evenhand.plan import TOPOLOGIES, SideCounts, make_plan
from evenhand.plan.translation import Nat
from evenhand.rig.lab_rig import make_lab_setup
from tests.errors import raises
from tests.lab.lab_holder import holder

PLAN = make_plan("nat44", (3, 4))
GUARD_S = 30
HOST_SYSCTLS = Path("/proc/sys/net/netfilter")
needs_nft = pytest.mark.skipif(
    shutil.which(nft.PROGRAM, path=machine.system_path()) is None, reason="nftables is not installed"
)


def nat_of(plan: str) -> Nat:
    found = TOPOLOGIES[plan].nat
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("plan", "rule"),
    [
        (
            "nat44",
            'oifname "ehdr-x" ip saddr 10.16.0.0/16'
            " snat ip prefix to ip saddr map { 10.16.0.0/16 : 198.18.0.0/16 }",
        ),
        (
            "nat66",
            'oifname "ehdr-x" ip6 saddr 2001:2::/112'
            " snat ip6 prefix to ip6 saddr map { 2001:2::/112 : 2001:2:0:4000::/112 }",
        ),
        (
            "nat64",
            'oifname "ehdr-x" ip saddr 10.16.0.0/16'
            " snat ip prefix to ip saddr map { 10.16.0.0/16 : 198.18.0.0/16 }",
        ),
    ],
)
def test_each_host_of_the_inside_has_an_address_of_the_pool(plan: str, rule: str) -> None:
    assert rule in told.nat_rules(nat_of(plan), "ehdr-x", "kept").splitlines()[3]


def test_random_ports_do_not_change_the_addresses() -> None:
    rules = told.nat_rules(nat_of("nat66"), "ehdr-x", "random")
    assert "{ 2001:2::1 : 2001:2:0:4000::1, 2001:2::2 : 2001:2:0:4000::2, " in rules
    assert ", 2001:2::fffe : 2001:2:0:4000::fffe }" in rules
    assert "snat to ip6 saddr map @pool fully-random" in rules
    assert "elements" not in told.nat_rules(nat_of("nat66"), "ehdr-x", "random", with_hosts=False)


def test_only_a_nat64_is_translated_before() -> None:
    assert told.translation_of(make_plan("nat44")) is None
    assert told.translation_of(make_plan("nat66")) is None
    translation = told.translation_of(make_plan("nat64"))
    assert translation is not None
    assert translation.needs_mapping
    assert translation.to_document() == {
        "prefix": "2001:2:0:64::/96",
        "ipv6_hosts": "2001:2::/112",
        "ipv6_hosts_as_ipv4": "10.16.0.0/16",
        "needs_mapping": True,
    }


def test_without_nft_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux_programs, "system_path", lambda: "")
    with raises("rig.program-missing", match="nft for the NAT, which is") as refusal:
        linux_programs.check_linux_programs(make_plan("nat44"), 0)
    assert "apt-get install nftables" in refusal.value.next_step


def test_all_programs_that_a_lab_lacks_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever installs one of them and is told of the next has lost a minute for each."""
    monkeypatch.setattr(linux_programs, "system_path", lambda: "")
    for plan, rules, named in (
        ("nat64", 0, "TAYGA for a translator as DUT, and nft for the NAT, which are"),
        ("nat64", 8, "TAYGA for a translator as DUT, and nft for the NAT and the firewall, which are"),
        ("siit", 8, "TAYGA for a translator as DUT, and nft for the firewall, which are"),
        ("nat66", 8, "nft for the NAT and the firewall, which is"),
    ):
        with raises("rig.program-missing", match=named) as refusal:
            linux_programs.check_linux_programs(make_plan(plan), rules)
        assert ("no-install-recommends tayga" in refusal.value.next_step) is ("TAYGA" in named)
        assert "apt-get install nftables" in refusal.value.next_step
    linux_programs.check_linux_programs(make_plan("gateway-v6"), 0)


def test_a_router_has_no_connections_to_empty() -> None:
    lab = LinuxLab(
        name="linux",
        plan="gateway_v4",
        ip_version=4,
        hosts=SideCounts(1, 1),
        networks=SideCounts(1, 1),
        dut_cpu=0,
        tester_cpus=(1,),
    )
    setup = make_lab_setup(lab)
    assert setup.connection_timeout_s is None
    with raises("rig.lab-without-connections"):
        setup.empty_connections()


def test_the_status_tells_what_the_nat_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = LinuxLab(
        name="linux",
        plan="nat44",
        ip_version=4,
        hosts=SideCounts(1, 1),
        networks=SideCounts(1, 1),
        dut_cpu=0,
        tester_cpus=(1,),
        nat_ports="random",
    )
    monkeypatch.setattr(verb, "lab_status", lambda _: lab)
    assert main(["lab", "status", "linux"]) == 0
    shown = capsys.readouterr().out
    assert "\n  NAT44  10.16.0.0/16 to 198.18.0.0/16, ports random\n" in shown
    assert "throughput" not in shown
    assert main(["lab", "status", "linux", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nat_ports"] == "random"


@pytest.mark.parametrize("lab", ["linux --plan gateway-v4", "vm --plan gateway-v6"])
def test_only_a_nat_has_ports_to_give(lab: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "up", *lab.split(), "--nat-ports", "random", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["id"] == "cli.option-not-here"


@pytest.mark.parametrize(
    ("lab", "error"),
    [
        ("linux --plan siit --translator jool", "cli.option-not-here"),
        ("linux --plan nat64 --translator jool", "cli.option-not-here"),
        ("vm --plan gateway-v6 --translator jool", "cli.option-not-here"),
        ("vm --plan nat44 --translator tayga", "cli.option-not-here"),
        ("linux --plan gateway-v4+gateway-v6 --translator tayga", "cli.option-not-here"),
        ("vm --plan nat64 --translator jool --nat-ports random", "rig.no-nat-to-set"),
    ],
)
def test_a_translator_is_refused_where_there_is_none_to_choose(
    lab: str, error: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is made."""
    monkeypatch.setattr(vm, "require_root", lambda *_, **__: None)
    monkeypatch.setattr(vm, "check_vm_programs", lambda: None)
    assert main(["lab", "up", *lab.split(), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["id"] == error


@needs_nft
@pytest.mark.root
def test_a_nat_whose_maker_was_killed_is_taken_down(lab_name: str) -> None:
    """Rules, timeouts and entries belong to the namespace; the kernel's limits stay as they are."""

    def host() -> dict[str, str]:
        rules = subprocess.run(
            [shutil.which(nft.PROGRAM, path=machine.system_path()) or nft.PROGRAM, "list", "ruleset"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        values = {path.name: path.read_text() for path in HOST_SYSCTLS.glob("nf_conntrack_[bmu]*")}
        return {"rules": rules, **values}

    before = host()
    process = holder(lab_name, "nat44")
    assert before.items() <= host().items()
    lab = lab_status(lab_name)
    assert isinstance(lab, LinuxLab)
    assert (lab.nat, lab.ip_version) == (nat_of("nat44"), 4)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=GUARD_S)
    assert namespace_path(lab.dut_namespace).exists()
    assert lab_down(lab_name) is True
    assert not namespace_path(lab.dut_namespace).exists()
    assert before.items() <= host().items()


@needs_nft
@pytest.mark.root
def test_the_facts_tell_the_rules_and_the_table(lab_name: str) -> None:
    """R9693-20: its size, its timeouts and what was counted of it."""
    with linux_lab(PLAN, name=lab_name) as lab:
        table = lab.facts()["connection_table"]
        assert lab.connection_timeout_s == told.TIMEOUT_S
        emptied = lab.empty_connections()
    assert "198.18.0.0/16" in table["rules"]
    for name in ("nf_conntrack_max", "nf_conntrack_buckets"):
        assert table[f"net.netfilter.{name}"] == int((HOST_SYSCTLS / name).read_text())
    for name in ("nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"):
        assert table[f"net.netfilter.{name}"] == told.TIMEOUT_S
    assert set(table["counted"].values()) == {0}
    assert {"connections", "insert_failed", "drop", "early_drop"} < set(table["counted"])
    assert emptied.connections == 0


@needs_nft
@pytest.mark.root
def test_rules_that_are_refused_leave_nothing(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator, "nat_rules", lambda *_, **__: "table ip evenhand { nonsense }\n")
    with raises("rig.rules-refused", match="syntax error"):
        lab_up(PLAN, name=lab_name)
    assert lab_status(lab_name) is None
    assert lab_down(lab_name) is False


@pytest.mark.thorough
@needs_nft
@pytest.mark.root
def test_a_borrowed_nat_is_given_back_with_the_same_ports_and_firewall(lab_name: str) -> None:
    lab_up(PLAN, name=lab_name, nat_ports="random", rules=2)
    with borrow.borrowed(lab_name) as (lab, _):
        router = lab.set_up_for(
            borrow.LabWish(plan="gateway_v4", hosts=SideCounts(left=2, right=2), networks=None)
        )
        assert isinstance(router, LinuxLab)
        assert (router.plan, router.rules) == ("gateway_v4", 2)
        lab.give_back()
    found = lab_status(lab_name)
    assert isinstance(found, LinuxLab)
    assert (found.plan, found.nat_ports, found.rules, found.hosts) == ("nat44", "random", 2, PLAN.hosts)
