# SPDX-License-Identifier: Apache-2.0
"""The four cases of the draft's Figure 7 on the reference router: rise and fall are found where its
configuration puts them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import pytest

from evenhand.analysis import Analysis, CurvePoint, analyse
from evenhand.analysis.plateau import find_shape
from evenhand.cli.main import main
from evenhand.plan import ONE_EACH, SideCounts, make_plan
from evenhand.predict import DeviceModel, NeighborCost, neighbor_entries, predict, symmetric_key
from evenhand.procedure.registry import PROCEDURES
from evenhand.procedure.statistics import Statistics
from evenhand.run import PointState, read_record

pytestmark = [pytest.mark.wire, pytest.mark.two_cpus, pytest.mark.slow]
ELEMENT_FPS = {16: 8000, 36: 4000}
QUEUE_S = 0.048
"""What the queue of an element holds. A trial of 2 s passes with a load that is so much of it, 2.4 %, too
high; and a stall this long loses nothing."""
GROWTH = 0.15
LARGEST = 16384
"""Hosts a side: thinned, and ended here, so that a case takes minutes."""
ALL = 65533
"""Hosts a side of the whole series: as many as both plans have."""
BLUR = 0.03
"""Short trials hide a little overload in the queues. A point whose prediction is nearer than this to the
limit may lie on either side of it; the thinned series leaves it out."""


@dataclass(frozen=True)
class Case:
    """A case of Figure 7, with the hash of this DUT; the published keys are not known."""

    number: int
    plan: str
    elements: int
    free_entries: int
    """Free entries of the neighbour table; both sides' hosts are in it. 0: it costs nothing."""
    key: str | None = None

    @property
    def model(self) -> DeviceModel:
        model = DeviceModel(elements=self.elements, rate_fps=ELEMENT_FPS[self.elements])
        return replace(model, key=symmetric_key()) if self.key == "openbsd" else model

    def predicted(self, largest: int = LARGEST) -> dict[int, float]:
        """Frames per second per direction by hosts a side: doubling series, and its end."""
        found = {}
        cost = NeighborCost(free_entries=self.free_entries, growth=GROWTH)
        for hosts in sorted({*(2**exponent for exponent in range(largest.bit_length())), largest}):
            plan = make_plan(self.plan, hosts)
            fps = predict(plan, self.model).throughput_fps
            assert fps is not None
            found[hosts] = fps / cost.factor(neighbor_entries(plan))
        return found


CASES = [
    Case(1, "direct-v4-net16", 16, 8192),
    Case(2, "direct-v6", 16, 8192),
    Case(3, "direct-v4-net16", 16, 0, "openbsd"),
    Case(4, "direct-v4-net16", 36, 4096),
]


def shape_of(values: dict[int, float]) -> tuple[int | None, int | None, list[int]]:
    """Rise, fall, and the points that tell them: the ends, both sides of rise and fall, one between."""
    points = [
        CurvePoint(
            key=str(n),
            hosts=SideCounts(n, n),
            networks=ONE_EACH,
            state=PointState.MEASURED,
            reason=None,
            asked=1,
            values=(fps,),
            statistics=Statistics.of([fps]),
            predicted=None,
        )
        for n, fps in values.items()
    ]
    shape = find_shape(points, PROCEDURES["throughput"].figure)
    assert shape is not None
    numbers = list(values)
    first, last = numbers.index(shape.plateau[0]), numbers.index(shape.plateau[-1])
    places = {0, first - 1, first, (first + last) // 2, last, last + 1, len(numbers) - 1}
    return (
        shape.rise_end,
        shape.falls_above,
        sorted(numbers[place] for place in places if 0 <= place < len(numbers)),
    )


def campaign_of(case: Case, hosts: list[int]) -> str:
    rate_fps = case.elements * ELEMENT_FPS[case.elements] / 2 * 1.25
    return f"""
name = "case {case.number}"
testbed = "reference"

[reference]
elements = {case.elements}
rate = "{ELEMENT_FPS[case.elements]}fps"
queue-frames = {QUEUE_S * ELEMENT_FPS[case.elements]:.0f}
{f'neighbor-cost = "{case.free_entries},{GROWTH:.0%}"' if case.free_entries else ""}
{f'key = "{case.key}"' if case.key else ""}

[[suite]]
name = "direct"
plan = "{case.plan}"
hosts = {hosts}
repetitions = 1
maximum-rate = "{rate_fps:.0f}fps"
duration = "2s"
final-duration = "2s"
precision = "2%"
waits = "short"
"""


def measured(case: Case, hosts: list[int]) -> Analysis:
    """A campaign of these points in the current folder."""
    Path("case.toml").write_text(campaign_of(case, hosts))
    assert main(["run", "case.toml", "--run", "case.evenhand"]) == 0
    return analyse(read_record(Path("case.evenhand")))


def shapes_of(values: dict[int, float]) -> set[tuple[int | None, int | None]]:
    """Rise and fall, for either side on which the points near the limit may lie."""
    level = max(values.values())
    blurred = [n for n, fps in values.items() if abs(fps / level - 0.95) <= BLUR]
    sides = product((0.95 - BLUR, 0.95 + BLUR), repeat=len(blurred))
    return {
        shape_of({**values, **{n: side * level for n, side in zip(blurred, chosen, strict=True)}})[:2]
        for chosen in sides
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"case {case.number}")
def test_the_whole_series_of_a_case(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SEED-65, SEED-66: from one pair to 131,066 living neighbours, each point as it was predicted. `make
    prove`, part figure7."""
    monkeypatch.chdir(tmp_path)
    predicted = case.predicted(ALL)
    analysis = measured(case, list(predicted))
    (comparison,) = analysis.published
    print(
        *(
            f"{p.address_count}: {p.values} predicted {predicted[p.address_count]:.0f}"
            for p in analysis.curves[0].points
        ),
        sep="\n",
    )
    print("\n".join(comparison.sentences))
    assert [point.address_count for point in analysis.curves[0].points] == list(predicted)
    for point in analysis.curves[0].points:
        assert point.values[0] == pytest.approx(predicted[point.address_count], rel=0.05), point.address_count
    assert (comparison.found_rise_end, comparison.found_falls_above) in shapes_of(predicted)
    assert (comparison.predicted_rise_end, comparison.predicted_falls_above) == shape_of(predicted)[:2]
    assert analysis.bias[0].hashes_ports is False


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"case {case.number}")
def test_rise_and_fall_of_a_case_are_where_its_configuration_puts_them(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEED-66: what is expected is computed from elements, hash and neighbour cost, and measured through the
    whole chain. Short trials and a thinned series are deviations."""
    monkeypatch.chdir(tmp_path)
    predicted = case.predicted()
    level = max(predicted.values())
    clear = {n: fps for n, fps in predicted.items() if abs(fps / level - 0.95) > BLUR}
    rise_end, falls_above, hosts = shape_of(clear)
    analysis = measured(case, hosts)
    (comparison,) = analysis.published
    print("\n".join(comparison.sentences))
    assert (comparison.found_rise_end, comparison.found_falls_above) == (rise_end, falls_above)
    assert (comparison.predicted_rise_end, comparison.predicted_falls_above) == (rise_end, falls_above)
    assert comparison.rows
    for point in analysis.curves[0].points:
        assert point.predicted == pytest.approx(predicted[point.address_count])
        assert point.values[0] == pytest.approx(predicted[point.address_count], rel=0.05)
    assert analysis.bias[0].finding == "hides"
    assert analysis.bias[0].hashes_ports is False
