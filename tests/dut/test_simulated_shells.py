# SPDX-License-Identifier: Apache-2.0
"""What `evenhand dut setup` prints for FreeBSD, OpenBSD and VPP, run by a shell on a system that is simulated
by functions: two set-ups are undone in any order, each leaves what the other needs, what was there before
stays, a set-up on other interfaces takes the first one's away, and what is refused is said."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from evenhand.dut import OPERATING_SYSTEMS, DutScript, describe_setup
from evenhand.plan import make_plan

SYSTEMS = ("freebsd", "openbsd", "vpp")
PAIRS = [("gateway_v4", "gateway_v6"), ("gateway_v4", "nets_v4_gateway"), ("gateway_v6", "direct_v6")]
"""Two IP versions on the same links; two plans of one version, which share forwarding, addresses or both."""
STATE = r"""
keep_lines() { grep $1 -e "$2" $S/$3 > $S/new || true; mv $S/new $S/$3; }
delete() { grep -qxF "$2" $S/$1 || return 1; grep -vxF "$2" $S/$1 > $S/new || true; mv $S/new $S/$1; }
"""
"""Addresses are `INTERFACE FAMILY ADDRESS/LENGTH`, routes `FAMILY NETWORK NEXT-HOP INTERFACE`."""
BSD = r"""
ifconfig() {
  if [ $# = 1 ]; then
    for name in $([ $1 = -a ] && echo ix0 ix1 ix2 ix3 || echo $1); do
      if [ -e $S/up.$name ]; then echo "$name: flags=8843<UP,BROADCAST> mtu 1500"
      else echo "$name: flags=8802<BROADCAST> mtu 1500"; fi
      awk -v name=$name '$1 == name {
        sub("/.*", "", $3)
        print "\t" $2 " " $3 ($2 == "inet" ? " netmask 0xffffff00" : "%" name " prefixlen 64")
      }' $S/addresses
      [ ! -e $S/ifdisabled.$name ] || echo "  nd6 options=29<PERFORMNUD,IFDISABLED>"
    done
    return
  fi
  case "$*" in
    "$1 up") : > $S/up.$1 ;;
    "$1 down")
      rm $S/up.$1 || return
      keep_lines -v " $1\$" routes ;;
    "$1 inet6 -ifdisabled") rm -f $S/ifdisabled.$1 ;;
    "$1 inet6 ifdisabled") : > $S/ifdisabled.$1 ;;
    *delete) grep -q "^$1 $2 $3/" $S/addresses || { echo "ifconfig: no $3" >&2; return 1; }
      keep_lines -v "^$1 $2 $3/" addresses ;;
    *alias*)
      [ "$3" = alias ] && set -- $1 $2 $4
      grep -qxF "$1 $2 $3" $S/addresses || echo "$1 $2 $3" >> $S/addresses ;;
    *) echo "ifconfig: $*?" >&2; return 1 ;;
  esac
}
route() {
  [ $# = 5 ] || { echo "route: $*?" >&2; return 1; }
  # Its interface is told by the network of the gateway: the right side has the higher addresses.
  case "$5" in 10.0.0.*|*:1000::*) on=ix0 ;; *) on=ix1 ;; esac
  one="${3#-} $4 $5 $on"
  case "$2" in
    add)
      if [ -e $S/refuses ]; then echo "route: refused" >&2; return 0; fi
      if grep -qxF "$one" $S/routes; then echo "route: File exists" >&2; return 1; fi
      # Another next hop is another path.
      echo "$one" >> $S/routes ;;
    delete) delete routes "$one" || { echo "route: not in table" >&2; return 1; } ;;
    *) echo "route: $2 changes nothing where several ways may be" >&2; return 1 ;;
  esac
}
netstat() {
  echo "Destination  Gateway  Flags"
  # OpenBSD leaves the last zeros out.
  awk -v family=$3 -v short=$SHORT '$1 == family {
    if (short) sub("[.]0[.]0/", "/", $2); print $2, $3, "UGS"
  }' $S/routes
}
sysctl() {
  [ "$1" = -e ] && shift
  case "$1" in
    -n) sed -n "s/^$2=//p" $S/sysctls ;;
    *=*)
      # What is out of its bounds is refused, and it succeeds all the same.
      case "$1" in *gcthresh=-1) return 0 ;; esac
      grep -v "^${1%%=*}=" $S/sysctls > $S/new; echo "$1" >> $S/new; sort $S/new > $S/sysctls; rm $S/new ;;
    *) grep "^$1=" $S/sysctls ;;
  esac
}
id() { echo 3; }
ps() { echo "    7"; }
kldstat() { :; }
kldload() { :; }
# Of FreeBSD's and OpenBSD's, what the set-ups use; it writes what is loaded to files.
pfctl() (
  anchor=main load=rules merge=
  while [ $# -gt 0 ]; do
    case "$1" in
      -e) [ ! -e $S/pf.on ] || return 1; : > $S/pf.on ;;
      -d) rm $S/pf.on ;;
      -a) anchor=$(echo $2 | tr / _); shift ;;
      -N) load=nat ;;
      -O) load=options ;;
      -m) merge=yes ;;
      -F) rm -f $S/pf.$anchor.$2; shift ;;
      -f)
        cat $2 > $S/new
        case $load in
          options)
            [ "$merge" ] || return 1
            while read -r set timeout name value; do
              [ "$set $timeout" = "set timeout" ] || return 1
              sed -i "s/^$name .*/$name ${value}s/" $S/timeouts
            done < $S/new; rm $S/new ;;
          *) if [ -e $S/refuses ]; then rm $S/new; else mv $S/new $S/pf.$anchor.$load; fi ;;
        esac; shift ;;
      -s)
        case "$2" in
          info) [ ! -e $S/pf.on ] || echo "Status: Enabled for 0 days" ;;
          timeouts) cat $S/timeouts ;;
          memory) ;;
          *) sed 's/^\(.*anchor .*"\)$/\1 all/' $S/pf.$anchor.$2 2> /dev/null || true ;;
        esac; shift ;;
      *) return 1 ;;
    esac
    shift
  done
)
"""
VPP = r"""
vppctl() {
  case "$*" in
    "show interface address")
      for name in ix0 ix1 ix2 ix3; do
        echo "$name ($([ -e $S/up.$name ] && echo up || echo dn)):"
        awk -v name=$name '$1 == name { print "  L3 " $3 }' $S/addresses
      done ;;
    "show interface features "*) ;;
    "show interface "*) echo "  $3  1  $([ -e $S/up.$3 ] && echo up || echo down)  9000/0/0/0" ;;
    "show ip fib"|"show ip6 fib")
      [ $2 = ip ] && family=inet || family=inet6
      awk -v family=$family '$1 == family { n[$2]++; way[$2, n[$2]] = $3 " " $4 }
        END { for (to in n) {
          print to; print "  unicast-ip4-chain"
          print "  [@0]: dpo-load-balance: [proto:ip4 index:19 buckets:" n[to] " uRPF:24 to:[0:0]]"
          for (i = 1; i <= n[to]; i++) print "    [" i - 1 "] [@5]: ipv4 via " way[to, i] ": mtu:9000 next:3"
        } }' $S/routes ;;
    "set interface state "*" up") : > $S/up.$4 ;;
    "set interface state "*" down") rm -f $S/up.$4 ;;
    "set interface ip address del "*)
      case $7 in *:*) family=inet6 ;; *) family=inet ;; esac
      delete addresses "$6 $family $7" || echo "set interface ip address: no such address" ;;
    "set interface ip address "*)
      case $6 in *:*) family=inet6 ;; *) family=inet ;; esac
      if grep -qxF "$5 $family $6" $S/addresses; then echo "set interface ip address: already there"
      else echo "$5 $family $6" >> $S/addresses; fi ;;
    "ip route del "*|"ip route add "*)
      case $4 in *:*) family=inet6 ;; *) family=inet ;; esac
      if [ $3 = add ]; then
        [ -e $S/refuses ] && { echo "ip route: refused"; return; }
        grep -qxF "$family $4 $6 $7" $S/routes || echo "$family $4 $6 $7" >> $S/routes
      elif [ $# = 4 ]; then grep -vF "$family $4 " $S/routes > $S/new || true; mv $S/new $S/routes
      else delete routes "$family $4 $6 $7" || echo "ip route: not there"; fi ;;
    *neighbor-config*) ;;
    *) echo "unknown input \`$*'" ;;
  esac
}
"""


@dataclass
class Router:
    """A simulated DUT; `folder` has its state, and what the commands keep."""

    folder: Path
    system: str

    def run(
        self, plan: str, *, undo: bool = False, on: tuple[str, str] = ("ix0", "ix1")
    ) -> subprocess.CompletedProcess[str]:
        """As a root shell that ends at the first error."""
        text = DutScript(
            setup=describe_setup(
                make_plan(
                    plan,
                    4000 if plan == "direct_v6" else None,
                    networks=3 if plan.startswith("nets") else None,
                ),
                left=on[0],
                right=on[1],
            ),
            system=OPERATING_SYSTEMS[self.system],
            is_undo=undo,
        ).text()
        assert "/run/" in text
        text = text.replace("/var/run/", "/run/").replace("/run/", f"{self.folder}/run/")
        simulated = VPP if self.system == "vpp" else BSD
        short = 1 if self.system == "openbsd" else 0
        return subprocess.run(
            ["sh", "-e"],
            input=f"S={self.folder} SHORT={short}\n{STATE}{simulated}\n{text}",
            capture_output=True,
            text=True,
            check=False,
        )

    def make(self, plan: str, **options: object) -> None:
        ended = self.run(plan, **options)  # type: ignore[arg-type]
        assert (ended.returncode, ended.stderr) == (0, ""), plan

    def add(self, what: str, line: str) -> None:
        """Something of its user's."""
        with (self.folder / what).open("a") as file:
            file.write(f"{line}\n")

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
        "net.inet.ip.redirect=1\n"
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
        router.make(plan)
    left = plans[1 - first_undone]
    alone = make_router(tmp_path / "alone", system, is_up=is_up)
    alone.make(left)
    router.make(plans[first_undone], undo=True)
    assert router.state == alone.state  # the other has all that it needs, and nothing else is left
    router.make(left, undo=True)
    assert router.state == before
    assert router.kept == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_set_up_that_is_made_twice_is_undone_once(tmp_path: Path, system: str) -> None:
    router = make_router(tmp_path / "router", system, is_up=False)
    before = router.state
    for plan in ("gateway_v6", "gateway_v6"):
        router.make(plan)
    router.make("gateway_v6", undo=True)
    assert router.state == before
    assert router.kept == []


OF_PLAN = {
    "gateway_v4": ("inet 10.0.0.1/24", "inet 198.18.0.0/16 {}", "10.0.0.2"),
    "gateway_v6": ("inet6 2001:2:0:1000::1/64", "inet6 2001:2::/64 {}", "2001:2:0:1000::2"),
}
"""An address and a route of the plan, and its next hop."""


@pytest.mark.parametrize("plan", OF_PLAN)
@pytest.mark.parametrize("system", SYSTEMS)
def test_an_address_and_a_route_that_were_there_before_stay(tmp_path: Path, system: str, plan: str) -> None:
    router = make_router(tmp_path / "router", system, is_up=True)
    address, route, next_hop = OF_PLAN[plan]
    router.add("addresses", f"ix0 {address}")
    router.add("routes", f"{route.format(next_hop)} ix0")
    before = router.state
    router.make(plan)
    assert len(router.state["routes"]) == 2
    router.make(plan, undo=True)
    assert router.state == before


@pytest.mark.parametrize("plan", OF_PLAN)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_set_up_leaves_one_way_to_each_network_whatever_led_there(
    tmp_path: Path, system: str, plan: str
) -> None:
    """FreeBSD's `route add`, and VPP's, make another path, over which frames would leave at another port."""
    router = make_router(tmp_path / "router", system, is_up=True)
    _, route, next_hop = OF_PLAN[plan]
    other = route.format("10.0.1.77" if plan == "gateway_v4" else "2001:db8::77") + " ix1"
    router.add("routes", other)
    before = router.state
    router.make(plan)
    network = route.split()[1]
    assert [line for line in router.state["routes"] if f" {network} " in line] == [
        f"{route.format(next_hop)} ix0"
    ]
    router.make(plan, undo=True)
    if system != "vpp":  # which tells too little of a path to make it again
        assert router.state == before


@pytest.mark.parametrize("plan", OF_PLAN)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_second_set_up_on_other_interfaces_leaves_nothing_of_the_first(
    tmp_path: Path, system: str, plan: str
) -> None:
    router = make_router(tmp_path / "router", system, is_up=False)
    before = router.state
    router.make(plan)
    router.make(plan, on=("ix2", "ix3"))
    names = {line.split()[0] for line in router.state["addresses"]}
    assert names == {"ix2", "ix3"}
    assert "up.ix0" not in router.state
    assert "up.ix2" in router.state
    assert len(router.state["routes"]) == 2
    router.make(plan, undo=True, on=("ix2", "ix3"))
    assert {name: lines for name, lines in router.state.items() if "ifdisabled" not in name} == {
        name: lines for name, lines in before.items() if "ifdisabled" not in name
    }
    assert router.kept == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_was_refused_is_said_and_the_script_fails(tmp_path: Path, system: str) -> None:
    """A refusal in the middle that the command itself does not tell by its exit code."""
    router = make_router(tmp_path / "router", system, is_up=True)
    (router.folder / "refuses").touch()
    ended = router.run("gateway_v4")
    assert ended.returncode != 0
    if system == "vpp":
        assert "vppctl ip route add 198.18.0.0/16" in ended.stderr
        assert "refused" in ended.stderr
    else:
        assert "NOT as intended, routes4: 198.18.0.0/16 10.0.0.2" in ended.stderr
        assert "NOT as intended, routes4: 198.19.0.0/16 10.0.1.2" in ended.stderr
    (router.folder / "refuses").unlink()
    router.make("gateway_v4")


def test_a_setting_that_the_kernel_refuses_is_said(tmp_path: Path) -> None:
    """OpenBSD's sysctl succeeds when a value is out of bounds: what is set is within them, and read back."""
    router = make_router(tmp_path / "router", "openbsd", is_up=True)
    router.make("direct_v6")
    assert "net.inet6.ip6.neighborgcthresh=10240" in router.state["sysctls"]
    text = OPERATING_SYSTEMS["openbsd"].steps(
        describe_setup(make_plan("direct_v6", 4000), left="ix0", right="ix1")
    )
    read = next(command for step in text for command in step.do if "NOT as intended, net.inet6" in command)
    ended = subprocess.run(
        ["sh", "-e"],
        input=f"S={router.folder}\n{BSD}sysctl net.inet6.ip6.neighborgcthresh=77\n{read}\necho"
        f" wrong=$wrong\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "it should be 10240" in ended.stderr
    assert ended.stdout == "wrong=yes\n"


@pytest.mark.parametrize("system", SYSTEMS)
def test_routers_that_share_var_run_have_a_folder_each(tmp_path: Path, system: str) -> None:
    """By their routing table under OpenBSD, by their jail under FreeBSD."""
    router = make_router(tmp_path / "router", system, is_up=True)
    router.make("gateway_v4")
    own = {"freebsd": "evenhand-dut-7", "openbsd": "evenhand-dut-3", "vpp": "evenhand-vpp"}
    assert router.kept == [own[system]]
