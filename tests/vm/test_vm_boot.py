# SPDX-License-Identifier: Apache-2.0
"""A machine whose kernel fails while it boots. A machine of its own: the first one of it does not get far."""

from __future__ import annotations

import os
from typing import Any

import pytest

from evenhand.lab import lab_down, vm_boot, vm_up
from evenhand.lab.vm_boot import recipe
from evenhand.lab.vm_image import vm_image
from evenhand.lab.vm_process import VirtualMachine, has_kvm
from evenhand.plan import make_plan
from tests.errors import raises
from tests.vm.conftest import suite

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for taps in a namespace"),
]
PANICS = "rdinit=/nowhere"
"""Then the kernel looks for a disk whose driver it has not loaded."""


@pytest.mark.parametrize("failing", [1, vm_boot.BOOTS])
def test_an_emulated_kernel_that_fails_while_it_boots_is_booted_again(
    monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Linux 6.12 in QEMU 7.2 does now and then. One that always does is an error, with its last words."""
    if has_kvm(vm_image(recipe(suite()))):
        pytest.skip("KVM works here: a kernel that fails on it is booted once")
    started: list[VirtualMachine] = []

    def start(*words: Any, **options: Any) -> VirtualMachine:
        fails = len(started) < failing
        started.append(VirtualMachine(*words, **options, kernel_arguments=PANICS if fails else ""))
        return started[-1]

    monkeypatch.setattr(vm_boot, "VirtualMachine", start)
    name = f"b{os.getpid() % 10_000_000}"
    told: list[str] = []
    try:
        if failing < vm_boot.BOOTS:
            assert vm_up(make_plan("gateway_v6"), name=name, suite=suite(), say=told.append).is_running
            assert len(started) == failing + 1
        else:
            with raises("rig.machine-in-trouble") as error:
                vm_up(make_plan("gateway_v6"), name=name, suite=suite(), say=told.append)
            assert any("Kernel panic" in note for note in error.value.__notes__)
            assert len(started) == vm_boot.BOOTS
        assert sum("once more" in line for line in told) == len(started) - 1
    finally:
        lab_down(name, force=True)
