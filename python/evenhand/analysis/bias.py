# SPDX-License-Identifier: Apache-2.0
"""Analysis: what one address pair shows of a DUT, from results alone (SEED-07).

The frames of one address pair differ in their UDP ports (SEED-46). So a DUT that forwards less with one pair
than with many addresses does not spread its load as well with ports alone. The claim that it does not hash
them at all is made only where the results say so: one pair has the share of one element of n, or fixed ports
give the same rate. Nothing that is known of the DUT has a say in it; its setting only separates what
was measured under different settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.analysis.condition_words import as_sentence, show_percent
from evenhand.analysis.curve_model import Curve, CurvePoint, Drift
from evenhand.analysis.device import KnownDevice, known_device
from evenhand.analysis.difference import DIRECTIONS_OF_TEST, Difference, Measure, compare_values
from evenhand.analysis.drift import drift_of, heed_in_verdict, withholds, without_rounds
from evenhand.analysis.medians import Pool, settled
from evenhand.analysis.model import BiasVerdict
from evenhand.analysis.plans import ip_version, is_direct, plan_of, sent_plan
from evenhand.analysis.plateau import LEVEL
from evenhand.analysis.ratios import SAME_WITHIN
from evenhand.base.units import format_count, format_ratio
from evenhand.procedure.descriptor import show_value
from evenhand.procedure.registry import THROUGHPUT
from evenhand.run.campaign_record import CampaignRecord, PointRecord

LEVEL_OF_ONE = 0.02
"""Most probability of a false verdict where one pair is compared with one point. It is below that of a
series, because a page has such a verdict for each IP version and frame size: of two, neither is false with
0.96."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Many:
    """The best that the DUT did with many addresses."""

    curve: Curve
    points: tuple[CurvePoint, ...]
    level: float
    """Most probability of a false verdict."""
    comparisons: int
    """Among which this one was chosen."""

    @property
    def pool(self) -> Pool:
        return Pool.of(settled(point) for point in self.points)

    @property
    def address_count(self) -> int:
        return self.points[-1].address_count

    def compared_with(self, pair: CurvePoint, series: Sequence[CurvePoint]) -> Difference:
        """The pair with these; `series` has all points, which show the noise."""
        measure = Measure(
            fewest=min(len(point.values) for point in (pair, *self.points)),
            point_count=len(self.points),
            level=self.level,
            comparisons=self.comparisons,
            series=series,
        )
        return compare_values(pair, self.pool, measure)


def bias_verdicts(record: CampaignRecord, curves: Sequence[Curve]) -> tuple[BiasVerdict, ...]:
    """A verdict for each setting of the DUT, IP version, frame size and choice of directions that has one
    pair and many addresses."""
    by_key = {point.point.key: point for point in record.points}
    groups: dict[tuple[object, ...], list[Curve]] = {}
    for curve in curves:
        key = curve.key
        if key.procedure == THROUGHPUT.name:
            groups.setdefault(
                (ip_version(key.plan), str(key.frame_size), key.hash_type, key.directions), []
            ).append(curve)
    devices = [
        known_device(record, [by_key[point.key] for curve in group for point in curve.points])
        for group in groups.values()
    ]
    found = [_verdict(group, by_key, device) for group, device in zip(groups.values(), devices, strict=True)]
    return tuple(verdict for verdict in found if verdict is not None)


def _verdict(
    curves: Sequence[Curve], by_key: dict[str, PointRecord], device: KnownDevice | None
) -> BiasVerdict | None:
    manies = [many for curve in curves if (many := _many_of(curve)) is not None]
    if not manies:
        return None
    many = next((m for m in manies if not is_direct(m.curve.key.plan)), manies[0])
    ordered = [many.curve, *(curve for curve in curves if curve is not many.curve)]
    pairs = [point for curve in ordered for point in curve.measured if point.is_one_pair]
    varying = next((pair for pair in pairs if ports_vary(by_key[pair.key])), None)
    fixed = next((pair for pair in pairs if not ports_vary(by_key[pair.key])), None)
    pair = varying or fixed
    if pair is None:
        return None
    series = [point for point in many.curve.measured if point.key != pair.key]
    measured = [by_key[point.key] for point in {p.key: p for p in (pair, *many.curve.measured)}.values()]
    drift = drift_of(measured)
    finding = many.compared_with(pair, (pair, *series))
    if drift is not None and withholds(drift, finding.kind, finding.ratio):
        levelled = _without_drift(many, pair, by_key, drift)
        if levelled is not None:
            finding, drift = levelled, None
    hashes_ports: bool | None = None
    is_hiding = varying is not None and finding.kind == "hides"
    if is_hiding and finding.ratio.bound == "none":
        hashes_ports = False if _is_one_of_n(finding.ratio.ratio) else None
    if varying is not None and fixed is not None and finding.kind in ("hides", "same"):
        measure = Measure(
            fewest=min(len(varying.values), len(fixed.values)),
            point_count=1,
            level=LEVEL_OF_ONE,
            comparisons=DIRECTIONS_OF_TEST,
            series=(fixed, varying, *series),
        )
        ports = compare_values(fixed, varying, measure)
        if ports.kind == "hides":
            hashes_ports = True
        elif is_hiding and ports.kind == "same":
            hashes_ports = False
    key = many.curve.key
    verdict = BiasVerdict(
        plan=key.plan,
        frame_size=key.frame_size,
        hash_type=key.hash_type,
        finding=finding.kind,
        hashes_ports=hashes_ports,
        one_pair=pair.statistics,
        many=many.pool.statistics,
        many_addresses=many.address_count,
        ratio=finding.ratio,
        p_value=finding.p_value,
        sentence=_sentence(finding, many, pair, hashes_ports=hashes_ports, is_varying=varying is not None),
        certainty=finding.certainty,
        predicted=_predicted(pair, many, device),
        more_repetitions=finding.more_repetitions,
    )
    return heed_in_verdict(verdict, drift)


def _predicted(pair: CurvePoint, many: _Many, device: KnownDevice | None) -> str:
    """What the hash and the table of a known DUT make of these addresses. It is shown next to the verdict,
    and never decides it (SEED-07)."""
    plateau, points = many.curve.predicted_plateau, many.curve.points
    of_many = next(
        (point.predicted for point in reversed(points) if point.address_count == many.address_count), None
    )
    if device is None or not plateau or of_many is None or pair.predicted is None:
        return ""
    wasted = 1 - 1 / device.model.table_unevenness
    table = f"; its table alone wastes {format_ratio(float(wasted))}" if wasted else ""
    return (
        "Predicted from its hash and table: one address pair reaches"
        f" {format_ratio(pair.predicted / plateau)} of its plateau, {format_count(many.address_count)}"
        f" addresses a side reach {format_ratio(of_many / plateau)}{table}."
    )


def _is_one_of_n(share: float | None) -> bool:
    """Whether one address pair shows what one of n equal elements does, for an n from 2, within 5 percent. A
    tenth and less always is: so little is left of many elements only by a load that does not spread."""
    if not share:
        return False
    elements = round(1 / share)
    return elements >= 2 and abs(share * elements - 1) <= SAME_WITHIN


def ports_vary(record: PointRecord) -> bool:
    """Whether the frames of one address pair differ in a UDP port: as they were sent, else as the campaign
    says (SEED-46)."""
    sent = sent_plan(record)
    if sent is not None:
        return any(
            ports.get("mode") != "fixed" and ports.get("first") != ports.get("last")
            for ports in sent.get("udp_ports", {}).values()
        )
    plan = plan_of(record.point)
    return plan is None or any(
        ports.first != ports.last for ports in (plan.source_ports, plan.destination_ports)
    )


def _many_of(curve: Curve) -> _Many | None:
    """The plateau, where the curve has one; or the point with most addresses. On the link, more addresses
    than those of the plateau have the neighbour table decide, and behind gateways all points have one load.

    Nobody knows how high a point is that is a lower bound: those on the plateau are left out as long as the
    last one is none.
    """
    measured = [point for point in curve.measured if not point.is_one_pair]
    if not measured:
        return None
    if curve.shape is None or len(curve.measured) <= 2:
        return _Many(curve=curve, points=(measured[-1],), level=LEVEL_OF_ONE, comparisons=DIRECTIONS_OF_TEST)
    points = [point for point in measured if point.address_count in curve.shape.plateau] or measured[-1:]
    if not settled(points[-1]).is_at_least:
        points = [point for point in points if not settled(point).is_at_least]
    return _Many(curve=curve, points=tuple(points), level=LEVEL, comparisons=curve.shape.comparisons)


def _without_drift(
    many: _Many, pair: CurvePoint, by_key: dict[str, PointRecord], drift: Drift
) -> Difference | None:
    """The pair with the others of its rounds, which have the same drift; None where rounds do not show it."""
    series = many.curve.measured
    if all(point.key != pair.key for point in series):
        return None
    found = without_rounds(series, [by_key[point.key] for point in series])
    if found is None:
        return None
    of_key = {point.key: point for point in found}
    levelled = replace(many, points=tuple(of_key[point.key] for point in many.points))
    finding = levelled.compared_with(of_key[pair.key], found)
    why = (
        f"{as_sentence(drift.sentence)}; so repetitions were compared relative to the others of their round,"
        " which have the same drift."
    )
    return replace(finding, certainty=f"{finding.certainty} {why}".lstrip())


def _sentence(
    finding: Difference, many: _Many, pair: CurvePoint, *, hashes_ports: bool | None, is_varying: bool
) -> str:
    one, all_of_it = pair.statistics, many.pool.statistics
    assert one is not None
    assert all_of_it is not None
    figure = many.curve.figure
    counts = [format_count(point.address_count) for point in many.points]
    addresses = f"{' to '.join(dict.fromkeys((counts[0], counts[-1])))} addresses a side"
    with_one = f"{'at least ' if pair.is_at_least else ''}{show_value(one.median, figure)}"
    with_many = f"{'at least ' if many.pool.is_at_least else ''}{show_value(all_of_it.median, figure)}"
    values = f"{with_one} against {with_many} per direction"
    share = finding.ratio.ratio
    if finding.kind == "hides" and share is not None:
        ports = ""
        if hashes_ports is False:
            ports = ", and pseudorandom ports do not help: the DUT does not hash ports"
        elif hashes_ports:
            ports = (
                "; with fixed ports the share is still smaller, so the DUT hashes ports, but spreads"
                " the load less evenly with one pair"
            )
        elif is_varying:
            ports = "; with one pair, whose ports vary, the load is spread less evenly"
        least = "at least " if many.pool.is_at_least else "at most " if pair.is_at_least else ""
        hidden = f"{least}{show_percent(1 - share)}"
        biased = "Seems biased" if finding.p_value is None else "Biased"  # too few repetitions for a test
        return (
            f"{biased}: one address pair hides {hidden} of what this DUT forwards with {addresses}"
            f" ({values}){ports}."
        )
    if finding.kind == "same" and share is not None:
        why = "its ports vary, and this DUT either hashes ports or has no parallel elements to share the load"
        if hashes_ports:
            why = "this DUT hashes ports, because the result with fixed ports is lower"
        elif not is_varying:
            why = "this DUT has no parallel elements to share the load, or something else limits it"
        return (
            f"Not biased: one address pair reaches {show_percent(share)} of the result with"
            f" {addresses} ({values}); {why}."
        )
    if finding.kind == "shows_more" and share is not None:
        return (
            "One address pair reaches more,"
            f" {'at least ' if pair.is_at_least else ''}{show_percent(share)} of the result with"
            f" {addresses} ({values}): many addresses reduce the throughput of this DUT."
        )
    if finding.least_ratio is not None:
        hides_most = max(0.0, 1 - finding.least_ratio)
        most = f"at most {show_percent(hides_most)}" if hides_most >= 0.0005 else "nothing"
        is_little = finding.kind == "not_lower"
        judged, is_open = (
            ("Not biased", "it reaches more") if is_little else ("Not strongly biased", "it is at all")
        )
        return (
            f"{judged}: one address pair hides {most} of what this DUT forwards with {addresses}"
            f" ({values}). Whether {is_open} is not decided: {finding.why}."
        )
    return (
        f"No verdict: {finding.why}. Per direction: {with_one} with one address pair, {with_many} with"
        f" {addresses}."
    )
