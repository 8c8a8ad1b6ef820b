# SPDX-License-Identifier: Apache-2.0
"""The tester's loops, trials and session are compiled without DPDK's headers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tools import dpdk_headers

ROOT = Path(__file__).resolve().parents[2]


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


def test_only_ports_and_the_loops_over_them_see_dpdk() -> None:
    assert dpdk_headers.violations(ROOT) == []


def test_every_file_of_the_loops_is_looked_at() -> None:
    files = dpdk_headers.sources(ROOT)
    assert "engine/run/sender.hpp" in files
    assert "engine/run/trial.cpp" in files
    assert "router/forward/forwarder.hpp" in files


def test_a_file_that_includes_dpdk_itself_is_named(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        {"engine/run/a.cpp": "#include <rte_mbuf.h>\n", "engine/port/b.cpp": "#include <rte_mbuf.h>\n"},
    )
    assert dpdk_headers.violations(root) == ["engine/run/a.cpp includes DPDK"]


def test_a_header_between_does_not_hide_it(tmp_path: Path) -> None:
    root = _write(
        tmp_path,
        {
            "engine/port/hot.hpp": "#pragma once\n  #  include <generic/rte_atomic.h>\n",
            "engine/port/port.hpp": '#include "port/hot.hpp"\n',
            "engine/run/worker.hpp": '#include "run/worker.hpp"\n#include "port/port.hpp"\n',
            "engine/run/trial.cpp": '#include "run/worker.hpp"\n',
            "engine/bench/b.cpp": '#include "port/port.hpp"\n',
        },
    )
    assert dpdk_headers.violations(root) == [
        "engine/run/trial.cpp includes engine/run/worker.hpp includes engine/port/port.hpp includes "
        "engine/port/hot.hpp, which includes DPDK",
        "engine/run/worker.hpp includes engine/port/port.hpp includes engine/port/hot.hpp, "
        "which includes DPDK",
    ]


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
def test_the_compiler_finds_all_that_a_trial_includes_without_dpdks_folder() -> None:
    """The list above is made from the texts; the compiler has the last word."""
    files = sorted(
        str(file) for folder in ("run", "session") for file in (ROOT / "engine" / folder).glob("*.cpp")
    )
    assert len(files) > 10
    (facts,) = (ROOT / "engine").glob("build_facts.hpp.in")
    done = subprocess.run(
        ["g++", "-std=c++20", "-M", "-MG", "-I", str(ROOT / "engine"), *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert facts.name.removesuffix(".in") in done.stdout  # the one header that is made by the build
    assert "rte_" not in done.stdout
