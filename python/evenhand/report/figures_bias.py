# SPDX-License-Identifier: Apache-2.0
"""Station 10: the demo's picture: what was found with one address pair and with many, next to what was
predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.analysis.words import show_percent
from evenhand.base.units import format_rate
from evenhand.report.figures import LIGHT, Picture, PictureShape, put_legend, put_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One search. Rates are per direction."""

    hashes: str
    """`addresses only`."""
    address_words: str
    """`one address pair`."""
    found_fps: float | None
    passed_fps: float | None = None
    """Without a number: the highest load that passed."""
    share: float | None
    """Share of the plateau, as the table has it."""
    predicted_fps: float
    is_even: bool
    """About all that the router does."""

    @property
    def shown_found(self) -> str:
        if self.found_fps is not None:
            return format_rate(self.found_fps)
        return "no number" if self.passed_fps is None else f"no number; {format_rate(self.passed_fps)} passed"


def bars_picture(bars: Sequence[Bar], plateau_fps: float) -> Picture:
    """A bar for each search, full length where all elements of the router are fully at work."""
    title = "One router, three results"

    def draw(axes: Axes, shape: PictureShape) -> None:
        for row, bar in enumerate(bars):
            found = (bar.found_fps or 0) / 1e3
            # Not by the hue alone: a biased result is hatched too.
            axes.barh(
                row,
                found,
                height=0.5,
                color=LIGHT["good" if bar.is_even else "bad"],
                hatch=None if bar.is_even else "////",
                edgecolor=LIGHT["paper"],
                linewidth=0,
                zorder=2,
            )
            axes.plot(
                [bar.predicted_fps / 1e3] * 2,
                [row - 0.33, row + 0.33],
                color=LIGHT["ink"],
                linewidth=2.2,
                zorder=4,
                label="predicted before anything was sent" if row == 0 else None,
            )
            said = bar.shown_found
            if bar.found_fps is not None and bar.share is not None:
                said = f"{format_rate(bar.found_fps)}, {show_percent(bar.share)}"
            inside = found > plateau_fps / 2e3
            axes.annotate(
                said,
                (found, row),
                xytext=(-9 if inside else 9, 0),
                textcoords="offset points",
                va="center",
                ha="right" if inside else "left",
                color=LIGHT["paper"] if inside else LIGHT["ink"],
                fontweight="bold",
                zorder=5,
            )
            if shape.is_narrow:
                axes.annotate(
                    f"hashes {bar.hashes}; {bar.address_words}",
                    (0, row - 0.36),
                    xytext=(0, 1),
                    textcoords="offset points",
                    va="bottom",
                    color=LIGHT["ink"],
                    fontsize=8.5,
                    zorder=5,
                )
        axes.axvline(
            plateau_fps / 1e3,
            color=LIGHT["ink"],
            linestyle=(0, (4, 3)),
            linewidth=1,
            zorder=1,
            label="all elements at work",
        )
        labels = [f"router hashes {bar.hashes},\n{bar.address_words}" for bar in bars]
        axes.set_yticks(range(len(bars)), [] if shape.is_narrow else labels)
        axes.tick_params(axis="y", labelcolor=LIGHT["ink"])
        axes.set_ylim(len(bars) - 0.5, -0.72 if shape.is_narrow else -0.5)
        axes.set_xlim(0, plateau_fps / 1e3 * 1.04)
        axes.grid(visible=False, axis="y")
        put_title(axes, "throughput per direction, kfps")
        put_legend(axes, shape)

    said = "; ".join(
        f"hashes {bar.hashes}, {bar.address_words}: {bar.shown_found},"
        f" predicted {format_rate(bar.predicted_fps)}"
        for bar in bars
    )
    caption = "Bars: what the search found, in percent of what all elements of the router do together."
    return Picture(
        name="demo",
        title=title,
        alt=f"{title}. Router {said}.",
        caption=caption,
        draw=draw,
        row_count=len(bars),
    )
