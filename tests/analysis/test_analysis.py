# SPDX-License-Identifier: Apache-2.0
"""Curves, ratios, the verdict on the choice of addresses, and Figure 7 beside what was found."""

from __future__ import annotations

from dataclasses import replace

import numpy
import pytest

from evenhand.analysis import BiasVerdict, analyse
from evenhand.analysis.medians import Pool, median_ratio, show_ratio
from evenhand.analysis.published import FIGURE_7, predicted_shape
from evenhand.analysis.ranks import lower_p_value
from evenhand.analysis.ratios import _ratio
from evenhand.plan import ONE_EACH, SideCounts, make_plan
from evenhand.predict import DeviceModel, NeighborCost, neighbor_entries, predict
from evenhand.run.campaign_record import PointRecord, PointState
from evenhand.spec.request import HashType
from tests.analysis.records import DOUBLING, noisy, point, record, router_config

GATEWAY = "gateway-v4"
ELEMENT_FPS = 50_000


def verdict_of(*points: PointRecord) -> BiasVerdict:
    (verdict,) = analyse(record(*points)).bias
    return verdict


def pair(values: list[float], *, hash_type: HashType | None = "type1", **options: str) -> PointRecord:
    return point(
        1, values, suite=f"gateway{options or ''}", plan=GATEWAY, hash_type=hash_type, plan_options=options
    )


def many(values: list[float], *, hash_type: HashType | None = "type1") -> PointRecord:
    return point(65534, values, suite="gateway", plan=GATEWAY, hash_type=hash_type)


def capped(found: PointRecord, maximum: float) -> PointRecord:
    """The same, if no higher load had been tried."""
    return point(
        found.point.hosts[0],
        found.values,
        suite=found.point.suite,
        plan=found.point.plan,
        hash_type=found.point.hash_type,
        maximum=maximum,
    )


# Curves


def test_a_curve_has_ten_values_and_their_statistics_at_each_point() -> None:
    """SEED-72."""
    values = noisy(1e5, 10, 0.01)
    (curve,) = analyse(record(point(8, values), point(1, values))).curves
    assert [p.address_count for p in curve.points] == [1, 8]
    for p in curve.points:
        assert p.statistics is not None
        assert p.statistics.count == 10
        assert (p.statistics.median, p.statistics.minimum, p.statistics.maximum) == (
            numpy.median(values),
            min(values),
            max(values),
        )


def test_what_differs_in_more_than_the_number_of_addresses_is_another_curve() -> None:
    """A suite may have several procedures, sizes and settings; only N runs along a curve."""
    points = [
        point(1, [1.0]),
        point(2, [1.0]),
        point(1, [1.0], frame_size=1518),
        point(1, [1.0], hash_type="type2"),
        point(1, [1.0], procedure="latency"),
        point(1, [1.0], suite="gateway", plan=GATEWAY),
        point(1, [1.0], goal={"duration": "2s"}),
    ]
    curves = analyse(record(*points)).curves
    assert [len(curve.points) for curve in curves] == [2, 1, 1, 1, 1, 1]
    assert len({curve.key for curve in curves}) == 6
    assert curves[-1].title == "direct: throughput, 64 octets, type1 (2)"
    assert curves[3].figure.unit == "us"
    assert curves[3].shape is None


def test_of_unlike_sides_the_one_with_more_addresses_is_their_number() -> None:
    """SEED-65: N is that of the larger side, over all of its networks, whichever side it is."""
    for hosts, networks, count, label in (
        (SideCounts(4, 16), ONE_EACH, 16, "4 x 16"),
        (SideCounts(16, 4), ONE_EACH, 16, "16 x 4"),
        (SideCounts(4, 4), SideCounts(8, 2), 32, "32 x 8"),
    ):
        made = point(1, [200.0])
        unlike = replace(made, point=replace(made.point, hosts=hosts, networks=networks))
        (found,) = analyse(record(unlike)).curves[0].points
        assert (found.address_count, found.label) == (count, label)
        assert not found.is_one_pair


def test_degradation_is_positive_where_it_is_worse() -> None:
    """R8219-17: (X1 - Xn) / X1 of a throughput, (Xn - X1) / X1 of a latency, in percent, with n."""
    throughput, latency = (
        analyse(record(point(1, [200.0], procedure=name), point(16, [150.0], procedure=name))).curves[0]
        for name in ("throughput", "latency")
    )
    assert [(d.address_count, d.percent) for d in throughput.degradations] == [(16, 25.0)]
    assert [(d.address_count, d.percent) for d in latency.degradations] == [(16, -25.0)]
    assert analyse(record(point(2, [200.0]), point(16, [150.0]))).curves[0].degradations == ()


def test_warnings_name_what_is_missing() -> None:
    points = [
        point(1, [1e5, None]),
        point(2, [None], reason="hook failed"),
        point(4, []),
        point(8, [1e5, None], state=PointState.BEGUN, asked=3, why_no_value="the link was down"),
    ]
    warnings = " ".join(analyse(record(*points)).warnings)
    assert "2 x 2 has no number: hook failed." in warnings
    assert "not finished: 4 x 4 and 8 x 8." in warnings
    assert ": 1 x 1: 1 of its 2 finished repetitions has no value." in warnings
    assert ": 8 x 8: 1 of its 2 finished repetitions has no value: the link was down." in warnings
    assert "the point with the fewest repetitions has 1" in warnings


def test_curves_with_too_few_repetitions_are_named_in_one_line() -> None:
    points = [point(hosts, [1e5], suite=suite) for suite in ("a", "b") for hosts in (1, 2)]
    (line,) = [line for line in analyse(record(*points)).warnings if "by ranks from 4 on" in line]
    assert line.startswith("2 curves have a point with no more than 1 repetition (a: ")
    assert "; b: " in line


# Ratios


def test_the_ratio_of_medians_is_that_of_numpy_and_its_interval_covers_as_often_as_it_says() -> None:
    """SEED-70: 2,000 pairs of ten values each, of two skewed distributions that differ by a factor of 1.1."""
    draw = numpy.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        above, below = 1.1 * (1 + draw.exponential(0.1, 10)), 1 + draw.exponential(0.1, 10)
        found = median_ratio(Pool(values=tuple(above)), Pool(values=tuple(below)))
        assert found.ratio == pytest.approx(numpy.median(above) / numpy.median(below))
        assert found.interval is not None
        covered += found.interval.low <= 1.1 <= found.interval.high
    assert found.interval is not None
    assert found.interval.level == pytest.approx(0.9567, abs=1e-4)
    assert covered / 2000 == pytest.approx(found.interval.level, abs=0.01)


def test_a_ratio_with_nothing_below_is_none() -> None:
    one, nothing = Pool(values=(1.0,)), Pool(values=(0.0,))
    assert median_ratio(one, nothing).ratio is None
    assert median_ratio(nothing, nothing).ratio == 1.0
    assert median_ratio(one, nothing).interval is None


@pytest.mark.parametrize(
    ("above", "below", "shown"),
    [(3, 3, "0.990"), (4, 4, "0.990 (0.980 .. 1.000 with 97.1 %)"), (1, 10, "0.990")],
)
def test_a_ratio_has_an_interval_if_there_are_repetitions_enough(above: int, below: int, shown: str) -> None:
    """SEED-72: one that covers the true ratio with a probability below 0.95 says nothing; the document has it
    with its level."""
    lower = [98.0 + 2 * n / (above - 1) for n in range(above)] if above > 1 else [99.0]
    ratio = median_ratio(Pool(values=tuple(lower)), Pool(values=(100.0,) * below))
    assert show_ratio(ratio) == shown
    assert ratio.interval is not None
    assert (ratio.firm_interval is None) == (min(above, below) < 4)


@pytest.mark.parametrize(
    ("direct", "gateway"), [("direct-v4-net16", "gateway-v4"), ("direct-v6", "gateway-v6")]
)
def test_a_plateau_is_a_lower_bound_for_all_as_soon_as_one_of_its_points_is(
    direct: str, gateway: str
) -> None:
    """SEED-07, SEED-70, MLR-10: that point may be higher by any amount, however many values its neighbours
    have: both say so."""
    at_most_4 = point(4, [2e5] * 4, plan=direct, maximum=1e5)
    curve = [point(1, [1e4] * 6, plan=direct), point(2, [9.9e4] * 6, plan=direct), at_most_4]
    (verdict,) = analyse(record(*curve)).bias
    assert verdict.sentence.startswith("Biased: one address pair hides at least")
    (ratio,) = analyse(record(*curve, point(65534, [9e4] * 6, plan=gateway, suite="gateway"))).ratios
    assert ratio.ratio.bound == "at_most"
    known = [*curve[:2], point(4, [9.9e4] * 4, plan=direct)]
    (verdict,) = analyse(record(*known)).bias
    assert verdict.sentence.startswith("Biased: one address pair hides 89.9 %")


@pytest.mark.parametrize(
    ("gateway_fps", "is_flagged"), [(400_000, False), (385_000, False), (375_000, True), (425_000, True)]
)
def test_results_more_than_five_percent_apart_are_flagged(gateway_fps: float, is_flagged: bool) -> None:
    """SEED-70: gateway over plateau, and many addresses with type 1 over one pair with ports and type 2."""
    direct = [point(n, [fps] * 10) for n, fps in ((1, 50_000.0), (16, 400_000.0), (64, 400_000.0))]
    ports = point(1, [400_000.0] * 10, suite="ports", plan=GATEWAY, hash_type="type2")
    ratios = analyse(record(*direct, many([gateway_fps] * 10), ports)).ratios
    assert [ratio.name for ratio in ratios] == [
        "gateway / plateau",
        "many addresses, type 1 / one pair with ports, type 2",
    ]
    for ratio in ratios:
        assert ratio.ratio.ratio == pytest.approx(gateway_fps / 400_000)
        assert ratio.is_flagged is is_flagged
        assert ("about equal" in ratio.sentence) is not is_flagged


def test_only_results_of_the_same_frame_size_and_ip_version_are_held_together() -> None:
    direct = [point(n, [1e5] * 10, frame_size=1518) for n in (1, 16)]
    six = [point(n, [1e5] * 10, plan="direct-v6") for n in (1, 16)]
    assert analyse(record(*direct, *six, many([1e5] * 10))).ratios == ()


# The verdict on the choice of addresses


def test_one_pair_that_shows_an_eighth_hides_seven() -> None:
    """SEED-07: from results alone; the ports of the pair varied, so the DUT does not hash them."""
    verdict = verdict_of(pair(noisy(1e5, 10, 0.01)), many(noisy(8e5, 10, 0.01)))
    assert (verdict.finding, verdict.hashes_ports) == ("hides", False)
    assert verdict.hidden == pytest.approx(7 / 8, abs=0.01)
    assert verdict.sentence.startswith("Biased: one address pair hides 87")
    assert "the DUT does not hash ports" in verdict.sentence
    assert "exact one-sided Mann-Whitney test" in verdict.certainty
    assert verdict.p_value is not None
    assert verdict.p_value < 1e-4
    assert "\n" not in verdict.sentence


def test_a_dut_that_shows_the_same_with_one_pair_is_not_biased() -> None:
    verdict = verdict_of(pair(noisy(8e5, 10, 0.005)), many(noisy(8e5, 10, 0.005, seed=2)))
    assert (verdict.finding, verdict.hashes_ports) == ("same", None)
    assert "Hodges-Lehmann" in verdict.certainty
    assert "hashes ports or has no parallel elements to share the load" in verdict.sentence


def test_fixed_ports_that_show_less_tell_that_ports_are_hashed() -> None:
    """One pair with pseudorandom ports does as well as many addresses, and with fixed ports it does not:
    ports spread the load."""
    verdict = verdict_of(
        pair([8e5] * 10), pair([1e5] * 10, source_ports="fixed", destination_ports="fixed"), many([8e5] * 10)
    )
    assert (verdict.finding, verdict.hashes_ports) == ("same", True)


def test_one_pair_with_fixed_ports_says_nothing_of_ports() -> None:
    verdict = verdict_of(pair([1e5] * 10, source_ports="fixed", destination_ports="fixed"), many([8e5] * 10))
    assert (verdict.finding, verdict.hashes_ports) == ("hides", None)
    assert "hash ports" not in verdict.sentence


@pytest.mark.parametrize(
    ("one_fps", "is_claimed"), [(4e5, True), (1e5, True), (5e4, True), (7.4e5, False), (3.4e5, False)]
)
@pytest.mark.parametrize("hash_type", ["type1", "type2"])
def test_that_ports_are_not_hashed_is_claimed_only_of_the_share_of_one_element(
    one_fps: float, is_claimed: bool, hash_type: HashType
) -> None:
    """SEED-07: one of 2, of 8, of 16; a drop of 7.5 percent was said to show it too."""
    verdict = verdict_of(pair([one_fps] * 10, hash_type=hash_type), many([8e5] * 10, hash_type=hash_type))
    assert (verdict.finding, verdict.hashes_ports) == ("hides", False if is_claimed else None)
    assert ("the DUT does not hash ports" in verdict.sentence) is is_claimed
    assert (
        "with one pair, whose ports vary, the load is spread less evenly" in verdict.sentence
    ) is not is_claimed


@pytest.mark.parametrize(
    ("fixed_fps", "hashes_ports", "said"),
    [(7e5, False, "the DUT does not hash ports"), (1e5, True, "so the DUT hashes ports")],
)
def test_fixed_ports_tell_whether_a_biased_dut_hashes_ports(
    fixed_fps: float, hashes_ports: bool, said: str
) -> None:
    fixed = pair([fixed_fps] * 10, source_ports="fixed", destination_ports="fixed")
    verdict = verdict_of(pair([7e5] * 10), fixed, many([8e5] * 10))
    assert (verdict.finding, verdict.hashes_ports) == ("hides", hashes_ports)
    assert said in verdict.sentence


def test_a_point_with_two_levels_and_an_interval_around_one_hides_nothing() -> None:
    """SEED-07: the rank test finds the lower level, but the factors between the sets, 1 among them, are not
    refuted."""
    high, low = 1e5, 0.7e5
    one, all_of_it = [low] * 6 + [high] * 4, [high] * 10
    assert lower_p_value(one, all_of_it) <= 0.025
    verdict = verdict_of(pair(one), many(all_of_it))
    assert verdict.ratio is not None
    assert verdict.ratio.ratio == pytest.approx(0.7)
    assert verdict.ratio.interval is not None
    assert verdict.ratio.interval.low <= 1 <= verdict.ratio.interval.high
    assert verdict.finding == "unknown"
    assert "includes 1; about 5 repetitions more of each point (15 in all)" in verdict.sentence
    assert verdict.more_repetitions == 5


def test_few_repetitions_give_a_verdict_that_says_how_little_it_knows() -> None:
    verdict = verdict_of(pair([1e5]), many([8e5]))
    assert verdict.finding == "hides"
    assert verdict.p_value is None
    assert verdict.certainty.startswith("The certainty is not known: 1 repetition")


def test_noise_gives_no_verdict() -> None:
    wide = [1e5 * factor for factor in (0.4, 0.6, 0.8, 0.9, 1.0, 1.0, 1.1, 1.2, 1.4, 1.6)]
    verdict = verdict_of(pair(wide), many([value * 1.1 for value in wide]))
    assert verdict.finding == "unknown"
    assert verdict.sentence.startswith("No verdict")


CAPPED = (
    "No verdict: a result is only a lower bound, because the highest load that was tried passed; unless"
    " that is the line rate, set a higher"
    " maximum-rate"
)


@pytest.mark.parametrize(
    ("one", "all_of_it", "maximum", "finding", "words"),
    [
        (
            1e5,
            1e5,
            9e4,
            "unknown",
            f"{CAPPED}. Per direction: at least 90,000 fps with one address pair, at least 90,000 fps with"
            " 65,534 addresses a side.",
        ),
        (4e4, 4e5, 1e5, "hides", "Biased: one address pair hides at least 60.0 %"),
        (9.9e4, 4e5, 1e5, "unknown", f"{CAPPED}. Per direction: 99"),
        (4e5, 5e4, 1e5, "shows_more", "One address pair reaches more, at least 200"),
        (
            4e5,
            9.9e4,
            1e5,
            "not_lower",
            "Not biased: one address pair hides nothing of what this DUT forwards",
        ),
    ],
)
def test_a_lower_bound_is_no_value(
    one: float, all_of_it: float, maximum: float, finding: str, words: str
) -> None:
    """MLR-10, SEED-07: of a DUT that passes the highest load nobody knows what one pair hides of it."""
    found = analyse(
        record(
            capped(pair(noisy(one, 10, 0.001)), maximum), capped(many(noisy(all_of_it, 10, 0.001)), maximum)
        )
    )
    (verdict,) = found.bias
    assert verdict.finding == finding
    assert verdict.sentence.startswith(words)
    assert finding != "unknown" or verdict.certainty == ""  # said once
    assert any(
        "lower bounds because the highest load that was tried passed" in warning for warning in found.warnings
    )


def test_a_series_that_passes_the_highest_load_has_no_shape_and_no_degradation() -> None:
    """SEED-66, R8219-17, MLR-10."""
    (curve,) = analyse(record(*(point(n, [2e5] * 4, maximum=1e5) for n in (1, 2, 4)))).curves
    assert curve.shape is None
    assert curve.degradations == ()
    found = analyse(
        record(point(1, [5e4] * 4, maximum=1e5), *(point(n, [2e5] * 4, maximum=1e5) for n in (2, 4, 8)))
    )
    (curve,) = found.curves
    assert curve.shape is not None
    assert curve.shape.is_capped
    assert curve.shape.rise_end == 2
    assert "passed at the highest load that was tried: the plateau is at least that high" in " ".join(
        curve.shape.sentences
    )
    assert found.published == ()


def test_a_burst_as_long_as_the_longest_that_was_tried_is_a_lower_bound() -> None:
    """R9004-11: the procedure's outcome does not say so, but its document does."""
    found = point(1, [900.0], procedure="back-to-back")
    (repetition,) = found.repetitions
    assert not found.is_at_least
    for is_at_least in (True, False):
        stated = replace(repetition, result={"outcome": "measured", "is_at_least": is_at_least})
        assert replace(found, repetitions=(stated,)).is_at_least is is_at_least
    with pytest.raises(ValueError, match="repetitions is 'hostile', but must be a list"):
        replace(repetition, result={"repetitions": "hostile"})


def test_a_median_below_the_bounds_is_known() -> None:
    """One of ten repetitions that passed the highest load makes no lower bound of the median."""
    (curve,) = analyse(
        record(point(1, [9e4, 9.1e4, 9.2e4, 2e5], maximum=1e5), point(2, [9e4, 9.1e4, 2e5, 2e5], maximum=1e5))
    ).curves
    assert [p.is_at_least for p in curve.points] == [False, True]


@pytest.mark.parametrize(
    ("gateway_fps", "direct_fps", "bound", "is_flagged"),
    [
        (2e5, 2e5, "unknown", False),
        (2e5, 9e4, "at_least", True),
        (2e5, 9.9e4, "at_least", False),
        (5e4, 9e4, "none", True),
    ],
)
def test_a_ratio_of_lower_bounds_says_so(
    gateway_fps: float, direct_fps: float, bound: str, is_flagged: bool
) -> None:
    """SEED-70, MLR-10."""
    direct = [point(n, [direct_fps] * 4, maximum=1e5) for n in (1, 2, 4)]
    below = [point(1, [1e4] * 4)] if bound == "unknown" else []
    (ratio,) = analyse(
        record(*(below or direct[:1]), *direct[1:], capped(many([gateway_fps] * 4), 1e5))
    ).ratios
    assert ratio.ratio.bound == bound
    assert ratio.is_flagged == is_flagged


def test_many_neighbours_that_cost_show_in_the_verdict() -> None:
    verdict = verdict_of(point(1, [8e5] * 10), point(65533, [6e5] * 10))
    assert verdict.finding == "shows_more"
    assert "many addresses reduce the throughput of this DUT" in verdict.sentence


def test_each_setting_of_the_dut_has_its_own_verdict_and_the_setting_has_no_say_in_it() -> None:
    """SEED-07: the same results give the same words, whatever the DUT is said to be set to."""
    results = [noisy(1e5, 10, 0.01), noisy(8e5, 10, 0.01)]
    settings: list[HashType] = ["type1", "type2"]
    verdicts = analyse(
        record(*(f(v, hash_type=s) for s in settings for f, v in zip((pair, many), results, strict=True)))
    ).bias
    assert [verdict.hash_type for verdict in verdicts] == settings
    assert verdicts[0].sentence == verdicts[1].sentence


def test_without_many_addresses_there_is_no_verdict() -> None:
    analysis = analyse(record(pair([1e5])))
    assert analysis.bias == ()
    assert analysis.verdict.startswith("No verdict yet")


# Figure 7


def predicted_series(
    elements: int, plan: str, cost: NeighborCost | None, numbers: tuple[int, ...] = DOUBLING
) -> list[PointRecord]:
    """What the prediction says, computed here beside it, as results."""
    model = DeviceModel(elements=elements, rate_fps=ELEMENT_FPS)
    points = []
    for hosts in numbers:
        one = make_plan(plan, hosts)
        factor = 1.0 if cost is None else cost.factor(neighbor_entries(one))
        fps = predict(one, model).throughput_fps
        assert fps is not None
        points.append(
            point(
                hosts,
                noisy(fps / factor, 10, 0.003, seed=hosts),
                plan=plan,
                frame_size=84 if "v6" in plan else 64,
            )
        )
    return points


@pytest.mark.parametrize(
    ("plan", "elements", "free"),
    [
        ("direct-v4-net16", 16, 8192),
        ("direct-v6", 16, 8192),
        ("direct-v4-net16", 16, 0),
        ("direct-v4-net16", 36, 4096),
    ],
)
def test_rise_and_fall_are_found_where_the_configuration_puts_them(
    plan: str, elements: int, free: int
) -> None:
    """SEED-66: the four cases of Figure 7; without neighbour cost there is no fall. The published rows stand
    beside."""
    cost = NeighborCost(free_entries=free, growth=0.12) if free else None
    config = router_config(elements, free_entries=free, growth=0.12 if free else 0.0)
    analysis = analyse(record(*predicted_series(elements, plan, cost), testbeds={"lab": {"dut": config}}))
    (comparison,) = analysis.published
    assert comparison.is_predicted
    assert (comparison.found_rise_end, comparison.found_falls_above) == (
        comparison.predicted_rise_end,
        comparison.predicted_falls_above,
    )
    # Both sides' hosts are neighbours: so many a side still cost nothing.
    assert comparison.found_falls_above == (free // 2 if free else None)
    version = 6 if "v6" in plan else 4
    assert comparison.rows == tuple(row for row in FIGURE_7 if row.ip_version == version)
    assert "predicts the same" in comparison.sentences[1]


def test_the_rows_of_figure_7_are_as_published() -> None:
    """SEED-66: 16 x 16 and 4k, 4 x 4 and 4k, 8 x 8 and never, 64 x 64 and 2k."""
    assert [(row.rise_end, row.falls_above) for row in FIGURE_7] == [
        (16, 4096),
        (4, 4096),
        (8, None),
        (64, 2048),
    ]


@pytest.mark.parametrize("case", [1, 2, 3, 4])
def test_a_campaign_of_a_case_stands_beside_its_own_row(case: int) -> None:
    """SEED-64, SEED-66: what a preset says was published is what Figure 7 has."""
    from evenhand.spec.file import make_campaign
    from evenhand.spec.points import expand

    spec = expand(make_campaign({"name": "mine", "preset": f"appendix-a2-case{case}"}, where="here")).spec
    row = FIGURE_7[case - 1]
    plan = "direct-v6" if row.ip_version == 6 else "direct-v4-net16"
    points = [point(n, [fps] * 10, plan=plan) for n, fps in ((1, 1e5), (16, 4e5), (64, 4e5))]
    (comparison,) = analyse(record(*points, spec=spec)).published
    assert comparison.rows == (row,)


def test_what_a_campaign_says_was_published_stands_beside_it() -> None:
    spec = {
        "published": [
            {"name": "ours", "plan": None, "rises-up-to": 16, "falls-above": 64, "dut": {"system": "X"}},
            {"name": "no trend"},
        ]
    }
    points = [point(n, [fps] * 10) for n, fps in ((1, 1e5), (16, 4e5), (64, 4e5), (128, 3e5))]
    (comparison,) = analyse(record(*points, spec=spec)).published
    assert [(row.name, row.dut) for row in comparison.rows] == [("ours", "X")]
    assert any("the same as here" in sentence for sentence in comparison.sentences)


def test_a_difference_from_the_published_row_is_explained_by_the_prediction() -> None:
    """The common key leaves the busiest of 16 elements 12.5 percent above the mean at 16 x 16: such a DUT
    rises up to 32 x 32."""
    config = router_config(16, free_entries=8192, growth=0.12)
    cost = NeighborCost(free_entries=8192, growth=0.12)
    spec = {
        "published": [{"name": "mine", "plan": "direct-v4-net16", "rises-up-to": 16, "falls-above": 4096}]
    }
    analysis = analyse(
        record(*predicted_series(16, "direct-v4-net16", cost), testbeds={"lab": {"dut": config}}, spec=spec)
    )
    (comparison,) = analysis.published
    assert [row.name for row in comparison.rows] == ["Case 1 of Figure 7"]
    assert comparison.found_rise_end == 32
    assert any("At 16 x 16 this DUT was at 88." in s and "predict 88.9 %" in s for s in comparison.sentences)


def test_a_result_that_is_not_as_predicted_is_told_and_not_tuned() -> None:
    config = router_config(16)
    levels = {1: 1e5, 2: 4e5, 4: 4e5, 8: 4e5, 16: 4e5, 32: 4e5}
    analysis = analyse(
        record(*(point(n, [fps] * 10) for n, fps in levels.items()), testbeds={"lab": {"dut": config}})
    )
    (comparison,) = analysis.published
    assert comparison.found_rise_end == 2
    assert comparison.predicted_rise_end == 32
    assert "2 x 2 is predicted at" in comparison.sentences[1]


def test_a_lower_bound_or_an_open_search_says_nothing_of_the_prediction() -> None:
    """What one repetition left open, or the tester ended, is part of what was measured: the shape that is
    predicted beside it stays."""
    config = router_config(16)
    points = predicted_series(16, "direct-v4-net16", None)
    first, *others = points[-1].repetitions
    kept = replace(first, outcome="tester_ceiling", result={"is_at_least": True})
    wide = [replace(each, result={"upper_fps_per_direction": (each.value or 0) * 1.2}) for each in others]
    some = [*points[:-1], replace(points[-1], repetitions=(kept, *wide))]
    whole, cut = (analyse(record(*each, testbeds={"lab": {"dut": config}})) for each in (points, some))
    last = cut.curves[0].measured[-1]
    assert (last.at_tester_ceiling, last.at_maximum, last.is_at_least) == (1, 1, False)
    assert cut.published[0].is_predicted
    assert predicted_shape(cut.curves[0]) == predicted_shape(whole.curves[0])


def test_of_a_black_box_nothing_is_predicted() -> None:
    """SEED-07: a record without any description of the DUT is analysed all the same."""
    points = [point(n, [fps] * 10) for n, fps in ((1, 1e5), (16, 4e5), (64, 4e5))]
    analysis = analyse(record(*points))
    (comparison,) = analysis.published
    assert not comparison.is_predicted
    assert comparison.to_document()["predicted"] is None
    assert "a black box" in comparison.sentences[1]
    assert all(p.predicted is None for p in analysis.curves[0].points)


def test_what_is_known_of_the_dut_changes_no_verdict() -> None:
    """SEED-07: with and without the DUT's configuration in the record, shape, ratios and verdict are the
    same."""
    points = [*predicted_series(16, "direct-v4-net16", None), many([4e5] * 10)]
    black, known = (
        analyse(record(*points)),
        analyse(record(*points, testbeds={"lab": {"dut": router_config(4)}})),
    )
    judged = tuple(replace(verdict, predicted="") for verdict in known.bias)
    assert (black.bias, black.ratios, black.warnings) == (judged, known.ratios, known.warnings)
    assert [curve.shape for curve in black.curves] == [curve.shape for curve in known.curves]
    assert known.published != black.published


@pytest.mark.parametrize(("plan", "hosts"), [("gateway-v4", 65_534), ("gateway-v6", 65_536)])
def test_a_verdict_says_what_the_hash_and_the_table_of_a_known_dut_make_of_the_addresses(
    plan: str, hosts: int
) -> None:
    """Three elements share four entries: the busiest has half of them, which is two thirds of what three
    could do."""
    points = [point(1, [5e4] * 10, plan=plan), point(hosts, [1e5] * 10, plan=plan)]
    (verdict,) = analyse(
        record(*points, testbeds={"lab": {"dut": router_config(3, table=(0, 1, 2, 0))}})
    ).bias
    assert verdict.sentence.startswith("Biased: one address pair hides 50.0 %")
    assert f"{hosts:,} addresses a side reach 66.67 %; its table alone wastes 33.33 %." in verdict.predicted
    (unknown,) = analyse(record(*points)).bias
    assert unknown.predicted == ""


def test_too_few_repetitions_only_seem_biased() -> None:
    """Without a test nothing is known of the noise; with four repetitions and more it is."""
    assert verdict_of(pair([1e5] * 3), many([8e5] * 3)).sentence.startswith("Seems biased: ")
    assert verdict_of(pair([1e5] * 10), many([8e5] * 10)).sentence.startswith("Biased: ")


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ([1.0, 1.001, 0.999, 1.002], "about equal"),
        ([0.7, 0.9, 1.1, 1.4], "not known whether they are about equal"),
        ([0.8, 0.801, 0.802, 0.803], "more than 5.0 % apart"),
        ([1.0, 1.001, 0.999], "not known whether they are about equal"),
    ],
)
def test_about_equal_is_said_only_if_the_whole_interval_supports_it(values: list[float], answer: str) -> None:
    """SEED-70: same, different or not known; three repetitions have no interval that says anything."""
    ratio = median_ratio(Pool(values=tuple(values)), Pool(values=(1.0,) * len(values)))
    assert answer in _ratio("a / b", "a", "b", ratio, "more").sentence
