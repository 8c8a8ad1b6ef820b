# SPDX-License-Identifier: Apache-2.0
"""How the router and the tester use buffers: looked at in front of DPDK, with a driver that says that it can
free them fast."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from evenhand.base.programs import ENGINE, ROUTER, find_program
from tests.wire.raw_engine import open_request

pytestmark = [pytest.mark.wire, pytest.mark.usefixtures("_router")]

WATCH = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <stdio.h>
#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))
int rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info) {
  int result = NEXT(rte_eth_dev_info_get)(port, info);
  info->tx_offload_capa |= RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  return result;
}
int rte_eth_dev_configure(uint16_t port, uint16_t rx, uint16_t tx, const struct rte_eth_conf *conf) {
  int fast = (conf->txmode.offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0;
  fprintf(stderr, "watched: configure queues=%d fast=%d\n", tx, fast);
  struct rte_eth_conf known = *conf;
  known.txmode.offloads &= ~(uint64_t)RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  return NEXT(rte_eth_dev_configure)(port, rx, tx, &known);
}
int rte_eth_dev_close(uint16_t port) {
  fprintf(stderr, "watched: close\n");
  return NEXT(rte_eth_dev_close)(port);
}
void rte_mempool_free(struct rte_mempool *pool) {
  if (pool) fprintf(stderr, "watched: free %s\n", pool->name);
  NEXT(rte_mempool_free)(pool);
}
"""


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that tells what is asked of DPDK."""
    compiler, pkg_config = shutil.which("cc"), shutil.which("pkg-config")
    if compiler is None or pkg_config is None:
        pytest.skip("no C compiler, or no pkg-config")
    folder = tmp_path_factory.mktemp("watch")
    (folder / "watch.c").write_text(WATCH)
    asked = subprocess.run([pkg_config, "--cflags", "libdpdk"], capture_output=True, text=True, check=False)
    library = folder / "watch.so"
    built = subprocess.run(
        [compiler, "-shared", "-fPIC", "-w", "-o", library, folder / "watch.c", *asked.stdout.split()],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode != 0:
        pytest.skip(f"DPDK's headers do not compile here: {built.stderr.splitlines()[:1]}")
    return library


def watched(watch: Path, program: Path, *arguments: str | Path, said: str) -> list[str]:
    """What the program asked of DPDK, when it got this text and then no more."""
    ended = subprocess.run(
        [program, *arguments],
        env={**os.environ, "LD_PRELOAD": str(watch)},
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return [
        line.removeprefix("watched: ") for line in ended.stderr.splitlines() if line.startswith("watched: ")
    ]


def test_the_router_lets_no_driver_free_fast_and_closes_all_devices_before_the_first_pool(
    watch: Path, tmp_path: Path
) -> None:
    """A router sends frames of three pools by one queue: a driver that gives them all to the pool of the
    first would fill one and starve the others. And each port holds what another one received."""
    ports = [{"device": f"net_null{n},no-rx=1", "addresses": [f"10.0.{n}.1/24"]} for n in range(4)]
    config = tmp_path / "router.json"
    config.write_text(
        json.dumps(
            {
                "ports": dict(zip(("left", "right"), ports[:2], strict=True)),
                "more_ports": [dict(zip(("left", "right"), ports[2:], strict=True))],
                "cpu": min(os.sched_getaffinity(0)),
            }
        )
    )
    calls = watched(watch, find_program(ROUTER), config, said="")
    assert [call for call in calls if call.startswith("configure")] == ["configure queues=1 fast=0"] * 4
    ends = [call.split()[0] for call in calls if call.startswith(("close", "free"))]
    assert ends[:4] == ["close"] * 4
    assert ends.count("close") == 4
    assert ends.count("free") >= 4


def test_a_tester_lets_a_driver_free_fast_where_each_queue_sends_from_one_pool(watch: Path) -> None:
    """So what the router must not do is seen here."""
    asked = json.dumps(open_request())
    calls = watched(watch, find_program(ENGINE), said=f"{asked}\n")
    assert [call for call in calls if call.startswith("configure")] == ["configure queues=2 fast=1"] * 2
