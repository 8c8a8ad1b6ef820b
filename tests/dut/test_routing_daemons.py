# SPDX-License-Identifier: Apache-2.0
"""What `evenhand dut setup` prints for FRR and for BIRD, run for real: the daemons of Debian in a network
namespace get the plan's routes, once on one pair of interfaces and once on another, and lose them with the
undo; a route of the user's in the daemon comes back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.plan import make_plan
from tests.cli.running import Ended

FRR = Path("/usr/lib/frr/zebra")
BIRD = Path("/usr/sbin/bird")
UNSHARED = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
# They listen on sockets below /run alone, which is the namespace's own, as /etc/bird is.
BEGIN = """
set -e
mount --make-rprivate /
mount -t tmpfs none /run
mount -t tmpfs none /var/tmp
ip link set lo up
for name in left0 right0 left1 right1; do
    ip link add $name type veth peer name tester-$name
    echo 1 > /proc/sys/net/ipv6/conf/$name/addr_gen_mode
    ip link set tester-$name up
done
ip link set left0 up
ip address add $1 dev left0
"""
DAEMONS = {
    "frr": """
mkdir -p /run/frr /var/tmp/frr
chown frr:frr /run/frr /var/tmp/frr
for daemon in mgmtd zebra staticd; do
    test ! -e /usr/lib/frr/$daemon || /usr/lib/frr/$daemon -d -P 0 -f /dev/null -i /run/frr/$daemon.pid
done
until vtysh -c 'show version' > /dev/null 2>&1; do sleep 0.1; done
case $3 in *:*) word=ipv6 ;; *) word=ip ;; esac
vtysh -c 'configure terminal' -c "$word route $2 $3"
config() { vtysh -c 'show running-config'; }
""",
    "bird": """
mkdir -p /run/bird etc
cp /etc/bird/bird.conf etc
printf 'router id 192.0.2.1;\\nprotocol static { ipv%s; route %s via %s; }\\n' $4 $2 $3 >> etc/bird.conf
mount --bind etc /etc/bird
bird
until birdc show status < /dev/null > /dev/null 2>&1; do sleep 0.1; done
config() { cat /etc/bird/*; }
""",
}
WALK = """
version=$4
wait_for() {
    for try in $(seq 100); do ip -$version route show $1 | grep -q "via $2" && return; sleep 0.1; done
    exit 9
}
config > config.before
wait_for $2 $3
for turn in first second; do
    sh -e < $turn.sh > $turn.out
    ip -j -$version route show > $turn.json
done
! sh -e < bad.sh > bad.out 2> bad.err
sh -e < second.sh > again.out
sh -e < undo.sh > undo.out
config > config.after
wait_for $2 $3
ip -j -$version route show > after.json
ls /run > run
"""


def why_not(daemon: str) -> str | None:
    programs, package = {
        "frr": ((FRR, Path("/usr/bin/vtysh")), "frr"),
        "bird": ((BIRD, Path("/usr/sbin/birdc")), "bird2"),
    }[daemon]
    missing = [program for program in programs if not program.exists()]
    return f"there is no {missing[0]}: apt-get install {package}" if missing else None


def _routes(file: Path, networks: set[str]) -> set[tuple[str, str, str]]:
    rows: list[dict[str, Any]] = json.loads(file.read_text() or "[]")
    return {
        (row["dst"], row.get("gateway", "?"), row.get("dev", "?")) for row in rows if row["dst"] in networks
    }


@pytest.mark.root
@pytest.mark.parametrize(
    "plan",
    [
        pytest.param("gateway-v4", marks=pytest.mark.thorough),
        "gateway-v6",
        pytest.param("nets-v4-gateway", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("daemon", ["frr", "bird"])
def test_the_daemon_has_the_plans_routes_and_then_its_users(
    dut_setup: Callable[..., Ended], tmp_path: Path, daemon: str, plan: str
) -> None:
    """SEED-14, SEED-17, SEED-36: one way to each network, whatever led there, on the second interfaces as on
    the first."""
    if (reason := why_not(daemon)) is not None:
        pytest.skip(reason)
    networks = ("--networks", "3") if plan.startswith("nets") else ()

    def printed(name: str, number: int, *more: str) -> None:
        sides = ("--left", f"left{number}", "--right", f"right{number}")
        ended = dut_setup(plan, "--os", daemon, *sides, *networks, *more)
        assert ended.code == 0, ended.err
        (tmp_path / name).write_text(ended.out)

    printed("first.sh", 0)
    printed("second.sh", 1)
    printed("undo.sh", 1, "--undo")
    # A refusal in the middle: an interface that is not there.
    text = (tmp_path / "second.sh").read_text()
    bad = text.replace("dev left1\n", "dev nowhere\n").replace("left1 up", "nowhere up")
    (tmp_path / "bad.sh").write_text(bad)
    own = make_plan(plan, networks=3 if networks else None)
    assert own.left.gateway is not None
    address, via = (
        ("10.77.0.1/24", "10.77.0.2") if own.ip_version == 4 else ("2001:db8:77::1/64", "2001:db8:77::2")
    )
    arguments = [address, str(own.left.routes[0]), via, str(own.ip_version)]
    ended = subprocess.run(
        [*UNSHARED, "sh", "-c", BEGIN + DAEMONS[daemon] + WALK, "sh", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    all_networks = {str(to) for side in own.sides for to in side.routes}
    for turn, number in (("first", 0), ("second", 1)):
        assert _routes(tmp_path / f"{turn}.json", all_networks) == {
            (str(to), str(side.gateway.ip), f"{side.name}{number}")
            for side in own.sides
            if side.gateway is not None
            for to in side.routes
        }
    assert _routes(tmp_path / "after.json", all_networks) == {(str(own.left.routes[0]), via, "left0")}
    assert (tmp_path / "config.after").read_text() == (tmp_path / "config.before").read_text()
    assert "evenhand" not in (tmp_path / "run").read_text()
    assert "nowhere" in (tmp_path / "bad.err").read_text()
