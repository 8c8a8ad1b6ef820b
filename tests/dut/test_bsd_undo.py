# SPDX-License-Identifier: Apache-2.0
"""What `evenhand dut setup` prints for FreeBSD and OpenBSD, run by a shell on a system that is simulated by
functions: two set-ups are undone in any order, each leaves what the other needs, and nothing is left."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.dut import goldens

SYSTEMS = ("freebsd", "openbsd")
PAIRS = [("gateway_v4", "gateway_v6"), ("gateway_v4", "nets_v4_gateway"), ("gateway_v6", "direct_v6")]
"""Two IP versions on the same links; two plans of one version, which share forwarding, addresses or both."""
SYSTEM = r"""
keep() { grep $1 -e "$2" $S/$3 > $S/new || true; mv $S/new $S/$3; }
ifconfig() {
  if [ $# = 1 ]; then
    if [ -e $S/up.$1 ]; then echo "$1: flags=8843<UP,BROADCAST> mtu 1500"
    else echo "$1: flags=8802<BROADCAST> mtu 1500"; fi
    [ ! -e $S/ifdisabled.$1 ] || echo "  nd6 options=29<PERFORMNUD,IFDISABLED>"
    return
  fi
  case "$*" in
    "$1 up") : > $S/up.$1 ;;
    "$1 down")
      rm $S/up.$1 || return
      keep -v " $1\$" routes ;;
    "$1 inet6 -ifdisabled") rm -f $S/ifdisabled.$1 ;;
    "$1 inet6 ifdisabled") : > $S/ifdisabled.$1 ;;
    *delete) grep -q "^$1 $2 $3/" $S/addresses || { echo "ifconfig: no $3" >&2; return 1; }
      keep -v "^$1 $2 $3/" addresses ;;
    *alias*)
      [ "$3" = alias ] && set -- $1 $2 $4
      grep -qxF "$1 $2 $3" $S/addresses || echo "$1 $2 $3" >> $S/addresses ;;
    *) echo "ifconfig: $*?" >&2; return 1 ;;
  esac
}
route() {
  [ $# = 5 ] || { echo "route: $*?" >&2; return 1; }
  if grep -qFe "$3 $4 $5 " $S/routes; then found=yes; else found=no; fi
  case "$2" in
    add) [ $found = no ] || { echo "route: File exists" >&2; return 1; }
      # Its interface is told by the network of the gateway: the right side has the higher addresses.
      case "$5" in 10.0.0.*|*:1000::*) on=ix0 ;; *) on=ix1 ;; esac
      echo "$3 $4 $5 $on" >> $S/routes ;;
    change) [ $found = yes ] ;;
    delete) [ $found = yes ] || { echo "route: not in table" >&2; return 1; }
      keep -vF "$3 $4 $5 " routes ;;
  esac
}
sysctl() {
  [ "$1" = -e ] && shift
  case "$1" in
    *=*) grep -v "^${1%%=*}=" $S/sysctls > $S/new; echo "$1" >> $S/new; sort $S/new > $S/sysctls; rm $S/new ;;
    *) grep "^$1=" $S/sysctls ;;
  esac
}
id() { echo 3; }
ps() { echo "    7"; }
kldstat() { :; }
pfctl() { :; }
"""


@dataclass
class Router:
    """A simulated DUT; `folder` has its state, and what the commands keep."""

    folder: Path
    system: str

    def run(self, plan: str, *, undo: bool = False) -> None:
        """As a root shell that ends at the first error."""
        text = goldens.script(self.system, plan, is_undo=undo).text()
        assert "/var/run/" in text
        text = text.replace("/var/run/", f"{self.folder}/run/")
        ended = subprocess.run(
            ["sh", "-e"],
            input=f"S={self.folder}\n{SYSTEM}\n{text}",
            capture_output=True,
            text=True,
            check=False,
        )
        said = "".join(line for line in ended.stderr.splitlines() if line != "route: File exists")
        assert (ended.returncode, said) == (0, ""), plan

    @property
    def state(self) -> dict[str, list[str]]:
        return {
            path.name: sorted(path.read_text().splitlines())
            for path in self.folder.iterdir()
            if path.is_file()
        }

    @property
    def kept(self) -> list[str]:
        return [path.name for path in (self.folder / "run").iterdir()]


def make_router(folder: Path, system: str, *, is_up: bool) -> Router:
    folder.mkdir()
    (folder / "run").mkdir()
    for name in ("addresses", "routes"):
        (folder / name).write_text("")
    (folder / "sysctls").write_text(
        "net.inet.ip.forwarding=0\nnet.inet6.ip6.forwarding=0\nnet.inet6.ip6.neighborgcthresh=2048\n"
    )
    for name in ("ix0", "ix1"):
        if is_up:
            (folder / f"up.{name}").touch()
        elif system == "freebsd":
            (folder / f"ifdisabled.{name}").touch()
    return Router(folder, system)


@pytest.mark.parametrize("is_up", [True, False], ids=["up", "down"])
@pytest.mark.parametrize("first_undone", [0, 1], ids=["in order", "in reverse"])
@pytest.mark.parametrize("plans", PAIRS, ids=lambda plans: " and ".join(plans))
@pytest.mark.parametrize("system", SYSTEMS)
def test_two_set_ups_are_undone_in_any_order(
    tmp_path: Path, system: str, plans: tuple[str, str], first_undone: int, is_up: bool
) -> None:
    """The undo of the first one took its links down, and the routes of the other with them."""
    router = make_router(tmp_path / "router", system, is_up=is_up)
    before = router.state
    for plan in plans:
        router.run(plan)
    left = plans[1 - first_undone]
    alone = make_router(tmp_path / "alone", system, is_up=is_up)
    alone.run(left)
    router.run(plans[first_undone], undo=True)
    assert router.state == alone.state  # the other has all that it needs, and nothing else is left
    router.run(left, undo=True)
    assert router.state == before
    assert router.kept == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_set_up_that_is_made_twice_is_undone_once(tmp_path: Path, system: str) -> None:
    router = make_router(tmp_path / "router", system, is_up=False)
    before = router.state
    for plan in ("gateway_v6", "gateway_v6"):
        router.run(plan)
    router.run("gateway_v6", undo=True)
    assert router.state == before
    assert router.kept == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_routers_that_share_var_run_have_a_folder_each(tmp_path: Path, system: str) -> None:
    """By their routing table under OpenBSD, by their jail under FreeBSD."""
    router = make_router(tmp_path / "router", system, is_up=True)
    router.run("gateway_v4")
    assert router.kept == [f"evenhand-dut-{7 if system == 'freebsd' else 3}"]
