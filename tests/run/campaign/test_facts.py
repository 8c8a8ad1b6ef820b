# SPDX-License-Identifier: Apache-2.0
"""What a report says of tester and DUT: read, told by the user, or missing by name."""

from __future__ import annotations

from pathlib import Path

from evenhand.host.finding import read_host_facts
from evenhand.rig import Setup
from evenhand.rig import facts as rig_facts
from evenhand.testbed import DutFacts, make_testbed

HOST = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Gold 6330N CPU @ 2.20GHz\ncpu MHz\t\t:"
    " 800.012\nflags\t\t: fpu\n",
    "proc/meminfo": "MemTotal: 1048576 kB\nHugePages_Total: 4\n",
    "proc/cmdline": "root=UUID=alice maxcpus=36 ro\n",
    "etc/os-release": 'PRETTY_NAME="Ubuntu 22.04 LTS"\n',
    "sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
    "sys/class/dmi/id/product_name": "PowerEdge R650\n",
    "sys/class/dmi/id/product_serial": "ALICE1\n",
    "sys/devices/system/cpu/cpu0/topology/physical_package_id": "0\n",
    "sys/devices/system/cpu/cpu1/topology/physical_package_id": "1\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq": "800000\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "2200000\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
    "sys/devices/system/cpu/smt/control": "off\n",
    "sys/bus/pci/devices/0000:01:00.0/vendor": "0x8086\n",
    "sys/bus/pci/devices/0000:01:00.0/device": "0x159b\n",
    "sys/bus/pci/devices/0000:01:00.1/vendor": "0x8086\n",
    "sys/bus/pci/devices/0000:01:00.1/device": "0x159b\n",
}
TESTBED = make_testbed(
    {
        "isolated_test_environment": True,
        "left": {"device": "0000:01:00.0"},
        "right": {"device": "0000:01:00.1"},
        "tester": {"cpus": [2, 3]},
        "dut": {
            "facts": {
                "machine": "PowerEdge R650",
                "system": "Ubuntu 22.04 LTS",
                "policing": "none: nftables off",
            }
        },
    },
    where="test",
)


def host(root: Path, changes: dict[str, str] | None = None, *, without: str | None = None) -> Path:
    for name, text in {**HOST, **(changes or {})}.items():
        if name != without:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    for nic in ("0000:01:00.0", "0000:01:00.1"):
        driver = root / "sys/bus/pci/drivers/vfio-pci"
        driver.mkdir(parents=True, exist_ok=True)
        (root / "sys/bus/pci/devices" / nic / "driver").symlink_to(driver)
    return root


def test_the_testers_own_facts_are_read(tmp_path: Path) -> None:
    """SEED-84: all that Figure 6 and its text tell of a machine."""
    facts = rig_facts.tester_facts(TESTBED, host(tmp_path))
    assert facts.keys() == DutFacts.model_fields.keys()
    assert facts | {"kernel": "", "cores": ""} == {
        "machine": "Dell Inc. PowerEdge R650",
        "system": "Ubuntu 22.04 LTS",
        "kernel": "",
        "cpu_model": "Intel(R) Xeon(R) Gold 6330N CPU @ 2.20GHz",
        "sockets": "2",
        "cores": "",
        "clock": "800 to 2200 MHz, governor performance",
        "turbo": "on",
        "hyper_threading": "off",
        "memory_size": "1024 MB",
        "nic": "PCI 8086:159b",
        "driver": "vfio-pci",
        "kernel_parameters": "maxcpus=36",
        "flow_hash": None,
        "policing": None,
    }
    assert str(facts["cores"]).startswith("2 of ")
    assert "ALICE" not in str(facts).upper()


def test_a_clock_that_is_fixed_and_a_turbo_that_is_off_are_told(tmp_path: Path) -> None:
    changes = {
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "800000\n",
        "sys/devices/system/cpu/cpufreq/boost": "0\n",
    }
    facts = rig_facts.tester_facts(
        TESTBED, host(tmp_path, changes, without="sys/devices/system/cpu/intel_pstate/no_turbo")
    )
    assert (facts["clock"], facts["turbo"]) == ("800 MHz, governor performance", "off")


def test_what_nobody_tells_is_none_and_named(tmp_path: Path) -> None:
    """SEED-84, SEED-07: nothing is guessed."""
    setup = Setup(name="labs/alice/nic.toml", testbed=TESTBED)
    facts = rig_facts.testbed_facts(setup, host(tmp_path))
    assert facts["name"] == "nic.toml"
    assert facts["dut"]["policing"] == "none: nftables off"
    assert facts["missing"]["tester"] == []
    assert facts["missing"]["dut"] == [
        key for key in DutFacts.model_fields if key not in ("machine", "system", "policing")
    ]
    assert all(facts["dut"][key] is None for key in facts["missing"]["dut"])
    bare = rig_facts.testbed_facts(setup, tmp_path / "nothing")
    assert {"machine", "cpu_model", "clock", "turbo", "nic", "driver"} <= set(bare["missing"]["tester"])
    assert not {"flow_hash", "policing"} & set(bare["missing"]["tester"])


def test_this_host_tells_something() -> None:
    facts = read_host_facts()
    assert facts["sockets"] is None or facts["sockets"] >= 1
    assert facts["turbo"] in (None, "on", "off")
