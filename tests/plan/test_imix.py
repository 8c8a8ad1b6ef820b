# SPDX-License-Identifier: Apache-2.0
"""Station 1: sequences of frame sizes, as RFC 6985 writes them, and both IP versions in one direction."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.base.units import max_theoretical_fps
from evenhand.plan import (
    Imix,
    describe_mix,
    gateway_v4,
    gateway_v6,
    make_plan,
    mix_lines,
    mix_request,
    mix_versions,
    parse_imix,
)
from evenhand.plan.imix import LETTERS, is_imix, largest_octets, mean_octets, whole_octets
from evenhand.plan.mix import version_pattern
from evenhand.procedure import check_frame_sizes, choose_frames
from tests.errors import raises


def frames_of(mix: dict[str, object]) -> list[tuple[int, int]]:
    """Size and plan of each frame of a period."""
    document = mix["mix"]
    assert isinstance(document, dict)
    classes = [(c["frame_size"], c["plan"]) for c in document["classes"]]
    return [classes[number] for number in document["cycle"]]


@pytest.mark.parametrize("text", ["IMIX - aaafg", "imix:aaafg", "IMIX-aaafg", " imix - aaafg "])
def test_every_way_of_writing_is_the_same_sequence(text: str) -> None:
    """R6985-01: a=64, f=1280, g=1518."""
    imix = parse_imix(text)
    assert imix.octets == (64, 64, 64, 1280, 1518)
    assert str(imix) == "IMIX - aaafg"
    assert imix.mean == 598
    assert imix.counted == "3 x 64, 1280 and 1518 octets"


def test_the_letters_are_those_of_the_rfc() -> None:
    """R6985-01, RFC 6985 section 4."""
    assert LETTERS == {
        "a": 64,
        "b": 128,
        "c": 256,
        "d": 512,
        "e": 1024,
        "f": 1280,
        "g": 1518,
        "h": 2112,
        "i": 9000,
        "j": 16000,
    }


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("imix:aaz:z=1400", "IMIX - aaz (z=1400)"),
        ("imix:AAAGG:A=84:G=1518", "CUSTOM IMIX - AAAGG (A=84, G=1518)"),
        ("CUSTOM IMIX - AAAGG (A=84, G=1518)", "CUSTOM IMIX - AAAGG (A=84, G=1518)"),
    ],
)
def test_sizes_of_ones_own_are_stated(text: str, printed: str) -> None:
    """R6985-01: z and capital letters have the size that stands with them."""
    assert str(parse_imix(text)) == printed


@given(
    st.text(alphabet="abcdefgz", min_size=1, max_size=256)
    | st.text(alphabet="ABCDEFGZ", min_size=1, max_size=256)
)
def test_what_is_printed_is_read_again(sequence: str) -> None:
    """R6985-01: parser and printer, there and back."""
    letters = [letter for letter in dict.fromkeys(sequence) if letter.isupper() or letter == "z"]
    imix = Imix(sequence=sequence, sizes=tuple((letter, 64 + i) for i, letter in enumerate(letters)))
    assert parse_imix(str(imix)) == imix
    assert imix.mean * len(sequence) == sum(imix.octets)


@pytest.mark.parametrize(
    "text",
    [
        "imix:aaafg:frames=20:seed=7",
        "IMIX - aaafg (frames=20, seed=7)",
        "imix - aaafg (Seed = 7, Frames = 20)",
    ],
)
def test_a_drawn_order_is_that_of_its_seed(text: str) -> None:
    """R6985-01: the order was computed apart from the product, with the numbers that SplitMix64's author
    publishes."""
    imix = parse_imix(text)
    assert imix.letters == "aafgaafafaaagafggaaa"
    assert str(imix) == "IMIX - aaafg (frames=20, seed=7)"
    assert imix.short == "imix:aaafg:frames=20:seed=7"
    assert imix.mean == 598
    assert imix.counted == "12 x 64, 4 x 1280 and 4 x 1518 octets"
    described = describe_mix(gateway_v4(), imix)
    assert described is not None
    assert described["drawn"] == {"frames": 20, "seed": 7, "algorithm": "SplitMix64 and Fisher-Yates"}
    assert (
        "in a pseudorandom order of 20 frames (SplitMix64 and Fisher-Yates, seed 7)"
        in mix_lines(gateway_v4(), imix)[0]
    )


@given(st.integers(0, 2**64 - 1), st.integers(1, 51))
def test_shares_of_a_drawn_order_are_exact(seed: int, times: int) -> None:
    """R6985-01: only the order is drawn; printed and read again it is the same."""
    imix = parse_imix(f"imix:AAAGG:A=84:G=1518:frames={5 * times}:seed={seed}")
    assert Counter(imix.letters) == {"A": 3 * times, "G": 2 * times}
    assert parse_imix(str(imix)) == parse_imix(imix.short) == imix


def test_places_of_a_drawn_order_are_equally_likely() -> None:
    """R6985-01: over 2,000 seeds each of ten places has the one long frame as often as the others, within
    five deviations."""
    places = Counter(
        parse_imix(f"imix:aaaaaaaaag:frames=10:seed={seed}").letters.index("g") for seed in range(2000)
    )
    assert all(abs(places[place] - 200) < 5 * (2000 * 0.1 * 0.9) ** 0.5 for place in range(10))


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        ("imix:", "plan.not-an-imix", ""),
        ("IMIX - aa1", "plan.not-an-imix", ""),
        ("imix:aak", "plan.imix-unknown-letter", "'k'"),
        ("imix:aaz", "plan.imix-size-missing", "size of z"),
        ("imix:AAG:A=84", "plan.imix-size-missing", "size of G"),
        ("imix:aaA:A=84", "plan.imix-mixed-case", ""),
        ("imix:aa:a=65", "plan.imix-size-of-rfc-letter", "a means 64"),
        ("imix:AA:A=84:B=90", "plan.imix-size-unused", "uses B"),
        ("imix:AA:A=84:A=85", "plan.imix-given-twice", ""),
        ("imix:AA:A=x", "plan.imix-unknown-part", ""),
        (f"imix:{'a' * 257}", "plan.imix-length", "257 frames"),
        ("imix:aag:frames=100", "plan.imix-order-uneven", "of 3 letters"),
        ("imix:aag:frames=258", "plan.imix-order-length", "3 to 256 .*258"),
        ("imix:aag:frames=0", "plan.imix-order-length", r"3 to 256 .*\b0$"),
        ("imix:aag:frames=3:frames=6", "plan.imix-given-twice", "has frames"),
        ("imix:aag:seed=3", "plan.imix-seed-without-order", ""),
        (f"imix:aag:frames=3:seed={2**64}", "plan.imix-not-a-seed", ""),
        ("imix:aag:frames=-3", "plan.imix-unknown-part", ""),
    ],
)
def test_what_is_no_sequence_is_refused(text: str, code: str, named: str) -> None:
    """Three parts: what is wrong, where, what to do."""
    with raises(code, match=named) as refused:
        parse_imix(text, where="--frame-size")
    assert refused.value.where == "--frame-size"
    assert refused.value.next_step


def test_each_size_must_fit_the_plan() -> None:
    """R5180-10, R2544-33: no size of a sequence is put in another's place."""
    imix = parse_imix("imix:aaafg")
    assert choose_frames(gateway_v4(), imix) == (imix, None)
    with raises("procedure.frame-size-out-of-range", match="a of IMIX - aaafg is 64 "):
        choose_frames(gateway_v6(), imix)
    with raises("procedure.frame-size-out-of-range", match="j of IMIX - aj is 16000 "):
        choose_frames(gateway_v4(), parse_imix("imix:aj"))
    both = mix_versions(gateway_v4(), gateway_v6(), (9, 1))
    with raises("procedure.frame-size-out-of-range", match=" 84 to"):
        choose_frames(both, imix)
    assert choose_frames(both, None) == (84, None)
    assert choose_frames(both, 64) == (
        84,
        "Frame size 64 cannot hold an IPv6 test frame with its tag: 84 is used instead (R5180-10).",
    )
    sizes, _ = check_frame_sizes(gateway_v4(), [64, imix])
    assert sizes == (64, imix)
    with raises("procedure.listed-twice"):
        check_frame_sizes(gateway_v4(), [imix, parse_imix("IMIX - aaafg")])


def test_a_sequence_has_a_largest_frame_and_a_mean_that_is_rounded() -> None:
    """RFC 6985: for columns that hold a whole number of octets."""
    usual = parse_imix("imix:aaafg")
    assert (largest_octets(usual), largest_octets(84)) == (1518, 84)
    for text, mean, whole in (
        ("imix:aaafg", Fraction(598), 598),
        ("imix:aab", Fraction(256, 3), 85),
        ("imix:abb", Fraction(320, 3), 107),
    ):
        assert mean_octets(parse_imix(text)) == mean
        assert whole_octets(parse_imix(text)) == whole
    assert whole_octets(84) == 84


def test_the_theoretical_rate_is_that_of_the_mean_size() -> None:
    """R2544-16, R6985-01: 10 Gbit/s, (3 x 84 + 1300 + 1538) / 5 octets on the wire."""
    assert (
        max_theoretical_fps(10e9, parse_imix("imix:aaafg").mean)
        == 10_000_000_000 * 5 // (8 * (3 * 84 + 1300 + 1538))
        == 2_022_653
    )
    assert max_theoretical_fps(10e9, Fraction(64)) == max_theoretical_fps(10e9, 64) == 14_880_952


@pytest.mark.parametrize("share", [(90, 10), (50, 50), (10, 90), (1, 2), (99, 1), (37, 63)])
def test_the_share_of_versions_is_exact_over_100_frames(share: tuple[int, int]) -> None:
    """R5180-14: of 100 frames as many as asked for, wherever they begin, and evenly spread."""
    plan = mix_versions(gateway_v4(), gateway_v6(), share)
    assert plan.other is not None
    frames = [version for _, version in frames_of(mix_request(plan, 84))]
    assert len(frames) == sum(plan.other.share)
    for begin in range(len(frames)):
        for length in range(len(frames) + 1):
            found = sum((frames * 2)[begin : begin + length])
            assert abs(found - length * share[1] / sum(share)) < 1, "evenly distributed"
    if 100 % len(frames) == 0:
        assert sum(frames * (100 // len(frames))) == 100 * share[1] // sum(share)


@pytest.mark.parametrize("share", [(90, 10), (50, 50), (10, 90), (2, 1)])
@pytest.mark.parametrize(
    "text", ["imix:AAAFG:A=84:F=1280:G=1518", "imix:BA:A=84:B=85", "imix:ABAC:A=84:B=100:C=200"]
)
def test_sizes_and_versions_do_not_depend_on_each_other(share: tuple[int, int], text: str) -> None:
    """R6985-01, R5180-14: the sizes repeat exactly over all frames, and each IP version has each of them in
    the same share."""
    plan, imix = mix_versions(gateway_v4(), gateway_v6(), share), parse_imix(text)
    assert plan.other is not None
    frames = frames_of(mix_request(plan, imix))
    assert [size for size, _ in frames] == list(imix.octets) * (len(frames) // len(imix.octets))
    pattern = version_pattern(plan.other.share)
    for begin in range(0, len(frames), len(pattern)):
        assert sum(version for _, version in frames[begin : begin + len(pattern)]) == plan.other.share[1]
    counts = Counter(frames)
    for version, part in enumerate(plan.other.share):
        for size, times in Counter(imix.octets).items():
            assert counts[size, version] * len(imix.octets) * len(pattern) == len(frames) * times * part


def test_frames_that_are_all_alike_are_no_mix() -> None:
    assert mix_request(gateway_v4(), 64) == {}
    assert describe_mix(gateway_v4(), 64) is None
    assert mix_lines(gateway_v4(), 64) == []


def test_plans_that_make_no_mix_are_refused() -> None:
    """Two of one version, of two forms, and shares that leave nothing for one of them."""
    with raises("plan.mix-of-one-version"):
        mix_versions(gateway_v4(), make_plan("nets-v4-gateway"), (1, 1))
    with raises("plan.mix-of-two-forms"):
        mix_versions(gateway_v4(), make_plan("direct-v6"), (1, 1))
    for share in [(100, 0), (0, 0), (99, 2), (101, 1)]:
        with raises("plan.not-a-share"):
            mix_versions(gateway_v4(), gateway_v6(), share)


def test_one_pair_of_a_mix_is_one_of_each_version() -> None:
    """SEED-02."""
    plan = mix_versions(gateway_v4(), gateway_v6(), (1, 1)).one_pair()
    assert plan.other is not None
    assert plan.pairs == plan.other.plan.pairs == 1
    assert plan.title == "gateway-v4+gateway-v6"


def test_a_stored_mix_names_its_plans_as_people_type_them() -> None:
    """R5180-14."""
    plan = mix_versions(gateway_v4(), gateway_v6(), (1, 1))
    mix = describe_mix(plan, 84)
    assert mix is not None
    assert mix["versions"]["plans"] == ["gateway-v4", "gateway-v6"]
    assert mix["versions"]["other_plan"]["name"] == "gateway-v6"


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("64:7,570:4,1518:1", {64: 7, 570: 4, 1518: 1}),
        ("64:58, 594:33, 1518:9", {64: 58, 594: 33, 1518: 9}),
        ("64:70,1518:30", {64: 7, 1518: 3}),
        ("128:5,256:5", {128: 1, 256: 1}),
    ],
)
def test_sizes_with_weights_are_the_shortest_sequence_with_these_shares(
    text: str, counted: dict[int, int]
) -> None:
    """As ixia, TRex' users and others write an IMIX: no size comes in blocks."""
    assert is_imix(text)
    found = parse_imix(text)
    octets = found.octets
    assert Counter(octets) == counted
    total = len(octets)
    for place in range(1, total + 1):
        for size, count in counted.items():
            assert abs(octets[:place].count(size) - count * place / total) < 1
    assert parse_imix(found.short) == parse_imix(str(found)) == found


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("64:7,64:1", "plan.imix-given-twice"),
        ("64:0,128:1", "plan.imix-no-weight"),
        ("64:300,128:1", "plan.imix-length"),
        (",".join(f"{64 + n}:1" for n in range(27)), "plan.imix-too-many-sizes"),
    ],
)
def test_weights_that_are_no_sequence_are_refused(text: str, code: str) -> None:
    with raises(code):
        parse_imix(text)


def test_one_size_or_a_list_of_sizes_is_no_mix() -> None:
    for text in ("64", "64,128", "64:7", "64:7,128", "a:1,b:2"):
        assert not is_imix(text)
