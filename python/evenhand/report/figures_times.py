# SPDX-License-Identifier: Apache-2.0
"""Station 10: pictures of delays, and of loss over the time of a trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.base.units import format_count, write_alone
from evenhand.procedure.statistics import Statistics
from evenhand.report.figures import LIGHT, Picture, PictureShape, put_legend, put_title, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NINES = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
MOST_STEPS = 120
NS_PER_MS = 1e6
"""Delays are read in milliseconds, as RFC 8219 asks, on all pages and in all tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayCurve:
    """Delays of all frames received in time, as a histogram: lower bound of each bucket in ns, and frames."""

    label: str
    buckets: tuple[tuple[float, int], ...]
    """Buckets in ascending order."""

    def percentiles(self) -> list[tuple[float, float]]:
        """Share of the frames that were faster or as fast, from 0 to below 1, and the delay in ns; a pair for
        each bucket."""
        total = sum(frames for _, frames in self.buckets)
        below, pairs = 0, []
        for delay, frames in self.buckets:
            pairs.append((below / total, delay))
            below += frames
        return pairs


def delays_picture(name: str, title: str, curves: Sequence[DelayCurve]) -> Picture:
    """The distribution with its tail: delay over the percentile, in nines."""

    def draw(axes: Axes, shape: PictureShape) -> None:
        axes.set_xscale("log")
        end = 1.0
        for number, curve in enumerate(curves):
            look = style(number)
            pairs = [(1 / (1 - share), delay / NS_PER_MS) for share, delay in curve.percentiles()]
            end = max(end, pairs[-1][0])
            axes.plot(
                *zip(*pairs, strict=True),
                color=look["color"],
                linestyle=look["linestyle"],
                linewidth=1.8,
                drawstyle="steps-post",
                label=curve.label,
                zorder=3,
            )
        ticks = [1 / (1 - share) for share in NINES if 1 / (1 - share) <= end * 3] or [1.0]
        axes.set_xticks(ticks, [f"{100 * (1 - 1 / tick):.6g} %" for tick in ticks], minor=False)
        axes.minorticks_off()
        if shape.is_narrow:
            axes.tick_params(axis="x", rotation=40)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("share of the frames that took no longer")
        put_title(axes, "delay, ms")
        put_legend(axes, shape)

    alt = f"{title}: delay over the percentile of the frames. " + " ".join(map(_describe, curves))
    caption = (
        "All frames received in time, of all valid trials. Each line to the right leaves one tenth of"
        " the frames. Lost frames are not included."
    )
    return Picture(name=name, title=title, alt=alt, caption=caption, draw=draw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The figure of each repetition, in ns; one column of dots."""

    label: str
    values: tuple[float, ...]


def samples_picture(name: str, title: str, samples: Sequence[Samples], *, what: str) -> Picture:
    """Every repetition as a dot and the median as a bar, so that a reader sees the spread and its shape."""

    def draw(axes: Axes, shape: PictureShape) -> None:
        for row, sample in enumerate(samples):
            statistics = Statistics.of(sample.values)
            assert statistics is not None
            look = style(row)
            # Dots that would cover each other are placed next to each other: the same order each time, so
            # that a page does not change.
            jitter = [((7 * index) % 11 - 5) / 22 for index in range(len(sample.values))]
            axes.scatter(
                [value / NS_PER_MS for value in sample.values],
                [row + offset for offset in jitter],
                s=16,
                color=look["color"],
                alpha=0.5,
                linewidths=0,
                marker=look["marker"],
                zorder=2,
            )
            axes.plot(
                [statistics.median / NS_PER_MS] * 2,
                [row - 0.33, row + 0.33],
                color=LIGHT["ink"],
                linewidth=2,
                zorder=3,
            )
        axes.set_yticks(
            range(len(samples)),
            [sample.label.replace(", ", ",\n", 1) if shape.is_narrow else sample.label for sample in samples],
        )
        axes.set_ylim(len(samples) - 0.45, -0.55)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"{what}, ms")

    said = " ".join(
        f"{sample.label}: median {write_alone(found.median / 1e3, 'us')}."
        for sample in samples
        if (found := Statistics.of(sample.values))
    )
    return Picture(
        name=name,
        title=title,
        alt=f"{title}. {said}",
        caption="Dots: each repetition; bar: their median. The axis does not begin at 0.",
        draw=draw,
        row_count=len(samples),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LossHistory:
    """Frames lost in each tenth of a second of one trial and direction."""

    label: str
    lost_by_tenth: tuple[int, ...]

    def steps(self) -> tuple[list[float], list[float]]:
        """Times in s and frames lost per second from then on: no more steps than a picture has room for."""
        width = -(-len(self.lost_by_tenth) // MOST_STEPS)
        begins = range(0, len(self.lost_by_tenth), width)
        parts = [self.lost_by_tenth[begin : begin + width] for begin in begins]
        rates = [10 * sum(part) / len(part) for part in parts]
        return [*(begin / 10 for begin in begins), len(self.lost_by_tenth) / 10], [*rates, rates[-1]]


def history_picture(
    name: str, title: str, histories: Sequence[LossHistory], *, falls_at_s: float | None = None
) -> Picture:
    """Loss over the time of a trial.

    Args:
        falls_at_s: When the load was lowered, in a recovery test.
    """

    def draw(axes: Axes, shape: PictureShape) -> None:
        from matplotlib.ticker import MaxNLocator

        for number, history in enumerate(histories):
            look = style(number)
            times, rates = history.steps()
            axes.plot(
                times,
                rates,
                drawstyle="steps-post",
                color=look["color"],
                linestyle=look["linestyle"],
                linewidth=1.5,
                label=f"{history.label}: {format_count(sum(history.lost_by_tenth))} lost",
                zorder=3,
            )
        if falls_at_s is not None:
            axes.axvline(
                falls_at_s,
                color=LIGHT["ink"],
                linestyle=(0, (4, 3)),
                linewidth=1,
                label="the load falls",
                zorder=2,
            )
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axes.set_xlabel("time since sending began, s")
        put_title(axes, "frames lost per second")
        # Also of one line: it says which trial, point and direction this is.
        put_legend(axes, shape, least=1)

    said = " ".join(f"{history.label}: {sum(history.lost_by_tenth):,} frames." for history in histories)
    return Picture(
        name=name,
        title=title,
        alt=f"{title}. {said}",
        caption="Lost frames are counted at the time at which they were sent.",
        draw=draw,
    )


def _describe(curve: DelayCurve) -> str:
    pairs = curve.percentiles()
    half = next((delay for share, delay in reversed(pairs) if share <= 0.5), pairs[0][1])
    return f"{curve.label}: half of the frames took no longer than {write_alone(half / 1e3, 'us')}."
