# SPDX-License-Identifier: Apache-2.0
"""What stands at an axis of a picture is the value there; and the picture of loss over time says what it
shows, of every direction."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter

from evenhand.analysis import analyse
from evenhand.report.curve_drawing import DrawnCurve, DrawnPoint
from evenhand.report.figures import NARROW, WIDE, Picture, PictureShape, _draw, draw_inline
from evenhand.report.figures_throughput import LossCurve, sizes_picture
from evenhand.report.figures_times import DelayCurve, LossHistory, Samples, history_picture, samples_picture
from evenhand.report.page_figures import pictures_of
from evenhand.run import StoredTrial
from evenhand.run.campaign_record import PointRecord
from evenhand.trial import TrialResult
from tests.report.campaigns import appendix_a, point_of, record_of, throughput_record

NUMBER = re.compile(r"[\N{MINUS SIGN}-]?[\d,]+(\.\d+)?(e[+-]?\d+)?")
KIBI = re.compile(r"(\d+)k")


def assert_true_axes(picture: Picture, shape: PictureShape) -> None:
    """Each number at an axis is the value of its place, not a rounded one, and none is to be added to it."""
    figure = _draw(picture, shape)
    figure.canvas.draw()
    for axes in figure.axes:
        assert isinstance(axes, Axes)
        for axis in (axes.xaxis, axes.yaxis):
            assert axis.get_offset_text().get_text() == "", picture.name
            if isinstance(axis.get_major_formatter(), FixedFormatter):
                continue  # names, such as 99.9 %
            shown: set[str] = set()
            for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True):
                text = label.get_text()
                if (power := KIBI.fullmatch(text)) is not None:
                    assert 1024 * int(power[1]) == place, picture.name
                elif NUMBER.fullmatch(text):
                    value = float(text.replace(",", "").replace("\N{MINUS SIGN}", "-"))
                    assert value == pytest.approx(place, rel=1e-6, abs=1e-9), (picture.name, text, place)
                    assert text not in shown, picture.name
                    shown.add(text)


@pytest.mark.thorough
@pytest.mark.parametrize("shape", [WIDE, NARROW])
def test_every_axis_of_a_page_has_true_values(shape: PictureShape) -> None:
    record = appendix_a(4, 4)
    for picture in pictures_of(record, analyse(record)).all:
        assert_true_axes(picture, shape)


@pytest.mark.parametrize("lost", [3, 14, 15, 75, 999, 12_345, 10**7])
def test_the_axis_of_lost_frames_has_true_values(lost: int) -> None:
    """It said 0, 2, 5, 8, 10, 12, 15 on equal steps of 2.5."""
    tenths = (0, lost // 10, lost - lost // 10, 0)
    picture = history_picture("a", "A", [LossHistory(label="a", lost_by_tenth=tenths)])
    assert_true_axes(picture, WIDE)
    assert_true_axes(picture, NARROW)


def test_values_that_are_nearly_equal_are_not_written_as_a_rest_to_be_added() -> None:
    samples = Samples(label="a", values=(1_000_123_400.0, 1_000_123_450.0))
    assert_true_axes(samples_picture("a", "A", [samples], what="latency"), WIDE)
    curve = DrawnCurve(
        label="a", points=tuple(DrawnPoint(x=size, values=(9_999_999.0 + size,)) for size in (64, 128, 1518))
    )
    assert_true_axes(sizes_picture("a", "A", [curve], []), WIDE)


def losing(found: PointRecord, lost: Mapping[str, tuple[int, ...]]) -> PointRecord:
    """Its trial with the lowest load that failed lost these."""
    search = found.repetitions[0].searches[0]
    failed = [trial for trial in search.trials if str(trial.result.verdict) == "FAIL"]
    nearest = min(failed, key=lambda t: (t.result.intended_fps, -t.result.intended_duration_s))

    def with_loss(trial: StoredTrial) -> StoredTrial:
        if trial is not nearest:
            return trial
        raw: dict[str, Any] = dict(trial.result.raw)
        raw["directions"] = {
            name: {**direction, "lost_by_tenth": list(lost[name])}
            for name, direction in raw["directions"].items()
        }
        return replace(trial, result=TrialResult.from_contract(raw))

    trials = tuple(map(with_loss, search.trials))
    one = replace(found.repetitions[0], searches=(replace(search, trials=trials),))
    return replace(found, repetitions=(one, *found.repetitions[1:]))


@pytest.mark.parametrize(
    "lost",
    [
        {"forward": (2, 3, 0), "reverse": (0, 40, 5)},
        {"forward": (0, 0, 0), "reverse": (0, 40, 5)},
        {"forward": (7, 0, 0), "reverse": (0, 0, 0)},
    ],
)
def test_loss_over_time_shows_both_directions_and_says_of_which_trial(
    lost: dict[str, tuple[int, ...]],
) -> None:
    """A trial that lost 5 and 45 showed only the 5, without a word of which trial, point or direction."""
    point = point_of("direct", 0, "gateway-v4", 16, repetitions=2)
    found = losing(throughput_record(point, 1e6, chance=random.Random(1)), lost)
    record = record_of([found])
    (picture,) = pictures_of(record, analyse(record)).histories
    drawn = " ".join(re.sub(r"<[^>]*>", " ", draw_inline(picture)).split())
    for direction, by_tenth in lost.items():
        assert drawn.count(f"{direction}: {sum(by_tenth)} lost") == 2, direction
        assert f"{direction}: {sum(by_tenth)} frames." in picture.alt
    for words in ("direct: IPv4", "16 x 16 addresses", "64 octets", "repetition 1", "trial "):
        assert words in drawn


def test_one_line_of_loss_has_a_legend_too() -> None:
    label = "a very long name of a suite that somebody chose: IPv6, 65,536 x 65,536 addresses, trial 3"
    drawn = draw_inline(history_picture("a", "A", [LossHistory(label=label, lost_by_tenth=(1, 2))]))
    assert "trial 3: 3 lost" in " ".join(re.sub(r"<[^>]*>", " ", drawn).split())


def test_loss_over_time_is_frames_per_second_however_many_steps_there_are() -> None:
    """A step of a tenth of a second, or of more where a picture has no room for so many."""
    times, rates = LossHistory(label="a", lost_by_tenth=(1, 0, 3)).steps()
    assert times == pytest.approx([0, 0.1, 0.2, 0.3])
    assert rates == [10, 0, 30, 30]
    times, rates = LossHistory(label="a", lost_by_tenth=(2, 4) * 300).steps()
    assert times[1] == pytest.approx(0.5)
    assert times[-1] == 60
    assert set(rates) == {28, 32}
    short = LossHistory(label="a", lost_by_tenth=(2,) * 121).steps()
    assert set(short[1]) == {20}


def test_a_percentile_of_delays_is_the_share_of_the_frames_that_were_faster() -> None:
    """R8219-07: the first bucket begins at 0 %, and the last ends at 100 %."""
    curve = DelayCurve(label="a", buckets=((10.0, 5), (20.0, 4), (90.0, 1)))
    assert curve.percentiles() == [(0, 10), (0.5, 20), (0.9, 90)]
    assert LossCurve(label="a", repetitions=(((50, 1), (100, 9)), ((50, 3), (100, 7)))).medians() == [
        (50, 2),
        (100, 8),
    ]
