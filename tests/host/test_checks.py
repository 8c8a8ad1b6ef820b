# SPDX-License-Identifier: Apache-2.0
"""Each check of a host: what is enough for what, and the command that helps; on trees of files, and once on
the real host."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from evenhand.base.cpu_list import format_cpu_list, parse_cpu_list
from evenhand.base.errors import EvenhandError, HostError, RequestError
from evenhand.host import Finding, HostSurvey, Part, State, survey_host
from evenhand.testbed import HostNetwork
from evenhand.trial import CpuAbsences, Watch, WatchedClock
from tests.host.fake_host import E1000E, PLUGINS, add_nic, make_host

NETWORK = HostNetwork(frozenset({"eth0", "eth1", "eth2"}), {"eth0": "it carries a default route"})
ABOUT = {"version": "0.1.0", "dpdk": "22.11.11"}
USER = {"proc/self/status": "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n"}


def watch_of(*cpus: CpuAbsences, raw_ppm: float = 0.3) -> Watch:
    clock = WatchedClock(
        source="tsc", ticks_per_second=2.6e9, error_ppm_raw=raw_ppm, error_ppm_monotonic=12.0
    )
    return Watch(seconds=5.0, cpus=cpus or (QUIET,), clock=clock)


QUIET = CpuAbsences(cpu=0, absences=0, longest_us=0, away_us=0, stolen_us=0)


def survey(
    root: Path,
    changes: Mapping[str, str | None] | None = None,
    *,
    watched: Watch | EvenhandError | None = None,
    about: Mapping[str, Any] | EvenhandError = ABOUT,
    allowed: Collection[int] = range(8),
    nics: bool = True,
) -> HostSurvey:
    make_host(root, changes)
    if nics:
        add_nic(root, "0000:01:00.0", "vfio-pci")
        add_nic(root, "0000:01:00.1", "vfio-pci")
    return survey_host(
        about=about,
        watched=watched or watch_of(),
        root=root,
        allowed=allowed,
        network=NETWORK,
        has_program=lambda name: True,
    )


def finding(survey: HostSurvey, name: str) -> Finding:
    return next(finding for finding in survey.findings if finding.name == name)


def test_a_good_host_runs_everything(tmp_path: Path) -> None:
    found = survey(tmp_path)
    assert {part.part: part.can_run for part in found.parts} == dict.fromkeys(Part, True)
    assert [f.name for f in found.findings if f.state is not State.GOOD] == []
    assert found.with_advice == []


def test_a_host_that_tells_nothing_is_no_error(tmp_path: Path) -> None:
    """Containers hide most of /proc and /sys."""
    found = survey_host(
        about=ABOUT,
        watched=None,
        root=tmp_path,
        allowed={0, 1},
        network=NETWORK,
        has_program=lambda name: False,
    )
    assert finding(found, "clock").state is State.UNKNOWN
    assert [part.can_run for part in found.parts] == [True, False, False, False]


def test_an_ordinary_user_runs_the_demo_only(tmp_path: Path) -> None:
    privileges = finding(survey(tmp_path, USER), "privileges")
    assert privileges.missing_for == (Part.LAB, Part.INTERFACES, Part.NICS)
    assert privileges.commands == ("make demo-linux",)
    assert "memlock 8 MB" in privileges.found


def test_a_user_with_a_vfio_group_and_locked_memory_needs_no_root_for_nics(tmp_path: Path) -> None:
    limits = "Max locked memory         unlimited            unlimited            bytes\n"
    found = survey(tmp_path, {**USER, "dev/vfio/12": "", "proc/self/limits": limits})
    assert Part.NICS not in finding(found, "privileges").missing_for


def test_root_without_capabilities_is_not_told_to_use_sudo(tmp_path: Path) -> None:
    privileges = finding(
        survey(tmp_path, {"proc/self/status": "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n"}), "privileges"
    )
    assert Part.LAB in privileges.missing_for
    assert privileges.commands == ()
    assert "NET_RAW" in privileges.found


@pytest.mark.parametrize(("allowed", "command"), [({3}, ("taskset -c 0-7 evenhand demo",)), ({3, 4}, ())])
def test_a_router_here_and_its_tester_need_a_cpu_each(
    tmp_path: Path, allowed: set[int], command: tuple[str, ...]
) -> None:
    cpus = finding(survey(tmp_path, allowed=allowed), "CPUs")
    assert cpus.commands == command
    assert (Part.REFERENCE in cpus.missing_for) == (len(allowed) == 1)


def test_one_cpu_in_all_cannot_be_helped_by_a_command(tmp_path: Path) -> None:
    cpus = finding(survey(tmp_path, {"sys/devices/system/cpu/online": "0\n"}, allowed={0}), "CPUs")
    assert (cpus.missing_for, cpus.commands) == ((Part.REFERENCE,), ())


def test_threads_of_one_core_are_named(tmp_path: Path) -> None:
    siblings = {f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": "0,4\n" for cpu in (0, 4)}
    assert "threads of one core: 0,4" in finding(survey(tmp_path, siblings), "CPUs").found


@pytest.mark.parametrize(
    ("isolated", "tickless", "words"),
    [
        ("\n", " (null)\n", "isolcpus=1-7 nohz_full=1-7"),
        ("2-7\n", "\n", "nohz_full=2-7 rcu_nocbs=2-7"),
        ("2-7\n", None, "nohz_full=2-7"),
    ],
)
def test_cpus_that_are_not_isolated_get_the_kernel_options(
    tmp_path: Path, isolated: str, tickless: str | None, words: str
) -> None:
    folder = "sys/devices/system/cpu"
    isolation = finding(
        survey(tmp_path, {f"{folder}/isolated": isolated, f"{folder}/nohz_full": tickless}), "isolation"
    )
    assert isolation.state is State.WEAK
    assert words in isolation.advice


def test_of_two_cpus_none_is_to_be_isolated(tmp_path: Path) -> None:
    """The tester and a router on this machine need both."""
    isolation = finding(
        survey(
            tmp_path,
            {"sys/devices/system/cpu/online": "0-1\n", "sys/devices/system/cpu/isolated": "\n"},
            allowed={0, 1},
        ),
        "isolation",
    )
    assert isolation.state is State.WEAK
    assert (isolation.commands, "isolcpus=" in isolation.advice) == ((), False)


def test_isolated_cpus_are_not_used_by_themselves(tmp_path: Path) -> None:
    """Linux leaves them out of the affinity of every process that does not ask for them."""
    isolation = finding(survey(tmp_path, allowed={0, 1}), "isolation")
    assert isolation.commands == ("taskset -c 0-7 evenhand check",)


def test_a_governor_that_saves_power_is_weak(tmp_path: Path) -> None:
    frequency = finding(
        survey(tmp_path, {"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n"}), "frequency"
    )
    assert frequency.state is State.WEAK
    assert frequency.facts["governors"] == ["performance", "powersave"]


@pytest.mark.parametrize(("free", "is_enough"), [("0\n", False), ("255\n", False), ("256\n", True)])
def test_hugepages_must_be_free(tmp_path: Path, free: str, is_enough: bool) -> None:
    pages = finding(
        survey(tmp_path, {"sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": free}), "hugepages"
    )
    assert (pages.missing_for == ()) == is_enough
    if not is_enough:
        assert pages.commands == (
            "echo 512 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        )


def test_vfio_that_is_not_loaded_is_loaded_by_a_command(tmp_path: Path) -> None:
    vfio = finding(survey(tmp_path, {"sys/bus/pci/drivers/vfio-pci/.keep": None}, nics=False), "IOMMU/vfio")
    assert vfio.missing_for == (Part.NICS,)
    assert vfio.commands == ("sudo modprobe vfio-pci",)


def test_a_kernel_without_vfio_is_told_so(tmp_path: Path) -> None:
    changes = {"sys/bus/pci/drivers/vfio-pci/.keep": None, "lib/modules/6.1.0-1-amd64/modules.dep": None}
    vfio = finding(survey(tmp_path, changes, nics=False), "IOMMU/vfio")
    assert "6.1.0-1-amd64" in vfio.advice
    assert vfio.commands == ()


def test_without_an_iommu_the_firmware_is_named_or_the_mode_without(tmp_path: Path) -> None:
    none = {"sys/kernel/iommu_groups/0/devices": None, "sys/kernel/iommu_groups/1/devices": None}
    first, second, third = (tmp_path / name for name in "abc")
    vfio = finding(survey(first, none), "IOMMU/vfio")
    assert vfio.missing_for == (Part.NICS,)
    assert "intel_iommu=on" in vfio.advice
    mode = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
    offered = finding(survey(second, {**none, mode: "N\n"}), "IOMMU/vfio")
    assert offered.commands == (f"echo Y | sudo tee /{mode}",)
    assert finding(survey(third, {**none, mode: "Y\n"}), "IOMMU/vfio").state is State.GOOD


def test_free_nics_are_named_in_the_command_and_the_hosts_own_is_not(tmp_path: Path) -> None:
    """R6815-01."""
    add_nic(tmp_path, "0000:01:00.0", "ixgbe", "eth1")
    add_nic(tmp_path, "0000:02:00.0", "ixgbe", "eth0", virtio=True)
    add_nic(tmp_path, "0000:03:00.0", None)
    ports = finding(survey(tmp_path, nics=False), "PCI ports")
    assert ports.commands == ("sudo dpdk-devbind.py --bind=vfio-pci 0000:01:00.0 0000:03:00.0",)
    assert "0000:02:00.0 ixgbe eth0 (carries a default route)" in ports.found


def test_mellanox_nics_keep_their_driver_and_need_no_vfio(tmp_path: Path) -> None:
    add_nic(tmp_path, "0000:01:00.0", "mlx5_core", "eth1")
    add_nic(tmp_path, "0000:01:00.1", "mlx5_core", "eth2")
    found = survey(tmp_path, {"sys/bus/pci/drivers/vfio-pci/.keep": None}, nics=False)
    assert finding(found, "PCI ports").state is State.GOOD
    assert finding(found, "IOMMU/vfio").state is State.GOOD


def test_a_host_whose_only_nic_is_its_own_has_no_port(tmp_path: Path) -> None:
    add_nic(tmp_path, "0000:02:00.0", "ixgbe", "eth0")
    ports = finding(survey(tmp_path, nics=False), "PCI ports")
    assert ports.missing_for == (Part.NICS,)
    assert ports.commands == ()


KNOWN_NIC = "pci:v00008086d000010D3sv00008086sd00000000bc02sc00i00"
NIC_FILES = {
    "lib/modules/6.1.0-1-amd64/modules.alias": f"alias {E1000E} e1000e\nalias pci:v00001AF4d*sv*sd*bc*sc*i*"
    " virtio_pci\n",
    f"{PLUGINS}/librte_net_e1000.so.23": "",
}


def nics_of(found: HostSurvey) -> dict[str, Mapping[str, Any]]:
    return {nic["address"]: nic for nic in finding(found, "PCI ports").facts["nics"]}


def test_a_nic_under_vfio_pci_is_told_how_to_go_back_to_its_own_driver(tmp_path: Path) -> None:
    add_nic(tmp_path, "0000:01:00.0", "vfio-pci", modalias=KNOWN_NIC)
    add_nic(tmp_path, "0000:01:00.1", "ixgbe", "eth1", modalias=KNOWN_NIC)
    nics = nics_of(survey(tmp_path, NIC_FILES, nics=False))
    assert nics["0000:01:00.0"]["kernel_driver"] == "e1000e"
    assert nics["0000:01:00.0"]["give_back_command"] == "sudo dpdk-devbind.py --bind=e1000e 0000:01:00.0"
    assert nics["0000:01:00.0"]["bind_command"] is None
    assert nics["0000:01:00.1"]["bind_command"] == "sudo dpdk-devbind.py --bind=vfio-pci 0000:01:00.1"
    assert nics["0000:01:00.1"]["give_back_command"] is None


def test_a_virtio_nic_goes_back_to_the_driver_whose_name_has_another_dash(tmp_path: Path) -> None:
    add_nic(
        tmp_path, "0000:01:00.0", "vfio-pci", modalias="pci:v00001AF4d00001041sv00001AF4sd00001100bc02sc00i00"
    )
    nics = nics_of(survey(tmp_path, NIC_FILES, nics=False))
    assert nics["0000:01:00.0"]["give_back_command"] == "sudo dpdk-devbind.py --bind=virtio-pci 0000:01:00.0"
    assert nics["0000:01:00.0"]["dpdk_driver"] == "virtio"


def test_a_nic_with_an_address_is_warned_of_and_never_named_in_a_command(tmp_path: Path) -> None:
    """R6815-01, and whoever is logged in over that NIC stays so."""
    make_host(tmp_path)
    add_nic(tmp_path, "0000:01:00.0", "ixgbe", "eth1")
    add_nic(tmp_path, "0000:02:00.0", "ixgbe", "eth2")
    network = HostNetwork(NETWORK.names, NETWORK.default_route_of, {"eth1": ("192.0.2.7", "2001:db8::7")})
    found = survey_host(
        about=ABOUT,
        watched=watch_of(),
        root=tmp_path,
        allowed=range(8),
        network=network,
        has_program=lambda name: True,
    )
    nic = nics_of(found)["0000:01:00.0"]
    assert nic["bind_command"] is None
    assert nic["warning"] == "it carries 192.0.2.7, 2001:db8::7: the host would lose that network"
    ports = finding(found, "PCI ports")
    assert ports.commands == ()
    assert "0000:01:00.0 is in use: it carries 192.0.2.7" in ports.advice


def test_a_missing_driver_of_dpdk_is_named_with_its_debian_package(tmp_path: Path) -> None:
    for number in range(2):
        add_nic(tmp_path, f"0000:01:00.{number}", "vfio-pci", modalias=KNOWN_NIC)
    other = {**NIC_FILES, f"{PLUGINS}/librte_net_e1000.so.23": None, f"{PLUGINS}/librte_net_virtio.so.23": ""}
    found = survey(tmp_path, other, nics=False)
    assert nics_of(found)["0000:01:00.0"]["missing_package"] == "librte-net-e1000-23"
    ports = finding(found, "PCI ports")
    assert ports.missing_for == (Part.NICS,)
    assert ports.commands == ("sudo apt-get install librte-net-e1000-23",)
    installed = survey(tmp_path / "other", NIC_FILES)
    assert finding(installed, "PCI ports").state is State.GOOD


def test_without_an_engine_nothing_runs(tmp_path: Path) -> None:
    error = HostError("evenhand-engine was not found", code="base.program-missing", where="PATH")
    found = survey(tmp_path, about=error, watched=error)
    assert all("engine" in part.missing for part in found.parts)
    assert finding(found, "engine").commands == ("make build",)
    assert finding(found, "absences").state is State.UNKNOWN


def test_an_engine_that_cannot_watch_is_no_error(tmp_path: Path) -> None:
    absences = finding(
        survey(
            tmp_path,
            watched=RequestError('"watch" is none of ...', code="engine.bad-request", where="request"),
        ),
        "absences",
    )
    assert absences.state is State.UNKNOWN
    assert '"watch" is none of' in absences.found


@pytest.mark.parametrize(
    ("absences", "longest_us", "away_us", "stolen_us", "is_weak", "words"),
    [
        (3, 1520.0, 3000.0, 0.0, False, ""),
        (40, 4000.0, 90_000.0, 0.0, True, "Find out what else runs"),
        (40, 4000.0, 90_000.0, 80_000.0, True, "The hypervisor took them"),
        (1, 30_000.0, 30_000.0, 0.0, False, ""),
        (1, 100_500.0, 100_500.0, 100_000.0, True, "The hypervisor took them"),
    ],
)
def test_absences_are_weak_where_they_would_make_trials_invalid(
    tmp_path: Path,
    absences: int,
    longest_us: float,
    away_us: float,
    stolen_us: float,
    is_weak: bool,
    words: str,
) -> None:
    """R2544-39: by the same limits as a trial."""
    cpu = CpuAbsences(cpu=1, absences=absences, longest_us=longest_us, away_us=away_us, stolen_us=stolen_us)
    found = finding(survey(tmp_path, watched=watch_of(QUIET, cpu)), "absences")
    assert (found.state is State.WEAK) == is_weak
    assert words in found.advice
    assert "CPU 0 never away" in found.found
    assert found.facts["cpus"][1]["longest_us"] == longest_us


@pytest.mark.parametrize(
    ("ppm", "state"), [(0.3, State.GOOD), (-99.0, State.GOOD), (101.0, State.WEAK), (-150.0, State.WEAK)]
)
def test_a_clock_that_trials_would_refuse_is_weak(tmp_path: Path, ppm: float, state: State) -> None:
    clock = finding(survey(tmp_path, watched=watch_of(raw_ppm=ppm)), "clock")
    assert clock.state is state
    assert f"{ppm:+.2f} ppm" in clock.found


def test_another_clock_source_than_the_tsc_is_weak(tmp_path: Path) -> None:
    clock = finding(
        survey(tmp_path, {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n"}),
        "clock",
    )
    assert clock.commands == (
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
    )


def test_another_distribution_is_weak_not_missing(tmp_path: Path) -> None:
    system = finding(
        survey(tmp_path, {"etc/os-release": 'PRETTY_NAME="Other 1"\nID=other\nVERSION_ID="1"\n'}), "system"
    )
    assert system.state is State.WEAK
    assert "Other 1" in system.found


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,7\n", (0, 1, 2, 3, 7)), ("", ()), (" (null)\n", ()), (None, ()), ("5", (5,))]
)
def test_cpu_lists_are_read_as_the_kernel_writes_them(text: str | None, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus
    assert parse_cpu_list(format_cpu_list(cpus)) == cpus


def test_the_real_host_is_told_as_it_is() -> None:
    """Everything that the kernel of this machine tells, read without a fault."""
    found = survey_host(about=ABOUT, watched=None)
    assert platform.release() in finding(found, "system").found
    assert finding(found, "CPUs").facts["allowed"] == sorted(os.sched_getaffinity(0))
    assert finding(found, "privileges").facts["is_root"] == (os.geteuid() == 0)
    for one in found.findings:
        assert one.found
        assert one.advice or one.state in (State.GOOD, State.UNKNOWN)
