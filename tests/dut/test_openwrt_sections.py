# SPDX-License-Identifier: Apache-2.0
"""OpenWrt's routes are sections of a file, which stay: those of an earlier set-up with more routes go."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evenhand.dut import OPERATING_SYSTEMS, DutScript, describe_setup
from evenhand.plan import make_plan

UCI = r"""
uci() {
  [ "$1" = -q ] && shift
  case "$1 $2" in
    "show network") sed "s/^/network./" $S/network ;;
    "show firewall") ;;
    delete*) grep -q "^${2#network.}[.=]" $S/network || return 1
      grep -v "^${2#network.}[.=]" $S/network > $S/new || true; mv $S/new $S/network ;;
    "set network."*|"add_list network."*) echo "${2#network.}" >> $S/network ;;
  esac
}
ubus() { :; }
ip() { :; }
sysctl() { :; }
"""
OWN = ["loopback=interface", "loopback.device=lo", "eh0=route", "lan1=route6"]
"""Sections of the router's owner, with names that look like ours."""


def _routes(folder: Path, networks: int, *, undo: bool = False) -> None:
    system = OPERATING_SYSTEMS["openwrt"]
    script = DutScript(
        setup=describe_setup(make_plan("nets_v4_gateway", networks=networks), left="eth1", right="eth2"),
        system=system,
        is_undo=undo,
        only="routes",
    )
    functions = [line for line in system.begin if line.startswith(("section()", "no_sections()"))]
    lines = [command.command for command in script.commands() if "section" in command.command]
    subprocess.run(
        ["sh", "-e"], input="\n".join([f"S={folder}", UCI, *functions, *lines, ""]), text=True, check=True
    )


def _sections(folder: Path) -> list[str]:
    return [line for line in (folder / "network").read_text().splitlines() if line.endswith("=route")]


@pytest.mark.parametrize("networks", [1, 2])
def test_no_route_of_an_earlier_set_up_with_more_of_them_is_left(tmp_path: Path, networks: int) -> None:
    (tmp_path / "network").write_text("".join(f"{line}\n" for line in OWN))
    _routes(tmp_path, 12)
    assert len(_sections(tmp_path)) == 1 + 2 * 12
    _routes(tmp_path, networks)
    assert len(_sections(tmp_path)) == 1 + 2 * networks
    _routes(tmp_path, networks, undo=True)
    assert (tmp_path / "network").read_text().splitlines() == OWN
