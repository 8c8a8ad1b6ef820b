# SPDX-License-Identifier: Apache-2.0
"""The Linux set-up, run for real: a network namespace gets exactly what the plan says, and `--undo` leaves
what was there before."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import AddressPlan, make_plan
from tests.cli.running import Ended

Run = Callable[..., Ended]

MACS = {"left0": "02:00:00:00:00:01", "right0": "02:00:00:00:00:02"}

# A namespace's own neighbour limits do not exist (the kernel has one table for all), and those of this
# machine must not change: files take their place, which sysctl reads and writes like the others. /run is the
# namespace's own too.
WALK = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
for v in 4 6; do
    mount -t tmpfs none /proc/sys/net/ipv$v/neigh
    mkdir /proc/sys/net/ipv$v/neigh/default
    for limit in 1:128 2:512 3:1024; do
        echo "${limit#*:}" > /proc/sys/net/ipv$v/neigh/default/gc_thresh${limit%%:*}
    done
done
for side in left right; do
    ip link add ${side}0 type veth peer name tester-$side
    ip link set tester-$side up
    echo 1 > /proc/sys/net/ipv6/conf/${side}0/addr_gen_mode
done
ip link set $2 up
state() {
    ip -j address > "$1/address.json"
    ip -4 -j route > "$1/route4.json"
    ip -6 -j route > "$1/route6.json"
    ip -j neighbor > "$1/neighbor.json"
    sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.ipv4.neigh.default net.ipv6.neigh.default \\
        > "$1/sysctl"
    ls /run > "$1/run"
}
cd "$1"
state before
for turn in 1 2; do
    sh -e < setup.sh > setup.out
    sh -e < setup.sh > again.out
    state during
    sh -e < undo.sh > undo.out
    state after$turn
done
"""


class Walk:
    """The state of the namespace before the set-up, during the second one, and each time after it was taken
    back."""

    def __init__(self, folder: Path) -> None:
        self.before, self.during = _State(folder / "before"), _State(folder / "during")
        self.after = [_State(folder / f"after{turn}").compared() for turn in (1, 2)]


class _State:
    def __init__(self, folder: Path) -> None:
        def read(name: str) -> Any:
            return json.loads((folder / name).read_text() or "[]")

        self.links = {link["ifname"]: link for link in read("address.json")}
        self.routes = read("route4.json") + read("route6.json")
        self.neighbors = {
            (n["dst"], n["dev"], n.get("lladdr")) for n in read("neighbor.json") if "PERMANENT" in n["state"]
        }
        self.sysctls = dict(line.split(" = ") for line in (folder / "sysctl").read_text().splitlines())
        self.kept = (folder / "run").read_text().split()

    def addresses(self, name: str) -> set[str]:
        """Without link-local ones, which the kernel makes and takes with the state of the link."""
        return {
            f"{a['local']}/{a['prefixlen']}" for a in self.links[name]["addr_info"] if a["scope"] != "link"
        }

    def is_up(self, name: str) -> bool:
        return "UP" in self.links[name]["flags"]

    @property
    def static_routes(self) -> set[tuple[str, str, str]]:
        return {(r["dst"], r["gateway"], r["dev"]) for r in self.routes if "gateway" in r}

    def compared(self) -> dict[str, object]:
        """All that must be again as it was."""
        return {
            "addresses": {name: self.addresses(name) for name in self.links},
            "up": {name: self.is_up(name) for name in self.links},
            "routes": sorted(
                (r["dst"], r.get("gateway", ""), r["dev"])
                for r in self.routes
                if not r["dst"].startswith("fe80")
            ),
            "neighbors": self.neighbors,
            "sysctls": self.sysctls,
            "kept": self.kept,
        }


@pytest.fixture
def walk(dut_setup: Run, tmp_path: Path) -> Callable[..., Walk]:
    """Set up and take back twice in a fresh namespace, in which one of the interfaces is up from the
    start."""

    def run(plan: str, *options: str, up: str = "left0") -> Walk:
        for name, undo in (("setup.sh", ()), ("undo.sh", ("--undo",))):
            printed = dut_setup(
                plan, "--os", "linux", "--left", "left0", "--right", "right0", *options, *undo
            )
            assert printed.code == 0, printed.err
            (tmp_path / name).write_text(printed.out)
        for name in ("before", "during", "after1", "after2"):
            (tmp_path / name).mkdir()
        ended = subprocess.run(
            ["unshare", "--net", "--mount", "sh", "-c", WALK, "sh", str(tmp_path), up],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ended.returncode == 0, ended.stderr
        return Walk(tmp_path)

    return run


CASES = [
    ("gateway-v4", None, None),
    ("gateway-v6", None, None),
    ("direct-v4-net24", None, None),
    ("nets-v4-gateway", None, 5),
    ("nets-v4-multi-host", 20, 5),
    ("nets-v6-gateway", None, 3),
    ("direct-v6", 3000, None),
]


def _options(hosts: int | None, networks: int | None) -> list[str]:
    return [*(["--hosts", str(hosts)] if hosts else []), *(["--networks", str(networks)] if networks else [])]


@pytest.mark.root
@pytest.mark.parametrize(("name", "hosts", "networks"), CASES, ids=[case[0] for case in CASES])
def test_the_namespace_has_the_plans_state_and_then_the_one_before(
    walk: Callable[..., Walk], name: str, hosts: int | None, networks: int | None
) -> None:
    """SEED-14, SEED-17, SEED-23, SEED-31, SEED-36: addresses, routes, forwarding and limits, no more and no
    less; all taken back.

    The set-up is run twice: a second one, for another hash or because somebody is not sure, does not abort.
    """
    plan = make_plan(name, hosts, networks=networks)
    state = walk(name, *_options(hosts, networks))
    wanted: set[tuple[str, str, str]] = set()
    for side, interface in zip(plan.sides, ("left0", "right0"), strict=True):
        assert state.during.addresses(interface) == {str(address) for address in side.dut}
        assert state.during.is_up(interface)
        if side.gateway is not None:
            wanted |= {(str(route), str(side.gateway.ip), interface) for route in side.routes}
    assert state.during.static_routes == wanted
    assert not any(
        "tentative" in a
        for link in ("left0", "right0")
        for a in state.during.links[link]["addr_info"]
        if a["scope"] != "link"
    )
    _check_sysctls(plan, state)
    assert state.during.neighbors == set()
    assert state.after == [state.before.compared()] * 2
    assert state.before.is_up("left0")
    assert not state.before.is_up("right0")


def _check_sysctls(plan: AddressPlan, state: Walk) -> None:
    changed = {
        name: value for name, value in state.during.sysctls.items() if state.before.sysctls[name] != value
    }
    forwarding = "net.ipv4.ip_forward" if plan.ip_version == 4 else "net.ipv6.conf.all.forwarding"
    assert changed.pop(forwarding) == "1"
    entries = sum(side.dut_neighbors for side in plan.sides)
    limits = {
        f"net.ipv{plan.ip_version}.neigh.default.gc_thresh{n}": str(d + entries)
        for n, d in enumerate((128, 512, 1024), 1)
    }
    assert changed == (limits if plan.is_direct else {})


@pytest.mark.root
@pytest.mark.parametrize("name", ["gateway-v4", "gateway-v6"])
def test_static_neighbours_of_gateways(walk: Callable[..., Walk], name: str) -> None:
    """R5180-07: the DUT has nothing to resolve."""
    plan = make_plan(name)
    state = walk(name, "--static-neighbors", ",".join(MACS.values()), up="right0")
    wanted = {
        (str(s.gateway.ip), i, MACS[i])
        for s, i in zip(plan.sides, MACS, strict=True)
        if s.gateway is not None
    }
    assert state.during.neighbors == wanted
    assert state.after == [state.before.compared()] * 2


@pytest.mark.root
@pytest.mark.parametrize(
    ("name", "networks"), [("direct-v4-net24", None), ("direct-v6", None), ("nets-v4-multi-host", 2)]
)
def test_static_neighbours_of_every_direct_host(
    walk: Callable[..., Walk], name: str, networks: int | None
) -> None:
    """R5180-07, SEED-31: every host of every network, with the MAC of its side."""
    plan = make_plan(name, 100, networks=networks)
    state = walk(name, *_options(100, networks), "--static-neighbors", ",".join(MACS.values()))
    wanted = {
        (str(side.host_range.address(host, network)), interface, MACS[interface])
        for side, interface in zip(plan.sides, MACS, strict=True)
        for network in range(side.host_range.network_count)
        for host in range(side.host_range.count)
    }
    assert state.during.neighbors == wanted
    assert state.after == [state.before.compared()] * 2


NIC = """#!/bin/sh
# A NIC's two hashes, in files: ethtool -n shows them as ethtool does, -N sets them.
cd "$NIC_STATE"
file=$2-$4
case $1 in
-N) echo "$5" > "$file" ;;
-n)
    echo "UDP over IPV${4#udp} flows use these fields for computing Hash flow key:"
    grep -q s "$file" && echo "IP SA"
    grep -q d "$file" && echo "IP DA"
    grep -q f "$file" && echo "L4 bytes 0 & 1 [TCP/UDP src port]"
    grep -q n "$file" && echo "L4 bytes 2 & 3 [TCP/UDP dst port]"
    echo
    ;;
esac
"""


@pytest.mark.root
def test_the_hash_is_set_and_put_back(dut_setup: Run, tmp_path: Path) -> None:
    """RSS-02. veth has no hash, so the NIC is a script here; what runs it is the set-up as printed."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "nic").mkdir()
    (tmp_path / "bin" / "ethtool").write_text(NIC)
    (tmp_path / "bin" / "ethtool").chmod(0o755)
    before = {"left0-udp4": "sd", "left0-udp6": "sdfn", "right0-udp4": "sdfn", "right0-udp6": "sd"}
    for name, fields in before.items():
        (tmp_path / "nic" / name).write_text(f"{fields}\n")
    scripts = []
    for undo in ((), ("--undo",)):
        lines = dut_setup(
            "gateway-v4", "--os", "linux", "--left", "left0", "--right", "right0", "--hash", "type2", *undo
        ).out.splitlines()
        scripts.append("\n".join(line for line in lines if "hash" in line))
    walk = (
        f"mount -t tmpfs none /run\n{scripts[0]}\ncp -r {tmp_path}/nic"
        f" {tmp_path}/during\n{scripts[1]}\nls /run"
    )
    ended = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-e", "-c", walk],
        env={"PATH": f"{tmp_path}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "NIC_STATE": f"{tmp_path}/nic"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert {p.name: p.read_text().strip() for p in (tmp_path / "during").iterdir()} == dict.fromkeys(
        before, "sdfn"
    )
    assert {p.name: p.read_text().strip() for p in (tmp_path / "nic").iterdir()} == before
    assert ended.stdout.count("IP DA") == 4
    assert "evenhand" not in ended.stdout


ANY_ORDER = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
for side in left right; do
    ip link add ${side}0 type veth peer name tester-$side
    ip link set tester-$side up
    echo 1 > /proc/sys/net/ipv6/conf/${side}0/addr_gen_mode
done
cd "$1"
state() {
    for side in left right; do
        ip -o link show ${side}0 | grep -o '[<,]UP[,>]' || echo down
        ip -o address show dev ${side}0 scope global | awk '{ print $2, $4 }'
    done
    ip -4 route | grep via || true
    ip -6 route | grep via || true
    sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding
    ls /run
}
state > before
sh -e < first.setup > /dev/null
state > first-alone
sh -e < second.setup > /dev/null
# Another router in a namespace of its own: it shares /run, and nothing else.
unshare --net sh -e -c '
    for side in left right; do ip link add ${side}0 type veth peer name tester-$side; done
    sh -e < first.setup > /dev/null
    sh -e < first.undo > /dev/null
    ip link show dev left0 | grep -q "[<,]UP[,>]" && exit 9
    ip route | grep via && exit 9
    exit 0
'
for one in $2; do
    sh -e < $one.undo > /dev/null
    state > after-$one
done
"""


@pytest.mark.root
@pytest.mark.parametrize("order", ["first second", "second first"])
@pytest.mark.parametrize(
    "plans", [("gateway-v4", "gateway-v6"), ("gateway-v6", "gateway-v4"), ("gateway-v4", "siit")]
)
def test_two_set_ups_are_undone_in_any_order_and_leave_what_the_other_needs(
    dut_setup: Run, tmp_path: Path, plans: tuple[str, str], order: str
) -> None:
    """The undo of the first took the links down, and the routes of the second with them, whose own undo then
    failed. Routers in two namespaces shared what was kept."""
    for name, plan in zip(("first", "second"), plans, strict=True):
        for kind, undo in (("setup", ()), ("undo", ("--undo",))):
            parts = ("interfaces", "routes", "forwarding")
            printed = [
                dut_setup(
                    plan, "--os", "linux", "--left", "left0", "--right", "right0", "--only", part, *undo
                )
                for part in (parts if kind == "setup" else parts[::-1])
            ]
            (tmp_path / f"{name}.{kind}").write_text("".join(each.out for each in printed))
    ended = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", ANY_ORDER, "sh", str(tmp_path), order],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    undone_first, undone_last = order.split()
    assert (tmp_path / f"after-{undone_last}").read_text() == (tmp_path / "before").read_text()
    left = set((tmp_path / f"after-{undone_first}").read_text().splitlines())
    if undone_first == "second":
        needed = set((tmp_path / "first-alone").read_text().splitlines())
        assert needed - {"down"} <= left
    assert "down" not in left
    assert any(" via " in line for line in left)


KEEPS = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
for name in left0 right0 left1 right1; do
    ip link add $name type veth peer name tester-$name
    ip link set tester-$name up
    echo 1 > /proc/sys/net/ipv6/conf/$name/addr_gen_mode
done
state() {
    ip -o address show scope global
    ip -o route
    ip -o -6 route | grep -v ^fe80 || true
    sysctl net.ipv4.ip_forward net.ipv6.conf.all.forwarding
    ls /run
}
ip link set left0 up
ip link set right0 up
ip address add $2 dev left0 nodad
ip -$1 route add $3 dev left0 metric 1024
ip -$1 route add $4 via $6 dev left0
state > before
sh -e < first.sh > first.out
sh -e < second.sh > second.out
ip -o -$1 route show > during
ip -o address show | grep -v 'inet6 fe80' > addresses
sh -e < undo.sh > undo.out
state > after
# A refusal in the middle: the name of the right interface is another one's.
ip link set right0 name other
! sh -e < first.sh > refused.out 2>&1
"""


@pytest.mark.root
@pytest.mark.parametrize("plan", ["gateway-v4", "gateway-v6"])
def test_what_was_there_stays_and_other_interfaces_take_the_place_of_the_first(
    dut_setup: Run, tmp_path: Path, plan: str
) -> None:
    """What its user has set: an address of the plan, a route that the plan replaces, and another one. Then
    the set-up, again on other interfaces, and its undo."""
    for name, number, undo in (("first.sh", 0, ()), ("second.sh", 1, ()), ("undo.sh", 1, ("--undo",))):
        options = ("--os", "linux", "--left", f"left{number}", "--right", f"right{number}", *undo)
        (tmp_path / name).write_text(dut_setup(plan, *options).out)
    own = make_plan(plan)
    side = own.left
    assert side.gateway is not None
    other, via = (
        ("203.0.113.0/24", "10.0.0.9") if own.ip_version == 4 else ("2001:db8:1::/64", "2001:2:0:1000::9")
    )
    arguments = [str(own.ip_version), str(side.dut[0]), other, str(side.routes[0]), str(side.gateway.ip), via]
    ended = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", KEEPS, "sh", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    during = (tmp_path / "during").read_text()
    assert [line.split()[4] for line in during.splitlines() if line.startswith(f"{side.routes[0]} ")] == [
        "left1"
    ]
    addresses = (tmp_path / "addresses").read_text()
    assert f" left0    inet{'6' if own.ip_version == 6 else ''} {side.dut[0]} " in addresses
    assert " right0 " not in addresses
    assert (tmp_path / "after").read_text() == (tmp_path / "before").read_text()


LEARNED = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
for name in left0 right0 ssh0; do ip link add $name type veth peer name tester-$name; done
ip link set tester-ssh0 up
ip link set ssh0 up
ip -6 route add default via fe80::1 dev ssh0 proto ra
! sh -e < setup.sh > refused.out 2> refused.err
ip -o address show dev left0 > untouched
ls /run >> untouched
echo 2 > /proc/sys/net/ipv6/conf/ssh0/accept_ra
sh -e < setup.sh > setup.out
cat /proc/sys/net/ipv6/conf/all/forwarding > forwarding
"""


@pytest.mark.root
def test_a_router_that_would_lose_its_default_route_is_left_alone(dut_setup: Run, tmp_path: Path) -> None:
    """Nothing is changed; with accept_ra = 2 the route stays, and the set-up is made."""
    (tmp_path / "setup.sh").write_text(
        dut_setup("gateway-v6", "--os", "linux", "--left", "left0", "--right", "right0").out
    )
    ended = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", LEARNED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert "ssh0 would lose the routes" in (tmp_path / "refused.err").read_text()
    assert "net/ipv6/conf/ssh0/accept_ra=2" in (tmp_path / "refused.err").read_text()
    assert "2001:2:" not in (tmp_path / "untouched").read_text()
    assert (tmp_path / "forwarding").read_text() == "1\n"
