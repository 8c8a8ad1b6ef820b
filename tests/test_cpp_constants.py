# SPDX-License-Identifier: Apache-2.0
"""What several C++ files need stands in one header: two definitions of one thing can come to differ."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.dpdk_headers import ROOT, sources


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("engine/units.hpp", r"\b(ns|us|ms)_per_(second|ms|us)\s*=|\bper_million\s*=|1'000'000'000\b"),
        ("engine/split_mix.hpp", r"(?i)0x(9E3779B97F4A7C15|BF58476D1CE4E5B9|94D049BB133111EB)"),
        ("engine/simd.hpp", r"#\s*include\s*<immintrin\.h>"),
        ("router/tables/entry_index.hpp", r"home\) & \w*mask_\) <|from_home"),
    ],
    ids=["factors between units", "SplitMix64", "vector instructions", "backward-shift deletion"],
)
def test_what_several_files_need_is_defined_once(header: str, text: str) -> None:
    own = [file for file in sources(ROOT) if "/tests/" not in file]
    assert [file for file in own if re.search(text, Path(ROOT, file).read_text())] == [header]
