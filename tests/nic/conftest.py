# SPDX-License-Identifier: Apache-2.0
"""One machine for all tests of the rung, and one without an IOMMU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nic.nic_machine import (
    MODELS,
    ON_BOTH_NODES,
    UNPLUGGED,
    NicMachine,
    is_unready,
    make_data_disk,
    offered_models,
)


@pytest.fixture(scope="session")
def data_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    why = is_unready()
    if why:
        pytest.skip(why)
    path = tmp_path_factory.mktemp("nic") / "data.img"
    make_data_disk(path)
    return path


@pytest.fixture(scope="session")
def machine(data_disk: Path) -> Iterator[NicMachine]:
    with NicMachine(data_disk.parent, data_disk, offered_models()) as machine:
        yield machine


@pytest.fixture(scope="session")
def machine_with_slots(data_disk: Path) -> Iterator[NicMachine]:
    """Two NUMA nodes, and NICs that can be taken out while it runs."""
    folder = data_disk.parent / "slots"
    folder.mkdir()
    models = (*offered_models(UNPLUGGED), ON_BOTH_NODES)
    with NicMachine(folder, data_disk, models, has_two_nodes=True) as machine:
        yield machine


@pytest.fixture
def machine_without_iommu(data_disk: Path) -> Iterator[NicMachine]:
    folder = data_disk.parent / "bare"
    folder.mkdir()
    with NicMachine(folder, data_disk, MODELS[:1], has_iommu=False) as machine:
        yield machine
