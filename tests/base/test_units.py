# SPDX-License-Identifier: Apache-2.0
"""Units: what people write is read exactly, and what is printed can be read again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.base import units
from tests.errors import raises


@pytest.mark.parametrize(
    ("text", "fps"),
    [
        ("1Mfps", 1e6),
        ("14.88Mfps", 14_880_000),
        ("500kfps", 5e5),
        ("500 kfps", 5e5),
        ("1_000_000", 1e6),
        ("1mfps", 1e6),
        ("0.5", 0.5),
        ("2Gfps", 2e9),
    ],
)
def test_rates_are_read_exactly(text: str, fps: float) -> None:
    assert units.parse_rate(text) == fps


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60s", 60),
        ("60", 60),
        ("2.5ms", 0.0025),
        ("100us", 1e-4),
        ("20ns", 2e-8),
        ("2min", 120),
        ("1h", 3600),
        ("0s", 0),
    ],
)
def test_durations_are_read_exactly(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "ratio"), [("0.5%", 0.005), ("0", 0), ("0.005", 0.005), ("100ppm", 1e-4), ("0 %", 0)]
)
def test_ratios_are_read_exactly(text: str, ratio: float) -> None:
    assert units.parse_ratio(text) == ratio


def test_sizes_and_memory_are_whole_numbers() -> None:
    assert units.parse_size("84") == 84
    assert units.parse_size("1518B") == 1518
    assert units.parse_memory("2GB") == 2048
    with raises("base.not-whole"):
        units.parse_size("64.5")


@pytest.mark.parametrize(
    ("text", "frames"), [("1e8", 10**8), ("100M", 10**8), ("1.5k", 1500), ("1g", 10**9), ("1_000", 1000)]
)
def test_numbers_of_frames_are_read_exactly(text: str, frames: int) -> None:
    assert units.parse_count(text) == frames


@pytest.mark.parametrize(
    ("parse", "text", "code"),
    [
        (units.parse_count, "1.5", "base.not-whole"),
        (units.parse_count, "1e-8", "base.not-whole"),
        (units.parse_rate, "fast", "base.not-a-quantity"),
        (units.parse_rate, "", "base.not-a-quantity"),
        (units.parse_rate, "1Mbps", "base.not-a-quantity"),
        (units.parse_rate, "0", "base.out-of-range"),
        (units.parse_rate, "-1kfps", "base.out-of-range"),
        (units.parse_rate, "nan", "base.not-a-quantity"),
        (units.parse_rate, "inf", "base.not-a-quantity"),
        (units.parse_duration, "60x", "base.not-a-quantity"),
        (units.parse_duration, "-1s", "base.out-of-range"),
        (units.parse_duration, "1e300s", "base.out-of-range"),
        (units.parse_duration, "278h", "base.out-of-range"),
        (units.parse_size, "0", "base.out-of-range"),
        (units.parse_ratio, "100%", "base.out-of-range"),
        (units.parse_ratio, "1", "base.out-of-range"),
        (units.parse_line_rate, "10Gfps", "base.not-a-quantity"),
        (units.parse_memory, "512", "base.not-a-quantity"),
    ],
)
def test_a_refusal_shows_the_value_and_the_accepted_forms(
    parse: Callable[..., object], text: str, code: str
) -> None:
    with raises(code) as caught:
        parse(text, where="--option")
    assert repr(text) in caught.value.what
    assert caught.value.where == "--option"
    assert "like" in caught.value.next_step


@pytest.mark.parametrize(
    ("parse", "text", "advice"),
    [
        (units.parse_rate, "10kpps", "Did you mean 10kfps?"),
        (units.parse_rate, "1.5 Mpps", "Did you mean 1.5Mfps?"),
        (units.parse_rate, "64000pps", "Did you mean 64000fps?"),
        (units.parse_rate, "10k", "Did you mean 10kfps?"),
        (units.parse_rate, "14,880,952 fps", "Did you mean 14880952fps?"),
        (units.parse_rate, "0,5Mfps", "Did you mean 0.5Mfps?"),
        (units.parse_rate, "10Gbps", "10Gbps is 14880952fps with 64 octet frames."),
        (units.parse_rate, "10 Gbit/s", "10Gbps is 14880952fps with 64 octet frames."),
        (units.parse_rate, "50%line", "50% of 10Gbps is 7440476fps with 64 octet frames."),
        (units.parse_line_rate, "10gbit", "Did you mean 10Gbps?"),
        (units.parse_line_rate, "100Mbit/s", "Did you mean 100Mbps?"),
        (units.parse_line_rate, "25GbE", "Did you mean 25Gbps?"),
        (units.parse_duration, "5usec", "Did you mean 5us?"),
        (units.parse_duration, "5\N{MICRO SIGN}s", "Did you mean 5us?"),
        (units.parse_duration, "2.5msec", "Did you mean 2.5ms?"),
        (units.parse_duration, "10 seconds", "Did you mean 10s?"),
        (units.parse_duration, "3m", "Did you mean 3min?"),
        (units.parse_ratio, "0,5%", "Did you mean 0.5%?"),
        (units.parse_ratio, "1 percent", "Did you mean 1%?"),
        (units.parse_memory, "512MiB", "Did you mean 512MB?"),
        (units.parse_size, "64bytes", "Did you mean 64B?"),
        (units.parse_count, "2 million", "Did you mean 2M?"),
        (units.parse_count, "100 frames", "Did you mean 100?"),
    ],
)
def test_a_unit_of_others_is_refused_with_the_nearest_right_one(
    parse: Callable[..., object], text: str, advice: str
) -> None:
    """What people write elsewhere is not guessed, and what it would be here can be pasted."""
    with raises("base.not-a-quantity") as caught:
        parse(text)
    assert caught.value.next_step.startswith((advice, f"A rate counts frames: {advice}"))
    if "mean" in advice:
        parse(advice.removeprefix("Did you mean ").removesuffix("?"))


@pytest.mark.parametrize(
    "quantity",
    [value for value in vars(units).values() if isinstance(value, units.Quantity)],
    ids=lambda q: q.name,
)
def test_spellings_of_others_mean_a_unit_that_there_is_and_are_none_themselves(
    quantity: units.Quantity,
) -> None:
    own = {unit.lower() for unit in quantity.units}
    assert set(quantity.others.values()) <= set(quantity.units)
    assert not own & set(quantity.others)
    assert all(spelling == spelling.lower() for spelling in quantity.others)


@given(st.floats(min_value=0.001, max_value=1e11))
def test_a_printed_rate_reads_back_within_its_four_digits(rate_fps: float) -> None:
    assert units.parse_rate(units.format_rate(rate_fps)) == pytest.approx(rate_fps, rel=5.1e-4)


@given(st.floats(min_value=1e-9, max_value=119))
def test_a_printed_duration_reads_back_within_its_four_digits(duration_s: float) -> None:
    assert units.parse_duration(units.format_duration(duration_s)) == pytest.approx(duration_s, rel=5.1e-4)


@given(st.floats(min_value=0, max_value=0.99))
def test_a_printed_ratio_reads_back_within_its_four_digits(ratio: float) -> None:
    assert units.parse_ratio(units.format_ratio(ratio)) == pytest.approx(ratio, rel=5.1e-4, abs=1e-8)


def test_printed_forms() -> None:
    assert units.format_rate(14_880_952) == "14.88 Mfps"
    assert units.format_rate(999_960) == "1 Mfps"
    assert units.format_rate(750_000) == "750 kfps"
    assert units.format_line_rate(1e10) == "10 Gbps"
    assert units.format_duration(60) == "60 s"
    assert units.format_duration(200) == "3 min 20 s"
    assert [units.format_duration(s) for s in (119.4, 120, 7199, 7200)] == [
        "119.4 s",
        "2 min",
        "119 min 59 s",
        "2 h 0 min",
    ]
    assert units.format_duration(0.0025) == "2.5 ms"
    for duration_s, shown in ((7199.6, "2 h 0 min"), (10_790, "3 h 0 min"), (10_765, "2 h 59 min")):
        assert units.format_duration(duration_s) == shown
    assert units.format_ratio(0.005) == "0.5 %"
    assert units.format_count(14_880_952) == "14,880,952"
    assert [units.format_count(count) for count in (12_000.04, 12_000.06, 2.5, 2**63 + 1)] == [
        "12,000",
        "12,000.1",
        "2.5",
        "9,223,372,036,854,775,809",
    ]


@pytest.mark.parametrize(
    ("line_rate_bps", "frame_size", "fps"),
    [
        (1e10, 64, 14_880_952),
        (1e10, 84, 12_019_230),
        (1e10, 1518, 812_743),
        (1e9, 64, 1_488_095),
        (25e9, 64, 37_202_380),
        (25e9, 84, 30_048_076),
    ],
)
def test_maximum_theoretical_frame_rate_is_rounded_down(
    line_rate_bps: float, frame_size: int, fps: int
) -> None:
    """R2544-16: the published values."""
    assert units.max_theoretical_fps(line_rate_bps, frame_size) == fps


@given(
    st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.25, 0.125, 999.96, 1e3, 12_345.678, 5e6, 1e-5]), max_size=8),
    st.sampled_from([0.0, 1.0, 1.25, 0.5, 7e-6, 1e9]),
    st.sampled_from([units.MULTIPLE, units.WHOLE_FPS, "fps", "ratio", "us", "s"]),
)
def test_a_value_is_written_beside_a_few_as_beside_all(values: list[float], value: float, kind: str) -> None:
    few = units.representatives([*values, float("inf")], units.MULTIPLE, kind)
    assert len(few) <= 40
    assert units.one_unit([value, *few], kind) == units.one_unit([value, *values], kind)
