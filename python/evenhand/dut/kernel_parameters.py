# SPDX-License-Identifier: Apache-2.0
"""Host: what `/proc` says of a machine that a measurement depends on: parameters of the kernel's command
line, by name (the rest of the line is its owner's), and the model of its CPU."""

from __future__ import annotations

import re

KEPT = frozenset(
    # CPUs, and what runs on them
    "isolcpus nohz nohz_full rcu_nocbs rcu_nocb_poll rcupdate.rcu_expedited rcupdate.rcu_normal preempt"
    " threadirqs irqaffinity skew_tick"
    " maxcpus nr_cpus possible_cpus nosmt nosmp kthread_cpus numa numa_balancing noirqbalance nowatchdog"
    " nosoftlockup nmi_watchdog"
    " watchdog workqueue.power_efficient workqueue.cpu_intensive_thresh_us highres audit mce"
    # sleep and frequency
    " idle intel_idle.max_cstate processor.max_cstate processor.ignore_ppc cpuidle.off cpuidle.governor"
    " cpuidle_haltpoll.force"
    " haltpoll.guest_halt_poll_ns cpufreq.off cpufreq.default_governor intel_pstate amd_pstate acpi_cpufreq"
    " pcie_aspm"
    # clocks
    " tsc notsc clocksource hpet no-kvmclock no-steal-acc lapic x2apic_phys nox2apic"
    # memory
    " hugepages hugepagesz default_hugepagesz hugetlb_free_vmemmap transparent_hugepage init_on_alloc"
    " init_on_free page_poison slub_debug"
    " swiotlb movable_node"
    # devices
    " iommu iommu.passthrough iommu.strict intel_iommu amd_iommu pci pcie_acs_override"
    # gaps in CPUs, and what closing them costs
    " mitigations nopti pti kpti nospectre_v1 nospectre_v2 nospectre_bhb spectre_v2 spectre_v2_user"
    " spectre_bhi spec_store_bypass_disable"
    " ssbd l1tf l1d_flush mds tsx tsx_async_abort mmio_stale_data retbleed spec_rstack_overflow"
    " gather_data_sampling"
    " reg_file_data_sampling srbds indirect_target_selection tsa vmscape kvm.nx_huge_pages"
    # network
    " ipv6.disable ipv6.disable_ipv6".replace("-", "_").split()
)
"""Names with `_`; the kernel takes `-` for the same."""
_PARAMETER = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
"""A quote keeps blanks together, as in the kernel's own reading."""


def kept_parameters(command_line: str) -> list[str]:
    """Those of `KEPT`, as they are on the line and in its order: `hugepages` belongs to the `hugepagesz`
    before it."""
    kept = []
    for parameter in _PARAMETER.findall(command_line):
        if parameter == "--":
            break  # what follows is passed to init, not to the kernel
        name = parameter.partition("=")[0].strip('"').replace("-", "_")
        if name in KEPT:
            kept.append(parameter)
    return kept


def cpu_model(cpuinfo: str) -> str | None:
    """The model of these lines of `/proc/cpuinfo`. A name without a number, as virtual machines report it
    ("AMD EPYC"), belongs to CPUs of which one is twice as fast as another: family and model tell them apart.
    """
    known = dict(re.findall(r"^(model name|cpu family|model)\s*:\s*(.+?)\s*$", cpuinfo, re.MULTILINE))
    name: str | None = known.get("model name")
    if name is None or re.search(r"\d", name) or not {"cpu family", "model"} <= known.keys():
        return name
    return f"{name}, family {known['cpu family']}, model {known['model']}"
