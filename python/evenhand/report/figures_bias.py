# SPDX-License-Identifier: Apache-2.0
"""Station 10: the demo's picture: what was found with one address pair and with many, next to what was
predicted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.analysis.condition_words import show_percent
from evenhand.base.errors import RequestError
from evenhand.base.new_file import unwritable
from evenhand.base.units import format_count, format_rate
from evenhand.predict.loads import Prediction
from evenhand.predict.text import describe_model, hosts_title
from evenhand.report.figures import (
    LIGHT,
    Picture,
    PictureShape,
    put_legend,
    put_ticks_of_counts,
    put_title,
    save_picture,
    style,
)

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


FORMATS = (".svg", ".png", ".pdf")


def check_picture_name(path: Path) -> None:
    """Before anything is computed. RequestError if the ending is none of `FORMATS`."""
    if path.suffix.lower() not in FORMATS:
        raise RequestError(
            f"{str(path)!r} does not end in {', '.join(FORMATS)}",
            code="report.not-a-picture-format",
            where="--picture",
            next_step="Name a file such as series.svg.",
        )


def draw_series(series: Sequence[Prediction], smallest_even: int | None, path: Path) -> None:
    """Write the picture.

    Raises:
        HostError: The file cannot be written.
    """
    picture, is_new = series_picture(series, smallest_even), not os.path.lexists(path)
    try:
        save_picture(picture, path)
    except OSError as error:
        if is_new:  # a full disk leaves no half of one
            path.unlink(missing_ok=True)
        raise unwritable(str(path), error) from error


def series_picture(series: Sequence[Prediction], smallest_even: int | None) -> Picture:
    """The picture, in the style of all pictures."""
    plan, model = series[-1].plan, series[-1].model
    directions = (
        "both directions" if len(series[-1].directions) == 2 else f"{series[-1].directions[0]} direction"
    )

    def draw(axes: Axes, shape: PictureShape) -> None:
        host_counts = [point.plan.left.host_range.count for point in series]
        axes.set_xscale("log", base=2)
        axes.plot(
            host_counts,
            [100 * float(point.share_of_plateau) for point in series],
            **style(0),
            linewidth=1.8,
            markersize=5,
            zorder=3,
        )
        axes.axhline(100, color=LIGHT["soft"], linestyle=(0, (6, 2)), linewidth=1, zorder=1)
        axes.annotate(
            "plateau: equal load on all elements",
            (1, 100),
            xytext=(0, 4),
            textcoords="offset points",
            color=LIGHT["soft"],
        )
        if model.table_unevenness > 1:
            best = 100 / float(model.table_unevenness)
            axes.axhline(best, color=LIGHT["c2"], linestyle=(0, (2, 1.5)), linewidth=1, zorder=1)
            axes.annotate(
                f"best that the table allows: {best:.1f} %",
                (host_counts[-1], best),
                xytext=(0, -14),
                textcoords="offset points",
                color=LIGHT["c2"],
                horizontalalignment="right",
            )
        if smallest_even is not None and smallest_even > 1:
            axes.axvline(smallest_even, color=LIGHT["good"], linestyle=":", linewidth=1.4, zorder=1)
            axes.annotate(
                f"even from {format_count(smallest_even)} on",
                (smallest_even, 4),
                xytext=(5, 0),
                textcoords="offset points",
                color=LIGHT["good"],
            )
        put_ticks_of_counts(axes, shape, host_counts)
        axes.set_ylim(0, 112)
        axes.set_yticks(range(0, 101, 20))
        axes.set_xlabel(hosts_title(plan))
        put_title(axes, f"share of the plateau, %: {plan.title}, {directions}\n{describe_model(model)}")

    ends = (
        f"{100 * float(series[0].share_of_plateau):.1f} % to {100 * float(series[-1].share_of_plateau):.1f} %"
    )
    return Picture(
        name="series",
        title=plan.title,
        alt=f"Share of the plateau over the number of hosts: {ends}.",
        caption="",
        draw=draw,
    )
