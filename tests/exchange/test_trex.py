# SPDX-License-Identifier: Apache-2.0
"""Profiles of TRex: what is sent, read by the syntax tree; and what must not be run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evenhand.exchange.formats import kind_of
from evenhand.exchange.outcome import Became, GivenHardware, Imported
from evenhand.exchange.trex_import import import_trex
from evenhand.exchange.trex_profile import TrexProfile
from evenhand.exchange.trex_values import ProfileError
from tests.errors import raises

BEFORE = "from trex_stl_lib.api import *\n"
AFTER = "\ndef register():\n    return P()\n"
TWO_WAYS = """
LAST = 16

class P(object):
    def __init__(self, fsize=64):
        self.fsize = fsize

    def create(self, net, other):
        base = Ether()/IP(src=net[0], dst=other[0])/UDP(sport=1025, dport=12)
        pad = max(0, self.fsize - 4 - len(base)) * "x"
        vm = [
            STLVmFlowVar(name="s", min_value=net[0], max_value=net[1], size=4, op="inc"),
            STLVmWrFlowVar(fv_name="s", pkt_offset="IP.src"),
            STLVmFlowVar(name="d", min_value=other[0], max_value=other[1], size=4, op="inc"),
            STLVmWrFlowVar(fv_name="d", pkt_offset="IP.dst"),
            STLVmFixIpv4(offset="IP"),
        ]
        return STLStream(packet=STLPktBuilder(pkt=base/pad, vm=STLScVmRaw(vm)), mode=STLTXCont(pps=2e3))

    def get_streams(self, direction=0, **kwargs):
        left = ["198.18.0.1", "198.18.0.%d" % 16 if False else "198.18.0.16"]
        right = ["198.19.0.1", "198.19.0.16"]
        if direction == 0:
            return [self.create(left, right)]
        return [self.create(right, left)]
"""
IPV6 = """
class P:
    def get_streams(self, port_id, tunables, **kwargs):
        parser = argparse.ArgumentParser(description="for {}".format(os.path.basename(__file__)))
        parser.add_argument("--fsize", type=int, default=132)
        args = parser.parse_args(tunables)
        vm = STLVM()
        vm.var(name="low", min_value=0, max_value=7, size=2, step=1, op="random")
        vm.write(fv_name="low", pkt_offset="UDP.dport")
        vm.fix_chksum()
        link = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
        packet = link/IPv6(src="2001:2::2", dst="2001:2:0:8000::2")/UDP(sport=7)
        packet = packet / ("y" * (args.fsize - 4 - len(packet)))
        burst = STLTXSingleBurst(pps=500, total_pkts=250)
        return STLProfile([STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=burst)])
"""


def read(tmp_path: Path, body: str, *, plan: str | None = None) -> Imported:
    path = tmp_path / "profile.py"
    path.write_text(BEFORE + body + AFTER)
    assert kind_of(path) == "trex"
    return import_trex(path, GivenHardware(), plan=plan, testbed=Path("bed.toml"))


def test_both_directions_of_a_profile_are_one_command(tmp_path: Path) -> None:
    found = read(tmp_path, TWO_WAYS)
    ((words),) = [command.words for command in found.commands]
    line = " ".join(words)
    assert "--plan gateway-v4" in line or "--plan direct-v4-net24" in line
    for part in (
        "--hosts 16",
        "--host-mode increment",
        "--source-ports 1025",
        "--destination-ports 12",
        "--frame-size 64",
        "--rate 2000",
        "--duration 60s",
    ):
        assert part in line
    assert "--direction" not in line
    assert not found.is_any(Became.REFUSED)
    lines = {row.key: row.line for row in found.rows}
    assert (lines["IP.src"], lines["UDP.sport"]) == (13, 10)
    assert any("-d" in row.text for row in found.rows if row.became is Became.DIFFERS)


def test_tunables_have_their_defaults_and_a_burst_its_frames(tmp_path: Path) -> None:
    found = read(tmp_path, IPV6.replace("min_value=0", "min_value=1"))
    (command,) = found.commands
    line = " ".join(command.words)
    for part in (
        "--frame-size 132",
        "--rate 500",
        "--duration 0.5s",
        "--source-ports 7",
        "--destination-ports 1-7",
        "--direction forward",
        "-v6",
    ):
        assert part in line, line
    assert 'mac = "02:00:00:00:00:01"' in found.testbed
    assert 'dut_mac = "02:00:00:00:00:02"' in found.testbed


@pytest.mark.parametrize(
    ("mode", "rate"),
    [("pps=7", "7"), ("bps_L1=8 * (64 + 20) * 1000", "1000"), ("bps_L2=8 * 64 * 1000", "1000")],
)
def test_bits_are_made_frames(tmp_path: Path, mode: str, rate: str) -> None:
    found = read(tmp_path, TWO_WAYS.replace("pps=2e3", mode))
    assert f"--rate {rate} " in " ".join(found.commands[0].words)


@pytest.mark.parametrize(
    ("fixup", "size", "ends", "hosts"),
    [
        (2, 2, "1, max_value=9", "198.18.0.1 .. 198.18.0.9"),
        (3, 1, "4, max_value=5", "198.18.0.4 .. 198.18.0.5"),
    ],
)
def test_a_variable_may_be_a_part_of_an_address(
    tmp_path: Path, fixup: int, size: int, ends: str, hosts: str
) -> None:
    body = f"""
class P:
    def get_streams(self, **kwargs):
        vm = STLVM()
        vm.var("a", min_value={ends}, size={size}, op="inc")
        vm.write("a", "IP.src", offset_fixup={fixup})
        packet = Ether()/IP(src="198.18.0.1", dst="198.19.0.1")/UDP()
        return STLStream(packet=STLPktBuilder(pkt=packet, vm=vm), mode=STLTXCont())
"""
    found = read(tmp_path, body, plan="gateway-v4")
    row = next(row for row in found.rows if row.key == "IP.src")
    assert hosts in row.text or row.became is Became.DIFFERS
    assert found.commands
    sent = {row.key: row for row in found.rows}
    assert "53" in sent["UDP.sport"].text
    assert sent["get_streams"].text == "sent from left to right only"


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        ("Dot1Q(vlan=0)/IP(src='198.18.0.1',dst='198.19.0.1')/UDP()", "only one VLAN from 1"),
        ("Dot1Q()/Dot1Q()/Dot1Q()/IP(src='198.18.0.1',dst='198.19.0.1')/UDP()", "up to two VLAN tags"),
        ("IP(src='198.18.0.1',dst='198.19.0.1')/TCP()", "test frames are"),
        ("IP(src='198.18.0.1')/UDP()", "it has no value"),
    ],
)
def test_what_no_frame_here_has_is_refused_by_its_stream(tmp_path: Path, layer: str, text: str) -> None:
    body = f"""
class P:
    def get_streams(self, **kwargs):
        return [STLStream(packet=STLPktBuilder(pkt=Ether()/{layer}), mode=STLTXCont(pps=1))]
"""
    found = read(tmp_path, body)
    assert found.commands == ()
    assert any(text in row.text and row.line == 5 for row in found.rows if row.became is Became.REFUSED)


@pytest.mark.parametrize(
    ("body", "line", "word"),
    [
        ("import os\n", 2, "os"),
        ("from subprocess import run\n", 2, "subprocess"),
        ("x = open('/etc/passwd')\n", 2, "open"),
        ("x = __import__('os')\n", 2, "__import__"),
        ("x = ().__class__\n", 2, "__class__"),
        ("x = {n: 1 for n in [1]}\n", 2, "plain"),
        ("x = [n for n in [1] if n]\n", 2, "plain"),
        ("x = [n for n in 5]\n", 2, "lists"),
        ("x = [n for n in range(10**9)]\n", 2, "plain"),
        ("x = [n for n in range(1000000000)]\n", 2, "too long"),
        ("x = [range(9000) for n in range(9000)]\n", 2, "too long"),
        ("x = [[0] * 65000 for n in range(9000)]\n", 2, "too long"),
        ("x = 5\nx[1] = 2\n", 3, "assigned"),
        ("x = lambda: 1\n", 2, "plain"),
        ("for n in 1:\n    pass\n", 2, "lists"),
        ("for n in [1]:\n    pass\nelse:\n    pass\n", 2, "for"),
        ("while True:\n    pass\n", 2, "while"),
        ("x = 'a' * 10**9\n", 2, "plain"),
        ("x = 'a' * 1000000000\n", 2, "too long"),
        ("x = 'a' * 60000\nx = x + x\n", 3, "too long"),
        ("x = 1\nx = f'{x}'\n", 3, "plain"),
        ("return 5\n", 2, "return"),
        ("def f(:\n", 2, "Python"),
        ("x = " + "(" * 500 + ")" * 500 + "\n", 1, "Python"),
        ("def f(a):\n    return f(a)\nx = f(1)\n", 2, "each other"),
        ("x = 1 / 0\n", 2, "division"),
        ("x = " + "+".join(["1"] * 900) + "\n", 1, "deeply"),
        ("class P:\n    def get_streams(self):\n        return []\n", 1, "streams"),
        ("y = STLClient()\n", 2, "STLClient"),
    ],
)
def test_what_computes_is_refused_with_its_line_and_never_run(body: str, line: int, word: str) -> None:
    with pytest.raises(ProfileError) as caught:
        TrexProfile(BEFORE + body + AFTER).streams(0)
    assert word in str(caught.value)
    assert caught.value.line >= line


ONE_STREAM = """
class P:
    def get_streams(self, rate=None, no_big=False, **kwargs):
        vm = STLVM()
        {vm}
        packet = Ether()/IP(src="198.18.0.1", dst="198.19.0.1")/UDP(sport=1025, dport=12)
        return [STLStream(packet=STLPktBuilder({builder}), mode=STLTXCont({mode}){more})]
"""
WRITTEN = '; vm.write("a", "IP.src")'


def one(vm: str = "pass", *, builder: str = "packet, None, vm", mode: str = "pps=10", more: str = "") -> str:
    return ONE_STREAM.format(vm=vm.replace("; ", "\n        "), builder=builder, mode=mode, more=more)


@pytest.mark.parametrize(
    ("body", "became", "text"),
    [
        ('vm.var("a", value_list=["198.18.0.7", "198.18.0.8"])', Became.REFUSED, "values: only"),
        ('vm.var("a", min_value=1, max_value=9, size=1)', Became.MAPPED, "198.18.0.1 .. 198.18.0.9"),
        # Without an end TRex counts from 0, or to 255; no plan of the draft begins with a host 0.
        ('vm.var("a", max_value=9, size=1)', Became.DIFFERS, "198.18.0.1 .. 198.18.0.10"),
        ('vm.var("a", min_value=1, size=1)', Became.MAPPED, "198.18.0.1 .. 198.18.0.255"),
        ('vm.tuple_var("a", "198.18.0.1", "198.18.0.6", 1, 9)', Became.MAPPED, "198.18.0.1 .. 198.18.0.6"),
    ],
)
def test_a_variable_has_the_values_that_trex_gives_it(
    tmp_path: Path, body: str, became: Became, text: str
) -> None:
    write = WRITTEN.replace(")", ", offset_fixup=3)") if "size=1" in body else WRITTEN
    found = read(tmp_path, one(body + (write.replace('"a"', '"a.ip"') if "tuple" in body else write)))
    (row,) = [row for row in found.rows if row.key == "IP.src"]
    assert row.became is became
    assert text in row.text


@pytest.mark.parametrize(
    ("body", "key", "text"),
    [
        (one('vm.var("a", "198.18.0.5", "198.18.0.1", "198.18.0.10")' + WRITTEN), "a.init_value", "begins"),
        (
            one(
                'vm.tuple_var("t", "198.18.0.1", "198.18.0.2", 1, 9, limit_flows=5);'
                ' vm.write("t.ip", "IP.src")'
            ),
            "t.ip.limit_flows",
            "first 5",
        ),
        (one(mode="pps=1.4"), "STLTXCont(pps)", "whole frames per second: 1"),
        (one(more=", self_start=False"), "self_start", "begin at once"),
        (one(more=", isg=10"), "isg", "begin at once"),
    ],
)
def test_what_is_sent_otherwise_has_a_row(tmp_path: Path, body: str, key: str, text: str) -> None:
    found = read(tmp_path, body)
    assert [row.became for row in found.rows if row.key == key and text in row.text] == [Became.DIFFERS]
    assert not any(row.key == "self_start" for row in read(tmp_path, one(more=", self_start=True")).rows)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (one('vm.var("a", next_var="b")' + WRITTEN), "next_var"),
        (one('vm.var("a", min_value=-5)' + WRITTEN), "range"),
        (one('vm.var("a", colour=1)' + WRITTEN), "colour"),
        (one('vm.var("a", value_list=[1, 2], op="random")' + WRITTEN), "value_list"),
        (one('vm.var("a", size=4); vm.write("a", "IP.src", is_big=False)'), "is_big"),
        (one('vm.var("a", size=1)' + 2 * WRITTEN.replace(")", ", offset_fixup=3)")), "two variables"),
        (one(builder="packet, 'x', vm"), "pkt_buffer"),
        (one(builder="packet, None, vm, False"), "too many"),
        (one(mode="pps=1e400"), "inf"),
        (one(mode="pps=0"), "pps=0"),
        (one(mode="pps=-5"), "pps=-5"),
        ("d = {}\nd[[1]] = 2\n" + one(), "unhashable"),
    ],
)
def test_what_is_not_carried_over_is_refused_by_its_name(tmp_path: Path, body: str, word: str) -> None:
    with raises("exchange.profile-not-read", match=word):
        read(tmp_path, body)


def test_or_and_and_give_an_operand_as_python_does(tmp_path: Path) -> None:
    assert "--rate 5000" in " ".join(read(tmp_path, one(mode="pps=rate or 5000")).commands[0].words)
    assert "--rate 7" in " ".join(read(tmp_path, one(mode="pps=not no_big and 7")).commands[0].words)
    switched = one(mode="pps=10 if a.x else 20").replace(
        "vm = STLVM()",
        "p = argparse.ArgumentParser()\n        p.add_argument('-x', action='store_true')\n"
        "        a = p.parse_args([])\n        vm = STLVM()",
    )
    assert "--rate 20" in " ".join(read(tmp_path, switched).commands[0].words)
    assert "--rate 10" in " ".join(read(tmp_path, switched.replace("true", "false")).commands[0].words)


TABLE = """
import argparse

class P(object):
    ends = {}
    ends["a"] = {"start": "198.18.0.1", "end": "198.18.0.254"}
    ends["b"] = {"start": "198.19.0.1", "end": "198.19.0.254"}
    table = [{"size": 60, "pps": 14, "isg": 0}, {"size": 500, "pps": 6, "isg": 0.1}]

    def stream(self, size, pps, isg, vm):
        base = Ether()/IP()/UDP(dport=12, sport=1025)
        pad = max(0, size - len(base)) * "x"
        return STLStream(isg=isg, packet=STLPktBuilder(pkt=base/pad, vm=vm), mode=STLTXCont(pps=pps))

    def get_streams(self, direction=0, **kwargs):
        a, b = self.ends["a"], self.ends["b"]
        if direction:
            a, b = b, a
        commands = []
        for name, end in [["src", a], ["dst", b]]:
            low, high = end["start"], end["end"]
            commands.append(STLVmFlowVar(name=name, min_value=low, max_value=high, size=4, op="inc"))
            commands.append(STLVmWrFlowVar(fv_name=name, pkt_offset="IP." + name))
        vm = CTRexScRaw(commands, split_by_field="src")
        return STLProfile([self.stream(x["size"], x["pps"], x["isg"], vm) for x in self.table]).get_streams()
"""


def test_streams_of_a_table_are_one_mix_of_sizes(tmp_path: Path) -> None:
    """As published profiles have it: a table, a loop, and a profile around the streams."""
    (tmp_path / "table.py").write_text(BEFORE + TABLE + AFTER)
    found = import_trex(tmp_path / "table.py", GivenHardware(), plan=None, testbed=Path("bed.toml"))
    (command,) = found.commands
    text = " ".join(command.words)
    assert "--frame-size 64:7,504:3" in text
    assert "--rate 20" in text
    assert "--hosts 254 --host-mode increment" in text
    assert any(row.key == "isg" and row.became is Became.DIFFERS for row in found.rows)
    unlike = TABLE.replace('"pps": 6', '"pps": 6.5')
    (tmp_path / "table.py").write_text(BEFORE + unlike + AFTER)
    found = import_trex(tmp_path / "table.py", GivenHardware(), plan=None, testbed=Path("bed.toml"))
    assert found.commands == ()


def test_a_refusal_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import os\nos.remove('a')\n\ndef get_streams():\n    pass\n")
    (tmp_path / "a").write_text("still there")
    with raises("exchange.profile-not-read", match=r"bad\.py, line 1"):
        import_trex(tmp_path / "bad.py", GivenHardware(), plan=None, testbed=Path("bed.toml"))
    assert (tmp_path / "a").read_text() == "still there"
    assert os.listdir(tmp_path) is not None
