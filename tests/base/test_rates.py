# SPDX-License-Identifier: Apache-2.0
"""Rates in percent of the line rate, in bit/s on the line, and one for each direction."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import pytest

from evenhand.base.option import RATE, Option
from evenhand.base.rates import (
    ANY_LINE,
    Line,
    depends_on_line,
    in_frames,
    is_of_line,
    pair_in_frames,
    with_rates_in_frames,
)
from evenhand.plan import Direction, SideName, line_of, make_plan
from tests.errors import raises

BOTH: tuple[Direction, Direction] = ("forward", "reverse")
TEN_G: dict[SideName, float | None] = {"left": 10e9, "right": 10e9}


@pytest.mark.parametrize(
    ("plan", "size", "most_fps"),
    [("gateway-v4", 64, 14_880_952), ("gateway-v4", 1518, 812_743), ("gateway-v6", 84, 12_019_230)],
)
def test_half_of_the_line_is_half_of_its_bits(plan: str, size: int, most_fps: int) -> None:
    """R2544-16: the maximum frame rates of RFC 2544, appendix B, and RFC 5180, appendix A, with preamble and
    gap."""
    line = line_of(make_plan(plan).streams(size, BOTH), TEN_G)
    assert in_frames("100%", line, where="--rate") == most_fps
    assert in_frames("10Gbit/s", line, where="--rate") == most_fps
    assert in_frames("50%", line, where="--rate") == most_fps // 2
    assert in_frames("5Gbps", line, where="--rate") == most_fps // 2
    assert line.bits_of(most_fps) == pytest.approx(10e9, rel=1e-5)


def test_the_larger_of_what_is_sent_and_arrives_counts() -> None:
    """A translator makes IPv4 frames 20 octets larger: what is 1 Gbit/s is so where they are larger."""
    streams = make_plan("siit").streams(128, BOTH)
    largest = max(frames.mean_octets for stream in streams for frames in stream.ends)
    assert largest == 148
    assert in_frames("1Gbit/s", line_of(streams, TEN_G), where="x") == 1e9 // (8 * (148 + 20))


def test_a_share_of_unlike_lines_is_of_the_slower_one() -> None:
    line = line_of(make_plan("gateway-v4").streams(64, BOTH), {"left": 10e9, "right": 1e9})
    assert in_frames("100%", line, where="x") == 1_488_095
    assert in_frames("1Gbit/s", line, where="x") == 1_488_095


def test_a_share_for_each_direction_is_of_the_port_that_sends_it() -> None:
    """RFC 2544, 26.3: 100 % is the maximum rate on the input media."""
    line = line_of(make_plan("gateway-v4").streams(64, BOTH), {"left": 10e9, "right": 1e9})
    assert pair_in_frames("100%/100%", line, where="x") == (14_880_952, 1_488_095)
    assert pair_in_frames("10%/5Mbit/s", line, where="x") == (1_488_095, 7_440)
    alone = line_of(make_plan("gateway-v6").streams(84, ("forward",)), {"left": 10e9, "right": 1e9})
    assert in_frames("100%", alone, where="x") == 12_019_230


def test_below_a_frame_a_second_nothing_is_rounded_down_to_none() -> None:
    assert in_frames("100bit/s", ANY_LINE, where="x") == pytest.approx(100 / 672)


@pytest.mark.parametrize(
    ("text", "forward", "reverse"),
    [
        ("1Mfps", 1e6, None),
        ("1Mfps/250kfps", 1e6, 250e3),
        ("50%/10%", 7_440_476, 1_488_095),
        ("1Gbit/s/500Mbit/s", 1_488_095, 744_047),
        ("1Gb/s", None, None),
        ("672bps / 1kfps", 1, 1000),
    ],
)
def test_one_rate_or_one_for_each_direction(text: str, forward: float | None, reverse: float | None) -> None:
    """The slash of Gbit/s parts nothing."""
    if forward is None:
        with raises("base.not-a-quantity") as refused:
            pair_in_frames(text, ANY_LINE, where="--rate")
        assert refused.value.next_step.startswith("Did you mean 1Gbit/s?")
        return
    assert pair_in_frames(text, ANY_LINE, where="--rate") == (forward, reverse)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("150%", "base.out-of-range"),
        ("0%", "base.out-of-range"),
        ("-5%", "base.out-of-range"),
        ("50%/", "base.not-a-quantity"),
        ("1/2/3", "base.not-a-quantity"),
        ("fast", "base.not-a-quantity"),
        ("1e99Gbit/s", "base.out-of-range"),
    ],
)
def test_what_is_no_rate_is_refused(text: str, code: str) -> None:
    with raises(code, match="--rate: "):
        pair_in_frames(text, ANY_LINE, where="--rate")


def test_without_a_line_rate_a_share_is_refused_and_bits_are_not() -> None:
    unknown = line_of(make_plan("gateway-v4").streams(64, BOTH), {"left": None, "right": None})
    with raises("base.no-line-rate", match="'50%'") as refused:
        in_frames("50%", unknown, where="--rate")
    assert "line_rate in the testbed file" in refused.value.next_step
    assert in_frames("1Gbit/s", unknown, where="--rate") == 1_488_095


def test_what_depends_on_the_line() -> None:
    assert [depends_on_line(text) for text in ("1Mfps", "5", "auto", "1Mfps/2kfps")] == [False] * 4
    assert [depends_on_line(text) for text in ("5%", "1Gbps", "1Mfps/5%", "5Mbit/s/1kfps")] == [True] * 4
    assert [is_of_line(text) for text in ("5%", "1Mfps/5%", "1Gbit/s", None)] == [True, True, False, False]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    maximum_rate: Annotated[str | None, Option(grammar=RATE, help="")] = None
    start: Annotated[str | None, Option(metavar="auto|RATE", help="")] = None
    name: Annotated[str, Option(help="")] = "50%"


def test_all_rates_of_a_group_become_frames_and_nothing_else() -> None:
    line = Line(octets=Fraction(64), most_fps=1000)
    given = _Options(maximum_rate="50%", start="10%")
    assert with_rates_in_frames(given, line) == _Options(maximum_rate="500.0", start="100.0")
    as_written = _Options(maximum_rate="1Mfps", start="auto")
    assert with_rates_in_frames(as_written, line) is as_written
    with raises("base.not-a-quantity", match="--maximum-rate"):
        with_rates_in_frames(_Options(maximum_rate="x%"), line)
